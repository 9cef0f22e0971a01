// SPDX-License-Identifier: Apache-2.0

package images

import (
	"path/filepath"
	"slices"

	"github.com/openshift/hypershift/support/containerimage"
)

// Published is the public registry whose names and layouts the environment's own builds use.
const Published = "registry.k8s.io"

// Versions of the programs that are built from other modules, as in the image tags.
const (
	EtcdVersion       = "3.6.8-0"
	CoreDNSVersion    = "v1.14.4"
	ClusterAPIVersion = "v1.13.6"
	FlannelVersion    = "v0.28.10"
	// MetricsServerVersion is the version of metrics-server, as its project tags it.
	MetricsServerVersion = "v0.9.0"
	// PauseVersion is the version of the published image whose layout we copy; the program is the environment's own.
	PauseVersion = "3.10.2"
)

// sharedPrograms lists the programs that are one file, in one layer that all of their images share.
var sharedPrograms = []string{"kube-controller-manager", "kube-scheduler", "kube-proxy", "etcd"}

// Recipes returns the images of the environment, made from the programs in bin and the host's certificates and packet
// filter tools. An image that another project publishes has the name, paths, user and entrypoint of the published
// image.
func Recipes(bin string, releases []Release) ([]containerimage.Image, error) {
	base, err := containerimage.Base()
	if err != nil {
		return nil, err
	}
	filters, err := packetFilterTools()
	if err != nil {
		return nil, err
	}
	parts := filepath.Join(bin, "images")
	all := []containerimage.Image{
		containerimage.Product(bin, base),
		published("pause", "pause:"+PauseVersion, "65535:65535", file("/pause", parts, "pause"), nil),
		coreDNS(parts, base),
		published("cluster-api", "cluster-api/cluster-api-controller:"+ClusterAPIVersion, containerimage.NonRoot, file("/manager", parts, "cluster-api"), base),
		flannel(parts, slices.Concat(base, filters)),
		published("metrics-server", "metrics-server/metrics-server:"+MetricsServerVersion, "65534",
			file("/metrics-server", parts, "metrics-server"), base),
		web(parts, base),
		{Name: "standin", Files: append([]containerimage.File{file("/manager", parts, "standin")}, base...), Entrypoint: []string{"/manager"}, User: containerimage.NonRoot},
	}
	for _, release := range releases {
		all = append(all, kube(bin, release, slices.Concat(base, filters))...)
	}
	return all, nil
}

func file(path, folder, program string) containerimage.File {
	return containerimage.File{Path: path, Source: filepath.Join(folder, program)}
}

// published returns an image with one program as its entrypoint, as in a public registry.
func published(name, reference, user string, program containerimage.File, base []containerimage.File) containerimage.Image {
	return containerimage.Image{
		Name: name, Reference: Published + "/" + reference, User: user, Entrypoint: []string{program.Path},
		Files: append([]containerimage.File{program}, base...),
	}
}

func coreDNS(parts string, base []containerimage.File) containerimage.Image {
	program := file("/coredns", parts, "coredns")
	program.BindsLowPorts = true
	return published("coredns", "coredns/coredns:"+CoreDNSVersion, containerimage.NonRoot, program, base)
}

// flannel returns the image of Flannel, which calls the packet filter tools.
func flannel(parts string, base []containerimage.File) containerimage.Image {
	return published("flannel", "flannel-io/flannel:"+FlannelVersion, "",
		file("/opt/bin/flanneld", parts, "flanneld"), base)
}

// kube returns the images of a release of Kubernetes and of etcd. Their programs are one file, which selects the
// program by the name it is called with. No image has its program as entrypoint: the published images have a wrapper.
func kube(bin string, release Release, base []containerimage.File) []containerimage.Image {
	folder := filepath.Join(bin, release.Folder)
	server := file("/usr/local/bin/kube-apiserver", folder, "kube")
	server.BindsLowPorts = true
	version := ":v" + release.Version
	all := []containerimage.Image{kubeImage("kube-apiserver", version, release, append([]containerimage.File{server}, base...))}
	shared := []containerimage.File{file("/usr/local/bin/kube", folder, "kube")}
	for _, program := range sharedPrograms {
		shared = append(shared, containerimage.File{Path: "/usr/local/bin/" + program, HardLink: "/usr/local/bin/kube"})
	}
	shared = append(shared, base...)
	for _, program := range sharedPrograms {
		if program != "etcd" {
			all = append(all, kubeImage(program, version, release, shared))
		}
	}
	if release.Suffix == "" {
		all = append(all, kubeImage("etcd", ":"+EtcdVersion, release, shared))
	}
	return all
}

func kubeImage(program, tag string, release Release, files []containerimage.File) containerimage.Image {
	image := containerimage.Image{Name: program + release.Suffix, Reference: Published + "/" + program + tag, Files: files}
	// The published images of etcd and kube-proxy are not based on go-runner, and have no entrypoint.
	if program != "etcd" && program != "kube-proxy" {
		image.Entrypoint = []string{"/go-runner"}
	}
	return image
}

func web(parts string, base []containerimage.File) containerimage.Image {
	image := single("web", "/usr/bin/web", parts, base, containerimage.NonRoot)
	for _, tool := range []string{"cat", "fetch", "hostname", "lookup"} {
		image.Files = append(image.Files, containerimage.File{Path: "/usr/bin/" + tool, HardLink: "/usr/bin/web"})
	}
	image.Entrypoint = []string{"/usr/bin/web"}
	return image
}

// single returns an image of one program, which is in the folder parts under its base name.
func single(name, program, parts string, base []containerimage.File, user string) containerimage.Image {
	files := append([]containerimage.File{{Path: program, Source: filepath.Join(parts, filepath.Base(program))}}, base...)
	return containerimage.Image{Name: name, Files: files, Entrypoint: []string{program}, User: user}
}
