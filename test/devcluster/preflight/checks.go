// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/images"
	"github.com/openshift/hypershift/test/machine/cgroup"
)

const (
	gib = 1 << 30
	// diskNeeded and memoryNeeded are the requirements of the environment with two workers, with some reserve.
	diskNeeded, memoryNeeded = 8 * gib, 5 * gib
)

// hostCommands lists the programs of the host that machines run, with the package of each.
var hostCommands = []struct{ command, pkg string }{
	{"ip", "iproute2"}, {"nft", "nftables"}, {"iptables", "iptables"}, {"nsenter", "util-linux"}, {"mount", "mount"},
}

func commands(context.Context, env.Env) []error {
	var missing []string
	for _, needed := range hostCommands {
		if _, err := exec.LookPath(needed.command); err != nil {
			missing = append(missing, needed.pkg)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []error{fmt.Errorf("programs are missing that machines run: install them with apt-get install %s", strings.Join(missing, " "))}
}

// builtPrograms lists the files that `make environment` creates in the folder of programs.
var builtPrograms = []string{
	"hypershift", "maas-simulator", "s3", "ignition", "kube/kube", "kube/kubelet", "cni/ptp", "os/usr/bin/containerd", "os/usr/sbin/runc",
}

func binaries(_ context.Context, e env.Env) []error {
	for _, program := range builtPrograms {
		if !exists(filepath.Join(e.Bin, program)) {
			return []error{fmt.Errorf("%s is not built: run make environment", filepath.Join(e.Bin, program))}
		}
	}
	if _, err := images.List(e.Images()); err != nil {
		return []error{fmt.Errorf("the container images are not built: run make images")}
	}
	return nil
}

// neededControllers are the cgroup controllers that a kubelet requires.
var neededControllers = []string{"cpu", "cpuset", "memory", "pids"}

func cgroups(context.Context, env.Env) []error {
	hierarchies, err := cgroup.Hierarchies()
	if err != nil {
		return []error{fmt.Errorf("the control groups of this machine cannot be used: %w", err)}
	}
	available := map[string]bool{}
	for _, hierarchy := range hierarchies {
		for _, controller := range controllersOf(hierarchy) {
			available[controller] = true
		}
	}
	var missing []string
	for _, controller := range neededControllers {
		if !available[controller] {
			missing = append(missing, controller)
		}
	}
	if len(missing) > 0 {
		return []error{fmt.Errorf("the cgroup controllers %s are missing: mount /sys/fs/cgroup with them (in a container: run it privileged)", strings.Join(missing, ", "))}
	}
	return nil
}

// controllersOf reads the controllers of a version 2 hierarchy from its root, and of a version 1 hierarchy from its
// mount options.
func controllersOf(hierarchy cgroup.Hierarchy) []string {
	if !hierarchy.V2 {
		return hierarchy.Controllers
	}
	data, err := os.ReadFile(filepath.Join(hierarchy.MountPoint, "cgroup.controllers"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(data))
}

// packetFilter tries in a separate network namespace the rules that kube-proxy will need.
func packetFilter(ctx context.Context, _ env.Env) []error {
	const rules = "table ip try { chain nat { type nat hook postrouting priority 100; masquerade; }; }"
	out, err := exec.CommandContext(ctx, "unshare", "--net", "nft", rules).CombinedOutput()
	if err != nil {
		return []error{fmt.Errorf("the kernel cannot translate addresses in a network namespace (%s): load the modules nf_tables and nft_masq", firstLine(string(out), err))}
	}
	return nil
}

func firstLine(text string, err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if line == "" {
		return err.Error()
	}
	return line
}

// leftovers reports what an earlier run left that conflicts with a new one. Leftovers of the same folder do not
// conflict: the environment replaces them.
func leftovers(_ context.Context, e env.Env) []error {
	if exists(e.Management()) {
		return nil
	}
	const remedy = "run `make demo-down`, which removes every trace"
	if _, err := netlink.LinkByName(env.HostLink); err == nil {
		return []error{fmt.Errorf("the network interface %s is left over from an earlier run: %s", env.HostLink, remedy)}
	}
	if exists("/run/netns/" + env.Namespace) {
		return []error{fmt.Errorf("the network namespace %s is left over from an earlier run: %s", env.Namespace, remedy)}
	}
	return nil
}

// address checks that nothing else uses the machine network, which includes every port on it.
func address(context.Context, env.Env) []error {
	machines := netip.MustParsePrefix(env.Network)
	interfaces, err := net.Interfaces()
	if err != nil {
		return []error{fmt.Errorf("listing the network interfaces: %w", err)}
	}
	for _, one := range interfaces {
		addresses, err := one.Addrs()
		if err != nil {
			continue // The interface was removed concurrently.
		}
		for _, address := range addresses {
			prefix, err := netip.ParsePrefix(address.String())
			if err == nil && one.Name != env.HostLink && prefix.Overlaps(machines) {
				return []error{fmt.Errorf("the network %s, which the machines need, is in use by interface %s (%s): take that address away from it first", env.Network, one.Name, address)}
			}
		}
	}
	return routes(machines)
}

// routes reports routes to the machine network other than the default route: they would divert its traffic.
func routes(machines netip.Prefix) []error {
	all, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return []error{fmt.Errorf("listing the routes: %w", err)}
	}
	own := -1
	if link, err := netlink.LinkByName(env.HostLink); err == nil {
		own = link.Attrs().Index
	}
	for _, route := range all {
		if route.Dst == nil || route.LinkIndex == own {
			continue
		}
		ones, _ := route.Dst.Mask.Size()
		ip, ok := netip.AddrFromSlice(route.Dst.IP.To4())
		if ok && ones >= machines.Bits() && machines.Overlaps(netip.PrefixFrom(ip, ones)) {
			return []error{fmt.Errorf("the network %s, which the machines need, has a route already (%s): remove it first", env.Network, route.Dst)}
		}
	}
	return nil
}

func disk(_ context.Context, e env.Env) []error {
	dir := e.Dir
	for !exists(dir) {
		dir = filepath.Dir(dir)
	}
	var fsStat unix.Statfs_t
	if err := unix.Statfs(dir, &fsStat); err != nil {
		return []error{fmt.Errorf("checking the disk of %s: %w", dir, err)}
	}
	if fsStat.Type == unix.OVERLAYFS_SUPER_MAGIC || fsStat.Type == unix.TMPFS_MAGIC {
		return []error{fmt.Errorf("%s is on a file system that cannot carry container images (overlay or tmpfs): name a folder on a disk with --dir or %s", e.Dir, env.DirVariable)}
	}
	if free := int64(fsStat.Bavail) * fsStat.Bsize; free < diskNeeded {
		return []error{fmt.Errorf("%s has %.1f GiB of free disk, %d are needed: make room or name another folder with --dir or %s", dir, float64(free)/gib, diskNeeded/gib, env.DirVariable)}
	}
	return nil
}

func memory(context.Context, env.Env) []error {
	available, err := memoryAvailable()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return []error{err}
	}
	if available < memoryNeeded {
		return []error{fmt.Errorf("%.1f GiB of memory are available, %d are needed: end other programs or use a bigger machine", float64(available)/gib, memoryNeeded/gib)}
	}
	return nil
}

// memoryAvailable returns the available memory in bytes.
func memoryAvailable() (int64, error) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); err == nil {
			return kib << 10, nil
		}
	}
	return 0, errors.New("/proc/meminfo does not say how much memory is available")
}
