// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/test/journey"
)

// rest is how long a management cluster must have no writes to count as settled.
const rest = 15 * time.Second

// look is a snapshot of a cluster as its users see it.
type look struct {
	sample
	// pools are the NodePools of the cluster, by name.
	pools map[string]hyperv1.NodePool
	// pods are the pods in the default namespace of the hosted cluster.
	pods corev1.PodList
	// changes counts the calls of the scenario's user that changed something in MAAS, by operation.
	changes map[string]int
}

func (s *suite) look(t *testing.T) *look {
	t.Helper()
	now, err := s.lookOnce(t.Context())
	s.must(t, err)
	return now
}

func (s *suite) lookOnce(ctx context.Context) (*look, error) {
	now, err := s.sample(ctx)
	if err != nil {
		return nil, err
	}
	l := &look{sample: *now}
	if l.changes, err = s.maasChanges(ctx); err != nil {
		return nil, err
	}
	if err := l.listPools(ctx, s); err != nil {
		return nil, err
	}
	guest, err := s.GuestClient(s.cluster)
	if err != nil {
		return nil, err
	}
	return l, guest.List(ctx, &l.pods, client.InNamespace(metav1.NamespaceDefault))
}

func (l *look) listPools(ctx context.Context, s *suite) error {
	all := &hyperv1.NodePoolList{}
	if err := s.c.List(ctx, all, client.InNamespace(journey.Namespace)); err != nil {
		return err
	}
	l.pools = map[string]hyperv1.NodePool{}
	for _, pool := range all.Items {
		if pool.Spec.ClusterName == s.cluster {
			l.pools[pool.Name] = pool
		}
	}
	return nil
}

// reads are the verbs of operations that change nothing. All other operations count as changes, so that a new operation
// is noticed.
var reads = []string{"read", "whoami", "parameters", "power_parameters", "query_power_state", "refresh"}

// maasChanges returns the changing calls of the scenario's user, as counted by the simulated MAAS.
func (s *suite) maasChanges(ctx context.Context) (map[string]int, error) {
	answer, err := callSimulator(ctx, http.MethodGet, "/requests?user="+s.user, nil)
	if err != nil {
		return nil, err
	}
	var calls []struct {
		Operation string
		Count     int
	}
	if err := json.Unmarshal(answer, &calls); err != nil {
		return nil, err
	}
	changes := map[string]int{}
	for _, call := range calls {
		if _, verb, _ := strings.Cut(call.Operation, "."); !slices.Contains(reads, verb) {
			changes[call.Operation] += call.Count
		}
	}
	return changes, nil
}

// clusterChanged is the entry of differences for a HostedCluster whose spec was changed.
const clusterChanged = "spec of the HostedCluster was changed"

// differences lists what a user of the cluster notices between two snapshots.
func (l *look) differences(now *look) []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for operation := range now.calls(l) {
		add("MAAS was asked for %s", operation)
	}
	if !now.machineUIDs().Equal(l.machineUIDs()) {
		add("Machines were replaced")
	}
	if !now.readyNodes().Equal(l.readyNodes()) {
		add("a Node is not Ready, was replaced or rebooted: %v", l.readyNodes().Difference(now.readyNodes()).UnsortedList())
	}
	if !now.userPods().Equal(l.userPods()) {
		add("pods of users changed: %v", l.userPods().Difference(now.userPods()).UnsortedList())
	}
	if now.cluster.Generation != l.cluster.Generation {
		add(clusterChanged)
	}
	for name, before := range l.pools {
		pool, ok := now.pools[name]
		if !ok || pool.Generation != before.Generation {
			add("spec of NodePool %s was changed", name)
		}
		for _, condition := range trueOf(&pool, updating...) {
			add("NodePool %s reports %s", name, condition)
		}
	}
	return all
}

// updating lists the conditions of a pool whose nodes are being replaced or updated.
var updating = []string{
	hyperv1.NodePoolUpdatingVersionConditionType, hyperv1.NodePoolUpdatingConfigConditionType,
	hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType,
}

// trueOf returns which of the given condition types are True for a pool.
func trueOf(pool *hyperv1.NodePool, types ...string) []string {
	var all []string
	for _, c := range pool.Status.Conditions {
		if c.Status == corev1.ConditionTrue && slices.Contains(types, c.Type) {
			all = append(all, c.Type)
		}
	}
	return all
}

// calls counts the calls since another snapshot that changed something in MAAS, by operation.
func (l *look) calls(before *look) map[string]int {
	more := maps.Clone(l.changes)
	for operation := range more {
		more[operation] -= before.changes[operation]
	}
	maps.DeleteFunc(more, func(_ string, count int) bool { return count <= 0 })
	return more
}

// readyNodes returns an ID for each Ready Node; it changes when the node reboots.
func (l *look) readyNodes() sets.Set[string] {
	ids := sets.New[string]()
	for i := range l.nodes.Items {
		n := &l.nodes.Items[i]
		if slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) {
			ids.Insert(fmt.Sprintf("%s %s %s", n.Name, n.UID, n.Status.NodeInfo.BootID))
		}
	}
	return ids
}

// userPods returns an ID for each pod of a user; it changes when a container restarts.
func (l *look) userPods() sets.Set[string] {
	ids := sets.New[string]()
	for i := range l.pods.Items {
		restarts := int32(0)
		for _, c := range l.pods.Items[i].Status.ContainerStatuses {
			restarts += c.RestartCount
		}
		ids.Insert(fmt.Sprintf("%s %s %d restarts", l.pods.Items[i].Name, l.pods.Items[i].UID, restarts))
	}
	return ids
}

// worse lists the conditions of the HostedCluster and its NodePools that were normal before and are now abnormal or
// missing.
func (l *look) worse(now *look) []string {
	var all []string
	well := now.well()
	for _, condition := range l.well().Difference(well).UnsortedList() {
		all = append(all, condition+" was well")
	}
	slices.Sort(all)
	return all
}

func (l *look) well() sets.Set[string] {
	names := sets.New[string]()
	for _, c := range l.cluster.Status.Conditions {
		if journey.Well(c.Type, string(c.Status)) {
			names.Insert("HostedCluster " + c.Type)
		}
	}
	for name, pool := range l.pools {
		for _, c := range pool.Status.Conditions {
			if journey.Well(c.Type, string(c.Status)) {
				names.Insert("NodePool " + name + " " + c.Type)
			}
		}
	}
	return names
}
