// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// every is 20 requests a second.
	every = 50 * time.Millisecond
	// requestLimit is how long one try may take, and patience how long a client tries again.
	requestLimit = 5 * time.Second
	patience     = 30 * time.Second
	// objects is how many are written to in turn.
	objects = 50
)

func name(n int) string { return fmt.Sprintf("load-%d", n%objects) }

// load writes to a hosted cluster, 20 times a second, each write by a client that tries again for a while.
type load struct {
	client kubernetes.Interface
	cancel context.CancelFunc
	all    sync.WaitGroup

	mutex sync.Mutex
	count count
}

// count is what became of the writes.
type count struct {
	// Writes is how many there were; Tried those that a second try brought through, and Failed those that nothing did.
	Writes, Tried, Failed int
	// Gap is the longest time in which no write came through.
	Gap   time.Duration
	since time.Time
	last  error
}

func (c count) String() string {
	text := fmt.Sprintf("%d writes, %d tried again, %d failed; at most %s without one that came through", c.Writes, c.Tried, c.Failed, c.Gap.Round(100*time.Millisecond))
	if c.last != nil {
		text += fmt.Sprintf(" (last trouble: %v)", c.last)
	}
	return text
}

// begin starts to write.
func begin(ctx context.Context, config *rest.Config) (*load, error) {
	config = rest.CopyConfig(config)
	config.Timeout, config.QPS = requestLimit, -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	for n := range objects {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name(n)}}
		if _, err := client.CoreV1().ConfigMaps("default").Create(ctx, object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("making what is written to: %w", err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &load{client: client, cancel: cancel, count: count{since: time.Now()}}
	l.all.Go(func() { l.run(ctx) })
	return l, nil
}

// end stops writing and tells what became of it.
func (l *load) end() count {
	l.cancel()
	l.all.Wait()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.count.Gap = max(l.count.Gap, time.Since(l.count.since))
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
			l.all.Go(func() { l.write(context.WithoutCancel(ctx), n) })
		}
	}
}

// write is one write, which is tried again as clients do.
func (l *load) write(ctx context.Context, n int) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body := fmt.Appendf(nil, `{"data":{"n":"%d"}}`, n)
	for tries := 1; ; tries++ {
		_, err := l.client.CoreV1().ConfigMaps("default").Patch(ctx, name(n), types.MergePatchType, body, metav1.PatchOptions{})
		if err == nil || ctx.Err() != nil {
			l.came(tries, err)
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

func (l *load) came(tries int, err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	c := &l.count
	c.Writes++
	switch {
	case err != nil:
		c.Failed++
		return
	case tries > 1:
		c.Tried++
	}
	now := time.Now()
	c.Gap, c.since = max(c.Gap, now.Sub(c.since)), now
}
