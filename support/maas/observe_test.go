// SPDX-License-Identifier: Apache-2.0

package maas_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/openshift/hypershift/support/logging"
	"github.com/openshift/hypershift/support/maas"
)

// logged returns a context with a logger that appends lines up to a level.
func logged(t *testing.T, level int) (context.Context, *[]string) {
	t.Helper()
	lines := &[]string{}
	logger := funcr.New(func(_, args string) { *lines = append(*lines, args) }, funcr.Options{Verbosity: level})
	return log.IntoContext(t.Context(), logger), lines
}

func TestChangesAreLogged(t *testing.T) {
	for name, tc := range map[string]struct {
		call   string
		answer any
		want   []string
	}{
		"When a machine changes, it should be named": {"POST machines/w/?op=deploy register_vmhost=true", `{"system_id": "w", "hostname": "keen-crow"}`,
			[]string{`"Changed MAAS"`, `"operation"="machines.deploy"`, `"code"=200`, `"systemID"="w"`, `"hostname"="keen-crow"`}},
		"When MAAS chooses a machine, it should be named": {"POST machines/?op=allocate ", `{"system_id": "w7", "hostname": "keen-crow"}`,
			[]string{`"Changed MAAS"`, `"systemID"="w7"`, `"hostname"="keen-crow"`}},
		"When the answer is empty, the machine of the call should be named": {"POST machines/w/?op=power_on comment=c", "null",
			[]string{`"Changed MAAS"`, `"systemID"="w"`}},
		"When what changes is no machine, it should name none": {"POST dnsresources/ fqdn=a.b&address_ttl=10&ip_addresses=", "{}",
			[]string{`"Changed MAAS"`, `"operation"="dnsresources.create"`}},
		"When MAAS refuses, it should say why": {"POST machines/w/?op=abort comment=c", 409,
			[]string{`"MAAS did not make a change"`, `"systemID"="w"`, `"code"=409`, `"error"="cannot abort machine w: MAAS says Conflict (HTTP 409)"`}},
		"When no answer comes, it should say so": {"DELETE machines/w/ ", errReset,
			[]string{`"MAAS did not make a change"`, `"code"=0`, "connection reset by peer"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ctx, lines := logged(t, logging.Changes)
			c := newClient(t, maas.Config{Endpoint: "https://maas/MAAS", Transport: &transport{answers: []any{tc.answer}}, Retry: maas.RetryPolicy{Attempts: -1}})
			if call, known := requests()[tc.call]; known {
				_ = call(ctx, c)
			} else {
				_, _ = c.AllocateMachine(ctx, maas.AllocateRequest{})
			}
			g.Expect(*lines).To(HaveLen(1))
			for _, part := range tc.want {
				g.Expect((*lines)[0]).To(ContainSubstring(part))
			}
			g.Expect(strings.Contains((*lines)[0], "systemID")).To(Equal(strings.Contains(strings.Join(tc.want, " "), "systemID") || strings.Contains(tc.call, "machines/w/")))
			g.Expect(strings.Contains((*lines)[0], "hostname")).To(Equal(strings.Contains(strings.Join(tc.want, " "), "hostname")))
		})
	}
}

// TestLogsNameMachines checks that log lines have the machine's system ID, so that users can find all changes of a
// machine.
func TestLogsNameMachines(t *testing.T) {
	for request, call := range requests() {
		if !strings.Contains(request, " machines/w/") && !strings.Contains(request, " nodes/w/") {
			continue
		}
		t.Run("When the call is "+request+", it should be named", func(t *testing.T) {
			ctx, lines := logged(t, logging.MaxLevel)
			g := NewWithT(t)
			g.Expect(call(ctx, newClient(t, maas.Config{Endpoint: "https://maas/MAAS", Transport: &transport{answers: []any{409}}}))).NotTo(Succeed())
			g.Expect(*lines).To(ConsistOf(ContainSubstring(`"systemID"="w"`)))
		})
	}
}

// TestLogsHoldNoContent checks that the log has no user-data and no power parameters: they are secrets.
func TestLogsHoldNoContent(t *testing.T) {
	g := NewWithT(t)
	ctx, lines := logged(t, logging.MaxLevel)
	server := &transport{answers: []any{machine}}
	c := newClient(t, maas.Config{Endpoint: "https://maas/MAAS", Transport: server})
	_, err := c.DeployMachine(ctx, "wq4h8c", maas.DeployRequest{UserData: []byte("hunter2"), Comment: "hunter2"})
	g.Expect(err).NotTo(HaveOccurred())
	server.answers = []any{`{"power_pass": "hunter2", "power_user": "hunter2"}`}
	power, err := c.GetPowerParameters(ctx, "wq4h8c")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(power).To(HaveKeyWithValue("power_pass", "hunter2"))
	g.Expect(*lines).To(HaveLen(2))
	for part := range strings.SplitSeq(key+":hunter2:aHVudGVyMg", ":") {
		g.Expect(strings.Join(*lines, "\n")).NotTo(ContainSubstring(part))
	}
}

// TestReadsAreLoggedWhenTheyChange checks that repeated failures are logged once. While MAAS is down, hundreds of reads
// fail in the same way, and two lines are sufficient.
func TestReadsAreLoggedWhenTheyChange(t *testing.T) {
	const ill, well = "MAAS does not answer as it should", "MAAS answers again"
	for name, tc := range map[string]struct {
		answers []any
		want    []string
	}{
		"When all is well, it should be silent":                        {[]any{machine, machine}, nil},
		"When MAAS is down and comes back, it should be said once":     {[]any{errReset, errReset, errReset, machine, machine}, []string{ill, well}},
		"When it goes down again, it should be said again":             {[]any{errReset, machine, errReset}, []string{ill, well, ill}},
		"When it fails in another way, it should be news":              {[]any{errReset, 503, 503, 500, machine}, []string{ill, ill, ill, well}},
		"When it refuses the key, it should be news":                   {[]any{401, 401, machine}, []string{ill, well}},
		"When it limits the rate of calls, it should be news":          {[]any{429, 429, machine}, []string{ill, well}},
		"When the answer is of something else, it should be news":      {[]any{"<html>", "<html>", machine}, []string{ill, well}},
		"When it lacks one object, that should be no news":             {[]any{409, 403, 404, 410}, nil},
		"When it was down and lacks one object, it is there all right": {[]any{503, 409, 409}, []string{ill, well}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ctx, lines := logged(t, logging.Changes)
			c := newClient(t, maas.Config{Endpoint: "https://maas/MAAS", Transport: &transport{answers: tc.answers}, Retry: maas.RetryPolicy{Attempts: -1}})
			for range tc.answers {
				_, _ = c.GetMachine(ctx, "wq4h8c")
			}
			g.Expect(*lines).To(HaveLen(len(tc.want)), "%v", *lines)
			for i, message := range tc.want {
				g.Expect((*lines)[i]).To(ContainSubstring(`"msg"="` + message + `"`))
			}
		})
	}
	t.Run("When one kind of call fails and another does not, each should have its own story", func(t *testing.T) {
		g := NewWithT(t)
		ctx, lines := logged(t, logging.Changes)
		server := &transport{answers: []any{503, "[]", 503}}
		c := newClient(t, maas.Config{Endpoint: "https://maas/MAAS", Transport: server, Retry: maas.RetryPolicy{Attempts: -1}})
		_, err := c.GetMachine(ctx, "wq4h8c")
		g.Expect(err).To(HaveOccurred())
		_, err = c.ListZones(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = c.GetMachine(ctx, "wq4h8c")
		g.Expect(err).To(HaveOccurred())
		g.Expect(*lines).To(ConsistOf(ContainSubstring("machines.get")))
	})
	t.Run("When somebody wants to see reads, each should be there, those that fail too", func(t *testing.T) {
		g := NewWithT(t)
		ctx, lines := logged(t, logging.Reads)
		c := newClient(t, maas.Config{Endpoint: "https://maas/MAAS", Transport: &transport{answers: []any{503}}})
		_, err := c.GetMachine(ctx, "wq4h8c")
		g.Expect(err).To(HaveOccurred())
		g.Expect(*lines).To(HaveLen(3), "one for each attempt")
		g.Expect((*lines)[1]).To(And(ContainSubstring("Read from MAAS"), ContainSubstring("HTTP 503")))
	})
}
