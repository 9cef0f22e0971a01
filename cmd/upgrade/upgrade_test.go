// SPDX-License-Identifier: Apache-2.0

package upgrade_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/kube/kubetest"
	"github.com/openshift/hypershift/cmd/root"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
)

// site is a management cluster and a registry with releases.
type site struct {
	*GomegaWithT
	t        *testing.T
	server   *kubetest.Server
	registry *releasetest.Registry
	ca       string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{GomegaWithT: NewWithT(t), t: t, server: kubetest.Start(t, kubetest.Fleet()...), registry: releasetest.Start(t)}
	s.ca = filepath.Join(t.TempDir(), "ca.crt")
	s.Expect(os.WriteFile(s.ca, s.registry.CA, 0o600)).To(Succeed())
	return s
}

func (s *site) release(version string) string {
	return s.registry.PushRelease(s.t, releaseinfo.Payload{
		Version: version, Distribution: releaseinfo.Kubernetes, Components: map[string]string{"etcd": "registry.example/etcd:1"},
	})
}

func (s *site) upgrades(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	var out, said bytes.Buffer
	cmd := root.HCP()
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	cmd.SetArgs(append(append([]string{"upgrade"}, args...), "--ca-file", s.ca, "--kubeconfig", s.server.Kubeconfig))
	code = root.Run(s.t.Context(), cmd, &said)
	return out.String(), said.String(), code
}

// images returns the release images of cluster demo and NodePool workers.
func (s *site) images() (cluster, pool string) {
	s.t.Helper()
	hc, p := &hyperv1.HostedCluster{}, &hyperv1.NodePool{}
	s.Expect(s.server.Client.Get(s.t.Context(), client.ObjectKey{Namespace: "clusters", Name: "demo"}, hc)).To(Succeed())
	s.Expect(s.server.Client.Get(s.t.Context(), client.ObjectKey{Namespace: "clusters", Name: "workers"}, p)).To(Succeed())
	return hc.Spec.Release.Image, p.Spec.Release.Image
}

const before = "registry.example/release:1.35.4"

func TestCluster(t *testing.T) {
	s := newSite(t)
	next := s.release("1.36.3")
	t.Run("shows what the upgrade replaces, and changes nothing", func(t *testing.T) {
		out, said, code := s.upgrades("cluster", "demo", "--release-image", next, "--plan")
		s.Expect(code).To(BeZero(), said)
		s.Expect(out).To(HavePrefix("HostedCluster clusters/demo: 1.35.4 to 1.36.3\nRelease image " + next + "\n"))
		s.Expect(out).To(ContainSubstring("No machine is replaced: each NodePool keeps its release until it is upgraded.\n"))
		s.Expect(out).To(MatchRegexp(`(?m)^workers +1/2 +1\.35\.4 +can be upgraded: hypershift upgrade nodepool workers$`))
		s.Expect(out).To(HaveSuffix("Nothing was changed.\n"))
		cluster, _ := s.images()
		s.Expect(cluster).To(Equal(before))
	})
	for version, says := range map[string]string{
		"1.34.9": "going back from version 1.35.4 to 1.34.9 is not possible",
		"1.37.0": "version 1.37.0 is newer than 1.36",
	} {
		t.Run("refuses "+version+" and says why", func(t *testing.T) {
			_, said, code := s.upgrades("cluster", "demo", "--release-image", s.release(version))
			s.Expect(code).To(Equal(1))
			s.Expect(said).To(ContainSubstring(says))
			cluster, _ := s.images()
			s.Expect(cluster).To(Equal(before))
		})
	}
	t.Run("refuses a release that leaves nodes too old", func(t *testing.T) {
		pool := &hyperv1.NodePool{}
		s.Expect(s.server.Client.Get(t.Context(), client.ObjectKey{Namespace: "clusters", Name: "elastic"}, pool)).To(Succeed())
		pool.Status.Version = "1.32.1"
		s.Expect(s.server.Client.Update(t.Context(), pool)).To(Succeed())
		_, said, code := s.upgrades("cluster", "demo", "--release-image", next)
		s.Expect(code).To(Equal(1))
		s.Expect(said).To(ContainSubstring("the nodes of elastic would be more than 3 minor versions behind: upgrade these NodePools first"))
		pool.Status.Version = "1.35.4"
		s.Expect(s.server.Client.Update(t.Context(), pool)).To(Succeed())
	})
	t.Run("changes the release of the cluster only", func(t *testing.T) {
		_, said, code := s.upgrades("cluster", "demo", "--release-image", next)
		s.Expect(code).To(BeZero(), said)
		s.Expect(said).To(ContainSubstring("next: hypershift wait cluster demo -n clusters --for updated"))
		cluster, pool := s.images()
		s.Expect(cluster).To(Equal(next))
		s.Expect(pool).To(Equal(before))
	})
	t.Run("leaves the check to the operator when it cannot read the release", func(t *testing.T) {
		_, said, code := s.upgrades("cluster", "demo", "--release-image", s.registry.Host+"/release:gone")
		s.Expect(code).To(BeZero(), said)
		s.Expect(said).To(ContainSubstring("Warning: the release cannot be read from here, so its version is not checked"))
	})
}

func TestNodePool(t *testing.T) {
	s := newSite(t)
	t.Run("shows which machines are replaced", func(t *testing.T) {
		out, said, code := s.upgrades("nodepool", "workers", "--release-image", s.release("1.35.9"), "--plan")
		s.Expect(code).To(BeZero(), said)
		s.Expect(out).To(ContainSubstring("1 machine to replace (Replace): each is drained and released"))
	})
	t.Run("refuses a release that is newer than the control plane", func(t *testing.T) {
		_, said, code := s.upgrades("nodepool", "workers", "--release-image", s.release("1.36.3"))
		s.Expect(code).To(Equal(1))
		s.Expect(said).To(ContainSubstring("newer than the cluster's 1.35.4: upgrade the cluster first"))
	})
	t.Run("takes the release of the cluster by default", func(t *testing.T) {
		_, said, code := s.upgrades("nodepool", "workers")
		s.Expect(code).To(BeZero(), said)
		s.Expect(said).To(ContainSubstring("has release " + before + " already"))
	})
}
