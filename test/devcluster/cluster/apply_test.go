// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/openshift/hypershift/support/containerimage"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/images"
	"github.com/openshift/hypershift/test/machine/network"
)

// built returns an environment whose images are built.
func built(t *testing.T) env.Env {
	t.Helper()
	g := NewWithT(t)
	e := env.Env{Dir: t.TempDir(), Bin: t.TempDir()}
	var all []containerimage.Image
	for _, name := range []string{"pause", "coredns"} {
		all = append(all, containerimage.Image{Name: name, Files: []containerimage.File{{Path: "/name", Data: []byte(name)}}})
	}
	g.Expect(os.MkdirAll(filepath.Dir(e.Images()), 0o755)).To(Succeed())
	g.Expect(images.Build(e.Images(), all)).To(Succeed())
	return e
}

func TestApply(t *testing.T) {
	t.Run("When the objects are applied twice, there should be DNS and a default StorageClass", func(t *testing.T) {
		g := NewWithT(t)
		e := built(t)
		c := fake.NewClientBuilder().Build()
		for range 2 {
			g.Expect(Apply(t.Context(), e, c)).To(Succeed())
		}
		dns := &appsv1.Deployment{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "coredns"}, dns)).To(Succeed())
		g.Expect(dns.Spec.Template.Spec.Containers[0].Image).To(ContainSubstring("/hypershift/coredns@sha256:"))
		service := &corev1.Service{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "kube-dns"}, service)).To(Succeed())
		g.Expect(service.Spec.ClusterIP).To(Equal(env.DNSServiceIP), "what kubelets are told")
		class := &storagev1.StorageClass{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Name: StorageClass}, class)).To(Succeed())
		g.Expect(class.Annotations).To(HaveKeyWithValue("storageclass.kubernetes.io/is-default-class", "true"))
		g.Expect(class.Provisioner).To(Equal(Provisioner))
	})
	t.Run("When the images are not built, the error should say how to build them", func(t *testing.T) {
		err := Apply(t.Context(), env.Env{Bin: t.TempDir()}, fake.NewClientBuilder().Build())
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("make images")))
	})
}

func TestConnect(t *testing.T) {
	_, err := Connect(env.Env{Dir: t.TempDir()})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("reading the management cluster's kubeconfig")))
}

func TestMachine(t *testing.T) {
	g := NewWithT(t)
	e := env.Env{Dir: "/env", Bin: "/bin-of-ours"}
	config := Machine(e, env.Nodes(1)[0])
	g.Expect(config.Name).To(Equal(env.Namespace))
	g.Expect(config.Network.Bridges[0]).To(And(HaveField("Name", env.Bridge), HaveField("Address", env.Gateway+"/24")))
	g.Expect(config.Network.Links[0].Outside).To(And(HaveField("Name", env.HostLink), HaveField("Namespace", "")))
	for _, bind := range config.Binds {
		kept := bind.Source == e.RegistryDir() || bind.Source == e.StoreDir()
		g.Expect(bind.Writable).To(Equal(kept), "only the data of the registry and the object store may be changed from inside: %s", bind.Source)
	}
	other := Machine(e, env.Nodes(2)[1])
	g.Expect(other.Dir).To(Equal("/env/management-2"))
	g.Expect(other.Network.Bridges).To(BeEmpty())
	g.Expect(other.Network.Links).To(Equal([]network.Link{{
		Inside:  network.End{Name: "eth0", Address: "172.30.240.2/24", Gateway: env.Gateway},
		Outside: network.End{Namespace: env.Namespace, Name: "hs-mgmt2", Bridge: env.Bridge},
	}}))
	for _, bind := range other.Binds {
		g.Expect(bind.Writable).To(BeFalse(), bind.Source)
	}
}

func TestPrepareRegistry(t *testing.T) {
	g := NewWithT(t)
	e := built(t)
	g.Expect(prepareRegistry(e)).To(Succeed())
	g.Expect(e.RegistryCA()).To(BeARegularFile())
	before, err := os.ReadFile(e.RegistryCA())
	g.Expect(err).NotTo(HaveOccurred())
	blobs, err := filepath.Glob(filepath.Join(e.RegistryDir(), "blobs", "sha256", "*"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(blobs).To(HaveLen(4), "a layer and a configuration each")
	g.Expect(prepareRegistry(e)).To(Succeed())
	g.Expect(os.ReadFile(e.RegistryCA())).To(Equal(before), "whoever trusts the registry goes on trusting it")
}

func TestPrepareStore(t *testing.T) {
	g := NewWithT(t)
	e := env.Env{Dir: t.TempDir()}
	g.Expect(prepareStore(e)).To(Succeed())
	before, err := os.ReadFile(e.StoreCredentials())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(before)).To(MatchRegexp(`(?s)^\[default\]\naws_access_key_id = \w+\naws_secret_access_key = \w+\n$`))
	g.Expect(e.StoreCA()).To(BeARegularFile())
	g.Expect(filepath.Join(e.StoreDir(), "s3.crt")).To(BeARegularFile())
	info, err := os.Stat(e.StoreCredentials())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o600))
	g.Expect(prepareStore(e)).To(Succeed())
	g.Expect(os.ReadFile(e.StoreCredentials())).To(Equal(before), "whoever has the key goes on having it")
}
