package lifecycle

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/images"
)

// payloadComponents maps the tags of a Kubernetes release payload to the images that serve them.
var payloadComponents = map[string]string{
	"etcd":                     "etcd",
	"kube-apiserver":           "kube-apiserver",
	"kube-controller-manager":  "kube-controller-manager",
	"kube-scheduler":           "kube-scheduler",
	"kube-proxy":               "kube-proxy",
	"node":                     "node",
	"pod":                      "pause",
	"coredns":                  "coredns",
	"node-network":             "node-network",
	"cluster-capi-controllers": "cluster-api",
}

// Payload is the pull specification of the release payload of a Kubernetes version, such as "1.36.3".
func Payload(version string) string { return env.Registry + "/hypershift/release:" + version }

// buildPayloads makes a release payload of each Kubernetes that is built.
func (e *Environment) buildPayloads(ctx context.Context) error {
	specs, err := images.Pullspecs(e.Images(), env.Registry)
	if err != nil {
		return err
	}
	releases, err := images.Releases(ctx, e.Bin)
	if err != nil {
		return err
	}
	for _, release := range releases {
		if err := e.buildPayload(ctx, release, specs); err != nil {
			return err
		}
	}
	return nil
}

// buildPayload makes one with the command that users have for their own.
func (e *Environment) buildPayload(ctx context.Context, release images.Release, specs map[string]string) error {
	args := []string{"release", "build", "--version", release.Version, "--distribution", "kubernetes", "--arch", runtime.GOARCH,
		"--to", Payload(release.Version), "--ca-file", e.RegistryCA()}
	for _, tag := range slices.Sorted(maps.Keys(payloadComponents)) {
		image := payloadComponents[tag]
		if own, ok := specs[image+release.Suffix]; ok {
			args = append(args, "--component", tag+"="+own)
		} else {
			args = append(args, "--component", tag+"="+specs[image])
		}
	}
	if out, err := exec.CommandContext(ctx, e.Program("hypershift"), args...).CombinedOutput(); err != nil {
		return fmt.Errorf("building the release payload with hypershift %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// KubernetesVersion is the version of the built Kubernetes programs, without a leading v.
func (e *Environment) KubernetesVersion(ctx context.Context) (string, error) {
	return images.KubeletVersion(ctx, filepath.Join(e.Bin, "kube", "kubelet"))
}

// PreviousVersion is the version of the programs that stand for the minor before.
func (e *Environment) PreviousVersion(ctx context.Context) (string, error) {
	return images.KubeletVersion(ctx, filepath.Join(e.Bin, "kube-previous", "kubelet"))
}
