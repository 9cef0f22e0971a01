// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/identity"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/quarantine"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// place is a MaasCluster with MaasMachines, a simulated MAAS, and a reconciler that calls it as one MAAS user.
type place struct {
	*Reconciler
	*scope
	site *simtest.Site
}

func newPlace(t *testing.T, user string, change func(*infrav1.MaasCluster) error, machines []infrav1.MaasMachine, in ...simtest.Machine) *place {
	t.Helper()
	site := simtest.New(t, simtest.Seed(in...))
	id, err := identity.NewResolver(identity.Options{Clock: site.Clock, Template: maas.Config{Clock: site.Clock, Retry: maas.RetryPolicy{Attempts: -1}},
		Environment: map[string][]byte{maas.SecretKeyEndpoint: []byte(simtest.Listen(t, site.Simulator)), maas.SecretKeyAPIKey: []byte(site.Key(user))}}).For(t.Context(), client.ObjectKey{})
	if err != nil {
		t.Fatal(err)
	}
	is, err := id.Inventory.User(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	infra := &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo", UID: "mine", Labels: map[string]string{clusterv1.ClusterNameLabel: "demo"}}}
	scheme := runtime.NewScheme()
	for _, err := range []error{change(infra), infrav1.AddToScheme(scheme)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(infra).WithObjects(infra)
	for i := range machines {
		machines[i].Namespace, machines[i].Name = "ns", fmt.Sprintf("m%d", i)
		machines[i].Labels = map[string]string{clusterv1.ClusterNameLabel: "demo"}
		b.WithObjects(&machines[i])
	}
	c := b.Build()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(infra), infra); err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Client: c, Reader: c, Recorder: events.NewFakeRecorder(20), Clock: site.Clock, QuarantineAfter: 3}
	return &place{r, &scope{infra: infra, identity: id, user: is}, site}
}

// told returns the events since it was last called.
func (p *place) told() []string {
	told := []string{}
	for recorded := p.Recorder.(*events.FakeRecorder).Events; len(recorded) > 0; {
		told = append(told, <-recorded)
	}
	return told
}

// runningOn returns a MaasMachine that runs an image on a machine.
func runningOn(systemID, image string, ready bool) infrav1.MaasMachine {
	m := infrav1.MaasMachine{Spec: infrav1.MaasMachineSpec{Image: image, SystemID: ptr.To(systemID)}}
	m.Status.Ready = ready
	return m
}

func TestQuarantine(t *testing.T) {
	elsewhere := []infrav1.MaasMachine{runningOn("rat001", "noble", true)}
	failed := func(change ...func(*quarantine.Record)) quarantine.Record {
		record := quarantine.Record{Hostname: "mole", Failures: 3, Last: simtest.Start, Image: "noble"}
		for _, do := range change {
			do(&record)
		}
		return record
	}
	ago := func(d time.Duration) func(*quarantine.Record) {
		return func(r *quarantine.Record) { r.Last, r.Failures = simtest.Start.Add(-d), 1 }
	}
	after := func(limit string) map[string]string { return map[string]string{quarantine.AfterAnnotation: limit} }
	isShared := func(r *quarantine.Record) { r.Quarantined, r.Shared = true, true }
	type end struct{ Recorded, Quarantined, Shared, Tagged bool }
	counted, confined := end{Recorded: true}, end{true, true, true, true}
	for name, tc := range map[string]struct {
		record      quarantine.Record
		machines    []infrav1.MaasMachine
		annotations map[string]string
		tagged      bool
		owner       string
		user        string
		want        end
	}{
		"its failures reach the limit":                             {record: failed(), machines: elsewhere, want: confined},
		"its failures stay below the limit":                        {record: failed(func(r *quarantine.Record) { r.Failures = 2 }), machines: elsewhere, want: counted},
		"the cluster sets a higher limit":                          {record: failed(), machines: elsewhere, annotations: after("4"), want: counted},
		"the cluster sets a lower limit":                           {record: failed(func(r *quarantine.Record) { r.Failures = 1 }), machines: elsewhere, annotations: after("1"), want: confined},
		"the cluster disables the limit":                           {record: failed(), machines: elsewhere, annotations: after("0"), want: counted},
		"the limit of the cluster is not a number":                 {record: failed(), machines: elsewhere, annotations: after("few"), want: confined},
		"the image runs on no machine":                             {record: failed(), want: counted},
		"another image runs":                                       {record: failed(), machines: []infrav1.MaasMachine{runningOn("rat001", "jammy", true)}, want: counted},
		"the image runs only on this machine":                      {record: failed(), machines: []infrav1.MaasMachine{runningOn("mole01", "noble", true)}, want: counted},
		"the image does not run on another machine yet":            {record: failed(), machines: []infrav1.MaasMachine{runningOn("rat001", "noble", false)}, want: counted},
		"its last failure was a week ago":                          {record: failed(ago(7 * 24 * time.Hour)), machines: elsewhere, want: counted},
		"its last failure was longer ago":                          {record: failed(ago(7*24*time.Hour + time.Second)), machines: elsewhere},
		"the user may not set tags":                                {record: failed(), machines: elsewhere, user: "alice", want: end{Recorded: true, Quarantined: true}},
		"it is in quarantine, even a month after its last failure": {record: failed(ago(30*24*time.Hour), isShared), tagged: true, want: confined},
		"a user removed the tag":                                   {record: failed(isShared), machines: elsewhere},
		"another user has it, so its state is unknown":             {record: failed(isShared), owner: "bob", user: "alice", want: end{Recorded: true, Quarantined: true, Shared: true}},
	} {
		t.Run("When "+name+", it should decide whether to quarantine the machine", func(t *testing.T) {
			g, user := NewWithT(t), "admin"
			if tc.user != "" {
				user = tc.user
			}
			p := newPlace(t, user, func(infra *infrav1.MaasCluster) error {
				infra.Annotations = tc.annotations
				return quarantine.Records.Set(infra, "mole01", tc.record)
			}, tc.machines, simtest.Machine{ID: "mole01", Hostname: "mole"}, simtest.Machine{ID: "rat001"})
			p.site.Change("mole01", func(m *inventory.Machine) {
				m.Owner = tc.owner
				if tc.tagged {
					m.Tags = []string{quarantine.Tag}
				}
			})
			result, err := p.quarantine(t.Context(), p.scope)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.IsZero()).To(BeTrue())
			g.Expect(p.Client.Get(t.Context(), client.ObjectKeyFromObject(p.infra), p.infra)).To(Succeed())
			record, recorded := quarantine.Records.Of(p.infra)["mole01"]
			tagged := strings.Contains(strings.Join(p.site.Machine("mole01").Tags, " "), quarantine.Tag)
			if diff := cmp.Diff(tc.want, end{recorded, record.Quarantined, record.Shared, tagged}); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			newly := tc.want.Quarantined && !tc.record.Quarantined
			g.Expect(p.told()).To(HaveLen(map[bool]int{true: 1}[newly]))
		})
	}
}

func TestQuarantineWithoutMAAS(t *testing.T) {
	g := NewWithT(t)
	p := newPlace(t, "admin", func(infra *infrav1.MaasCluster) error {
		return quarantine.Records.Set(infra, "mole01", quarantine.Record{Failures: 3, Last: simtest.Start, Image: "noble", Quarantined: true, Shared: true})
	}, nil, simtest.Machine{ID: "mole01"})
	accept := simtest.Refuse(t, p.site.Simulator, "machines.read", "", http.StatusServiceUnavailable, "busy")
	result, err := p.quarantine(t.Context(), p.scope)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.RequeueAfter).To(Equal(15 * time.Second))
	accept()
	p.problem = &machine.Problem{}
	result, err = p.quarantine(t.Context(), p.scope)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.IsZero()).To(BeTrue(), "another phase has told that MAAS can't be asked")
	g.Expect(quarantine.Records.Of(p.infra)).To(HaveLen(1))
}

func TestToldOfQuarantine(t *testing.T) {
	g, s := NewWithT(t), &scope{infra: &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}}
	g.Expect(s.quarantineCondition()).To(BeNil())
	g.Expect(quarantine.Records.Set(s.infra, "counted", quarantine.Record{Hostname: "counted"})).To(Succeed())
	g.Expect(s.quarantineCondition()).To(BeNil(), "it is taken again when there is no other")
	for n := range 25 {
		g.Expect(quarantine.Records.Set(s.infra, fmt.Sprintf("id%02d", n), quarantine.Record{Hostname: "host", Quarantined: true, Shared: n == 0})).To(Succeed())
	}
	told := s.quarantineCondition()
	g.Expect(told).To(ConsistOf(And(HaveField("Type", "MachinesQuarantined"), HaveField("Status", metav1.ConditionTrue), HaveField("Reason", "DeploymentsFailed"))))
	g.Expect(strings.Count(told[0].Message, "is quarantined")).To(Equal(20))
	g.Expect(told[0].Message).To(And(HavePrefix("machine host (id00) "), ContainSubstring("remove=id00. machine host (id01)"), ContainSubstring("(id19)"), Not(ContainSubstring("(id20)")), Not(ContainSubstring("counted"))))
	s.infra.Annotations, s.infra.Status.Conditions = nil, []metav1.Condition{{Type: ConditionQuarantine, Status: metav1.ConditionTrue}}
	g.Expect(s.quarantineCondition()).To(ConsistOf(And(HaveField("Type", "MachinesQuarantined"), HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "None"), HaveField("Message", ""))))
}
