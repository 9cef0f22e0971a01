// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/cluster"
	"github.com/openshift/hypershift/node-agent/update"
	"github.com/openshift/hypershift/support/nodeplan"
)

// member returns a machine with only a kubelet, which has joined a guest.
func member(t *testing.T) (*machine, *follower) {
	t.Helper()
	m := newMachine(t)
	m.join()
	m.put("/opt/hypershift/node/current/usr/bin/kubelet", "v1.36.3")
	m.guest.kubelet = "v1.36.3"
	return m, m.follower()
}

// TestHealthy checks when a Node counts as healthy. The result decides whether the machine rolls back.
func TestHealthy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		harm func(m *machine, f *follower)
		says string
	}{
		"is Ready with the release's kubelet":       {func(*machine, *follower) {}, ""},
		"is Ready with another kubelet":             {func(m *machine, _ *follower) { m.guest.kubelet = "v1.35.0" }, "was not Ready with kubelet v1.36.3 in "},
		"has not renewed its Lease since the start": {func(m *machine, f *follower) { f.alive = time.Hour }, "its kubelet has not renewed its lease for long enough"},
		"cannot be read":                            {func(m *machine, _ *follower) { m.guest.away = true }, "the call to the API server failed: the API server answered 503"},
		"has a kubelet that does not run": {func(m *machine, _ *follower) {
			m.host.Run = func(context.Context, io.Reader, string, ...string) ([]byte, error) {
				return nil, errors.New("exec format error")
			}
		}, "the kubelet does not run: exec format error"},
		"has a kubelet that exits repeatedly": {func(m *machine, _ *follower) { m.guest.kubelet, m.guest.broken = "", true }, "ended 5 times: `journalctl -u kubelet` on the machine says why"},
	} {
		t.Run("When the Node "+name+", it should count as healthy only if it is Ready", func(t *testing.T) {
			t.Parallel()
			m, f := member(t)
			f.ready = time.Minute
			if strings.Contains(tt.says, "Ready") || strings.Contains(tt.says, "call to the API server failed") || strings.Contains(tt.says, "has not renewed its lease") {
				f.ready = 300 * time.Millisecond // This is long enough for one check on a busy machine.
			}
			tt.harm(m, f)
			err := f.healthy(t.Context())
			if tt.says == "" {
				m.Expect(err).NotTo(HaveOccurred())
				return
			}
			m.Expect(err).To(MatchError(ContainSubstring(tt.says)))
		})
	}
	t.Run("When the machine shuts down during the wait, it should return the context error", func(t *testing.T) {
		m, f := member(t)
		f.alive = time.Hour
		ctx, cancel := context.WithCancel(t.Context())
		m.host.Run = stopAt(m.run, "systemctl show --property=NRestarts --value kubelet.service", cancel)
		m.Expect(f.healthy(ctx)).To(Or(MatchError(context.Canceled), MatchError(ContainSubstring("context canceled"))))
		m.Expect(ctx.Err()).To(HaveOccurred())
	})
	t.Run("When systemd does not report the kubelet's restarts, it should rely on the Node", func(t *testing.T) {
		m, f := member(t)
		m.host.Run = func(ctx context.Context, stdin io.Reader, program string, args ...string) ([]byte, error) {
			if program == "systemctl" {
				return nil, errors.New("no bus")
			}
			return m.run(ctx, stdin, program, args...)
		}
		m.Expect(f.healthy(t.Context())).To(Succeed())
	})
}

// TestRenewProgram checks when a new node-agent replaces this one. A node-agent that cannot run could not be replaced
// by a later version. It is therefore tried first.
func TestRenewProgram(t *testing.T) {
	t.Parallel()
	became := errors.New("it is another program from here on")
	for name, tt := range map[string]struct {
		harm  func(m *machine)
		want  error
		says  string
		after string
	}{
		"has the same node-agent":    {func(*machine) {}, nil, "", "this program"},
		"has a newer node-agent":     {func(m *machine) { m.program = "a newer program" }, became, "", "a newer program"},
		"sends a corrupt node-agent": {func(m *machine) { m.program = "damaged newer program" }, nil, "does not match its checksum", "this program"},
		"has no node-agent":          {func(m *machine) { m.status = http.StatusNotFound }, nil, "404", "this program"},
		"has a node-agent that does not run": {func(m *machine) {
			m.program = "for another machine"
			m.commands, m.failAt = nil, 1
		}, nil, "loses its power", "this program"},
		"has one that there is no room for": {func(m *machine) {
			m.program = "a newer program"
			m.put(nextProgram+"/x", "")
		}, nil, "node-agent.next", "this program"},
	} {
		t.Run("When the server "+name+", the machine should end up with a node-agent that runs", func(t *testing.T) {
			t.Parallel()
			m, f := member(t)
			f.become = func() error { return became }
			tt.harm(m)
			err := f.renewProgram(t.Context())
			switch {
			case tt.says != "":
				m.Expect(err).To(MatchError(ContainSubstring(tt.says)))
			case tt.want != nil:
				m.Expect(err).To(MatchError(tt.want))
				info, err := os.Stat(m.host.Path(nodeplan.Program))
				m.Expect(err).NotTo(HaveOccurred())
				m.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o755))
			default:
				m.Expect(err).NotTo(HaveOccurred())
			}
			m.Expect(m.read(nodeplan.Program)).To(Equal(tt.after))
			if name != "has one that there is no room for" {
				m.Expect(m.host.Exists(nextProgram)).To(BeFalse(), "half of it takes room")
			}
		})
	}
}

// TestAsk checks a machine with missing or damaged data about the ignition-server, or without a certificate.
func TestAsk(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		harm func(m *machine)
		says string
	}{
		"was installed by an old server": {func(m *machine) { m.Expect(os.Remove(m.host.Path(nodeplan.ServerEndpoint))).To(Succeed()) }, "replace the machine once"},
		"has a truncated server CA":      {func(m *machine) { m.put(nodeplan.ServerCA, "-----BEGIN CERTIFICATE-----\nhunter2") }, nodeplan.ServerCA + ": the CA of the server holds no certificate"},
		"has lost its certificate":       {func(m *machine) { m.put("/var/lib/kubelet/pki/kubelet-client-current.pem", "hunter2") }, "reading the kubelet's certificate"},
		"has an invalid server address":  {func(m *machine) { m.put(nodeplan.ServerEndpoint, "10.0.0.1:port\n") }, "invalid port"},
	} {
		t.Run("When the machine "+name+", it should report it, and send no request", func(t *testing.T) {
			t.Parallel()
			m, f := member(t)
			tt.harm(m)
			_, err := f.ask(t.Context(), "/node-config/new")
			m.Expect(err).To(MatchError(And(ContainSubstring(tt.says), Not(ContainSubstring("hunter2")))))
			m.Expect(m.requests).To(BeZero())
		})
	}
}

// TestTell checks that the annotations report how an update ended, with the configuration of that update.
func TestTell(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		state       update.State
		said        string
		wantMessage string
	}{
		"rolled back":        {update.State{Phase: update.RolledBack, Hash: "new", Message: "no network"}, "RolledBack", "configuration new was rolled back: no network"},
		"failed":             {update.State{Phase: update.Failed, Hash: "new", Message: "no network; and again"}, "Failed", "configuration new was rolled back: no network; and again"},
		"is settled":         {update.State{}, "Done", ""},
		"has a long message": {update.State{Phase: update.Failed, Hash: "new", Message: strings.Repeat("ü", maxMessage)}, "Failed", "configuration new was rolled back: " + strings.Repeat("ü", 482) + " ..."},
	} {
		t.Run("When a machine "+name+", it should report it on the Node once", func(t *testing.T) {
			t.Parallel()
			m, f := member(t)
			now := cluster.Annotations{}
			for range 2 {
				m.Expect(f.tell(t.Context(), now, "old", tt.state)).To(Succeed())
			}
			m.Expect(m.guest.patches).To(Equal([]string{tt.said + " old"}))
			_, _, message := m.says()
			m.Expect(message).To(Equal(tt.wantMessage))
		})
	}
	t.Run("When the Node cannot be annotated, it should return an error and retry", func(t *testing.T) {
		m, f := member(t)
		m.guest.away = true
		now := cluster.Annotations{}
		m.Expect(f.tell(t.Context(), now, "old", update.State{})).To(MatchError(HavePrefix("annotating Node worker-1: ")))
		m.guest.away = false
		m.Expect(f.tell(t.Context(), now, "old", update.State{})).To(Succeed())
		m.Expect(m.guest.patches).To(HaveLen(1))
	})
}
