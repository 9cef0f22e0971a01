// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/maas"
)

// moment is when, relative to a call, a process is killed.
type moment string

const (
	beforeSend moment = "before it was sent"
	// underWay: the call arrives after its process has died.
	underWay moment = "while it was under way"
	// afterSend: the call was done, and its answer is lost.
	afterSend moment = "after it was done"
	// afterAnswer: the process has the answer and may have begun to act on it.
	afterAnswer moment = "after its answer"
)

var moments = []moment{beforeSend, underWay, afterSend, afterAnswer}

// killPoint is the call at which a process is killed.
type killPoint struct {
	// kube distinguishes a write to the management cluster from a call to MAAS.
	kube bool
	when moment
	// nth is the number of the call at which the process is killed, counted from its start; zero means never.
	nth int64
	// late sets the delay, as a fraction from 0 to 1 of its maximum. Either the call arrives that long after its
	// process died, or the process dies that long after it has the answer.
	late float64
}

// portion returns the fraction of a duration that passes.
func (p killPoint) portion(of time.Duration) time.Duration {
	return time.Duration(p.late * float64(of))
}

// life is one provider process and the two proxies of its connections. Each process has its own proxies, so that a call
// of a dead process is not taken for one of the next process.
type life struct {
	at    killPoint
	calls atomic.Int64
	// struck is set when the call has come.
	struck atomic.Bool
	// kill sends SIGKILL; dead is closed when the process has ended.
	kill   context.CancelFunc
	dead   chan struct{}
	output words
}

// words is the output of a process. It may be read while the process runs.
type words struct {
	mu   sync.Mutex
	said bytes.Buffer
}

// Write implements io.Writer.
func (w *words) Write(more []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.Write(more)
}

// Bytes returns the output so far.
func (w *words) Bytes() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.said.Bytes())
}

func (w *words) String() string { return string(w.Bytes()) }

// hurried holds flags that shorten minutes to fractions of a second. The timeouts for unknown outcomes are seconds
// longer than a call may take (lateness, latest). They include the time before the call, which may be long on a busy
// machine.
var hurried = []string{
	"--metrics-bind-addr=0", "--health-addr=0", "--kube-api-qps=-1", "--machine-concurrency=5",
	"--poll-interval=100ms", "--settled-poll-interval=1s", "--allocation-doubt=5s", "--compose-doubt=5s",
}

const kubeconfig = `{"apiVersion": "v1", "kind": "Config", "current-context": "test", "contexts": [{"name": "test", "context": {"cluster": "test"}}],
	"clusters": [{"name": "test", "cluster": {"server": %q}}]}`

// live starts a provider process with additional flags.
func (d *driver) live(at killPoint, flags ...string) *life {
	d.t.Helper()
	ctx, cancel := context.WithCancel(d.t.Context())
	l := &life{at: at, kill: cancel, dead: make(chan struct{})}
	kube := l.between(d.world, d.cfg.Host, d.kube, func(r *http.Request) bool { return at.kube && changes(r) })
	region := l.between(d.world, d.endpoint, http.DefaultTransport, func(*http.Request) bool { return !at.kube })
	config := filepath.Join(d.t.TempDir(), "kubeconfig")
	d.Expect(os.WriteFile(config, fmt.Appendf(nil, kubeconfig, kube), 0o600)).To(Succeed())

	cmd := exec.CommandContext(ctx, os.Args[0], slices.Concat([]string{"--namespace=" + d.namespace}, hurried, flags)...)
	cmd.Env = append(os.Environ(), providerEnv+"=1", "KUBECONFIG="+config, "GOGC=off",
		maas.SecretKeyEndpoint+"="+region, maas.SecretKeyAPIKey+"="+d.key)
	cmd.Stdout, cmd.Stderr = &l.output, &l.output
	_, err := cmd.StdinPipe() // The process ends with this one in any case.
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(cmd.Start()).To(Succeed())
	go func() {
		_ = cmd.Wait() // The exit status of a killed process does not matter.
		close(l.dead)
	}()
	d.t.Cleanup(l.kill)
	return l
}

// between starts a proxy to a server and returns its address. The proxy forwards all calls except the one at which
// the process is killed. Only calls for which counts is true are counted.
func (l *life) between(b *world, server string, transport http.RoundTripper, counts func(*http.Request) bool) string {
	target, err := url.Parse(server)
	b.Expect(err).NotTo(HaveOccurred())
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host },
		// The provider must see the same errors as without a proxy.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0), // Processes that end during an answer are expected.
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if counts(r) && l.calls.Add(1) == l.at.nth {
			l.strike(w, r, proxy)
		} else {
			proxy.ServeHTTP(w, r)
		}
	}))
	b.t.Cleanup(front.Close) // Close waits for calls in progress.
	return front.URL + target.Path
}

// changes reports whether a call to the management cluster writes an object other than an event.
func changes(r *http.Request) bool {
	return r.Method != http.MethodGet && path.Base(r.URL.Path) != "events" && path.Base(path.Dir(r.URL.Path)) != "events"
}

// strike lets the call proceed to the chosen moment, and kills the process.
func (l *life) strike(w http.ResponseWriter, r *http.Request, server http.Handler) {
	defer panic(http.ErrAbortHandler)
	defer l.kill()
	l.struck.Store(true)
	came := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	call := r.Clone(context.WithoutCancel(r.Context()))
	call.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	switch l.at.when {
	case underWay:
		l.kill()
		<-l.dead
		<-time.After(l.at.portion(lateness(r)))
		if time.Since(came) < latest { // A later call is dropped: no provider waits for calls that may arrive at any time.
			server.ServeHTTP(answer, call)
		}
	case afterSend:
		server.ServeHTTP(answer, call)
	case afterAnswer:
		server.ServeHTTP(answer, call)
		give(w, answer)
		<-time.After(l.at.portion(5 * time.Millisecond))
	}
}

// latest is how long a call may be in progress on a machine that is so busy that ending a process takes seconds.
const latest = 2 * time.Second

// lateness returns how long a call may be in progress after its process has died. The provider waits for allocations
// and compositions, which take seconds in a real MAAS.
func lateness(r *http.Request) time.Duration {
	if op := r.URL.Query().Get("op"); op == "allocate" || op == "compose" {
		return 500 * time.Millisecond
	}
	return 20 * time.Millisecond
}

// give sends a complete answer at once.
func give(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	maps.Copy(w.Header(), answer.Header())
	w.Header().Set("Content-Length", strconv.Itoa(answer.Body.Len()))
	w.WriteHeader(answer.Code)
	if _, err := w.Write(answer.Body.Bytes()); err == nil {
		_ = http.NewResponseController(w).Flush() // A client that is gone needs no answer.
	}
}
