// SPDX-License-Identifier: Apache-2.0

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

// Payload returns the pull specification of the release payload of a Kubernetes version, such as "1.36.3".
func Payload(version string) string { return env.Registry + "/hypershift/release:" + version }

// buildPayloads builds a release payload of each Kubernetes that is built.
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
		if err := e.buildPayload(ctx, e.payload(release, specs)); err != nil {
			return err
		}
	}
	return nil
}

// BuildPatchPayload builds the release payload of the patch, and returns its pull specification. It is separate, so
// that only tests that need it pay for it.
func (e *Environment) BuildPatchPayload(ctx context.Context) (string, error) {
	specs, err := images.Pullspecs(e.Images(), env.Registry)
	if err != nil {
		return "", err
	}
	release, err := images.Patch(ctx, e.Bin)
	if err != nil {
		return "", err
	}
	return Payload(release.Version), e.buildPayload(ctx, e.payload(release, specs))
}

// payload holds the inputs of a release payload.
type payload struct {
	images.Release
	// command is the hypershift command that builds it; product is the image of the same version.
	command, product string
	// target is the reference that it is pushed to.
	target string
	// specs are the pull specifications of the environment's images, by name.
	specs map[string]string
}

// payload returns the payload of a Kubernetes release with this build's command.
func (e *Environment) payload(release images.Release, specs map[string]string) payload {
	return payload{release, e.Program("hypershift"), specs["hypershift"], Payload(release.Version), specs}
}

// buildPayload builds a payload with the command that users run, from a registry with the names and layouts of the
// public registry. Flags name the components of which the environment has a different version or none.
func (e *Environment) buildPayload(ctx context.Context, p payload) error {
	args := []string{
		"release", "build", "--kubernetes", "v" + p.Version, "--to", p.target, "--arch", runtime.GOARCH,
		"--image-repository", env.Registry + "/" + images.Published, "--ca-file", e.RegistryCA(),
		"--component-version", "etcd=" + images.EtcdVersion, "--component-version", "coredns=" + images.CoreDNSVersion,
		"--component-version", "pause=" + images.PauseVersion, "--component-version", "cluster-api=" + images.ClusterAPIVersion,
		"--product-image", p.product, "--without", "cluster-autoscaler,crictl",
		"--kubelet", e.nodeFile("kubelet" + p.Suffix), "--containerd", e.nodeFile("containerd.tgz"), "--runc", e.nodeFile("runc"),
		"--cni-plugins", e.nodeFile("cni-plugins.tgz"),
	}
	for _, name := range slices.Sorted(maps.Keys(p.specs)) {
		if component, of := strings.CutSuffix(name, p.Others); of && p.Others != "" {
			args = append(args, "--component", component+"="+p.specs[name])
		}
	}
	if out, err := exec.CommandContext(ctx, p.command, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("building the release payload with %s %s: %w: %s", p.command, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// nodeFile returns a source file of the node images; its checksum is next to it.
func (e *Environment) nodeFile(name string) string { return filepath.Join(e.Bin, "node", name) }

// KubernetesVersion returns the version of the built Kubernetes programs, without a leading v.
func (e *Environment) KubernetesVersion(ctx context.Context) (string, error) {
	return images.KubeletVersion(ctx, filepath.Join(e.Bin, "kube", "kubelet"))
}

// PreviousVersion returns the version of the programs that represent the previous minor.
func (e *Environment) PreviousVersion(ctx context.Context) (string, error) {
	return images.KubeletVersion(ctx, filepath.Join(e.Bin, "kube-previous", "kubelet"))
}
