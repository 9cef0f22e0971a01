// SPDX-License-Identifier: Apache-2.0

// Package published knows what the Kubernetes project and its neighbours publish for each minor of Kubernetes: which versions belong
// together, and under which names their images and programs lie.
package published

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// Registry is where the project publishes its images.
const Registry = "registry.k8s.io"

// NodeNetwork is the component that no public image has: it comes from the product's own.
const NodeNetwork = "node-network"

// NodeImage is the component that is made of programs, since no public image has a kubelet.
const NodeImage = "node"

// The names of parts whose versions can be chosen.
const (
	etcd, coreDNS, pause, autoscaler, clusterAPI = "etcd", "coredns", "pause", "cluster-autoscaler", "cluster-api"
	containerd, runc, cniPlugins, crictl         = "containerd", "runc", "cni-plugins", "crictl"
	// Kubernetes and its kubelet have one version.
	kubernetes, kubelet = "kubernetes", "kubelet"
)

// minors are the versions that belong to a minor of Kubernetes: etcd, CoreDNS and pause as in the constants of kubeadm in its newest known patch,
// cluster-autoscaler of the same minor, and crictl as the project tests with.
var minors = map[uint64]map[string]string{
	31: {etcd: "3.5.24-0", coreDNS: "v1.11.3", pause: "3.10", autoscaler: "v1.31.1", crictl: "1.31.1"},
	32: {etcd: "3.5.24-0", coreDNS: "v1.11.3", pause: "3.10", autoscaler: "v1.32.1", crictl: "1.32.0"},
	33: {etcd: "3.5.24-0", coreDNS: "v1.12.0", pause: "3.10", autoscaler: "v1.33.0", crictl: "1.33.0"},
	34: {etcd: "3.6.5-0", coreDNS: "v1.12.1", pause: "3.10.1", autoscaler: "v1.34.0", crictl: "1.34.0"},
	35: {etcd: "3.6.6-0", coreDNS: "v1.13.1", pause: "3.10.1", autoscaler: "v1.35.0", crictl: "1.35.0"},
	36: {etcd: "3.6.8-0", coreDNS: "v1.14.2", pause: "3.10.2", autoscaler: "v1.36.0", crictl: "1.35.0"},
}

// anyMinor are the versions that serve all minors of the table: the Cluster API whose API is installed with the operator, and the container
// runtime's releases that contain each other's tested versions.
var anyMinor = map[string]string{clusterAPI: "v1.13.6", containerd: "2.2.10", runc: "1.3.6", cniPlugins: "1.9.0"}

// Image is a component that has a published image.
type Image struct {
	// Tag is the component's tag in a release payload.
	Tag string
	// Repository is the image's, without the registry.
	Repository string
	// Version is the image's tag.
	Version string
}

// Program is a file for nodes that is published for each architecture. {arch} in its places stands for the architecture in Go's words.
type Program struct {
	// Name is that of its flag.
	Name string
	// Source is the URL of the file, and Checksums that of the file with its SHA-256.
	Source, Checksums string
}

// Release is what belongs to a version of Kubernetes.
type Release struct {
	// Version is that of Kubernetes, without a leading v.
	Version string
	// Images are the components with a published image, sorted by tag.
	Images []Image
	// Programs are those of the node image, sorted by name.
	Programs []Program
	// Versions are those of all parts, by the names with which they are chosen.
	Versions map[string]string
}

// Of says what belongs to a version of Kubernetes, such as v1.36.3. chosen are versions of parts that are taken instead of the table's.
func Of(version string, chosen map[string]string) (Release, error) {
	v, err := semver.Parse(strings.TrimPrefix(version, "v"))
	if err != nil {
		return Release{}, fmt.Errorf("%q is no version of Kubernetes such as v1.36.3", version)
	}
	known, ok := minors[v.Minor]
	if v.Major != 1 || !ok {
		return Release{}, fmt.Errorf("what belongs to Kubernetes %d.%d is not known here, only %s: use a newer hypershift, or name every component with --version and --component",
			v.Major, v.Minor, knownMinors())
	}
	versions := maps.Clone(anyMinor)
	maps.Copy(versions, known)
	for _, part := range slices.Sorted(maps.Keys(chosen)) {
		if versions[part] == "" {
			return Release{}, fmt.Errorf("there is no part %q to choose a version of, only %s", part, strings.Join(slices.Sorted(maps.Keys(versions)), ", "))
		}
		versions[part] = chosen[part]
	}
	versions[kubernetes] = v.String()
	return Release{Version: v.String(), Images: images(versions), Programs: programs(versions), Versions: versions}, nil
}

// Minors returns the first version of each minor of Kubernetes that is known here, in order.
func Minors() []string {
	var all []string
	for _, minor := range slices.Sorted(maps.Keys(minors)) {
		all = append(all, fmt.Sprintf("v1.%d.0", minor))
	}
	return all
}

// knownMinors is the range of the table in words.
func knownMinors() string {
	all := slices.Sorted(maps.Keys(minors))
	return fmt.Sprintf("1.%d to 1.%d", all[0], all[len(all)-1])
}

func images(versions map[string]string) []Image {
	kube := "v" + versions[kubernetes]
	return []Image{
		{autoscaler, "autoscaling/cluster-autoscaler", versions[autoscaler]},
		{"cluster-capi-controllers", "cluster-api/cluster-api-controller", versions[clusterAPI]},
		{coreDNS, "coredns/coredns", versions[coreDNS]},
		{etcd, "etcd", versions[etcd]},
		{"kube-apiserver", "kube-apiserver", kube},
		{"kube-controller-manager", "kube-controller-manager", kube},
		{"kube-proxy", "kube-proxy", kube},
		{"kube-scheduler", "kube-scheduler", kube},
		{"pod", "pause", versions[pause]},
	}
}

// programs are where the projects publish their programs. containerd's static build runs with any C library.
func programs(versions map[string]string) []Program {
	const github = "https://github.com/"
	at := func(name, base, file, checksums string) Program {
		replace := strings.NewReplacer("{version}", strings.TrimPrefix(versions[name], "v"))
		return Program{Name: name, Source: replace.Replace(base + file), Checksums: replace.Replace(base + checksums)}
	}
	kubeletBase := "https://dl.k8s.io/release/v" + versions[kubernetes] + "/bin/linux/{arch}/"
	containerdFile := "containerd-static-{version}-linux-{arch}.tar.gz"
	pluginsFile := "cni-plugins-linux-{arch}-v{version}.tgz"
	crictlFile := "crictl-v{version}-linux-{arch}.tar.gz"
	return []Program{
		at(cniPlugins, github+"containernetworking/plugins/releases/download/v{version}/", pluginsFile, pluginsFile+".sha256"),
		at(containerd, github+"containerd/containerd/releases/download/v{version}/", containerdFile, containerdFile+".sha256sum"),
		at(crictl, github+"kubernetes-sigs/cri-tools/releases/download/v{version}/", crictlFile, crictlFile+".sha256"),
		at(kubelet, kubeletBase, kubelet, kubelet+".sha256"),
		at(runc, github+"opencontainers/runc/releases/download/v{version}/", "runc.{arch}", "runc.sha256sum"),
	}
}
