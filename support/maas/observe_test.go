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
		"When a machine changes, it should log its ID and name": {"POST machines/w/?op=deploy register_vmhost=true", `{"system_id": "w", "hostname": "keen-crow"}`,
			[]string{`"Changed MAAS"`, `"operation"="machines.deploy"`, `"code"=200`, `"systemID"="w"`, `"hostname"="keen-crow"`}},
		"When MAAS chooses a machine, it should log its ID and name": {"POST machines/?op=allocate ", `{"system_id": "w7", "hostname": "keen-crow"}`,
			[]string{`"Changed MAAS"`, `"systemID"="w7"`, `"hostname"="keen-crow"`}},
		"When the answer is empty, it should log the machine in the request": {"POST machines/w/?op=power_on comment=c", "null",
			[]string{`"Changed MAAS"`, `"systemID"="w"`}},
		"When the changed object is not a machine, it should log no machine": {"POST dnsresources/ fqdn=a.b&address_ttl=10&ip_addresses=", "{}",
			[]string{`"Changed MAAS"`, `"operation"="dnsresources.create"`}},
		"When MAAS refuses a change, it should log the reason": {"POST machines/w/?op=abort comment=c", 409,
			[]string{`"MAAS did not make a change"`, `"systemID"="w"`, `"code"=409`, `"error"="cannot abort machine w: MAAS says Conflict (HTTP 409)"`}},
		"When MAAS does not answer, it should log that": {"DELETE machines/w/ ", errReset,
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
		t.Run("When the call is "+request+", it should log the machine's system ID", func(t *testing.T) {
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
		"When all reads succeed, it should log nothing":                                        {[]any{machine, machine}, nil},
		"When MAAS fails and recovers, it should log each once":                                {[]any{errReset, errReset, errReset, machine, machine}, []string{ill, well}},
		"When MAAS fails again, it should log that again":                                      {[]any{errReset, machine, errReset}, []string{ill, well, ill}},
		"When MAAS fails in another way, it should log that":                                   {[]any{errReset, 503, 503, 500, machine}, []string{ill, ill, ill, well}},
		"When MAAS refuses the API key, it should log that":                                    {[]any{401, 401, machine}, []string{ill, well}},
		"When MAAS limits the rate of calls, it should log that":                               {[]any{429, 429, machine}, []string{ill, well}},
		"When the answer is not from MAAS, it should log that":                                 {[]any{"<html>", "<html>", machine}, []string{ill, well}},
		"When MAAS refuses single objects, it should log nothing":                              {[]any{409, 403, 404, 410}, nil},
		"When MAAS fails and then refuses single objects, it should log that it has recovered": {[]any{503, 409, 409}, []string{ill, well}},
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
	t.Run("When one kind of call fails and another succeeds, it should log each separately", func(t *testing.T) {
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
	t.Run("When reads are logged, it should log each attempt, including failures", func(t *testing.T) {
		g := NewWithT(t)
		ctx, lines := logged(t, logging.Reads)
		c := newClient(t, maas.Config{Endpoint: "https://maas/MAAS", Transport: &transport{answers: []any{503}}})
		_, err := c.GetMachine(ctx, "wq4h8c")
		g.Expect(err).To(HaveOccurred())
		g.Expect(*lines).To(HaveLen(3), "one for each attempt")
		g.Expect((*lines)[1]).To(And(ContainSubstring("Read from MAAS"), ContainSubstring("HTTP 503")))
	})
}
