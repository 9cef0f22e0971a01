// SPDX-License-Identifier: Apache-2.0

package inplaceupgrade

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/testenv"
)

// TestInPlaceUpgrade runs all cases on one pair of API servers.
func TestInPlaceUpgrade(t *testing.T) {
	s := start(t)
	t.Run("updates", func(t *testing.T) { updates(t, s) })
	t.Run("draining", func(t *testing.T) { draining(t, s) })
	t.Run("failures", func(t *testing.T) { failures(t, s) })
	t.Run("disruptions", func(t *testing.T) { disruptions(t, s) })
	t.Run("hostile nodes", func(t *testing.T) { hostileNodes(t, s) })
}

func updates(t *testing.T, s servers) {
	t.Helper()

	t.Run("When the target changes, it should drain and update one node after another", func(t *testing.T) {
		w := newWorld(t, s, "release", 3)
		for i := range 3 {
			w.pod(w.name(i), fmt.Sprintf("app-%d", i), nil)
		}
		w.aim(after, afterKubelet)
		w.until("the first node", func() bool { return w.have(after) == 1 })
		w.Expect(w.pods(w.name(0))).To(BeEmpty(), "it was emptied")
		w.Expect(w.pods(w.name(1))).To(HaveLen(1), "its turn has not come")
		w.Expect(w.progress()).To(Equal("0 of 3 nodes are updated. Node release-0 is applying the configuration"))
		w.until("the end of the update", w.through)
		w.Expect(w.have(after)).To(Equal(3))
		w.Expect(w.busiest).To(Equal(1))
		w.tidy()
		w.Expect(w.machine(w.name(0)).Annotations).To(HaveKeyWithValue(hyperv1.NodePoolReleaseVersionAnnotation, "1.36.4"))

		counted, writes := testenv.Counted(s.management)
		w.Reconciler = w.reconciler(counted, s.guest)
		w.mustPass()
		w.Expect(*writes).To(BeZero(), "a settled pool is left alone")
	})

	t.Run("When maxUnavailable is two, it should update two nodes at once, those that are not Ready first", func(t *testing.T) {
		w := newWorld(t, s, "share", 4)
		w.limit(2)
		w.kubelet(w.name(3), false, beforeKubelet)
		w.aim(after, afterKubelet)
		w.step()
		w.Expect(w.node(w.name(3)).Spec.Unschedulable).To(BeTrue())
		w.Expect(w.node(w.name(0)).Spec.Unschedulable).To(BeTrue())
		w.until("the end of the update", w.through)
		w.Expect(w.busiest).To(Equal(2))
		w.tidy()
	})

	t.Run("When an administrator has cordoned a node, it should update the node and keep it cordoned", func(t *testing.T) {
		w := newWorld(t, s, "cordoned", 1)
		node := w.node(w.name(0))
		node.Spec.Unschedulable = true
		w.Expect(s.guest.Update(t.Context(), node)).To(Succeed())
		w.aim(after, afterKubelet)
		w.until("the end of the update", w.through)
		w.Expect(w.have(after)).To(Equal(1))
		w.Expect(w.node(w.name(0)).Spec.Unschedulable).To(BeTrue())
	})

	t.Run("When the pool or the cluster is paused, it should start no update", func(t *testing.T) {
		w := newWorld(t, s, "paused", 1)
		w.aim(after, afterKubelet)
		ms := w.set()
		annotate(ms, clusterv1.PausedAnnotation, "true")
		w.Expect(s.management.Update(t.Context(), ms)).To(Succeed())
		for range 3 {
			w.step()
		}
		w.Expect(w.node(w.name(0)).Spec.Unschedulable).To(BeFalse())

		delete(ms.Annotations, clusterv1.PausedAnnotation)
		w.Expect(s.management.Update(t.Context(), ms)).To(Succeed())
		hcp := &hyperv1.HostedControlPlane{}
		w.Expect(s.management.Get(t.Context(), client.ObjectKey{Namespace: "paused", Name: "demo"}, hcp)).To(Succeed())
		hcp.Spec.PausedUntil = ptr.To("true")
		w.Expect(s.management.Update(t.Context(), hcp)).To(Succeed())
		for range 3 {
			w.step()
		}
		w.Expect(w.node(w.name(0)).Spec.Unschedulable).To(BeFalse())

		hcp.Spec.PausedUntil = nil
		w.Expect(s.management.Update(t.Context(), hcp)).To(Succeed())
		w.until("the end of the update", w.through)
	})

	t.Run("When a node cannot be uncordoned, the update should not be complete", func(t *testing.T) {
		w := newWorld(t, s, "stuck", 1)
		w.aim(after, afterKubelet)
		w.until("the node", func() bool { return w.have(after) == 1 })
		_, w.Guest = w.killed(1)
		_, err := w.pass()
		w.Expect(err).To(MatchError(errKilled))
		w.Expect(w.through()).To(BeFalse())
		w.Expect(w.progress()).To(Equal("0 of 1 nodes are updated. Node stuck-0 is being uncordoned"))
		w.Guest = s.guest
		w.until("the end of the update", w.through)
		w.tidy()
	})

	t.Run("When the operator is killed before any write, its successor should complete the update", func(t *testing.T) {
		for nth := 1; ; nth++ {
			w := newWorld(t, s, fmt.Sprintf("killed-%d", nth), 2)
			for i := range 2 {
				w.pod(w.name(i), fmt.Sprintf("app-%d", i), nil)
			}
			w.aim(after, afterKubelet)
			w.Reconciler = w.reconciler(w.killed(nth))
			died := false
			for range 15 {
				if _, err := w.pass(); err != nil {
					died = true
					break
				}
				w.agents()
			}
			w.agents()
			w.Reconciler = w.reconciler(s.management, s.guest)
			w.until("the end of the update", w.through)
			w.Expect(w.have(after)).To(Equal(2))
			w.Expect(w.busiest).To(Equal(1))
			w.tidy()
			if !died {
				w.Expect(nth).To(BeNumerically(">", 8), "nothing was killed")
				return
			}
		}
	})
}

func draining(t *testing.T, s servers) {
	t.Helper()

	t.Run("When a Pod is not evictable or has completed, the drain should skip it", func(t *testing.T) {
		w := newWorld(t, s, "stay", 1)
		w.pod(w.name(0), "daemon", func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "1", Controller: ptr.To(true)}}
		})
		w.pod(w.name(0), "mirror", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} })
		w.pod(w.name(0), "skipped", func(p *corev1.Pod) { p.Labels[clusterv1.PodDrainLabel] = "skip" })
		ended := w.pod(w.name(0), "ended", nil)
		ended.Status.Phase = corev1.PodSucceeded
		w.Expect(s.guest.Status().Update(t.Context(), ended)).To(Succeed())
		w.pod(w.name(0), "app", nil)
		w.aim(after, afterKubelet)
		w.until("the end of the update", w.through)
		w.Expect(w.pods(w.name(0))).To(ConsistOf("stay-daemon", "stay-mirror", "stay-skipped", "stay-ended"))
	})

	t.Run("When a PodDisruptionBudget blocks an eviction, it should report the Pod, wait and then continue", func(t *testing.T) {
		w := newWorld(t, s, "budget", 2)
		w.pod(w.name(0), "app", nil)
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "budget"},
			Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "budget"}}}}
		w.create(s.guest, budget)
		allow := func(disruptions int32) {
			budget.Status.ObservedGeneration, budget.Status.DisruptionsAllowed, budget.Status.CurrentHealthy, budget.Status.DesiredHealthy = budget.Generation, disruptions, 1, 1
			w.Expect(s.guest.Status().Update(t.Context(), budget)).To(Succeed())
		}
		allow(0)
		w.aim(after, afterKubelet)
		for range 4 {
			w.step()
		}
		w.Expect(w.progress()).To(HavePrefix("0 of 2 nodes are updated. Node budget-0 is being drained: waiting for Pod default/budget-app: Cannot evict pod as it would violate the pod's disruption budget"))
		w.Expect(w.node(w.name(0)).Annotations).NotTo(HaveKey(hyperv1.DesiredNodeConfigAnnotation))
		w.Expect(w.node(w.name(1)).Spec.Unschedulable).To(BeFalse())
		allow(1)
		w.until("the end of the update", w.through)
		w.tidy()
	})

	t.Run("When the drain timeout expires, it should update the node with the remaining Pods", func(t *testing.T) {
		w := newWorld(t, s, "timeout", 1)
		ms := w.set()
		ms.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](600)
		w.Expect(s.management.Update(t.Context(), ms)).To(Succeed())
		w.pod(w.name(0), "app", func(p *corev1.Pod) { p.Labels[clusterv1.PodDrainLabel] = "wait-completed" })
		w.aim(after, afterKubelet)
		w.step()
		w.clock.Step(599 * time.Second)
		w.step()
		w.Expect(w.progress()).To(ContainSubstring("Pod default/timeout-app: its label cluster.x-k8s.io/drain asks to wait until it has completed"))
		w.Expect(w.node(w.name(0)).Annotations).NotTo(HaveKey(hyperv1.DesiredNodeConfigAnnotation))
		w.clock.Step(time.Second)
		w.until("the end of the update", w.through)
		w.Expect(w.pods(w.name(0))).To(HaveLen(1))
	})

	t.Run("When an unreachable node has a terminating Pod, the drain should not wait for the Pod", func(t *testing.T) {
		w := newWorld(t, s, "dead", 1)
		pod := w.pod(w.name(0), "app", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](3600) })
		w.aim(after, afterKubelet)
		w.step()
		w.mustPass()
		w.Expect(w.progress()).To(HaveSuffix("Node dead-0 is being drained: waiting for Pod default/dead-app"))
		w.kubelet(w.name(0), false, beforeKubelet)
		w.until("the end of the update", w.through)
		w.Expect(s.guest.Delete(t.Context(), pod, client.GracePeriodSeconds(0))).To(Succeed())
	})
}

func failures(t *testing.T, s servers) {
	t.Helper()

	t.Run("When a node rolls back, it should be uncordoned and reported and block others until the target changes", func(t *testing.T) {
		w := newWorld(t, s, "back", 3)
		w.limit(2)
		w.pod(w.name(1), "app", func(p *corev1.Pod) { p.Labels[clusterv1.PodDrainLabel] = "wait-completed" })
		w.refuses[w.name(0)] = [2]string{hyperv1.NodeConfigRolledBack, "The Node was not\nReady in 5 minutes.\x00" + strings.Repeat("x", 9999)}
		w.aim(after, afterKubelet)
		w.until("the failure", func() bool { return w.failure() != "" })
		w.Expect(w.failure()).To(HavePrefix("Node back-0 rolled back: The Node was not Ready in 5 minutes. xxx"))
		w.Expect(len(w.failure())).To(BeNumerically("<", 500), "a node may write what it likes")
		for range 3 {
			w.step()
		}
		w.Expect(w.have(after)).To(BeZero())
		for _, node := range w.nodes() {
			w.Expect(node.Spec.Unschedulable).To(BeFalse(), "%s serves as before", node.Name)
		}
		w.Expect(w.through()).To(BeFalse())
		delete(w.refuses, w.name(0))
		w.Expect(s.guest.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "back-app"}})).To(Succeed())
		w.aim("cccc3333", "v1.36.5")
		for i := range 3 {
			w.kubelets[w.name(i)] = "v1.36.5"
		}
		w.until("the end of the update", w.through)
		w.Expect(w.have("cccc3333")).To(Equal(3))
		w.tidy()
	})

	t.Run("When the request is removed from a node that rolled back, it should drain it and request again", func(t *testing.T) {
		w := newWorld(t, s, "again", 1)
		w.refuses[w.name(0)] = [2]string{hyperv1.NodeConfigRolledBack, "not Ready"}
		w.aim(after, afterKubelet)
		w.until("the failure", func() bool { return w.failure() != "" })
		w.Expect(w.failure()).To(Equal("Node again-0 rolled back: not Ready"))
		w.step()
		w.pod(w.name(0), "app", nil)
		delete(w.refuses, w.name(0))
		w.annotates(w.name(0), map[string]string{hyperv1.DesiredNodeConfigAnnotation: ""})
		w.until("the end of the update", w.through)
		w.Expect(w.pods(w.name(0))).To(BeEmpty(), "it was emptied again")
		w.tidy()
	})

	t.Run("When a node fails and retries, it should stay drained and be reported after a timeout", func(t *testing.T) {
		w := newWorld(t, s, "tries", 2)
		w.refuses[w.name(0)] = [2]string{hyperv1.NodeConfigFailed, "no space left on device"}
		w.aim(after, afterKubelet)
		w.until("the failure", func() bool {
			return w.progress() == "0 of 2 nodes are updated. Node tries-0 failed: no space left on device"
		})
		w.Expect(w.failure()).To(BeEmpty())
		w.clock.Step(answerTime)
		for range 3 {
			w.step()
		}
		w.Expect(w.failure()).To(Equal("Node tries-0 failed: no space left on device"))
		w.Expect(w.node(w.name(0)).Spec.Unschedulable).To(BeTrue(), "it may begin at any time")
		w.Expect(w.node(w.name(1)).Spec.Unschedulable).To(BeFalse())
		delete(w.refuses, w.name(0))
		w.until("the end of the update", w.through)
		w.tidy()
	})

	t.Run("When the target returns to what a failed node runs, it should only clear the request on that node", func(t *testing.T) {
		w := newWorld(t, s, "home", 2)
		w.refuses[w.name(1)] = [2]string{hyperv1.NodeConfigRolledBack, "not Ready"}
		w.aim(after, afterKubelet)
		w.until("the failure", func() bool { return w.failure() != "" })
		w.Expect(w.have(after)).To(Equal(1))
		w.pod(w.name(1), "app", nil)
		delete(w.refuses, w.name(1))
		w.aim(before, beforeKubelet)
		w.until("the way back", w.through)
		w.Expect(w.have(before)).To(Equal(2))
		w.Expect(w.pods(w.name(1))).To(HaveLen(1), "it runs what it ran")
		w.tidy()
	})

	t.Run("When an updated node is not Ready or runs another kubelet, it should stay cordoned", func(t *testing.T) {
		w := newWorld(t, s, "unwell", 2)
		w.kubelets[w.name(0)] = beforeKubelet
		w.aim(after, afterKubelet)
		w.until("the node", func() bool { return w.have(after) == 1 })
		w.step()
		w.Expect(w.progress()).To(HaveSuffix("Node unwell-0 has the configuration and runs kubelet v1.36.3 instead of v1.36.4"))
		w.kubelet(w.name(0), false, afterKubelet)
		w.step()
		w.Expect(w.progress()).To(HaveSuffix("Node unwell-0 has the configuration and is not Ready"))
		w.Expect(w.node(w.name(0)).Spec.Unschedulable).To(BeTrue())
		w.Expect(w.failure()).To(BeEmpty())
		w.clock.Step(workTime + time.Second)
		w.step()
		w.Expect(w.failure()).To(Equal("Node unwell-0 has the configuration and is not Ready"))
		w.kubelet(w.name(0), true, afterKubelet)
		w.until("the end of the update", w.through)
		w.tidy()
	})

	t.Run("When a node-agent does not answer, it should be reported and block others until it answers", func(t *testing.T) {
		w := newWorld(t, s, "silent", 2)
		w.refuses[w.name(0)] = [2]string{"silent"}
		w.aim(after, afterKubelet)
		w.step()
		w.clock.Step(answerTime)
		w.step()
		w.Expect(w.failure()).To(BeEmpty())
		w.clock.Step(time.Second)
		w.step()
		w.Expect(w.failure()).To(HavePrefix("Node silent-0 was asked to apply the configuration, and its node-agent has not answered for more than 10m0s"))
		w.Expect(w.node(w.name(0)).Spec.Unschedulable).To(BeTrue(), "it may begin at any time")
		w.Expect(w.node(w.name(1)).Spec.Unschedulable).To(BeFalse())
		delete(w.refuses, w.name(0))
		w.until("the end of the update", w.through)
		w.tidy()
	})

	t.Run("When a node never reported its configuration, it should not drain it and should report the cause", func(t *testing.T) {
		w := newWorld(t, s, "mute", 1)
		w.pod(w.name(0), "app", nil)
		w.annotates(w.name(0), map[string]string{hyperv1.CurrentNodeConfigAnnotation: "", hyperv1.NodeConfigStateAnnotation: ""})
		w.clock.SetTime(w.node(w.name(0)).CreationTimestamp.Time)
		w.aim(after, afterKubelet)
		w.step()
		w.Expect(w.progress()).To(HaveSuffix("Node mute-0 has not reported yet which configuration it runs"))
		w.clock.Step(answerTime)
		w.step()
		w.Expect(w.failure()).To(Equal("Node mute-0 does not report which configuration it runs: its node-agent cannot update in place; delete Machine mute-0 to have it reinstalled"))
		w.Expect(w.pods(w.name(0))).To(HaveLen(1))
		w.Expect(w.node(w.name(0)).Spec.Unschedulable).To(BeFalse())
	})
}

func disruptions(t *testing.T, s servers) {
	t.Helper()

	t.Run("When the target is reverted during the update, it should also revert the updated nodes", func(t *testing.T) {
		w := newWorld(t, s, "return", 3)
		w.aim(after, afterKubelet)
		w.until("the first node", func() bool { return w.have(after) == 1 })
		w.step() // The second node has started.
		w.aim(before, beforeKubelet)
		w.until("the way back", w.through)
		w.Expect(w.have(before)).To(Equal(3))
		w.Expect(w.busiest).To(Equal(1))
		w.tidy()
	})

	t.Run("When the target changes during a node's update, it should request the new target afterwards", func(t *testing.T) {
		w := newWorld(t, s, "twice", 2)
		w.aim(after, afterKubelet)
		w.until("work", func() bool {
			return w.node(w.name(0)).Annotations[hyperv1.NodeConfigStateAnnotation] == hyperv1.NodeConfigWorking
		})
		w.aim("cccc3333", "v1.36.5")
		w.mustPass()
		w.Expect(w.node(w.name(0)).Annotations).To(HaveKeyWithValue(hyperv1.DesiredNodeConfigAnnotation, after))
		w.Expect(w.progress()).To(HaveSuffix("Node twice-0 is still applying the previous configuration"))
		w.agents()
		w.kubelets[w.name(0)], w.kubelets[w.name(1)] = "v1.36.5", "v1.36.5"
		w.until("the end of the update", w.through)
		w.Expect(w.have("cccc3333")).To(Equal(2))
		w.Expect(w.busiest).To(Equal(1))
		w.tidy()
	})

	t.Run("When a node is deleted during the update, it should be reported until it is back or its Machine is gone", func(t *testing.T) {
		w := newWorld(t, s, "deleted", 3)
		w.aim(after, afterKubelet)
		w.step()
		w.Expect(s.guest.Delete(t.Context(), w.node(w.name(0)))).To(Succeed())
		for range 3 {
			w.step()
		}
		w.Expect(w.progress()).To(HaveSuffix("Node deleted-0 of Machine deleted-0 is gone: it comes back when its kubelet starts, or delete the Machine to have it reinstalled"))
		w.Expect(w.have(after)).To(BeZero(), "one node is out of service already")
		w.Expect(s.management.Delete(t.Context(), w.machine(w.name(0)))).To(Succeed())
		w.until("the end of the update", w.through)
		w.Expect(w.have(after)).To(Equal(2))
		w.tidy()
	})

	t.Run("When the pool scales during the update, it should update only new nodes without the target", func(t *testing.T) {
		w := newWorld(t, s, "scaled", 2)
		w.aim(after, afterKubelet)
		w.step()
		w.join("scaled-5")
		w.annotates("scaled-5", map[string]string{hyperv1.CurrentNodeConfigAnnotation: after})
		w.pod("scaled-5", "app", nil)
		w.join("scaled-6")
		w.until("the end of the update", w.through)
		w.Expect(w.have(after)).To(Equal(4))
		w.Expect(w.pods("scaled-5")).To(HaveLen(1))
		w.Expect(w.busiest).To(Equal(1))
		w.tidy()
	})

	t.Run("When a node that runs the target is not Ready, it should count as unavailable", func(t *testing.T) {
		w := newWorld(t, s, "fallen", 2)
		w.annotates(w.name(0), map[string]string{hyperv1.CurrentNodeConfigAnnotation: after})
		w.kubelet(w.name(0), false, afterKubelet)
		w.aim(after, afterKubelet)
		for range 3 {
			w.step()
		}
		w.Expect(w.node(w.name(1)).Spec.Unschedulable).To(BeFalse())
		w.kubelet(w.name(0), true, afterKubelet)
		w.until("the end of the update", w.through)
	})

	t.Run("When two Machines reference one node, it should update neither of them", func(t *testing.T) {
		w := newWorld(t, s, "double", 2)
		machine := w.machine(w.name(1))
		machine.Status.NodeRef.Name = w.name(0)
		w.Expect(s.management.Status().Update(t.Context(), machine)).To(Succeed())
		w.aim(after, afterKubelet)
		for range 3 {
			w.step()
		}
		w.Expect(w.node(w.name(0)).Annotations).NotTo(HaveKey(hyperv1.DesiredNodeConfigAnnotation))
		w.Expect(w.progress()).To(ContainSubstring("Machine double-0 and another one both have Node double-0"))
	})
}

// hostileNodes checks that a node that writes false values to itself can only break its own update.
func hostileNodes(t *testing.T, s servers) {
	t.Helper()
	for name, lies := range map[string]map[string]string{
		"failed":  {hyperv1.DesiredNodeConfigAnnotation: after, hyperv1.NodeConfigStateAnnotation: hyperv1.NodeConfigFailed, hyperv1.NodeConfigMessageAnnotation: "I was never asked"},
		"asked":   {hyperv1.DesiredNodeConfigAnnotation: after},
		"working": {hyperv1.NodeConfigStateAnnotation: hyperv1.NodeConfigWorking, hyperv1.DesiredNodeConfigAnnotation: after},
		"forged":  {markAnnotation: "fail " + after + " 2000-01-01T00:00:00Z"},
		"foreign": {hyperv1.DesiredNodeConfigAnnotation: "dddd4444"},
	} {
		t.Run("When a node falsely reports "+name+", it should still update all nodes, one at a time", func(t *testing.T) {
			w := newWorld(t, s, "lies-"+name, 3)
			w.aim(after, afterKubelet)
			w.annotates(w.name(1), lies)
			w.mustPass()
			w.Expect(w.failure()).To(BeEmpty())
			w.Expect(w.node(w.name(0)).Spec.Unschedulable).To(BeTrue(), "the roll-out begins as it would")
			w.annotates(w.name(1), map[string]string{hyperv1.NodeConfigStateAnnotation: "", hyperv1.DesiredNodeConfigAnnotation: ""})
			w.until("the end of the update", w.through)
			w.Expect(w.have(after)).To(Equal(3))
		})
	}
	t.Run("When a node falsely reports the target, it should still update the others one at a time", func(t *testing.T) {
		w := newWorld(t, s, "claims", 3)
		w.aim(after, afterKubelet)
		w.annotates(w.name(0), map[string]string{hyperv1.CurrentNodeConfigAnnotation: after})
		w.until("the end of the update", w.through)
		w.Expect(w.busiest).To(Equal(1))
		w.tidy()
	})
}
