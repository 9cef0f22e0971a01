package machine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/machine"
	"github.com/openshift/hypershift/test/machine/network"
	"github.com/openshift/hypershift/test/machine/units"
)

func TestMain(m *testing.M) {
	machine.Init(map[string]machine.Boot{"write-unit": writeUnit})
	os.Exit(m.Run())
}

// writeUnit is a boot that leaves the machine a service named after its BootData.
func writeUnit(_ context.Context, system *machine.System) error {
	unit := "[Service]\nExecStart=/bin/sh -c 'echo started >> /var/starts; exec sleep infinity'\n[Install]\nWantedBy=multi-user.target\n"
	name := string(system.Config.BootData)
	if err := os.WriteFile("/etc/systemd/system/"+name, []byte(unit), 0o644); err != nil {
		return err
	}
	if err := os.MkdirAll("/etc/systemd/system-preset", 0o755); err != nil {
		return err
	}
	return os.WriteFile("/etc/systemd/system-preset/20-test.preset", []byte("enable "+name+"\n"), 0o644)
}

func TestSmoke(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	cfg := machine.Config{Name: "hs-test-smoke", Dir: filepath.Join(t.TempDir(), "m"), Boot: "write-unit", BootData: []byte("nap.service"),
		Network: network.Config{Bridges: []network.Bridge{{Name: "br0", Address: "172.31.99.1/24"}}}}
	m, err := machine.Start(ctx, cfg)
	g.Expect(err).NotTo(HaveOccurred())
	defer m.Remove(context.Background())
	g.Eventually(func() (map[string]units.Status, error) { return m.Units() }).WithTimeout(10 * time.Second).Should(HaveKeyWithValue("nap.service", units.Status{State: units.Active}))
	for _, c := range []string{"ps ax", "mount", "ip a", "id", "cat /proc/self/cgroup", "hostname", "ls -la /dev /", "cat /var/log/units/*", "cat /proc/1/cgroup", "iptables -L -n", "ls /sys/fs/cgroup/memory; getent hosts localhost; ls -la /etc; touch /usr/x; echo 1 > /proc/sys/net/ipv4/ip_forward; cat /proc/sys/vm/overcommit_memory; echo 1 > /proc/sys/vm/swappiness"} {
		out, err := m.Exec(ctx, "sh", "-c", c)
		t.Log(c, "\n", strings.TrimSpace(out), err)
	}
	console, _ := os.ReadFile(m.Config().Console())
	t.Log(string(console))
	start := time.Now()
	g.Expect(m.Stop(ctx)).To(Succeed())
	t.Log("stopped in", time.Since(start))
}
