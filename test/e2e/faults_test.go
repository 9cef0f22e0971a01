// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/test/journey"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
)

// providerLease is the leader election lease of the provider.
const providerLease = "controller-leader-election-capmaas"

// failedDeployment makes the next deployment in MAAS fail.
func (s *suite) failedDeployment(t *testing.T) {
	s.createCluster(t, 1)
	earlier, err := s.events(t.Context(), "DeployFailed")
	s.must(t, err)
	s.fault(t, faults.Rule{Kind: faults.DeployFails, Count: 1})
	s.scale(t, s.cluster, 2)
	s.reach(t, "failed deployment marked", soon, func(ctx context.Context) (bool, string, error) {
		told, err := s.events(ctx, "DeployFailed")
		return told.Difference(earlier).Len() > 0, "no event DeployFailed", err
	})
	s.must(t, s.FollowMachines(t.Context(), s.c, s.cluster, s.cluster, 2))
	s.reach(t, "two nodes ready", long, s.NodesReady(s.cluster, 2))
	s.destroy(t)
}

// providerKills kills the provider 20 times, and 5 times with -short. Each kill is at a random time after MAAS has
// allocated or released a machine, when the provider is about to record the result.
func (s *suite) providerKills(t *testing.T) {
	s.createCluster(t, 1)
	kills, random := 20, rand.New(rand.NewPCG(7, 7))
	if testing.Short() {
		kills = 5
	}
	stranger := bystander(t, "cluster-api-provider-maas")
	for range kills {
		before := len(s.allocations(t))
		if before > 1 {
			s.scale(t, s.cluster, 1)
		} else {
			s.scale(t, s.cluster, 3)
		}
		s.allocationsChange(t, before)
		pause := time.NewTimer(time.Duration(random.IntN(300)) * time.Millisecond)
		<-pause.C
		s.must(t, s.kill(t.Context(), journey.HostedNamespace(s.cluster), "cluster-api-provider-maas"))
		s.forgetLeader(t)
	}
	NewWithT(t).Expect(stranger.Signal(syscall.Signal(0))).To(Succeed(), "a process that is not the environment's was killed")
	s.scale(t, s.cluster, 2)
	s.must(t, s.FollowMachines(t.Context(), s.c, s.cluster, s.cluster, 2))
	s.reach(t, "two nodes ready after the kills", long, s.NodesReady(s.cluster, 2))
	s.reach(t, "every allocation has one owner", soon, s.owned)
	s.destroy(t)
}

// allocationsChange waits until MAAS has allocated or released a machine. It polls often, so that a kill follows soon
// after.
func (s *suite) allocationsChange(t *testing.T, before int) {
	t.Helper()
	limit := time.NewTimer(soon)
	defer limit.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for len(s.allocations(t)) == before {
		select {
		case <-limit.C:
			s.must(t, fmt.Errorf("MAAS still has %d allocations: the provider was not killed at work", before))
		case <-look.C:
		}
	}
}

// forgetLeader clears the lease of the killed provider, so that the next one does not wait for it.
func (s *suite) forgetLeader(t *testing.T) {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: journey.HostedNamespace(s.cluster),
		Name: providerLease}}
	NewWithT(t).Expect(client.IgnoreNotFound(s.c.Delete(t.Context(), lease))).To(Succeed())
}

// owned reports whether MAAS's allocations and the MaasMachines match.
func (s *suite) owned(ctx context.Context) (bool, string, error) {
	machines := &infrav1.MaasMachineList{}
	if err := s.c.List(ctx, machines, client.InNamespace(journey.HostedNamespace(s.cluster))); err != nil {
		return false, "", err
	}
	owners := map[string]int{}
	for _, m := range machines.Items {
		if m.Spec.SystemID != nil {
			owners[*m.Spec.SystemID]++
		}
	}
	allocated, err := s.allocated(ctx)
	if err != nil {
		return false, "", err
	}
	for id := range allocated {
		if owners[id] != 1 {
			return false, fmt.Sprintf("machine %s has %d owners", id, owners[id]), nil
		}
	}
	return len(owners) == len(allocated), fmt.Sprintf("%d owners, %d allocations", len(owners), len(allocated)), nil
}

// maasAway makes MAAS respond with 503 for a minute while a pool scales.
func (s *suite) maasAway(t *testing.T) {
	s.createCluster(t, 1)
	s.fault(t, faults.Rule{Kind: faults.Error, Status: 503, For: faults.Duration(time.Minute)})
	s.scale(t, s.cluster, 2)
	s.must(t, s.FollowMachines(t.Context(), s.c, s.cluster, s.cluster, 2))
	s.reach(t, "two nodes ready after the outage", long, s.NodesReady(s.cluster, 2))
	s.scale(t, s.cluster, 1)
	s.reach(t, "one node left", long, s.NodesReady(s.cluster, 1))
	s.destroy(t)
}

// operatorKills kills both operators, the guest's etcd and its API server, and checks that the users' data still exists
// afterwards.
func (s *suite) operatorKills(t *testing.T) {
	g := NewWithT(t)
	s.createCluster(t, 1)
	guest, err := s.GuestClient(s.cluster)
	g.Expect(err).NotTo(HaveOccurred())
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"}, Data: map[string]string{"a": "b"}}
	g.Expect(guest.Create(t.Context(), kept)).To(Succeed())
	operators := []pods{{journey.OperatorNamespace, "operator"},
		{journey.HostedNamespace(s.cluster), "control-plane-operator"}}
	before := make([]int32, len(operators))
	for i, operator := range operators {
		before[i], _, err = s.restarts(t.Context(), operator)
		s.must(t, err)
	}
	s.alone(func() {
		s.must(t, s.kill(t.Context(), journey.HostedNamespace(s.cluster), "control-plane-operator"))
		s.must(t, s.kill(t.Context(), journey.OperatorNamespace, "hypershift-operator"))
		s.restarted(t, operators[0], before[0])
	})
	for _, app := range []string{"kube-apiserver", "etcd"} {
		component := pods{journey.HostedNamespace(s.cluster), app}
		dead, err := s.list(t.Context(), component)
		s.must(t, err)
		g.Expect(dead).NotTo(BeEmpty())
		g.Expect(s.c.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(component.namespace),
			client.MatchingLabels{"app": app}, client.GracePeriodSeconds(0))).To(Succeed())
		s.reach(t, app+" replaced", soon, func(ctx context.Context) (bool, string, error) { return s.replaced(ctx, component, dead) })
	}
	s.reach(t, "data still there", soon, journey.Quick(func() (bool, string, error) {
		err := guest.Get(t.Context(), client.ObjectKeyFromObject(kept), kept)
		return err == nil && kept.Data["a"] == "b", "reading the ConfigMap", err
	}))
	s.reach(t, "available again", soon, journey.ClusterAvailable(s.c, s.cluster))
	s.restarted(t, operators[1], before[1])
	s.reach(t, "node still ready", soon, s.NodesReady(s.cluster, 1))
	s.scale(t, s.cluster, 2)
	s.reach(t, "pool still scales", long, s.NodesReady(s.cluster, 2))
	s.destroy(t)
}

// restarted waits until an operator's containers have restarted after the kill and are ready.
func (s *suite) restarted(t *testing.T, operator pods, before int32) {
	t.Helper()
	s.reach(t, operator.app+" back", soon, func(ctx context.Context) (bool, string, error) {
		restarts, ready, err := s.restarts(ctx, operator)
		return restarts > before && ready, fmt.Sprintf("%d restarts before the kill, %d now, ready: %t", before, restarts,
			ready), err
	})
}

// pods selects the pods of a namespace with an app label.
type pods struct{ namespace, app string }

// list returns the existing pods.
func (s *suite) list(ctx context.Context, of pods) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := s.c.List(ctx, list, client.InNamespace(of.namespace), client.MatchingLabels{"app": of.app})
	return list.Items, err
}

// replaced reports whether ready pods have replaced the dead ones.
func (s *suite) replaced(ctx context.Context, of pods, dead []corev1.Pod) (bool, string, error) {
	list, err := s.list(ctx, of)
	if err != nil {
		return false, "", err
	}
	for _, old := range dead {
		for _, pod := range list {
			if pod.UID == old.UID {
				return false, pod.Name + " is still there", nil
			}
		}
	}
	_, ready, err := s.restarts(ctx, of)
	return ready, fmt.Sprintf("ready: %t", ready), err
}

// restarts returns the total number of container restarts, and whether all containers are ready.
func (s *suite) restarts(ctx context.Context, of pods) (count int32, ready bool, err error) {
	list, err := s.list(ctx, of)
	ready = len(list) > 0
	for _, pod := range list {
		ready = ready && len(pod.Status.ContainerStatuses) > 0
		for _, c := range pod.Status.ContainerStatuses {
			count += c.RestartCount
			ready = ready && c.Ready
		}
	}
	return count, ready, err
}

// events returns the Events of the cluster's machines with the given reason, once for each occurrence.
func (s *suite) events(ctx context.Context, reason string) (sets.Set[string], error) {
	list := &corev1.EventList{}
	err := s.c.List(ctx, list, client.InNamespace(journey.HostedNamespace(s.cluster)))
	told := sets.New[string]()
	for _, e := range list.Items {
		if strings.Contains(e.Reason, reason) && e.InvolvedObject.Kind == "MaasMachine" {
			told.Insert(string(e.UID) + " " + e.ResourceVersion)
		}
	}
	return told, err
}
