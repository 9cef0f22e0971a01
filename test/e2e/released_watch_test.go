// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
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

// look is a snapshot of what the users of a cluster have.
type look struct {
	sample
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
	guest, err := s.GuestClient(s.cluster)
	if err != nil {
		return nil, err
	}
	return l, guest.List(ctx, &l.pods, client.InNamespace(metav1.NamespaceDefault))
}

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
		// All other operations count as changes, so that a new operation is noticed.
		if _, verb, _ := strings.Cut(call.Operation, "."); !slices.Contains([]string{"read", "whoami"}, verb) {
			changes[call.Operation] += call.Count
		}
	}
	return changes, nil
}

// differences lists what a user of the cluster notices between two snapshots.
func (l *look) differences(now *look) []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for operation, count := range now.changes {
		if more := count - l.changes[operation]; more > 0 {
			add("MAAS was asked for %s", operation)
		}
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
	if now.cluster.Generation != l.cluster.Generation || now.pool.Generation != l.pool.Generation {
		add("spec of the HostedCluster or the NodePool was changed")
	}
	for _, condition := range []string{
		hyperv1.NodePoolUpdatingVersionConditionType, hyperv1.NodePoolUpdatingConfigConditionType,
		hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType,
	} {
		if now.poolTrue(condition) {
			add("the NodePool reports %s", condition)
		}
	}
	return all
}

// readyNodes returns an ID for each Ready Node, with its boot.
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

// userPods returns an ID for each pod of a user, with its restarts.
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

// worse lists the conditions of HostedCluster and NodePool that were normal and no longer are, or are gone.
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
	for _, c := range l.pool.Status.Conditions {
		if journey.Well(c.Type, string(c.Status)) {
			names.Insert("NodePool " + c.Type)
		}
	}
	return names
}

// watcher takes a snapshot of a cluster once per second and writes to its API server.
type watcher struct {
	cancel context.CancelFunc
	ended  sync.WaitGroup
	seen   watched
}

// watched holds the observations of a watcher.
type watched struct {
	noticed sets.Set[string]
	looks   int
	// away is the longest time between two successful writes to the hosted cluster's API server.
	away time.Duration
	// failed counts the failed writes.
	failed int
}

func (w watched) String() string {
	return fmt.Sprintf("looks: %d; failed writes to the hosted API: %d, longest time without a write: %s; noticed: %v",
		w.looks, w.failed, w.away.Round(100*time.Millisecond), sets.List(w.noticed))
}

// watch starts a watcher that compares each snapshot with the first one.
func (s *suite) watch(t *testing.T, before *look) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watcher{cancel: cancel, seen: watched{noticed: sets.New[string]()}}
	guest, err := s.GuestClient(s.cluster)
	s.must(t, err)
	w.ended.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for last := time.Now(); ; {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if err := w.write(ctx, guest); err == nil {
				w.seen.away, last = max(w.seen.away, time.Since(last)), time.Now()
			} else if ctx.Err() == nil {
				w.seen.failed++
				continue
			}
			if now, err := s.lookOnce(ctx); err == nil {
				w.seen.looks++
				w.seen.noticed.Insert(before.differences(now)...)
			}
		}
	})
	t.Cleanup(cancel)
	return w
}

// write replaces a ConfigMap, as a user's program does.
func (w *watcher) write(ctx context.Context, guest client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "written"}}
	cm.Data = map[string]string{"at": time.Now().Format(time.RFC3339Nano)}
	if err := guest.Update(ctx, cm); client.IgnoreNotFound(err) != nil {
		return err
	} else if err == nil {
		return nil
	}
	return guest.Create(ctx, cm)
}

// stop stops the watcher and returns its observations.
func (w *watcher) stop() watched {
	w.cancel()
	w.ended.Wait()
	return w.seen
}
