// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube/kubetest"
	"github.com/openshift/hypershift/support/supportedversions"
)

const defaultRelease = "registry.example/release:default"

// TestDefaultRelease checks which release a cluster gets that names none, and what the user is told.
func TestDefaultRelease(t *testing.T) {
	run := func(t *testing.T, s *kubetest.Server, args ...string) (string, error) {
		command := NewCreateCommand(plain{}, Defaults{ControllerAvailability: hyperv1.SingleReplica})
		_, said, err := types(t, command, "", append([]string{"--name=demo", "--kubeconfig", s.Kubeconfig}, args...)...)
		return said, err
	}
	release := func(g Gomega, s *kubetest.Server) string {
		hc := &hyperv1.HostedCluster{}
		g.Expect(s.Client.Get(t.Context(), client.ObjectKey{Namespace: "clusters", Name: "demo"}, hc)).To(Succeed())
		pool := &hyperv1.NodePool{}
		g.Expect(s.Client.Get(t.Context(), client.ObjectKey{Namespace: "clusters", Name: "demo"}, pool)).To(Succeed())
		g.Expect(pool.Spec.Release.Image).To(Equal(hc.Spec.Release.Image))
		return hc.Spec.Release.Image
	}
	t.Run("When install recorded a default, cluster and NodePool should have it and the user should be told", func(t *testing.T) {
		g, s := NewWithT(t), kubetest.Start(t, supportedversions.ConfigMap("hypershift", defaultRelease))
		said, err := run(t, s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(release(g, s)).To(Equal(defaultRelease))
		g.Expect(strings.Count(said, "release "+defaultRelease+": the default that install recorded in ConfigMap hypershift/supported-versions")).To(Equal(1))
	})
	t.Run("When a release is given, it should win", func(t *testing.T) {
		g, s := NewWithT(t), kubetest.Start(t, supportedversions.ConfigMap("hypershift", defaultRelease))
		said, err := run(t, s, "--release-image=registry.example/mine:1")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(release(g, s)).To(Equal("registry.example/mine:1"))
		g.Expect(said).NotTo(ContainSubstring("default"))
	})
	t.Run("When the operator is in another namespace, it should be read there", func(t *testing.T) {
		g, s := NewWithT(t), kubetest.Start(t, supportedversions.ConfigMap("other", defaultRelease))
		_, err := run(t, s, "--operator-namespace=other")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(release(g, s)).To(Equal(defaultRelease))
	})
	for name, objects := range map[string][]client.Object{
		"the operator recorded no default":                {supportedversions.ConfigMap("hypershift", "")},
		"there is no operator":                            nil,
		"a tenant has a ConfigMap of the operator's name": {supportedversions.ConfigMap("clusters", defaultRelease)},
	} {
		t.Run("When "+name+", one sentence should say what to do", func(t *testing.T) {
			g, s := NewWithT(t), kubetest.Start(t, objects...)
			_, err := run(t, s)
			g.Expect(err).To(MatchError(And(HavePrefix("--release-image is required: no default release is recorded in ConfigMap hypershift/supported-versions; "),
				ContainSubstring("hypershift install --default-release-image"), Not(ContainSubstring("\n")))))
			g.Expect(exit.Code(err)).To(Equal(exit.Usage))
			g.Expect(s.Writes()).To(BeEmpty())
		})
	}
	t.Run("When the user may not read the default, an administrator should be asked", func(t *testing.T) {
		g, s := NewWithT(t), kubetest.Start(t)
		s.Refuse(func(r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, "/configmaps/"+supportedversions.Name)
		})
		_, err := run(t, s)
		g.Expect(err).To(MatchError(And(ContainSubstring("you may not read the default release"), ContainSubstring("ask an administrator"))))
	})
}

// TestNoPullSecret checks that the empty pull secret is reported, and that a given one is not.
func TestNoPullSecret(t *testing.T) {
	g, s := NewWithT(t), kubetest.Start(t)
	_, said, err := creates(t, plain{}, "", "--kubeconfig", s.Kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(said).To(ContainSubstring("no --pull-secret: Secret clusters/demo-pull-secret is made without credentials"))
	secret := &corev1.Secret{}
	g.Expect(s.Client.Get(t.Context(), client.ObjectKey{Namespace: "clusters", Name: "demo-pull-secret"}, secret)).To(Succeed())
	g.Expect(string(secret.Data[corev1.DockerConfigJsonKey])).To(Equal(`{"auths":{}}`))
}
