// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/journey"
)

const sleeper = "sleeper"

// wake checks a pool without machines. The pool publishes the capacity of its next machine for the cluster
// autoscaler, and gets a machine on request. Scaled back to zero, it releases the machine, which is then powered off.
// The test itself changes the scale, since the autoscaler's module is not available.
func (s *suite) wake(t *testing.T) {
	g := NewWithT(t)
	s.createCluster(t, 1)
	nodes, err := s.nodes(t.Context())
	s.must(t, err)
	guest, err := s.GuestClient(s.cluster)
	s.must(t, err)
	given := s.allocations(t)
	told := s.autoscaledPool(t)
	g.Expect(s.allocations(t)).To(HaveLen(len(given)), "nothing was taken to know that")

	s.ask(t, 1)
	s.reach(t, "node of the pool that slept ready", long, s.NodesReady(s.cluster, len(nodes.Items)+1))
	g.Expect(told["taints"]).To(Equal("sleeper=yes:NoSchedule"))
	s.reach(t, "labels and taint of the node as told", soon, func(ctx context.Context) (bool, string, error) {
		node, err := findNode(ctx, guest, sleeper)
		if err != nil {
			return false, "", err
		}
		for pair := range strings.SplitSeq(told["labels"], ",") {
			if key, value, _ := strings.Cut(pair, "="); node.Labels[key] != value {
				return false, "the node has no label " + pair, nil
			}
		}
		tainted := slices.Contains(node.Spec.Taints, corev1.Taint{Key: "sleeper", Value: "yes", Effect: corev1.TaintEffectNoSchedule})
		return tainted, "the node has no taint sleeper", nil
	})
	woken := s.newcomer(t, given)

	s.ask(t, 0)
	s.reach(t, "machine off, and back in MAAS", long, func(ctx context.Context) (bool, string, error) {
		m, err := s.maas.GetMachine(ctx, woken.SystemID)
		if err != nil {
			return false, "", err
		}
		return m.Owner == "" && m.PowerState == maas.PowerOff, fmt.Sprintf("%s, power %s", m.StatusName, m.PowerState), nil
	})
	s.reach(t, "the other nodes left", soon, s.NodesReady(s.cluster, len(nodes.Items)))
	s.destroyPool(t, sleeper)
	s.destroy(t)
}

// autoscaledPool creates a pool without machines that the autoscaler scales, and returns its capacity annotations.
func (s *suite) autoscaledPool(t *testing.T, flags ...string) map[string]string {
	t.Helper()
	s.createPool(t, sleeper, append([]string{"--replicas", "0", "--image", ignitionImage}, flags...)...)
	s.patchPool(t, sleeper, `{"spec":{"replicas":null,"autoScaling":{"min":0,"max":1},"nodeLabels":{"wakes":"late"},`+
		`"taints":[{"key":"sleeper","value":"yes","effect":"NoSchedule"}]}}`)
	return s.told(t)
}

// told waits for the capacity annotations that the autoscaler reads for the pool's next machine, and returns them.
func (s *suite) told(t *testing.T) map[string]string {
	t.Helper()
	var told map[string]string
	s.reach(t, "next machine told of", soon, func(ctx context.Context) (bool, string, error) {
		md := &clusterv1.MachineDeployment{}
		if err := s.c.Get(ctx, client.ObjectKey{Namespace: journey.HostedNamespace(s.cluster), Name: sleeper},
			md); err != nil {
			return false, "", err
		}
		told = map[string]string{}
		for key, value := range md.Annotations {
			if name, ok := strings.CutPrefix(key, "capacity.cluster-autoscaler.kubernetes.io/"); ok {
				told[name] = value
			}
		}
		ofSpec := strings.Contains(told["labels"], "wakes=late") && told["taints"] != ""
		return ofSpec && told["cpu"] != "" && told["memory"] != "" && told["ephemeral-disk"] != "", fmt.Sprint(told), nil
	})
	return told
}

// ask scales a pool as the autoscaler does.
func (s *suite) ask(t *testing.T, machines int) {
	t.Helper()
	s.must(t, s.Type(t.Context(), "kubectl", "scale", "machinedeployment", sleeper, "-n",
		journey.HostedNamespace(s.cluster), "--replicas="+strconv.Itoa(machines)))
}

// newcomer returns a machine that MAAS has allocated since before was recorded.
func (s *suite) newcomer(t *testing.T, before map[string]maas.Machine) maas.Machine {
	t.Helper()
	for id, m := range s.allocations(t) {
		if _, was := before[id]; !was {
			return m
		}
	}
	t.Fatal("no machine was given away")
	return maas.Machine{}
}
