// SPDX-License-Identifier: Apache-2.0

// Package published lists what the Kubernetes project and related projects publish for each minor version of
// Kubernetes: which versions belong together, and the names of their images and programs.
package published

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// Registry is the registry of the Kubernetes project.
const Registry = "registry.k8s.io"

// Components without a public image: they come from the product's image.
const (
	NodeNetwork = "node-network"
	Tunnel      = "tunnel"
)

// OfProduct lists the components that come from the product's image.
var OfProduct = []string{NodeNetwork, Tunnel}

// NodeImage is the component that is built from programs, since no public image contains a kubelet.
const NodeImage = "node"

// Names of the parts whose versions can be chosen.
const (
	etcd, coreDNS, pause, autoscaler, clusterAPI = "etcd", "coredns", "pause", "cluster-autoscaler", "cluster-api"
	flannel                                      = "flannel"
	containerd, runc, cniPlugins, crictl         = "containerd", "runc", "cni-plugins", "crictl"
	metricsServer                                = "metrics-server"
	// Kubernetes and its kubelet have the same version.
	kubernetes, kubelet = "kubernetes", "kubelet"
)

// minors holds the versions that belong to a minor version of Kubernetes. etcd, CoreDNS and pause are those in the
// constants of kubeadm in the newest known patch. cluster-autoscaler has the same minor version. crictl is the version
// that the project tests with. metrics-server is the newest that supports the minor version.
var minors = map[uint64]map[string]string{
	31: {etcd: "3.5.24-0", coreDNS: "v1.11.3", pause: "3.10", autoscaler: "v1.31.1", crictl: "1.31.1", metricsServer: "v0.8.0"},
	32: {etcd: "3.5.24-0", coreDNS: "v1.11.3", pause: "3.10", autoscaler: "v1.32.1", crictl: "1.32.0", metricsServer: "v0.8.0"},
	33: {etcd: "3.5.24-0", coreDNS: "v1.12.0", pause: "3.10", autoscaler: "v1.33.0", crictl: "1.33.0", metricsServer: "v0.8.0"},
	34: {etcd: "3.6.5-0", coreDNS: "v1.12.1", pause: "3.10.1", autoscaler: "v1.34.0", crictl: "1.34.0", metricsServer: "v0.9.0"},
	35: {etcd: "3.6.6-0", coreDNS: "v1.13.1", pause: "3.10.1", autoscaler: "v1.35.0", crictl: "1.35.0", metricsServer: "v0.9.0"},
	36: {etcd: "3.6.8-0", coreDNS: "v1.14.2", pause: "3.10.2", autoscaler: "v1.36.0", crictl: "1.35.0", metricsServer: "v0.9.0"},
}

// anyMinor holds the versions that suit all minors of the table. These are the Cluster API whose API is installed with
// the operator, and the container runtime's releases that contain each other's tested versions.
var anyMinor = map[string]string{clusterAPI: "v1.13.6", flannel: "v0.28.10", containerd: "2.2.10", runc: "1.3.6", cniPlugins: "1.9.0"}

// Image is a component with a published image.
type Image struct {
	// Tag is the component's tag in a release payload.
	Tag string
	// Repository is the repository of the image, without the registry.
	Repository string
	// Version is the image's tag.
	Version string
	// Registry is the registry of the image; empty means Registry of this package.
	Registry string
}

// Program is a file for nodes that is published for each architecture. {arch} in its URLs stands for the architecture
// in Go's notation (GOARCH).
type Program struct {
	// Name is the name of its flag.
	Name string
	// Source is the URL of the file; Checksums is the URL of the file with its SHA-256.
	Source, Checksums string
}

// Release lists what belongs to a version of Kubernetes.
type Release struct {
	// Version is the version of Kubernetes, without a leading v.
	Version string
	// Images are the components with a published image, sorted by tag.
	Images []Image
	// Programs are the programs of the node image, sorted by name.
	Programs []Program
	// Versions maps the name of each part to its version.
	Versions map[string]string
}

// Of returns the parts for a version of Kubernetes, such as v1.36.3. chosen overrides versions of the table.
func Of(version string, chosen map[string]string) (Release, error) {
	v, err := semver.Parse(strings.TrimPrefix(version, "v"))
	if err != nil {
		return Release{}, fmt.Errorf("%q is not a version of Kubernetes such as v1.36.3", version)
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
			return Release{}, fmt.Errorf("no version can be chosen for part %q, only for %s", part, strings.Join(slices.Sorted(maps.Keys(versions)), ", "))
		}
		versions[part] = chosen[part]
	}
	versions[kubernetes] = v.String()
	return Release{Version: v.String(), Images: images(versions), Programs: programs(versions), Versions: versions}, nil
}

// Minors returns the first version of each supported minor of Kubernetes, in order.
func Minors() []string {
	var all []string
	for _, minor := range slices.Sorted(maps.Keys(minors)) {
		all = append(all, fmt.Sprintf("v1.%d.0", minor))
	}
	return all
}

// knownMinors returns the range of the table as text.
func knownMinors() string {
	all := slices.Sorted(maps.Keys(minors))
	return fmt.Sprintf("1.%d to 1.%d", all[0], all[len(all)-1])
}

func images(versions map[string]string) []Image {
	kube := "v" + versions[kubernetes]
	return []Image{
		{Tag: autoscaler, Repository: "autoscaling/cluster-autoscaler", Version: versions[autoscaler]},
		{Tag: "cluster-capi-controllers", Repository: "cluster-api/cluster-api-controller", Version: versions[clusterAPI]},
		{Tag: coreDNS, Repository: "coredns/coredns", Version: versions[coreDNS]},
		{Tag: etcd, Repository: "etcd", Version: versions[etcd]},
		{Tag: flannel, Repository: "flannel-io/flannel", Version: versions[flannel], Registry: "ghcr.io"},
		{Tag: "kube-apiserver", Repository: "kube-apiserver", Version: kube},
		{Tag: "kube-controller-manager", Repository: "kube-controller-manager", Version: kube},
		{Tag: "kube-proxy", Repository: "kube-proxy", Version: kube},
		{Tag: "kube-scheduler", Repository: "kube-scheduler", Version: kube},
		{Tag: metricsServer, Repository: "metrics-server/metrics-server", Version: versions[metricsServer]},
		{Tag: "pod", Repository: "pause", Version: versions[pause]},
	}
}

// programs returns the URLs of the programs. containerd's static build runs with any C library.
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
