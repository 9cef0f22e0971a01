// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/openshift/hypershift/support/terminal"
)

const (
	// newPodsInterval is how often --follow looks for new pods.
	newPodsInterval = 5 * time.Second
	// maxLine is the longest line that is printed as one, in bytes.
	maxLine = 1 << 20
)

// screen prints complete lines of several containers.
type screen struct {
	lock        sync.Mutex
	out, stderr io.Writer
}

func (s *screen) line(prefix, text string) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	_, err := fmt.Fprintf(s.out, "%s %s\n", prefix, terminal.Line(text))
	return err
}

func (s *screen) warnf(format string, args ...any) {
	s.lock.Lock()
	defer s.lock.Unlock()
	fmt.Fprintf(s.stderr, "Warning: "+format+"\n", args...)
}

// print prints the logs of all selected containers, one after the other. With --follow it prints all at once.
func (l *logs) print(ctx context.Context, out, stderr io.Writer) error {
	s := &screen{out: out, stderr: stderr}
	sources, err := l.sources(ctx)
	if err != nil {
		return err
	}
	if l.follow {
		return l.followAll(ctx, s, sources)
	}
	if len(sources) == 0 {
		fmt.Fprintf(stderr, "No container has a log.\n")
	}
	for _, from := range sources {
		err := l.stream(ctx, s, from, l.tail, nil)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.warnf("read the log of %s: %v", from, err)
		}
	}
	return nil
}

// follower streams the logs of containers until its context ends.
type follower struct {
	*logs
	screen *screen
	lock   sync.Mutex
	// begun has the containers that have a stream or had one. The time is when a stream was interrupted; nil otherwise.
	begun map[source]*metav1.Time
}

// followAll streams all containers, and those that start later, until the context ends.
func (l *logs) followAll(ctx context.Context, s *screen, sources []source) error {
	var group sync.WaitGroup
	defer group.Wait()
	f := &follower{logs: l, screen: s, begun: map[source]*metav1.Time{}}
	// A container that starts later is printed from its first line.
	tail, failed := l.tail, ""
	for {
		for _, from := range sources {
			since, begin := f.begin(from)
			if begin {
				lines := tail
				group.Go(func() { f.follow(ctx, from, lines, since) })
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(newPodsInterval):
		}
		now, err := l.sources(ctx)
		if err != nil {
			if ctx.Err() == nil && err.Error() != failed {
				failed = err.Error()
				s.warnf("%s", failed)
			}
			continue
		}
		sources, tail, failed = now, -1, ""
	}
}

// begin reports whether a container needs a stream, and the time from which an interrupted one continues.
func (f *follower) begin(from source) (since *metav1.Time, begin bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	since, known := f.begun[from]
	f.begun[from] = nil
	return since, !known || since != nil
}

func (f *follower) follow(ctx context.Context, from source, tail int64, since *metav1.Time) {
	err := f.stream(ctx, f.screen, from, tail, since)
	if err == nil || ctx.Err() != nil || apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) {
		return
	}
	f.screen.warnf("read the log of %s: %v; trying again", from, err)
	f.lock.Lock()
	defer f.lock.Unlock()
	f.begun[from] = ptr.To(metav1.Now())
}

// stream prints the log of a container. since is the time from which an interrupted stream continues; nil for another.
func (l *logs) stream(ctx context.Context, s *screen, from source, tail int64, since *metav1.Time) error {
	options := &corev1.PodLogOptions{
		Container: from.container, Follow: l.follow, Previous: l.previous, Timestamps: l.timestamps,
	}
	switch {
	case since != nil:
		options.SinceTime = since
	case l.since > 0:
		options.SinceSeconds = ptr.To(max(1, int64(l.since.Seconds())))
	}
	if tail >= 0 && since == nil {
		options.TailLines = ptr.To(tail)
	}
	body, err := l.clientset.CoreV1().Pods(l.namespace()).GetLogs(from.pod, options).Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if err := s.line("["+from.String()+"]", lines.Text()); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
