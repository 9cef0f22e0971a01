// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// clients is the number of clients that write in turn, each over a separate connection. Each connection ends at a
	// random API server, so some clients are connected to the server that the test stops.
	clients = 10
	// every is the interval between writes: 20 per second.
	every = 50 * time.Millisecond
	// preparing is the timeout for the creation of the objects to write.
	preparing = 3 * time.Minute
	// objects is the number of objects that are written in turn.
	objects = 50
)

// limits holds the timeout of one attempt of a write, and the time for which a client retries.
type limits struct{ request, patience time.Duration }

func name(n int) string { return fmt.Sprintf("load-%d", n%objects) }

// load writes to a hosted cluster 20 times per second. Its clients retry each write for a while.
type load struct {
	writers []*writer
	limits
	// lost is called for each write that fails, at the time of the failure.
	lost   func(error)
	cancel context.CancelFunc
	all    sync.WaitGroup

	mutex sync.Mutex
	count count
}

// writer is one of the clients.
type writer struct {
	kubernetes.Interface
	number int
	// since is the time of its last successful write.
	since time.Time
}

// count holds the results of the writes.
type count struct {
	// Writes is the number of writes; Tried is how many succeeded only after a retry, and Failed is how many did not
	// succeed.
	Writes, Tried, Failed int
	// Gap is the longest time without a successful write of a client.
	Gap  time.Duration
	last error
}

func (c count) String() string {
	text := fmt.Sprintf("%d writes, %d tried again, %d failed; no client waited longer than %s for one to come through", c.Writes, c.Tried, c.Failed, c.Gap.Round(100*time.Millisecond))
	if c.last != nil {
		text += fmt.Sprintf(" (last trouble: %v)", c.last)
	}
	return text
}

// begin starts the writes.
func begin(ctx context.Context, config *rest.Config, most limits, lost func(error)) (*load, error) {
	l := &load{limits: most, lost: lost}
	for n := range clients {
		client, err := connect(config, most.request)
		if err != nil {
			return nil, err
		}
		l.writers = append(l.writers, &writer{Interface: client, number: n})
	}
	for n := range objects {
		if err := prepare(ctx, l.writers[n%clients], name(n)); err != nil {
			return nil, err
		}
	}
	for _, w := range l.writers {
		w.since = time.Now()
	}
	ctx, l.cancel = context.WithCancel(ctx)
	l.all.Go(func() { l.run(ctx) })
	return l, nil
}

// prepare creates an object to write.
func prepare(ctx context.Context, client kubernetes.Interface, name string) error {
	var last error
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err := wait.PollUntilContextTimeout(ctx, time.Second, preparing, true, func(ctx context.Context) (bool, error) {
		_, last = client.CoreV1().ConfigMaps("default").Create(ctx, object, metav1.CreateOptions{})
		return last == nil || apierrors.IsAlreadyExists(last), nil
	})
	if err != nil {
		return fmt.Errorf("making ConfigMap %s, which is written to: %w; last: %w", name, err, last)
	}
	return nil
}

// connect returns a client that shares no connection with others.
func connect(config *rest.Config, limit time.Duration) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.Timeout, config.QPS = limit, -1
	// client-go shares connections between clients with the same settings; each dialer makes them different.
	config.Dial = (&net.Dialer{}).DialContext
	return kubernetes.NewForConfig(config)
}

// end stops the writes and returns their results.
func (l *load) end() count {
	l.cancel()
	l.all.Wait()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, w := range l.writers {
		l.count.Gap = max(l.count.Gap, time.Since(w.since))
	}
	return l.count
}

func (l *load) run(ctx context.Context) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			l.all.Go(func() { l.write(context.WithoutCancel(ctx), l.writers[n%clients], n) })
		}
	}
}

// write does one write and retries it, as clients do.
func (l *load) write(ctx context.Context, w *writer, n int) {
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	body := fmt.Appendf(nil, `{"data":{"n":"%d"}}`, n)
	for tries := 1; ; tries++ {
		_, err := w.CoreV1().ConfigMaps("default").Patch(ctx, name(n), types.MergePatchType, body, metav1.PatchOptions{})
		if err == nil || ctx.Err() != nil {
			l.came(w, tries, err)
			return
		}
		l.failed(err)
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (l *load) failed(err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.count.last = err
}

func (l *load) came(w *writer, tries int, err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	c := &l.count
	c.Writes++
	switch {
	case err != nil:
		c.Failed++
		l.lost(c.last)
		return
	case tries > 1:
		c.Tried++
	}
	now := time.Now()
	c.Gap, w.since = max(c.Gap, now.Sub(w.since)), now
}
