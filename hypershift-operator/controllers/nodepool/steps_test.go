// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// pass returns a scope of the fixture's pool with its configuration, "wanted", and some machines.
func pass(machines ...*clusterv1.Machine) *reconciliation {
	s := &reconciliation{Scope: scopetest.New(machines...)}
	s.config.Hash, s.config.HashWithoutVersion = "wanted", "configured"
	return s
}

func late(m *clusterv1.Machine) { scope.Annotate(m, latecomerAnnotation, "true") }

func ofVersion(version string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { scope.Annotate(m, hyperv1.NodePoolReleaseVersionAnnotation, version) }
}

func TestOutdated(t *testing.T) {
	type counts struct{ Release, Config int }
	for name, test := range map[string]struct {
		scope *reconciliation
		want  counts
	}{
		"no machine":                                                 {pass(), counts{}},
		"all machines have the configuration":                        {pass(scopetest.Machine("a", "wanted"), scopetest.Machine("b", "wanted")), counts{}},
		"one machine has another configuration":                      {pass(scopetest.Machine("a", "wanted"), scopetest.Machine("b", "old")), counts{Config: 1}},
		"one machine has another version":                            {pass(scopetest.Machine("a", "old", ofVersion("1.36.2")), scopetest.Machine("b", "old")), counts{Release: 1, Config: 1}},
		"the annotation takes precedence over the Machine's version": {pass(scopetest.Machine("a", "old", func(m *clusterv1.Machine) { m.Spec.Version = "1.0.0" }, ofVersion("1.36.3"))), counts{Config: 1}},
		"without an annotation, the Machine's version is used":       {pass(scopetest.Machine("a", "old", func(m *clusterv1.Machine) { m.Spec.Version = "1.36.2" })), counts{Release: 1}},
		"one machine has no bootstrap Secret":                        {pass(scopetest.Machine("a", "old", func(m *clusterv1.Machine) { m.Spec.Bootstrap.DataSecretName = nil })), counts{Config: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			release, config := test.scope.outdated()
			if diff := cmp.Diff(test.want, counts{release, config}); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			test.scope.Pool.Spec.Management.UpgradeType = hyperv1.UpgradeTypeInPlace
			release, config = test.scope.outdated()
			if diff := cmp.Diff(counts{}, counts{release, config}); diff != "" {
				t.Errorf("machines that are updated in place are not replaced: -want +got\n%s", diff)
			}
		})
	}
}

// TestReportUpdating checks that an update is reported if either the recorded state or an existing machine is
// outdated.
func TestReportUpdating(t *testing.T) {
	for name, test := range map[string]struct {
		machines                []*clusterv1.Machine
		version, config         string
		updatesVersion, updates string
	}{
		"all machines are up to date":                 {[]*clusterv1.Machine{scopetest.Machine("a", "wanted")}, "1.36.3", "wanted", "", ""},
		"one machine has another configuration":       {[]*clusterv1.Machine{scopetest.Machine("a", "wanted"), scopetest.Machine("b", "old")}, "1.36.3", "wanted", "", "1 of 2 machines are to be replaced"},
		"one machine has another version":             {[]*clusterv1.Machine{scopetest.Machine("a", "old", ofVersion("1.36.2"))}, "1.36.3", "wanted", "1 of 1 machines are to be replaced", ""},
		"the configuration has changed":               {nil, "1.36.3", "old", "", "configuration wanted"},
		"the version has changed":                     {nil, "1.36.2", "wanted", "version 1.36.3", ""},
		"no version and no configuration is recorded": {nil, "", "", "version 1.36.3", "configuration wanted"},
	} {
		t.Run("When "+name+", the updating conditions should report it", func(t *testing.T) {
			g, s := NewWithT(t), pass(test.machines...)
			s.config.HashWithoutVersion = "wanted"
			s.Pool.Status.Version = test.version
			scope.Annotate(s.Pool, hyperv1.NodePoolCurrentConfigAnnotation, test.config)
			s.reportUpdating(nil)
			for kind, words := range map[string]string{
				hyperv1.NodePoolUpdatingVersionConditionType: test.updatesVersion, hyperv1.NodePoolUpdatingConfigConditionType: test.updates,
			} {
				c := s.Conditions[kind]
				if words == "" {
					g.Expect(c).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", hyperv1.AllIsWellMessage)), kind)
					continue
				}
				g.Expect(c).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Message", HaveSuffix(words))), kind)
			}
		})
	}
}

func TestRolledOut(t *testing.T) {
	from := func(template string) client.Object {
		return &infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{clusterv1.TemplateClonedFromNameAnnotation: template}}}
	}
	for name, test := range map[string]struct {
		machines []*clusterv1.Machine
		infra    map[string]client.Object
		wanted   *int32
		want     bool
	}{
		"no machine is desired":                         {wanted: ptr.To[int32](0), want: true},
		"no machine is desired, and no number is set":   {want: true},
		"one machine is missing":                        {wanted: ptr.To[int32](1)},
		"the machine is available":                      {[]*clusterv1.Machine{scopetest.Machine("a", "wanted", scopetest.Joined)}, map[string]client.Object{"a": from("t")}, ptr.To[int32](1), true},
		"more machines than desired are available":      {[]*clusterv1.Machine{scopetest.Machine("a", "wanted", scopetest.Joined), scopetest.Machine("b", "wanted", scopetest.Joined)}, map[string]client.Object{}, ptr.To[int32](1), true},
		"the machine is not available":                  {[]*clusterv1.Machine{scopetest.Machine("a", "wanted")}, map[string]client.Object{"a": from("t")}, ptr.To[int32](1), false},
		"the machine is available but being deleted":    {[]*clusterv1.Machine{scopetest.Machine("a", "wanted", scopetest.Joined, scopetest.Leaving)}, map[string]client.Object{"a": from("t")}, ptr.To[int32](1), false},
		"the machine has another configuration":         {[]*clusterv1.Machine{scopetest.Machine("a", "old", scopetest.Joined)}, map[string]client.Object{"a": from("t")}, ptr.To[int32](1), false},
		"the machine was created from another template": {[]*clusterv1.Machine{scopetest.Machine("a", "wanted", scopetest.Joined)}, map[string]client.Object{"a": from("old")}, ptr.To[int32](1), false},
		"the machine's template is unknown":             {[]*clusterv1.Machine{scopetest.Machine("a", "wanted", scopetest.Joined)}, map[string]client.Object{"a": &infrav1.MaasMachine{}}, ptr.To[int32](1), true},
		"the platform machines could not be listed":     {[]*clusterv1.Machine{scopetest.Machine("a", "wanted", scopetest.Joined)}, nil, ptr.To[int32](1), false},
		"an old machine is still being deleted": {[]*clusterv1.Machine{scopetest.Machine("a", "wanted", scopetest.Joined), scopetest.Machine("b", "old", scopetest.Joined, scopetest.Leaving)},
			map[string]client.Object{}, ptr.To[int32](1), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := pass(test.machines...)
			s.Infra = test.infra
			if got := s.isRolledOut("t", test.wanted); got != test.want {
				t.Errorf("rolled out: %t, want %t", got, test.want)
			}
		})
	}
}

func TestReportTemplate(t *testing.T) {
	for name, test := range map[string]struct {
		last, of string
		want     metav1.ConditionStatus
	}{
		"the first template":                                   {"", "t", metav1.ConditionFalse},
		"the same template":                                    {"t", "t", metav1.ConditionFalse},
		"a new template that no machine has":                   {"old", "t", metav1.ConditionTrue},
		"a machine from another template":                      {"t", "old", metav1.ConditionTrue},
		"the first template, with a machine from another":      {"", "old", metav1.ConditionTrue},
		"a new template, with a machine from the recorded one": {"old", "old", metav1.ConditionTrue},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), pass(scopetest.Machine("a", "wanted"))
			scope.Annotate(s.Pool, hyperv1.NodePoolPlatformMachineTemplateAnnotation, test.last)
			s.Infra["a"] = &infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{clusterv1.TemplateClonedFromNameAnnotation: test.of}}}
			s.reportTemplate("t")
			c := s.Conditions[hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType]
			g.Expect(c.Status).To(Equal(test.want))
			if test.want == metav1.ConditionTrue {
				g.Expect(c.Message).To(HaveSuffix(" t"))
			}
		})
	}
}

// TestAim checks which current configuration a MachineSet gets, depending on its previous one and on late machines.
func TestAim(t *testing.T) {
	type aims struct {
		Target, Current string
		Reopened        bool
	}
	for name, test := range map[string]struct {
		target, current string
		machines        []*clusterv1.Machine
		want            aims
	}{
		"a new set":                                            {"", "", nil, aims{"wanted", "wanted", false}},
		"nothing changes":                                      {"wanted", "wanted", nil, aims{"wanted", "wanted", false}},
		"another configuration is desired":                     {"old", "old", nil, aims{"wanted", "old", false}},
		"nodes are being updated":                              {"wanted", "old", nil, aims{"wanted", "old", false}},
		"the change is reverted during an update":              {"other", "wanted", nil, aims{"wanted", "other", false}},
		"a machine joined late":                                {"wanted", "wanted", []*clusterv1.Machine{scopetest.Machine("a", "old", late, scopetest.Joined)}, aims{"wanted", "old", true}},
		"a late machine has not joined yet":                    {"wanted", "wanted", []*clusterv1.Machine{scopetest.Machine("a", "old", late)}, aims{"wanted", "wanted", false}},
		"a machine that joined late is being deleted":          {"wanted", "wanted", []*clusterv1.Machine{scopetest.Machine("a", "old", late, scopetest.Joined, scopetest.Leaving)}, aims{"wanted", "wanted", false}},
		"a machine that joined late was updated":               {"wanted", "wanted", []*clusterv1.Machine{scopetest.Machine("a", "wanted", late, scopetest.Joined)}, aims{"wanted", "wanted", false}},
		"an old machine that joined in time":                   {"wanted", "wanted", []*clusterv1.Machine{scopetest.Machine("a", "old", scopetest.Joined)}, aims{"wanted", "wanted", false}},
		"a machine joined late while others are being updated": {"wanted", "old", []*clusterv1.Machine{scopetest.Machine("a", "older", late, scopetest.Joined)}, aims{"wanted", "old", false}},
	} {
		t.Run(name, func(t *testing.T) {
			set := &clusterv1.MachineSet{}
			if test.target != "" {
				set.Annotations = map[string]string{hyperv1.NodePoolTargetConfigVersionAnnotation: test.target, hyperv1.NodePoolCurrentConfigVersionAnnotation: test.current}
			}
			reopened := pass(test.machines...).aim(set)
			got := aims{set.Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation], set.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation], reopened}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestReportReady(t *testing.T) {
	reported := []metav1.Condition{{Type: clusterv1.MachineDeploymentAvailableCondition, Status: metav1.ConditionFalse, Reason: "R", Message: "two are on their way"}}
	trouble := func(reason string) map[string]metav1.Condition {
		return map[string]metav1.Condition{hyperv1.NodePoolAllMachinesReadyConditionType: {Status: metav1.ConditionFalse, Reason: reason, Message: "Machine a: its BMC is dead"}}
	}
	for name, test := range map[string]struct {
		wanted, have *int32
		conditions   map[string]metav1.Condition
		reported     []metav1.Condition
		want         string
	}{
		"all are available":                                  {ptr.To[int32](2), ptr.To[int32](2), trouble("DeadBMC"), reported, "True/AsExpected: 2 of 2 machines are available"},
		"more machines than desired are available":           {ptr.To[int32](1), ptr.To[int32](2), nil, nil, "True/AsExpected: 2 of 1 machines are available"},
		"no machine is desired":                              {nil, nil, nil, nil, "True/AsExpected: 0 of 0 machines are available"},
		"Cluster API reports a reason":                       {ptr.To[int32](2), ptr.To[int32](1), map[string]metav1.Condition{}, reported, "False/WaitingForMachines: 1 of 2 machines are available. two are on their way"},
		"Cluster API reports nothing":                        {ptr.To[int32](2), nil, map[string]metav1.Condition{}, nil, "False/WaitingForMachines: 0 of 2 machines are available"},
		"a machine reports the reason":                       {ptr.To[int32](2), ptr.To[int32](1), trouble("DeadBMC"), reported, "False/DeadBMC: 1 of 2 machines are available. Machine a: its BMC is dead"},
		"the lack of machines is not reported as the reason": {ptr.To[int32](2), nil, trouble(hyperv1.NodePoolNotFoundReason), reported, "False/WaitingForMachines: 0 of 2 machines are available. two are on their way"},
		"a true condition is not reported as the reason":     {ptr.To[int32](2), nil, map[string]metav1.Condition{hyperv1.NodePoolAllMachinesReadyConditionType: {Status: metav1.ConditionTrue, Reason: "X"}}, reported, "False/WaitingForMachines: 0 of 2 machines are available. two are on their way"},
		"Cluster API has not observed the new number yet":    {ptr.To[int32](2), nil, map[string]metav1.Condition{}, []metav1.Condition{{Type: clusterv1.MachineDeploymentAvailableCondition, Status: metav1.ConditionTrue, Message: "well"}}, "False/WaitingForMachines: 0 of 2 machines are available"},
	} {
		t.Run(name, func(t *testing.T) {
			s := pass()
			s.replicas = test.have
			if test.conditions != nil {
				s.Conditions = test.conditions
			}
			s.reportReady(test.wanted, test.reported, clusterv1.MachineDeploymentAvailableCondition)
			c := s.Conditions[hyperv1.NodePoolReadyConditionType]
			NewWithT(t).Expect(string(c.Status) + "/" + c.Reason + ": " + c.Message).To(Equal(test.want))
		})
	}
}

func TestForwarderImage(t *testing.T) {
	payload := fixture.Payloads()[fixture.OCPImage]
	for name, test := range map[string]struct {
		tunnel        bool
		pool, cluster string
		release       *releaseinfo.ReleaseImage
		want, fails   string
	}{
		"the payload's image is used":                           {false, "", "", payload, "registry.example/ocp-haproxy:1", ""},
		"the pool's annotation sets another image":              {false, "mine", "", payload, "mine", ""},
		"the cluster's operator image is ignored":               {false, "", "mine", payload, "registry.example/ocp-haproxy:1", ""},
		"through a proxy, the payload's operator image is used": {true, "", "", payload, fixture.OCPOperator, ""},
		"through a proxy, the cluster's operator image is used": {true, "", "mine", payload, "mine", ""},
		"through a proxy, the HAProxy image is ignored":         {true, "mine", "", payload, fixture.OCPOperator, ""},
		"the payload has no image":                              {false, "", "", releaseinfo.New("r", releaseinfo.Payload{Version: "4.20.1"}), "", "4.20.1 has no image haproxy-router"},
		"the payload has no image for a proxy":                  {true, "", "", releaseinfo.New("r", releaseinfo.Payload{Version: "4.20.1"}), "", "4.20.1 has no image hypershift"},
		"the payload has no image, but the pool sets one":       {false, "mine", "", releaseinfo.New("r", releaseinfo.Payload{Version: "4.20.1"}), "mine", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), pass()
			s.Release = test.release
			scope.Annotate(s.Pool, hyperv1.HAProxyImageAnnotation, test.pool)
			scope.Annotate(s.HC, hyperv1.ControlPlaneOperatorImageAnnotation, test.cluster)
			got, err := s.forwarderImage(test.tunnel)
			g.Expect(got).To(Equal(test.want))
			if test.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.fails)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}

func TestWhyNothingGoes(t *testing.T) {
	later, earlier := "2026-11-24T13:00:00Z", "2026-11-24T11:00:00Z"
	for name, test := range map[string]struct {
		change func(*reconciliation)
		told   bool
	}{
		"the cluster is paused":             {func(s *reconciliation) { s.HC.Spec.PausedUntil = ptr.To("true") }, true},
		"the cluster is paused for an hour": {func(s *reconciliation) { s.HC.Spec.PausedUntil = &later }, true},
		"the cluster's pause has ended":     {func(s *reconciliation) { s.HC.Spec.PausedUntil = &earlier }, false},
		"the cluster is not paused":         {func(*reconciliation) {}, false},
		"the cluster is gone":               {func(s *reconciliation) { s.HC = nil }, false},
		"a paused cluster is being deleted": {func(s *reconciliation) {
			s.HC.Spec.PausedUntil, s.HC.DeletionTimestamp = ptr.To("true"), ptr.To(metav1.Now())
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := pass()
			test.change(s)
			got := s.whyNothingGoes()
			NewWithT(t).Expect(got != "").To(Equal(test.told), got)
			if test.told {
				NewWithT(t).Expect(got).To(ContainSubstring("spec.pausedUntil"))
			}
		})
	}
}
