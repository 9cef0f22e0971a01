// SPDX-License-Identifier: Apache-2.0

package netns_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/boot/netns"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/lifecycle"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/status"
	"github.com/openshift/hypershift/test/machine"
	"github.com/openshift/hypershift/test/machine/units"
)

// cloudTimeout bounds a complete first boot on a busy host.
const cloudTimeout = 5 * time.Minute

const cloudSeed = `{
 "subnets": [{"id": 1, "name": "net", "cidr": "172.31.98.0/24", "gateway_ip": "172.31.98.1", "dns_servers": ["172.31.98.1"]}],
 "boot_resources": [{"id": 1, "type": "Synced", "name": "ubuntu/noble", "architecture": "amd64/ga-24.04"}],
 "machines": [{"system_id": "cld001", "hostname": "calm-heron", "cpu_count": 2, "memory": 4096, "power_type": "ipmi",
   "interface_set": [{"name": "eth0", "mac_address": "52:54:00:12:34:57", "links": [{"mode": "auto", "subnet": 1}]}],
   "physicalblockdevice_set": [{"name": "sda", "size": 8000000000}]}]}`

// cloudSite is a MAAS with one machine. Its metadata service can be disabled.
type cloudSite struct {
	*simulator.Simulator
	backend *netns.Backend

	mu       sync.Mutex
	away     bool
	requests []string
	// refused lists the requests that the simulator rejected while its metadata service was enabled.
	refused []string
}

// answer records the status of a response.
type answer struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) {
	a.code = code
	a.ResponseWriter.WriteHeader(code)
}

func (s *cloudSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	away := s.away
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	s.mu.Unlock()
	if away {
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	}
	given := &answer{w, http.StatusOK}
	s.Simulator.ServeHTTP(given, r)
	if given.code >= http.StatusBadRequest {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refused = append(s.refused, fmt.Sprintf("%s %s: %d", r.Method, r.URL.RequestURI(), given.code))
	}
}

func (s *cloudSite) set(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func (s *cloudSite) seen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.requests, "\n")
}

// notServed returns the requests that the simulator rejected.
func (s *cloudSite) notServed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

func newCloudSite(t *testing.T) *cloudSite {
	t.Helper()
	g := NewWithT(t)
	backend := newBackend(t)
	var err error
	backend.CloudOS, err = filepath.Abs("../../../../bin/cloud-os")
	g.Expect(err).NotTo(HaveOccurred())
	if _, err := os.Stat(backend.CloudOS); err != nil {
		t.Skipf("%s is missing: run make cloud-os", backend.CloudOS)
	}
	bridge.Make(t)
	site := &cloudSite{backend: backend}
	server := bridge.Serve(t, site, (*httptest.Server).Start)
	site.Simulator, err = simulator.New(simulator.Options{
		Seed: []byte(cloudSeed), Backend: backend, MetadataURL: server.URL + "/MAAS/metadata/", Log: t.Logf, RandomSeed: 7,
	})
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { site.Run(ctx); close(ended) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		NewWithT(t).Expect(backend.Erase(context.Background(), "cld001")).To(Succeed())
	})
	return site
}

// deploy asks MAAS to deploy ubuntu/noble with the user-data.
func (s *cloudSite) deploy(g *WithT, userData string) {
	g.Expect(s.DB.Update(func() error {
		m := s.DB.Machines.Edit("cld001")
		err := s.Life.Deploy(m, lifecycle.Deployment{User: "alice", OSystem: "ubuntu", Series: "noble", UserData: []byte(userData)})
		if err != nil {
			return err
		}
		return s.Life.Start(m)
	})).To(Succeed())
	s.Life.Wake()
}

func (s *cloudSite) status() status.Status { return s.Machine("cld001").Status }

func (s *cloudSite) machine() *machine.Machine {
	m, err := machine.Lookup(filepath.Join(s.backend.Dir, "cld001"))
	if err != nil {
		return nil
	}
	return m
}

func (s *cloudSite) read(path string) string {
	m := s.machine()
	if m == nil {
		return ""
	}
	data, _ := os.ReadFile(m.Path(path))
	return string(data)
}

// explain returns the logs that explain a failure.
func (s *cloudSite) explain() string {
	return s.read("../console.log") + s.read("/var/log/cloud-init.log") + s.read("/var/log/cloud-init-output.log") + s.seen()
}

// cloudUserData uses the features that node configurations use: files, a unit that is enabled and started, users, and
// commands.
const cloudUserData = `#cloud-config
write_files:
- path: /opt/nap/run
  permissions: "0755"
  content: |
    #!/bin/sh
    date +%s >> /var/lib/naps
    exec sleep infinity
- path: /etc/systemd/system/nap.service
  content: |
    [Unit]
    After=network-online.target
    Wants=network-online.target
    [Service]
    ExecStart=/opt/nap/run
    [Install]
    WantedBy=multi-user.target
users:
- default
- name: eve
  ssh_authorized_keys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ eve]
  sudo: ALL=(ALL) NOPASSWD:ALL
runcmd:
- [systemctl, daemon-reload]
- [systemctl, enable, nap.service]
- [systemctl, start, --no-block, nap.service]
- [sh, -c, "until systemctl --quiet is-active nap.service; do sleep 0.1; done; systemctl is-active nap.service >> /var/lib/ran"]
`

// lines returns a function that counts the lines of a file of the machine.
func (s *cloudSite) lines(path string) func() int {
	return func() int { return strings.Count(s.read(path), "\n") }
}

// sh runs a command in the machine.
func (s *cloudSite) sh(t *testing.T, command string) string {
	t.Helper()
	out, err := s.machine().Exec(t.Context(), "sh", "-c", command)
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), command)
	return strings.TrimSpace(out)
}

// finished waits for the last stage of cloud-init.
func (s *cloudSite) finished(g *WithT) {
	g.Eventually(func() (units.State, error) {
		m := s.machine()
		if m == nil {
			return "", nil
		}
		all, err := m.Units()
		return all["cloud-final.service"].State, err
	}).WithTimeout(cloudTimeout).Should(Or(Equal(units.Active), Equal(units.Failed)), s.explain)
}

func (s *cloudSite) events(kind string) []string {
	var found []string
	_ = s.DB.View(func() error {
		for _, e := range s.DB.Events.All() {
			if e.Type == kind {
				found = append(found, e.Level+" "+e.Description)
			}
		}
		return nil
	})
	return found
}

func TestCloudInit(t *testing.T) {
	g := NewWithT(t)
	site := newCloudSite(t)
	site.deploy(g, cloudUserData)
	g.Eventually(site.status).WithTimeout(cloudTimeout).Should(Equal(status.Deployed), site.explain)
	site.finished(g)

	t.Run("When the machine boots first, the stages should run in order and apply the user-data", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(site.read("/var/lib/ran")).To(Equal("active\n"), site.explain())
		g.Eventually(site.lines("/var/lib/naps")).WithTimeout(cloudTimeout).Should(Equal(1), "it is active before its shell has written")
		g.Expect(site.sh(t, "hostname; cat /etc/hostname")).To(Equal("calm-heron\ncalm-heron"), "MAAS keeps its name out of /etc/hosts")
		g.Expect(site.read("/home/eve/.ssh/authorized_keys")).To(ContainSubstring("AAAAC3NzaC1lZDI1NTE5AAAAIJ eve"))
		g.Expect(site.read("/etc/sudoers.d/90-cloud-init-users")).To(ContainSubstring("eve ALL=(ALL) NOPASSWD:ALL"))
		g.Expect(site.sh(t, "cloud-id; systemctl is-enabled nap.service")).To(Equal("maas\nenabled"))
		log := site.read("/var/log/cloud-init.log")
		g.Expect(log).NotTo(ContainSubstring("Traceback"))
		at := -1
		for _, stage := range []string{"'init-local'", "'init'", "'modules:config'", "'modules:final'"} {
			next := strings.Index(log, "running "+stage)
			g.Expect(next).To(BeNumerically(">", at), "stage %s comes after the one before it", stage)
			at = next
		}
	})
	t.Run("When MAAS provides network and time settings, the image's own programs should apply them", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(site.read("/etc/network/interfaces.d/50-cloud-init")).To(ContainSubstring("address 172.31.98."))
		g.Expect(site.sh(t, "ip -4 -o address show eth0; ip route")).To(And(ContainSubstring("172.31.98."), ContainSubstring("default via 172.31.98.1")))
		g.Expect(site.read("/etc/systemd/timesyncd.conf.d/cloud-init.conf")).To(ContainSubstring("172.31.98.1"))
	})
	t.Run("When the image is inspected, it should have no container runtime, kubelet or Ignition", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(site.sh(t, "for p in containerd runc kubelet ignition ctr crictl; do command -v $p; done; ls /opt; ls /run/machine | grep ignition || true")).
			To(Equal("nap"), "which the user-data brought")
		g.Expect(site.sh(t, "cat /proc/swaps | wc -l; modprobe overlay && swapoff -a && echo fine")).To(Equal("1\nfine"))
	})
	t.Run("When cloud-init reports, MAAS should log the reports as its own events", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(site.events("Node installation")).To(ContainElement(HavePrefix("DEBUG 'cloudinit' ")))
		g.Expect(site.events("Node status event")).To(ContainElement("DEBUG 'cloudinit' running config-runcmd with frequency once-per-instance"))
		g.Expect(site.events("Node post-installation failure")).To(BeEmpty())
		g.Expect(site.seen()).To(ContainSubstring("GET /MAAS/metadata/2012-03-01/meta-data/vendor-data"))
		g.Expect(site.notServed()).To(BeEmpty(), "what cloud-init asks for is served")
	})
	t.Run("When the machine is power-cycled while MAAS is away, it should boot as before and repeat no one-time step", func(t *testing.T) {
		g := NewWithT(t)
		site.set(true)
		defer site.set(false)
		g.Expect(site.machine().Stop(t.Context())).To(Succeed())
		g.Expect(site.DB.Update(func() error { return site.Life.PowerOn(site.DB.Machines.Edit("cld001"), "alice", "") })).To(Succeed())
		site.Life.Wake()
		g.Eventually(site.lines("/var/lib/naps")).WithTimeout(cloudTimeout).Should(Equal(2), site.explain)
		site.finished(g)
		g.Expect(site.lines("/var/lib/ran")()).To(Equal(1), "commands run once an instance")
	})
	t.Run("When the machine reboots itself, it should have its new kernel arguments and no runtime state from before", func(t *testing.T) {
		g := NewWithT(t)
		before := site.sh(t, "cat /proc/sys/kernel/random/boot_id")
		pid := site.machine().PID()
		site.sh(t, "mkdir -p /etc/default/grub.d && echo 'GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX hugepages=4\"' > /etc/default/grub.d/99-node.cfg && update-grub")
		g.Expect(site.sh(t, "cat /proc/cmdline")).NotTo(ContainSubstring("hugepages"), "it counts from the next boot on")
		site.sh(t, "mount -t tmpfs none /mnt && ip link add cni0 type bridge && touch /run/left && iptables -N LEFT")
		_, _ = site.machine().Exec(t.Context(), "systemctl", "reboot") // The reboot may kill the command before it ends.
		g.Eventually(site.lines("/var/lib/naps")).WithTimeout(cloudTimeout).Should(Equal(3), site.explain)
		site.finished(g)
		g.Expect(site.machine().PID()).To(Equal(pid), "its power was on all the time")
		g.Expect(site.sh(t, "cat /proc/cmdline")).To(ContainSubstring("hugepages=4"))
		g.Expect(site.sh(t, "cat /proc/sys/kernel/random/boot_id")).NotTo(Equal(before))
		g.Expect(site.sh(t, "ls /run/left 2>&1; ip link show cni0 2>&1; iptables -S; grep -c ' /mnt ' /proc/mounts || true")).
			To(And(ContainSubstring("cannot access"), ContainSubstring("does not exist"), Not(ContainSubstring("LEFT")), HaveSuffix("0")))
		g.Expect(site.sh(t, "ip route")).To(ContainSubstring("default via 172.31.98.1"))
		g.Expect(site.lines("/var/lib/ran")()).To(Equal(1))
	})
}

func TestCloudInitWaitsForMAAS(t *testing.T) {
	g := NewWithT(t)
	site := newCloudSite(t)
	const secret = "another secret"
	site.set(true)
	site.deploy(g, "")
	asked := func() int { return strings.Count(site.seen(), "GET /MAAS/metadata/2012-03-01/meta-data/instance-id") }
	g.Eventually(asked).WithTimeout(cloudTimeout).Should(BeNumerically(">=", 2), site.explain)
	g.Expect(site.status()).To(Equal(status.Deploying), "nothing is deployed before it has asked")

	// MAAS is available again, but the machine's key is invalid.
	right := site.Machine("cld001").Token.Secret
	rekey := func(to string) {
		g.Expect(site.Change("cld001", func(m *inventory.Machine) { m.Token.Secret = to })).To(BeTrue())
	}
	rekey(secret)
	site.set(false)
	before := asked()
	g.Eventually(asked).WithTimeout(cloudTimeout).Should(BeNumerically(">=", before+2), site.explain)
	g.Expect(site.status()).To(Equal(status.Deploying))
	g.Expect(site.seen()).NotTo(ContainSubstring("/user-data"))

	rekey(right)
	g.Eventually(site.status).WithTimeout(cloudTimeout).Should(Equal(status.Deployed), site.explain)
	g.Expect(site.read("/var/log/cloud-init.log")).To(ContainSubstring("401"))
}

func TestCloudInitWithBadUserData(t *testing.T) {
	tests := map[string]struct {
		userData, log string
		failures      []string
	}{
		"the user-data is not YAML": {
			userData: "#cloud-config\nruncmd: [: : {\n", log: "Failed loading yaml blob",
		},
		"a command in the user-data fails": {
			userData: "#cloud-config\nruncmd:\n- [sh, -c, exit 3]\n", log: "Failed to run module scripts-user",
			failures: []string{"ERROR 'cloudinit' running config-scripts-user with frequency once-per-instance", "ERROR 'cloudinit' running modules for final"},
		},
	}
	for name, test := range tests {
		t.Run("When "+name+", MAAS should still set the machine to Deployed, and log what cloud-init reports", func(t *testing.T) {
			g := NewWithT(t)
			site := newCloudSite(t)
			site.deploy(g, test.userData)
			site.finished(g)
			g.Expect(site.status()).To(Equal(status.Deployed))
			g.Expect(site.read("/var/log/cloud-init.log")).To(ContainSubstring(test.log))
			g.Expect(site.events("Node post-installation failure")).To(Equal(test.failures), site.explain())
		})
	}
}

func TestCloudImageMissing(t *testing.T) {
	g := NewWithT(t)
	site := newCloudSite(t)
	site.backend.CloudOS = t.TempDir()
	site.deploy(g, "")
	g.Eventually(site.status).WithTimeout(cloudTimeout).Should(Equal(status.FailedDeployment))
	g.Expect(site.Machine("cld001").ErrorDescription).To(ContainSubstring("make cloud-os"))
}
