// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/machine/units"
)

var someImages = map[string]string{"pause": "registry/pause@sha256:1", "coredns": "registry/coredns@sha256:2"}

func rendered(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	NewWithT(t).Expect(renderRoot(root, newValues(env.Nodes(1)[0], someImages))).To(Succeed())
	return root
}

func TestRenderRoot(t *testing.T) {
	t.Run("When the files are written, every service should be a valid unit that the machine starts", func(t *testing.T) {
		g := NewWithT(t)
		root := rendered(t)
		dirs := []string{filepath.Join(root, "etc/systemd/system")}
		enabled, err := units.Enabled(dirs, filepath.Join(root, "none"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(enabled).To(ConsistOf("containerd.service", "environment.service", "etcd.service", "kube-apiserver.service",
			"kube-controller-manager.service", "kube-proxy.service", "kube-scheduler.service", "kubelet.service", "s3.service"))
		for _, name := range enabled {
			_, err := units.Load(name, dirs)
			g.Expect(err).NotTo(HaveOccurred())
		}
	})
	t.Run("When a file refers to another file of the machine, that file should be written too", func(t *testing.T) {
		g := NewWithT(t)
		root := rendered(t)
		g.Expect(writeCertificates(env.Env{Dir: t.TempDir()}, root)).To(Succeed())
		g.Expect(writeNodeCertificates(root, env.Nodes(1)[0], root)).To(Succeed())
		words := strings.FieldsFunc(everything(g, root), func(r rune) bool { return strings.ContainsRune(" \n=\"'{},\\", r) })
		seen := 0
		for _, word := range words {
			if strings.HasPrefix(word, "/etc/kubernetes/") || strings.HasPrefix(word, "/etc/containerd/config") {
				g.Expect(filepath.Join(root, word)).To(BeAnExistingFile())
				seen++
			}
		}
		g.Expect(seen).To(BeNumerically(">", 20))
	})
	t.Run("When configurations are written, they should be well formed and have no templates left", func(t *testing.T) {
		g := NewWithT(t)
		root := rendered(t)
		g.Expect(everything(g, root)).NotTo(ContainSubstring("{{"))
		for _, name := range []string{"kubelet.yaml", "kube-proxy.yaml"} {
			data, err := os.ReadFile(filepath.Join(root, "etc/kubernetes", name))
			g.Expect(err).NotTo(HaveOccurred())
			var content map[string]any
			g.Expect(yaml.UnmarshalStrict(data, &content)).To(Succeed())
		}
		cni, err := os.ReadFile(filepath.Join(root, "etc/cni/net.d/10-management.conflist"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(json.Valid(cni)).To(BeTrue())
	})
	t.Run("When a node is not the first, it should run pods in its zone and no control plane", func(t *testing.T) {
		g := NewWithT(t)
		first, root, node := rendered(t), t.TempDir(), env.Nodes(3)[2]
		g.Expect(writeCertificates(env.Env{Dir: t.TempDir()}, first)).To(Succeed())
		g.Expect(renderRoot(root, newValues(node, someImages))).To(Succeed())
		g.Expect(writeNodeCertificates(first, node, root)).To(Succeed())
		enabled, err := units.Enabled([]string{filepath.Join(root, "etc/systemd/system")}, filepath.Join(root, "none"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(enabled).To(ConsistOf("containerd.service", "environment.service", "kube-proxy.service", "kubelet.service"))
		all := everything(g, root)
		g.Expect(all).To(And(ContainSubstring("--hostname-override=management-3 --node-ip=172.30.240.3 --node-labels=topology.kubernetes.io/zone=zone-3"),
			ContainSubstring("--node=management-3\n"), ContainSubstring(`"rangeStart": "10.200.2.2"`)))
		for _, name := range []string{"admin", "kube-proxy", "kubelet"} {
			_, err := clientcmd.LoadFromFile(filepath.Join(root, "etc/kubernetes", name+".conf"))
			g.Expect(err).NotTo(HaveOccurred())
		}
		g.Expect(filepath.Join(root, "etc/kubernetes/pki/ca.key")).NotTo(BeAnExistingFile())
	})
	t.Run("When the registry has a port, the name of its folder should include the port", func(t *testing.T) {
		NewWithT(t).Expect(filepath.Join(rendered(t), "etc/containerd/certs.d", env.Registry, "hosts.toml")).To(BeARegularFile())
	})
	t.Run("When the files are written twice, the second time should change nothing", func(t *testing.T) {
		g := NewWithT(t)
		root := rendered(t)
		before := everything(g, root)
		g.Expect(renderRoot(root, newValues(env.Nodes(1)[0], someImages))).To(Succeed())
		g.Expect(everything(g, root)).To(Equal(before))
	})
}

// everything returns the content of all files below root.
func everything(g Gomega, root string) string {
	var all strings.Builder
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name)
		all.Write(data)
		all.WriteByte('\n')
		return err
	})
	g.Expect(err).NotTo(HaveOccurred())
	return all.String()
}

func TestRenderManifests(t *testing.T) {
	g := NewWithT(t)
	manifests, err := renderManifests(newValues(env.Nodes(1)[0], someImages))
	g.Expect(err).NotTo(HaveOccurred())
	objects, err := decode(manifests)
	g.Expect(err).NotTo(HaveOccurred())
	kinds := map[string]int{}
	for _, object := range objects {
		g.Expect(object.GetName()).NotTo(BeEmpty())
		g.Expect(object.GetAPIVersion()).NotTo(BeEmpty())
		kinds[object.GetKind()]++
	}
	g.Expect(kinds).To(HaveKeyWithValue("StorageClass", 1))
	g.Expect(kinds).To(HaveKeyWithValue("Deployment", 1))
	g.Expect(string(manifests)).To(ContainSubstring(someImages["coredns"]))
}

func TestWriteCertificates(t *testing.T) {
	g := NewWithT(t)
	e, root := env.Env{Dir: t.TempDir()}, t.TempDir()
	g.Expect(writeCertificates(e, root)).To(Succeed())

	info, err := os.Stat(e.Kubeconfig())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)), "only root may be the administrator")
	config, err := restConfig(e)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Host).To(Equal(env.APIURL))
	g.Expect(config.CertData).NotTo(BeEmpty())

	before := everything(g, root)
	g.Expect(writeCertificates(e, root)).To(Succeed())
	g.Expect(everything(g, root)).To(Equal(before), "a second start uses the certificates of the first")

	for _, name := range []string{"controller-manager", "scheduler"} {
		_, err := clientcmd.LoadFromFile(filepath.Join(root, "etc/kubernetes", name+".conf"))
		g.Expect(err).NotTo(HaveOccurred())
	}
}
