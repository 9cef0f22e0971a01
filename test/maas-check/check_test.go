// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// world is a simulated MAAS without delays.
type world struct {
	*GomegaWithT
	*simulator.Simulator
	t   *testing.T
	url string
	out bytes.Buffer
}

func newWorld(t *testing.T, change ...func(*simulator.Options)) *world {
	t.Helper()
	o := simulator.Options{RandomSeed: 1, Seed: []byte(simtest.WithVMHosts(simtest.Seed(
		simtest.Machine{ID: "aaaaa1", Hostname: "large", CPU: 32}, simtest.Machine{ID: "aaaaa2", Hostname: "small", CPU: 2},
		simtest.Machine{ID: "aaaaa3", Hostname: "taken", CPU: 1, Status: status.Deployed, Owner: "alice"},
	), simtest.VMHost{Name: "lxd"}))}
	for _, c := range change {
		c(&o)
	}
	s, err := simulator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return &world{GomegaWithT: NewWithT(t), Simulator: s, t: t, url: simtest.Serve(t, s)}
}

func (w *world) walk(ctx context.Context, user string, change func(*settings)) error {
	config := maas.Config{Endpoint: w.url, APIKey: w.Key(user), Retry: maas.RetryPolicy{Attempts: 1}}
	client, err := maas.NewClient(config)
	w.Expect(err).NotTo(HaveOccurred())
	c := &check{settings: settings{Config: config}, maas: client, report: progress.New(&w.out, clock.RealClock{}), interval: time.Millisecond}
	change(&c.settings)
	return c.walk(ctx)
}

// untouched checks that MAAS is unchanged.
func (w *world) untouched() {
	w.t.Helper()
	w.Expect(w.Machines()).To(HaveLen(3))
	for _, m := range w.Machines() {
		if m.Hostname != "taken" {
			w.Expect(m.Owner).To(BeEmpty(), m.Hostname)
			w.Expect(m.Status).To(Equal(status.Ready), m.Hostname)
		}
	}
	w.Expect(w.Machine("taken").Owner).To(Equal("alice"))
}

// writes lists the requested operations that change something.
func (w *world) writes() []string {
	var asked []string
	for count := range w.Requests() {
		if !strings.HasSuffix(count.Operation, ".read") && !strings.Contains("users.whoami vm-host.parameters", count.Operation) {
			asked = append(asked, count.Operation)
		}
	}
	return asked
}

func confirmed(s *settings) { s.Confirmed = true }

func TestWalk(t *testing.T) {
	t.Run("When the user does not confirm, it should say what it would use and change nothing", func(t *testing.T) {
		w := newWorld(t)
		w.Expect(w.walk(t.Context(), "admin", func(*settings) {})).To(Succeed())
		w.Expect(w.writes()).To(BeEmpty())
		w.Expect(w.out.String()).To(And(ContainSubstring("MAAS 3.4"), ContainSubstring("would take: machine small (aaaaa2)"),
			ContainSubstring("VM host lxd"), ContainSubstring("nothing was allocated")))
	})
	t.Run("When the user confirms, it should use the machine and a VM, and release both", func(t *testing.T) {
		w := newWorld(t)
		w.Expect(w.walk(t.Context(), "admin", confirmed)).To(Succeed(), w.out.String())
		w.Expect(w.writes()).To(ContainElements("machines.allocate", "machine.deploy", "vm-host.compose", "machine.release", "machine.delete"))
		w.untouched()
	})
	t.Run("When the user is not an administrator, it should leave VM hosts alone", func(t *testing.T) {
		w := newWorld(t)
		w.Expect(w.walk(t.Context(), "alice", confirmed)).To(Succeed(), w.out.String())
		w.Expect(w.writes()).NotTo(ContainElement("vm-host.compose"))
		w.Expect(w.out.String()).To(ContainSubstring("not an administrator"))
		w.untouched()
	})
	t.Run("When this version of MAAS has no VM hosts, it should continue without them", func(t *testing.T) {
		w := newWorld(t, func(o *simulator.Options) { o.Version = "main" })
		w.Expect(w.walk(t.Context(), "admin", confirmed)).To(Succeed(), w.out.String())
		w.Expect(w.out.String()).To(ContainSubstring("this version has none"))
		w.untouched()
	})
	t.Run("When there is no machine or zone to use, it should succeed or name the unknown zone", func(t *testing.T) {
		w := newWorld(t)
		w.Expect(w.walk(t.Context(), "admin", func(s *settings) { s.Confirmed, s.Zone = true, "default"; s.Pool = "default"; s.Image = "" })).To(Succeed())
		w.Expect(w.walk(t.Context(), "alice", func(s *settings) { s.Zone = "nowhere" })).To(MatchError(ContainSubstring("nowhere")))
	})
}

func TestWalkGivesBack(t *testing.T) {
	for name, rule := range map[string]faults.Rule{
		"the response to an allocation is lost": {Kind: faults.LostAnswer, Operation: "machines.allocate", Count: 1},
		"the deployment fails":                  {Kind: faults.DeployFails, Machine: "small", Count: 1},
		"the response to a compose is lost":     {Kind: faults.LostAnswer, Operation: "vm-host.compose", Count: 1},
		"commissioning fails":                   {Kind: faults.CommissionFails, Count: 1},
	} {
		t.Run("When "+name+", it should fail and release what it allocated", func(t *testing.T) {
			w := newWorld(t)
			simtest.Fault(t, w.Simulator, rule)
			w.Expect(w.walk(t.Context(), "admin", confirmed)).NotTo(Succeed())
			w.untouched()
		})
	}
	t.Run("When it is interrupted, it should release what it allocated", func(t *testing.T) {
		w := newWorld(t)
		mend := simtest.Fault(t, w.Simulator, faults.Rule{Kind: faults.BootHangs})
		defer mend()
		ctx, interrupt := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.walk(ctx, "admin", confirmed) }()
		w.Eventually(func() status.Status { return w.Machine("small").Status }).Should(Equal(status.Deploying))
		interrupt()
		w.Expect(<-ended).To(MatchError(context.Canceled))
		w.untouched()
	})
	t.Run("When an earlier run was killed, the next run should release what that run allocated", func(t *testing.T) {
		w := newWorld(t)
		client, err := maas.NewClient(maas.Config{Endpoint: w.url, APIKey: w.Key("admin")})
		w.Expect(err).NotTo(HaveOccurred())
		_, err = client.AllocateMachine(t.Context(), maas.AllocateRequest{SystemID: "aaaaa1", AgentName: ours})
		w.Expect(err).NotTo(HaveOccurred())
		_, err = client.ComposeMachine(t.Context(), 1, maas.ComposeRequest{Hostname: ours})
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(w.walk(t.Context(), "admin", func(*settings) {})).To(Succeed(), w.out.String())
		w.untouched()
	})
}

func TestSettings(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	NewWithT(t).Expect(os.WriteFile(key, []byte("a:b:c\n"), 0o600)).To(Succeed())
	tests := map[string]struct {
		environment map[string]string
		says        string
	}{
		"nothing is set":          {nil, "set MAAS_ENDPOINT"},
		"the key file is missing": {map[string]string{"MAAS_ENDPOINT": "http://127.0.0.1:1/MAAS", "MAAS_API_KEY_FILE": dir + "/none"}, "MAAS_API_KEY_FILE"},
		"the CA file is missing":  {map[string]string{"MAAS_ENDPOINT": "http://127.0.0.1:1/MAAS", "MAAS_API_KEY_FILE": key, "MAAS_CA_BUNDLE_FILE": dir + "/none"}, "MAAS_CA_BUNDLE_FILE"},
		"no MAAS answers the URL": {map[string]string{"MAAS_ENDPOINT": "http://127.0.0.1:1/MAAS", "MAAS_API_KEY_FILE": key}, "checking the version"},
	}
	for name, test := range tests {
		t.Run("When "+name+", the error should name the setting or the failed step", func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), func(name string) string { return test.environment[name] }, &out)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.says)))
		})
	}
}
