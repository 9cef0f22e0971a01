// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/template"

	"github.com/openshift/hypershift/node-agent/host"
	"github.com/openshift/hypershift/support/nodeplan"
	"github.com/openshift/hypershift/support/syntax/toml"
)

const (
	socket = "/run/hypershift/containerd/containerd.sock"

	runtimeUnit = "hypershift-containerd.service"
	kubeletUnit = "kubelet.service"

	machineDropIn = "/etc/kubernetes/kubelet.conf.d/00-hypershift-machine.conf"
	resolvConf    = "/run/systemd/resolve/resolv.conf"
	// unifiedHierarchy exists only with cgroups v2.
	unifiedHierarchy = "/sys/fs/cgroup/cgroup.controllers"
)

var (
	//go:embed files/containerd.toml
	containerdText     string
	containerdTemplate = template.Must(template.New("containerd.toml").Funcs(template.FuncMap{"toml": toml.String}).Parse(
		containerdText))
	//go:embed files/crictl.yaml
	crictlConfig []byte
)

// Configure writes the settings that depend on the machine: the manager of its cgroups, and the path of its resolver
// configuration.
func Configure(_ context.Context, h *host.Host, plan *nodeplan.Plan) error {
	var config bytes.Buffer
	if err := containerdTemplate.Execute(&config, map[string]any{"PodImage": plan.Pod.Name, "Systemd": h.HasSystemd()}); err != nil {
		return err
	}
	for path, content := range map[string][]byte{
		"/etc/hypershift/containerd.toml": config.Bytes(),
		machineDropIn:                     kubeletDropIn(h),
	} {
		if _, err := h.Write(path, content, 0o644); err != nil {
			return err
		}
	}
	return forPeople(h)
}

func kubeletDropIn(h *host.Host) []byte {
	lines := []string{"apiVersion: kubelet.config.k8s.io/v1beta1", "kind: KubeletConfiguration"}
	if h.HasSystemd() {
		lines = append(lines, "cgroupDriver: systemd")
	} else {
		lines = append(lines, "cgroupDriver: cgroupfs")
	}
	if !h.Exists(unifiedHierarchy) {
		lines = append(lines, "failCgroupV1: false")
	}
	// The stub resolver of systemd-resolved listens on the loopback address, which differs in a pod.
	if h.Exists(resolvConf) {
		lines = append(lines, "resolvConf: "+resolvConf)
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}

// forPeople adds crictl to the PATH for administrators. It keeps an existing crictl and its configuration.
func forPeople(h *host.Host) error {
	if _, err := os.Stat(Program(h, "crictl")); err != nil {
		return nil //nolint:nilerr // A node does without.
	}
	for _, path := range []string{"/usr/local/bin/crictl", "/etc/crictl.yaml"} {
		if h.Exists(path) {
			return nil
		}
	}
	if err := h.Link("/usr/local/bin/crictl", current+"/usr/bin/crictl"); err != nil {
		return err
	}
	_, err := h.Write("/etc/crictl.yaml", crictlConfig, 0o644)
	return err
}

// Start starts the container runtime and the kubelet without waiting for them. Their units are not enabled: at each
// boot, node-agent first checks that everything they need is present.
func Start(ctx context.Context, h *host.Host, _ *nodeplan.Plan) error {
	if err := h.Do(ctx, "systemctl", "daemon-reload"); err != nil {
		return err
	}
	if err := h.Do(ctx, "systemctl", "start", "--no-block", runtimeUnit, kubeletUnit); err != nil {
		return fmt.Errorf("the units of the node cannot be started: %w", err)
	}
	return nil
}

// Follow starts the unit that applies later configurations to this node. Older plans do not have the unit.
func Follow(ctx context.Context, h *host.Host, _ *nodeplan.Plan) error {
	if !h.Exists(nodeplan.UnitDir + nodeplan.FollowUnit) {
		return nil
	}
	return h.Do(ctx, "systemctl", "start", "--no-block", nodeplan.FollowUnit)
}

// Restart restarts the container runtime and the kubelet of a running node. Containers keep running.
func Restart(ctx context.Context, h *host.Host, _ *nodeplan.Plan) error {
	if err := h.Do(ctx, "systemctl", "daemon-reload"); err != nil {
		return err
	}
	if err := h.Do(ctx, "systemctl", "restart", "--no-block", runtimeUnit, kubeletUnit); err != nil {
		return fmt.Errorf("the units of the node cannot be restarted: %w", err)
	}
	return nil
}

// RestartKubelet restarts the kubelet and waits for systemd. Containers keep running.
func RestartKubelet(ctx context.Context, h *host.Host) error {
	if err := h.Do(ctx, "systemctl", "restart", kubeletUnit); err != nil {
		return fmt.Errorf("the kubelet cannot be restarted: %w", err)
	}
	return nil
}

// Ended returns the number of times that systemd has restarted the kubelet since its unit was started.
func Ended(ctx context.Context, h *host.Host) (int, error) {
	out, err := h.Run(ctx, nil, "systemctl", "show", "--property=NRestarts", "--value", kubeletUnit)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(out)))
}

// Version returns the version of the release's kubelet, in the format of a Node status.
func Version(ctx context.Context, h *host.Host) (string, error) {
	out, err := h.Run(ctx, nil, Program(h, "kubelet"), "--version")
	if err != nil {
		return "", err
	}
	version, ok := strings.CutPrefix(strings.TrimSpace(string(out)), "Kubernetes ")
	if !ok {
		return "", fmt.Errorf("kubelet --version says %.100q", out)
	}
	return version, nil
}
