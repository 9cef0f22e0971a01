// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watcher takes a snapshot of a cluster once per second and writes to its API server.
type watcher struct {
	guest  client.Client
	before *look
	cancel context.CancelFunc
	ended  sync.WaitGroup
	seen   watched
	// acknowledged is the number of the last successful write.
	acknowledged int
}

// watched holds the observations of a watcher.
type watched struct {
	noticed sets.Set[string]
	looks   int
	// away is the longest time between two successful writes to the hosted cluster's API server.
	away time.Duration
	// writes counts the writes, again counts their retries, and failed counts the writes of which all attempts
	// failed.
	writes, again, failed int
	// calls counts the calls that changed something in MAAS.
	calls int
	// notReady holds the names of Nodes that were not Ready, replaced or rebooted. pods holds the pods of users that
	// were replaced or restarted.
	notReady, pods sets.Set[string]
}

func (w watched) String() string {
	return fmt.Sprintf("looks: %d; writes to the hosted API: %d, tried again: %d, failed: %d, longest time without one: %s; "+
		"noticed: %v", w.looks, w.writes, w.again, w.failed, w.away.Round(100*time.Millisecond), sets.List(w.noticed))
}

// watch starts a watcher that compares each snapshot with the first one.
func (s *suite) watch(t *testing.T, before *look) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	guest, err := s.GuestClient(s.cluster)
	s.must(t, err)
	w := &watcher{guest: guest, before: before, cancel: cancel, seen: watched{
		noticed: sets.New[string](), notReady: sets.New[string](), pods: sets.New[string](),
	}}
	w.ended.Go(func() { w.run(ctx, s) })
	t.Cleanup(cancel)
	return w
}

func (w *watcher) run(ctx context.Context, s *suite) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := w.write(ctx)
		if ctx.Err() != nil {
			return
		}
		w.seen.away = max(w.seen.away, time.Since(last))
		if err != nil {
			w.seen.failed++
			continue
		}
		last = time.Now()
		if now, err := s.lookOnce(ctx); err == nil {
			w.seen.add(w.before, now)
		}
	}
}

// add compares a snapshot with the first one.
func (w *watched) add(before, now *look) {
	w.looks++
	w.noticed.Insert(before.differences(now)...)
	w.notReady = w.notReady.Union(before.readyNodes().Difference(now.readyNodes()))
	w.pods = w.pods.Union(before.userPods().Difference(now.userPods()))
	calls := 0
	for _, count := range now.calls(before) {
		calls += count
	}
	w.calls = max(w.calls, calls)
}

// written returns the object that watchers write.
func written() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "written"}}
}

const numberKey = "number"

// write replaces a ConfigMap, as a user's program does. It retries for half a minute.
func (w *watcher) write(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	w.seen.writes++
	number := w.seen.writes
	pause := time.NewTicker(200 * time.Millisecond)
	defer pause.Stop()
	for {
		err := w.try(ctx, number)
		if err == nil {
			w.acknowledged = number
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-pause.C:
			w.seen.again++
		}
	}
}

func (w *watcher) try(ctx context.Context, number int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cm := written()
	cm.Data = map[string]string{numberKey: strconv.Itoa(number)}
	err := w.guest.Update(ctx, cm)
	if apierrors.IsNotFound(err) {
		err = w.guest.Create(ctx, cm)
	}
	return err
}

// stop stops the watcher and returns its observations. They include a lost write: one that succeeded and that the API
// server no longer has.
func (w *watcher) stop(ctx context.Context) watched {
	w.cancel()
	w.ended.Wait()
	cm := written()
	if err := w.guest.Get(ctx, client.ObjectKeyFromObject(cm), cm); err != nil {
		w.seen.noticed.Insert("the written object cannot be read: " + err.Error())
		return w.seen
	}
	// A write that failed may have been stored, so the number may be greater.
	if stored, err := strconv.Atoi(cm.Data[numberKey]); err != nil || stored < w.acknowledged {
		w.seen.noticed.Insert(fmt.Sprintf("write %d succeeded, and the API server has %q", w.acknowledged,
			cm.Data[numberKey]))
	}
	return w.seen
}
