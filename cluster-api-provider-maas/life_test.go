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

// moment is when, around a call, a process is killed.
type moment string

const (
	beforeSend moment = "before it was sent"
	// underWay: the call arrives when its process is dead already.
	underWay moment = "while it was under way"
	// afterSend: the call was done, and its answer is lost.
	afterSend moment = "after it was done"
	// afterAnswer: the process has its answer and may have begun to act on it.
	afterAnswer moment = "after its answer"
)

var moments = []moment{beforeSend, underWay, afterSend, afterAnswer}

// killPoint is the call at which a process is killed.
type killPoint struct {
	// kube tells a write to the management cluster from a call of MAAS.
	kube bool
	when moment
	// nth counts such calls from the start of the process; zero is never.
	nth int64
	// late is how much of the time that a call may be under way passes, or of that which a process has after its answer: from 0 to 1.
	late float64
}

// portion is how much of a time passes.
func (p killPoint) portion(of time.Duration) time.Duration {
	return time.Duration(p.late * float64(of))
}

// life is one process of the provider, and the two proxies through which it sees the world. They are its own, so that what a
// dead process had under way is not taken for a call of the next one.
type life struct {
	at    killPoint
	calls atomic.Int64
	// struck is set when the call came.
	struck atomic.Bool
	// kill sends SIGKILL; dead is closed when the process is gone.
	kill   context.CancelFunc
	dead   chan struct{}
	output words
}

// words are what a process says. They may be read while it goes on.
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

// Bytes are those so far.
func (w *words) Bytes() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.said.Bytes())
}

func (w *words) String() string { return string(w.Bytes()) }

// hurried are the flags that make minutes into fractions of a second. Doubts are longer by seconds than a call is under way (lateness, latest): what
// comes before the call, and counts too, takes long on a busy machine.
var hurried = []string{
	"--metrics-bind-addr=0", "--health-addr=0", "--kube-api-qps=-1", "--machine-concurrency=5",
	"--poll-interval=100ms", "--settled-poll-interval=1s", "--allocation-doubt=5s", "--compose-doubt=5s",
}

const kubeconfig = `{"apiVersion": "v1", "kind": "Config", "current-context": "test", "contexts": [{"name": "test", "context": {"cluster": "test"}}],
	"clusters": [{"name": "test", "cluster": {"server": %q}}]}`

// live starts a process of the provider, with more flags than the usual ones.
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
	_, err := cmd.StdinPipe() // It ends with this process, whatever becomes of it.
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(cmd.Start()).To(Succeed())
	go func() {
		_ = cmd.Wait() // How a killed process ends says nothing.
		close(l.dead)
	}()
	d.t.Cleanup(l.kill)
	return l
}

// between starts a proxy to a server, which passes all calls on but for the one to die at among those that count. It returns the
// address that stands for the server's.
func (l *life) between(b *world, server string, transport http.RoundTripper, counts func(*http.Request) bool) string {
	target, err := url.Parse(server)
	b.Expect(err).NotTo(HaveOccurred())
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host },
		// The provider must see what it would see without a proxy.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0), // That processes end in the middle of an answer is no news.
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if counts(r) && l.calls.Add(1) == l.at.nth {
			l.strike(w, r, proxy)
		} else {
			proxy.ServeHTTP(w, r)
		}
	}))
	b.t.Cleanup(front.Close) // It waits for what is under way.
	return front.URL + target.Path
}

// changes tells whether a call of the management cluster writes something that matters; nothing depends on an event.
func changes(r *http.Request) bool {
	return r.Method != http.MethodGet && path.Base(r.URL.Path) != "events" && path.Base(path.Dir(r.URL.Path)) != "events"
}

// strike lets the call get as far as it may, and kills.
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
		if time.Since(came) < latest { // Later than that it is lost: no provider waits for what may come at any time.
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

// latest is how long a call may be under way on a machine that is so busy that the end of a process takes seconds.
const latest = 2 * time.Second

// lateness is how long a call may be under way after its process. An allocation and a composition, which take a real MAAS seconds, are
// what the provider waits for.
func lateness(r *http.Request) time.Duration {
	if op := r.URL.Query().Get("op"); op == "allocate" || op == "compose" {
		return 500 * time.Millisecond
	}
	return 20 * time.Millisecond
}

// give sends the whole of an answer at once.
func give(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	maps.Copy(w.Header(), answer.Header())
	w.Header().Set("Content-Length", strconv.Itoa(answer.Body.Len()))
	w.WriteHeader(answer.Code)
	if _, err := w.Write(answer.Body.Bytes()); err == nil {
		_ = http.NewResponseController(w).Flush() // Who is not there any more needs no answer.
	}
}
