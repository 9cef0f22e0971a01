// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/testenv"
)

// flags returns the flags of phases by name.
func flags(phases []phase.Phase[*reconciliation]) map[string]string {
	all := map[string]string{}
	for _, p := range phases {
		var set []string
		if p.WhilePaused {
			set = append(set, "paused")
		}
		if p.Critical {
			set = append(set, "critical")
		}
		all[p.Name] = strings.Join(set, " ")
	}
	return all
}

// TestPhases checks which phases a paused pool runs, and which failures stop a reconcile.
func TestPhases(t *testing.T) {
	g, r := NewWithT(t), &Reconciler{}
	g.Expect(flags(r.phases(pass()))).To(Equal(map[string]string{
		"pause": "paused", "end of repair": "paused", "hosted cluster": "paused critical", "autoscaling": "paused", "update management": "paused critical",
		"platform": "paused critical", "machines": "paused", "hold of repair": "paused", "settings of machines": "", "start of machines": "", "release image": "paused critical",
		"fields without effect": "paused", "ranges of pods": "paused", "machine image": "", "tuning": "critical", "performance profile": "", "ignition endpoint": "critical",
		"node configuration": "critical", "token and user-data": "critical", "outdated tokens": "", "machines of Cluster API": "critical",
		"machine health check": "", "labels and taints": "",
	}))
	g.Expect(flags(r.deletion(pass()))).To(Equal(map[string]string{
		"last settings of machines": "critical", "deletion of machines": "critical", "deletion of the machine image": "critical",
		"deletion of what machines need": "critical",
	}))
	s := pass()
	s.refused = "somebody else's"
	g.Expect(flags(r.phases(s))).To(HaveLen(1))
	g.Expect(r.deletion(s)).To(BeEmpty())
}

func TestRequireCluster(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*reconciliation)
		reason  string
		message string
	}{
		"When the HostedCluster exists, it should continue":                      {func(*reconciliation) {}, "", ""},
		"When the HostedCluster does not exist, it should stop and name it":      {func(s *reconciliation) { s.HC = nil }, hyperv1.NodePoolNotFoundReason, "HostedCluster demo in namespace clusters"},
		"When the HostedCluster is being deleted, it should stop and report why": {func(s *reconciliation) { s.HC.DeletionTimestamp = ptr.To(metav1.Now()) }, "HostedClusterDeleting", "being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), pass()
			test.change(s)
			_, err := (&Reconciler{}).requireCluster(t.Context(), s)
			if test.reason == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(s.Conditions).To(BeEmpty())
				return
			}
			g.Expect(err).To(MatchError(phase.ErrStop))
			g.Expect(s.Conditions[hyperv1.NodePoolReadyConditionType]).To(And(HaveField("Status", metav1.ConditionFalse),
				HaveField("Reason", test.reason), HaveField("Message", ContainSubstring(test.message))))
		})
	}
}

// TestObserve checks what a reconcile observes at its start.
func TestObserve(t *testing.T) {
	w := startInMemory(t, nil)
	w.birth("own")
	other := w.birth("others")
	other.Annotations[hyperv1.NodePoolAnnotation] = "clusters/other"
	w.Expect(w.client.Update(t.Context(), other)).To(Succeed())
	s, err := w.observe(t.Context(), w.pool())
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(s.Now).To(BeTemporally("==", w.clock.Now()))
	w.Expect(s.HC.Spec.InfraID).To(Equal("demo-abcde"))
	w.Expect(s.Platform).NotTo(BeNil())
	w.Expect(s.PlatformServed).To(BeTrue())
	w.Expect(s.refused).To(BeEmpty())
	w.Expect(s.Machines).To(ConsistOf(HaveField("Name", "own")))
	w.Expect(s.Neighbors).To(ConsistOf(HaveField("Name", "others")))

	orphan := w.pool()
	orphan.Spec.ClusterName = "nobody"
	s, err = w.observe(t.Context(), orphan)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(s.HC).To(BeNil())
	w.Expect(w.prepare(s)).To(Succeed())
	w.Expect(w.pool().OwnerReferences).To(ConsistOf(And(HaveField("Name", "demo"), HaveField("Kind", "HostedCluster"))))

	for _, refused := range []string{"HostedCluster clusters/demo", "Machines of namespace clusters-demo"} {
		server := testenv.Intercept(w.client, func(request testenv.Request) error {
			kind := strings.Fields(refused)[0]
			if strings.Contains(request.String(), strings.TrimSuffix(kind, "s")) {
				return testenv.ErrRefused
			}
			return request.Do()
		})
		_, err = (&Reconciler{Client: server, Clock: w.clock, Platforms: w.Platforms}).observe(t.Context(), w.pool())
		w.Expect(err).To(And(MatchError(testenv.ErrRefused), MatchError(ContainSubstring(refused))))
	}
}

func TestSecretData(t *testing.T) {
	w := inMemory(t)
	fixture.Create(t, w.client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "there"}, Data: map[string][]byte{"a": []byte("b")}})
	w.Expect(scope.SecretData(t.Context(), w.Reconciler.Client, "clusters", "there")).To(HaveKeyWithValue("a", []byte("b")))
	w.Expect(scope.SecretData(t.Context(), w.Reconciler.Client, "clusters", "gone")).To(BeNil())
}

// TestWholePass checks that each phase of a reconcile has a visible effect.
func TestWholePass(t *testing.T) {
	s := startInMemory(t, func(p *hyperv1.NodePool) { p.Spec.NodeLabels = map[string]string{"rack": "r1"} })
	machine := s.birth("a")
	s.change(func(p *hyperv1.NodePool) {
		p.Spec.Platform.MAAS.DeployTimeout = &metav1.Duration{Duration: 7 * 60 * 60 * 1e9}
	})
	s.reach()
	s.born("b")
	s.mustPass()
	var told []string
	for _, c := range s.pool().Status.Conditions {
		told = append(told, c.Type)
	}
	s.Expect(told).To(ContainElements("AllMachinesReady", "AutorepairEnabled", "AutoscalingEnabled", "ReachedIgnitionEndpoint", "Ready", "ReconciliationActive",
		"UpdateManagementEnabled", "UpdatingConfig", "ValidArchPlatform", "ValidGeneratedPayload", "ValidMachineConfig", "ValidPlatformConfig", "ValidReleaseImage"))
	s.Expect(s.healthCheck().Annotations).To(HaveKeyWithValue(hyperv1.NodePoolAnnotation, "clusters/demo"))
	look(s, machine, "a")
	s.Expect(machine.Labels).To(HaveKeyWithValue("managed.hypershift.openshift.io.rack", "r1"))
	s.Expect(s.pool().Finalizers).To(ConsistOf(hyperv1.HostedClusterFinalizer))
	counted := fixture.NewFaulty(s.client)
	s.Reconciler.Client = counted
	s.mustPass()
	s.Expect(counted.Log).To(BeEmpty(), "a pass that changes nothing writes nothing")

	outdated := s.tokenOf(*s.deployment().Spec.Template.Spec.Bootstrap.DataSecretName)
	outdated.ResourceVersion, outdated.Name = "", "token-demo-outdated"
	fixture.Create(t, s.client, outdated)
	s.mustPass()
	s.Expect(s.secret("token-demo-outdated").Annotations).To(HaveKey(hyperv1.IgnitionServerTokenExpirationTimestampAnnotation))
	s.change(func(p *hyperv1.NodePool) { p.Spec.Management.AutoRepair = false })
	s.mustPass()
	s.Expect(s.condition("AutorepairEnabled").Status).To(Equal(corev1.ConditionFalse))
}
