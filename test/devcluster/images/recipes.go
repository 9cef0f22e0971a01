package images

import (
	"io/fs"
	"path/filepath"
)

// nonRoot is the user of the images that need no privilege.
const nonRoot = "65532:65532"

var (
	productPrograms = []string{
		"hypershift", "hcp", "hypershift-operator", "control-plane-operator", "ignition-server", "cluster-api-provider-maas",
	}
	kubePrograms = []string{
		"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl", "etcd",
	}
	cniPlugins = []string{"bridge", "host-local", "loopback", "portmap", "ptp"}
)

// Recipes are the images of the environment, made of the programs in bin and of the host's certificates and packet
// filter tools.
func Recipes(bin string) ([]Image, error) {
	certificates, err := systemCertificates()
	if err != nil {
		return nil, err
	}
	filters, err := packetFilterTools()
	if err != nil {
		return nil, err
	}
	base := append(accounts(), certificates)
	parts := filepath.Join(bin, "images")
	return []Image{
		product(bin, base),
		kube("kube", bin, base, filters),
		kube("kube-previous", bin, base, filters),
		single("pause", "/pause", parts, nil, nonRoot),
		single("coredns", "/usr/bin/coredns", parts, base, ""),
		nodeNetwork(bin, base, filters),
		single("cluster-api", "/usr/bin/cluster-api", parts, base, nonRoot),
		web(parts, base),
	}, nil
}

func product(bin string, base []File) Image {
	image := Image{Name: "hypershift", User: nonRoot, Entrypoint: []string{"/usr/bin/hypershift"}}
	for _, program := range productPrograms {
		image.Files = append(image.Files, File{Path: "/usr/bin/" + program, Source: filepath.Join(bin, program)})
	}
	// What deploys the upstream provider starts /manager.
	image.Files = append(image.Files, File{Path: "/manager", Link: "/usr/bin/cluster-api-provider-maas"})
	image.Files = append(image.Files, base...)
	return image
}

// kube holds every program of Kubernetes, as built into the folder of its name; they are one file, which a program's own name makes into that program. Hard
// links, so that a program that is copied out of the image is a whole file.
func kube(name, bin string, base, filters []File) Image {
	image := Image{Name: name}
	image.Files = append(image.Files, File{Path: "/usr/bin/kube", Source: filepath.Join(bin, name, "kube")})
	for _, program := range kubePrograms {
		image.Files = append(image.Files, File{Path: "/usr/bin/" + program, HardLink: "/usr/bin/kube"})
	}
	image.Files = append(image.Files, base...)
	image.Files = append(image.Files, filters...)
	return image
}

func nodeNetwork(bin string, base, filters []File) Image {
	image := single("node-network", "/usr/bin/node-network", filepath.Join(bin, "images"), base, "")
	for _, plugin := range cniPlugins {
		image.Files = append(image.Files, File{Path: "/opt/cni/bin/" + plugin, Source: filepath.Join(bin, "cni", plugin)})
	}
	image.Files = append(image.Files, filters...)
	return image
}

func web(parts string, base []File) Image {
	image := single("web", "/usr/bin/web", parts, base, nonRoot)
	for _, tool := range []string{"cat", "fetch", "hostname", "lookup"} {
		image.Files = append(image.Files, File{Path: "/usr/bin/" + tool, HardLink: "/usr/bin/web"})
	}
	image.Entrypoint = []string{"/usr/bin/web"}
	return image
}

// single is an image of one program, which lies in parts by its base name.
func single(name, program, parts string, base []File, user string) Image {
	files := append([]File{{Path: program, Source: filepath.Join(parts, filepath.Base(program))}}, base...)
	return Image{Name: name, Files: files, Entrypoint: []string{program}, User: user}
}

// accounts is what programs expect of a file system besides themselves.
func accounts() []File {
	return []File{
		{Path: "/etc/passwd", Data: []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n")},
		{Path: "/etc/group", Data: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{Path: "/etc/nsswitch.conf", Data: []byte("hosts: files dns\n")},
		{Path: "/tmp", Mode: fs.ModeSticky | 0o777},
	}
}
