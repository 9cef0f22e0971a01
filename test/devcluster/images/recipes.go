package images

import (
	"path/filepath"

	"github.com/openshift/hypershift/support/containerimage"
)

var (
	kubePrograms = []string{
		"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl", "etcd",
	}
	cniPlugins = []string{"bridge", "host-local", "loopback", "portmap", "ptp"}
)

// Recipes are the images of the environment, made of the programs in bin and of the host's certificates and packet
// filter tools.
func Recipes(bin string) ([]containerimage.Image, error) {
	base, err := containerimage.Base()
	if err != nil {
		return nil, err
	}
	filters, err := packetFilterTools()
	if err != nil {
		return nil, err
	}
	parts := filepath.Join(bin, "images")
	return []containerimage.Image{
		containerimage.Product(bin, base),
		kube("kube", bin, base, filters),
		kube("kube-previous", bin, base, filters),
		single("pause", "/pause", parts, nil, containerimage.NonRoot),
		single("coredns", "/usr/bin/coredns", parts, base, ""),
		nodeNetwork(bin, base, filters),
		single("cluster-api", "/usr/bin/cluster-api", parts, base, containerimage.NonRoot),
		web(parts, base),
	}, nil
}

// kube holds every program of Kubernetes, as built into the folder of its name; they are one file, which a program's own name makes into that program. Hard
// links, so that a program that is copied out of the image is a whole file.
func kube(name, bin string, base, filters []containerimage.File) containerimage.Image {
	image := containerimage.Image{Name: name}
	image.Files = append(image.Files, containerimage.File{Path: "/usr/bin/kube", Source: filepath.Join(bin, name, "kube")})
	for _, program := range kubePrograms {
		image.Files = append(image.Files, containerimage.File{Path: "/usr/bin/" + program, HardLink: "/usr/bin/kube"})
	}
	image.Files = append(image.Files, base...)
	image.Files = append(image.Files, filters...)
	return image
}

func nodeNetwork(bin string, base, filters []containerimage.File) containerimage.Image {
	image := single("node-network", "/usr/bin/node-network", filepath.Join(bin, "images"), base, "")
	for _, plugin := range cniPlugins {
		image.Files = append(image.Files, containerimage.File{Path: "/opt/cni/bin/" + plugin, Source: filepath.Join(bin, "cni", plugin)})
	}
	image.Files = append(image.Files, filters...)
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

// single is an image of one program, which lies in parts by its base name.
func single(name, program, parts string, base []containerimage.File, user string) containerimage.Image {
	files := append([]containerimage.File{{Path: program, Source: filepath.Join(parts, filepath.Base(program))}}, base...)
	return containerimage.Image{Name: name, Files: files, Entrypoint: []string{program}, User: user}
}
