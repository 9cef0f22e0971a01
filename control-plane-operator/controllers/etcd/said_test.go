// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	component "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/control-plane-operator/metrics"
	"github.com/openshift/hypershift/support/condition"
)

func claimOf(size string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: component.ClaimName("etcd-1")}}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	claim.Status.Phase = corev1.ClaimBound
	return claim
}

// TestGrow requests volumes of 2Gi.
func TestGrow(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "data-etcd-1", errRefused)
	invalid := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim").GroupKind(), "data-etcd-1", nil)
	for name, tc := range map[string]struct {
		size          string
		shape         func(*corev1.PersistentVolumeClaim)
		answer        error
		want, refused string
		fails         bool
	}{
		"When the claim is smaller, it should request the new size":                   {size: "1Gi", want: "2Gi"},
		"When the claim has the size, it should not change the claim":                 {size: "2Gi", want: "2Gi"},
		"When the claim is larger, it should not change the claim":                    {size: "3Gi", want: "3Gi"},
		"When the claim is not bound yet, it should not change the claim":             {size: "1Gi", shape: func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }, want: "1Gi"},
		"When the claim is being deleted, it should not change the claim":             {size: "1Gi", shape: func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{Time: noon} }, want: "1Gi"},
		"When the StorageClass does not allow expansion, it should report the error":  {size: "1Gi", answer: forbidden, want: "1Gi", refused: "data-etcd-1"},
		"When the API server rejects the size as invalid, it should report the error": {size: "1Gi", answer: invalid, want: "1Gi", refused: "data-etcd-1"},
		"When the API server fails, it should return an error that names the claim":   {size: "1Gi", answer: errRefused, want: "2Gi", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := newCast(t)
			claim := claimOf(tc.size)
			g.Expect(c.server.Delete(t.Context(), claim.DeepCopy())).To(Succeed())
			g.Expect(c.server.Create(t.Context(), claim)).To(Succeed())
			if tc.shape != nil {
				tc.shape(claim)
			}
			if tc.answer != nil {
				c.refuse("patch v1.PersistentVolumeClaim", tc.answer)
			}
			c.hcp.Spec.Etcd.Managed.Storage.PersistentVolume = &hyperv1.PersistentVolumeEtcdStorageSpec{Size: ptr.To(resource.MustParse("2Gi"))}
			s := &scope{hcp: c.hcp, seen: three()}
			s.seen.members[0].claim, s.seen.members[1].claim, s.seen.members[2].claim = nil, claim, nil
			_, err := c.r.grow(t.Context(), s)
			if tc.fails {
				g.Expect(err).To(And(MatchError(tc.answer), MatchError(ContainSubstring("data-etcd-1")), MatchError(ContainSubstring("2Gi"))))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(s.seen.members[1].claim.Spec.Resources.Requests.Storage().String()).To(Equal(tc.want))
			g.Expect(s.refused).To(ContainSubstring(tc.refused))
			g.Expect(s.refused == "").To(Equal(tc.refused == ""))
			stored := &corev1.PersistentVolumeClaim{}
			g.Expect(c.server.Get(t.Context(), client.ObjectKeyFromObject(claim), stored)).To(Succeed())
			if tc.answer == nil {
				g.Expect(stored.Spec.Resources.Requests.Storage().String()).To(Equal(tc.want))
			}
		})
	}
}

func TestResized(t *testing.T) {
	before := []metav1.Condition{condition.False(string(hyperv1.EtcdVolumesResized), "Before", "")}
	says := func(status corev1.ConditionStatus, message string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) {
			c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Status: status, Message: message}}
		}
	}
	for name, tc := range map[string]struct {
		has     string
		shape   func(*corev1.PersistentVolumeClaim)
		refused string
		before  []metav1.Condition
		want    string
		facts   []string
	}{
		"When the volumes never had to grow, it should set no condition":               {has: "2Gi", want: "none"},
		"When the volumes have grown, it should set the condition to true":             {has: "2Gi", before: before, want: "True/AsExpected"},
		"When a volume is growing, it should report its current size":                  {has: "1Gi", want: "False/ExpansionInProgress", facts: []string{"2Gi", "that of etcd-1 has 1Gi"}},
		"When the claim has a message about the resize, it should report the message":  {has: "1Gi", shape: says(corev1.ConditionTrue, "a pod must restart"), want: "False/ExpansionInProgress", facts: []string{"1Gi (a pod must restart)"}},
		"When the claim's resize condition is false, it should not report its message": {has: "1Gi", shape: says(corev1.ConditionFalse, "a pod must restart"), want: "False/ExpansionInProgress", facts: []string{"1Gi$"}},
		"When the claim's resize condition has no message, it should add none":         {has: "1Gi", shape: says(corev1.ConditionTrue, ""), want: "False/ExpansionInProgress", facts: []string{"1Gi$"}},
		"When the StorageClass does not allow expansion, it should report the refusal": {has: "1Gi", refused: "must support resize", want: "False/ExpansionRefused", facts: []string{"2Gi", "that of etcd-1 has 1Gi", "must support resize", "80 %", "allowVolumeExpansion"}},
		"When a volume's capacity is unknown, it should set no condition":              {has: "0", want: "none"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := &scope{hcp: fixture.ControlPlane(), seen: three(), refused: tc.refused}
			s.hcp.Spec.Etcd.Managed.Storage.PersistentVolume = &hyperv1.PersistentVolumeEtcdStorageSpec{Size: ptr.To(resource.MustParse("2Gi"))}
			s.hcp.Status.Conditions = tc.before
			s.seen.members[0].claim, s.seen.members[1].claim = nil, claimOf(tc.has)
			if tc.shape != nil {
				tc.shape(s.seen.members[1].claim)
			}
			c, known := s.resized()
			if !known {
				c.Status, c.Reason = "", "none"
			}
			g.Expect(strings.TrimPrefix(string(c.Status)+"/"+c.Reason, "/")).To(Equal(tc.want))
			for _, fact := range tc.facts {
				if end, last := strings.CutSuffix(fact, "$"); last {
					g.Expect(c.Message).To(HaveSuffix(end))
					continue
				}
				g.Expect(c.Message).To(ContainSubstring(fact))
			}
		})
	}
}

// TestConditionsOfMembers checks the reported conditions of a cluster, by reason and by the names in them.
func TestConditionsOfMembers(t *testing.T) {
	for name, tc := range map[string]struct {
		edit       func(*scope)
		want       string
		facts      []string
		recovering string
	}{
		"When all members are healthy, the message should be empty": {func(*scope) {}, "True/AsExpected", []string{""}, "none"},
		"When two of three members are lost, it should report the lost quorum": {func(s *scope) { lose(s.seen.members[0]); lose(s.seen.members[2]) },
			"False/QuorumLost", []string{"etcd-0, etcd-2", "the 1 of 3 members"}, "none"},
		"When a member is removed, it should report the replacement": {func(s *scope) {
			lose(s.seen.members[1])
			s.step = step{action: remove, member: s.seen.members[1], why: "of a reason"}
		}, "False/MemberReplaced", []string{"etcd-1", "of a reason"}, "True/MemberReplaced"},
		"When a member is a learner, it should report the replacement":                 {func(s *scope) { s.seen.members[1].listed.IsLearner = true }, "False/MemberReplaced", []string{"etcd-1"}, "True/MemberReplaced"},
		"When a member was removed from the cluster, it should report the replacement": {func(s *scope) { s.seen.members[2].listed = nil }, "False/MemberReplaced", []string{"etcd-2"}, "True/MemberReplaced"},
		"When a replacement is complete, it should set EtcdRecoveryActive to false": {func(s *scope) {
			s.hcp.Status.Conditions = []metav1.Condition{condition.True(string(hyperv1.EtcdRecoveryActive), hyperv1.EtcdMemberReplacedReason, "")}
		}, "True/AsExpected", []string{""}, "False/AsExpected"},
		"When another step runs, it should report no replacement": {func(s *scope) { s.step = step{action: restart, member: s.seen.members[1], why: "of a reason"} }, "True/AsExpected", []string{""}, "none"},
		"When a member is down during a rollout, it should report both": {func(s *scope) {
			s.seen = changed()
			updated(s.seen.members[0])
			updated(s.seen.members[1])
			s.seen.members[1].status = nil
		}, "False/MemberUnhealthy", []string{"etcd-1: 2 of 3", "an update of etcd waits until all members are healthy: etcd-2 still run"}, "none"},
		"When the member list is unknown, it should report that it waits for a quorum": {func(s *scope) { s.seen.listed = false }, "False/EtcdWaitingForQuorum", nil, "none"},
		"When the cluster has an unknown member, it should report how to remove the member": {func(s *scope) { s.seen.strangers = []*etcdserverpb.Member{{ID: 0xabc, Name: "guest"}} },
			"False/MemberUnhealthy", []string{`"guest" (abc)`, "etcdctl member remove abc"}, "none"},
		"When alarms are raised, it should list them by member in order": {func(s *scope) {
			s.seen.alarms = []*etcdserverpb.AlarmMember{{MemberID: 0xfff, Alarm: etcdserverpb.AlarmType_NOSPACE}, {MemberID: 2, Alarm: etcdserverpb.AlarmType_NOSPACE}}
		}, "False/AlarmRaised", []string{"NOSPACE by etcd-1, NOSPACE by fff$"}, "none"},
		"When the corrupt member is unknown, it should report where the repair is documented": {func(s *scope) { s.seen.alarms = corrupt(0) },
			"False/AlarmRaised", []string{"CORRUPT by 0; ", "docs/how-to/etcd.md"}, "none"},
		"When a step follows from the alarm, it should not refer to the documentation": {func(s *scope) { s.seen.alarms, s.step.why = corrupt(2), "of a reason" }, "False/AlarmRaised", []string{"CORRUPT by etcd-1$"}, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := &scope{hcp: fixture.ControlPlane(), seen: three()}
			tc.edit(s)
			read := map[string]string{string(hyperv1.EtcdRecoveryActive): "none"}
			for _, c := range s.conditions(noon) {
				read[c.Type] = string(c.Status) + "/" + c.Reason
				if c.Type != string(hyperv1.EtcdMembersHealthy) {
					continue
				}
				for _, fact := range tc.facts {
					end, last := strings.CutSuffix(fact, "$")
					if g.Expect(c.Message).To(ContainSubstring(end)); last {
						g.Expect(c.Message).To(HaveSuffix(end))
					}
					g.Expect(c.Message == "").To(Equal(fact == ""))
				}
			}
			g.Expect(cmp.Diff(map[string]string{string(hyperv1.EtcdMembersHealthy): tc.want, string(hyperv1.EtcdRecoveryActive): tc.recovering}, read)).To(BeEmpty())
		})
	}
}

// lose makes m a member whose volume was replaced after it started.
func lose(m *member) { m.status, m.note.Volume = nil, "former" }

func TestReport(t *testing.T) {
	c := newCast(t)
	g := NewWithT(t)
	s, err := c.r.observe(t.Context(), c.hcp)
	g.Expect(err).NotTo(HaveOccurred())
	c.r.disks = map[string]*disk{"etcd-0": {p99: 1, said: 20 * time.Millisecond}}
	c.refuse("patch status", errRefused)
	g.Expect(c.r.report(t.Context(), s, nil)).To(MatchError(errRefused))
	s.hcp.Status.Conditions = nil
	c.r.Client = c.server
	g.Expect(c.r.report(t.Context(), s, nil)).To(Succeed())
	stored := &hyperv1.HostedControlPlane{}
	g.Expect(c.server.Get(t.Context(), client.ObjectKeyFromObject(c.hcp), stored)).To(Succeed())
	g.Expect(stored.Status.Conditions).To(ConsistOf(And(HaveField("Type", string(hyperv1.EtcdMembersHealthy)), HaveField("ObservedGeneration", BeEquivalentTo(3))),
		And(HaveField("Type", string(hyperv1.EtcdDiskFast)), HaveField("Reason", hyperv1.EtcdDiskSlowReason), HaveField("ObservedGeneration", BeEquivalentTo(3)))))
	c.refuse("patch status", errRefused)
	g.Expect(c.r.report(t.Context(), s, nil)).To(Succeed(), "what is said already is not written")
	t.Run("When another controller has written conditions since, it should return a conflict", func(t *testing.T) {
		c.r.Client = c.server
		stored.Status.Conditions = append(stored.Status.Conditions, condition.True("Other", "Other", ""))
		NewWithT(t).Expect(c.server.Status().Update(t.Context(), stored)).To(Succeed())
		s.seen.members[1].status = nil
		NewWithT(t).Expect(apierrors.IsConflict(c.r.report(t.Context(), s, nil))).To(BeTrue())
	})
}

func TestLookAtDisks(t *testing.T) {
	c := newCast(t)
	g := NewWithT(t)
	asked := map[string]int{}
	text := map[string]string{"etcd-0": page(1, 0, 0, 0, 0, 0), "etcd-1": "other 1\n"}
	c.r.Scrape = func(ctx context.Context, in, url string) (map[string]*dto.MetricFamily, error) {
		asked[in+" "+url]++
		if end, ok := ctx.Deadline(); !ok || time.Until(end) > 7*time.Second {
			t.Errorf("%s may take for ever", url)
		}
		if text[url] == "" {
			return nil, errRefused
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		return parser.TextToMetricFamilies(strings.NewReader(text[url]))
	}
	c.seen.members[2].status.Leader = 0
	for range 2 {
		c.r.lookAtDisks(t.Context(), namespace, c.seen)
	}
	g.Expect(asked).To(Equal(map[string]int{"clusters-demo etcd-0": 1, "clusters-demo etcd-1": 2}), "who told is not asked before its window ends, nor who serves nobody")
	g.Expect(c.r.disks["etcd-0"].since).To(Equal(noon))
	g.Expect(c.r.disks["etcd-1"].before).To(BeNil())
	g.Expect(c.r.lookAtDisk(t.Context(), namespace, c.seen.members[2])).To(MatchError(errRefused))
	g.Expect(c.r.lookAtDisk(t.Context(), namespace, c.seen.members[1])).To(MatchError(ContainSubstring(fsyncFamily)))
}

func TestMetrics(t *testing.T) {
	m := &Metrics{metrics.NewEtcd()}
	read := func(gauge *prometheus.GaugeVec) string {
		out := make(chan prometheus.Metric, 10)
		gauge.Collect(out)
		close(out)
		all := map[string]float64{}
		for one := range out {
			written := &dto.Metric{}
			if err := one.Write(written); err != nil {
				t.Fatal(err)
			}
			var labels []string
			for _, label := range written.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			all[strings.Join(labels, " ")] = written.GetGauge().GetValue()
		}
		var text []string
		for _, pod := range []string{"etcd-0", "etcd-1", "etcd-2"} {
			value, known := all[pod+" clusters-demo"]
			text = append(text, map[bool]string{true: resource.NewQuantity(int64(value*1000), resource.DecimalExponent).AsDec().String(), false: "-"}[known])
		}
		return strings.Join(text, " ")
	}
	seen := three()
	m.take(namespace, seen, nil)
	seen.members[1].status.IsLearner = true
	seen.members[2].status = nil
	m.take(namespace, seen, map[string]*disk{"etcd-0": {p99: 5 * time.Millisecond}, "etcd-1": {}})
	got := []string{read(m.Healthy), read(m.Leader), read(m.Size), read(m.InUse), read(m.Fsync)}
	if diff := cmp.Diff([]string{"1000 0 0", "1000 0 0", "104857600000 104857600000 -", "94371840000 94371840000 -", "5 - -"}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	(*Metrics)(nil).take(namespace, seen, nil)
}
