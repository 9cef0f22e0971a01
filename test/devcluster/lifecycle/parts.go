package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/hypershift/test/devcluster/cluster"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/images"
	"github.com/openshift/hypershift/test/devcluster/supervise"
)

// payloadComponents maps the tags of a Kubernetes release payload to the images that serve them.
var payloadComponents = map[string]string{
	"etcd":                     "kube",
	"kube-apiserver":           "kube",
	"kube-controller-manager":  "kube",
	"kube-scheduler":           "kube",
	"kube-proxy":               "kube",
	"node":                     "kube",
	"pod":                      "pause",
	"coredns":                  "coredns",
	"node-network":             "node-network",
	"cluster-capi-controllers": "cluster-api",
}

// Payload is the pull specification of the release payload of a Kubernetes version, such as "1.36.3".
func Payload(version string) string { return env.Registry + "/hypershift/release:" + version }

// payload is a release payload that the environment offers.
type payload struct {
	// version is that of Kubernetes, such as "1.36.3".
	version string
	// kube is the image of its Kubernetes programs.
	kube string
}

// payloads are those of this build's Kubernetes and of the minor before, from which people upgrade.
func (e *Environment) payloads(ctx context.Context) ([]payload, error) {
	current, err := e.KubernetesVersion(ctx)
	if err != nil {
		return nil, err
	}
	previous, err := e.PreviousVersion(ctx)
	return []payload{{current, "kube"}, {previous, "kube-previous"}}, err
}

// buildPayloads makes the release payloads.
func (e *Environment) buildPayloads(ctx context.Context) error {
	specs, err := images.Pullspecs(e.Images(), env.Registry)
	if err != nil {
		return err
	}
	payloads, err := e.payloads(ctx)
	if err != nil {
		return err
	}
	for _, p := range payloads {
		if err := e.buildPayload(ctx, p, specs); err != nil {
			return err
		}
	}
	return nil
}

// buildPayload makes one with the command that users have for their own.
func (e *Environment) buildPayload(ctx context.Context, p payload, specs map[string]string) error {
	args := []string{"release", "build", "--version", p.version, "--distribution", "kubernetes", "--arch", runtime.GOARCH,
		"--to", Payload(p.version), "--ca-file", e.RegistryCA()}
	for _, tag := range slices.Sorted(maps.Keys(payloadComponents)) {
		image := payloadComponents[tag]
		if image == "kube" {
			image = p.kube
		}
		args = append(args, "--component", tag+"="+specs[image])
	}
	if out, err := exec.CommandContext(ctx, e.Program("hypershift"), args...).CombinedOutput(); err != nil {
		return fmt.Errorf("building the release payload with hypershift %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// KubernetesVersion is the version of the built Kubernetes programs, without a leading v.
func (e *Environment) KubernetesVersion(ctx context.Context) (string, error) {
	return kubeletVersion(ctx, filepath.Join(e.Bin, "kube", "kubelet"))
}

// PreviousVersion is the version of the programs that stand for the minor before.
func (e *Environment) PreviousVersion(ctx context.Context) (string, error) {
	return kubeletVersion(ctx, filepath.Join(e.Bin, "kube-previous", "kubelet"))
}

func kubeletVersion(ctx context.Context, kubelet string) (string, error) {
	out, err := exec.CommandContext(ctx, kubelet, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", kubelet, err)
	}
	version, found := strings.CutPrefix(strings.TrimSpace(string(out)), "Kubernetes v")
	if !found {
		return "", fmt.Errorf("%s says its version is %q: build it with make images", kubelet, strings.TrimSpace(string(out)))
	}
	return version, nil
}

// simulator is the MAAS simulator as a supervised process.
func (e *Environment) simulator() supervise.Process {
	command := []string{e.Program("maas-simulator"), "serve",
		"--listen", env.MAASListen, "--admin-listen", env.MAASAdmin, "--state-dir", e.MAAS(),
		"--users", "admin,alice,bob", "--boot", "netns", "--boot-dir", e.Machines()}
	return supervise.Process{
		Name: "maas-simulator", Dir: e.MAAS(), Namespace: env.Namespace, Command: append(command, e.MAASArguments...),
	}
}

func (e *Environment) upSimulator(ctx context.Context) error {
	if e.WithoutMAAS {
		return nil
	}
	started := time.Now()
	if err := e.simulator().Start(); err != nil {
		return err
	}
	err := within(ctx, maasDeadline, func(ctx context.Context) error {
		return cluster.Until(ctx, func(ctx context.Context) error { return dial(ctx, env.MAASListen) })
	})
	if err != nil {
		return e.blameLog(fmt.Errorf("the MAAS simulator does not serve: %w", err), e.simulator().Log())
	}
	e.done("MAAS simulator", started)
	return nil
}

func dial(ctx context.Context, address string) error {
	connection, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return connection.Close()
}

// lock keeps two commands from changing the same environment at a time.
func (e *Environment) lock() (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(e.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("another devcluster command is working on %s: wait until it is done", e.Dir)
		}
		return nil, fmt.Errorf("locking %s: %w", e.Dir, err)
	}
	return func() { file.Close() }, nil
}
