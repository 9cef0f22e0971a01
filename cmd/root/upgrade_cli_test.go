// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
)

// TestReleasedOperator runs the commands of this version in a management cluster with the installation of the first
// release: create, kubeconfig, dump and destroy.
func TestReleasedOperator(t *testing.T) {
	s, registry := newSite(t), releasetest.Start(t)
	release := registry.PushRelease(t, releaseinfo.Payload{
		Version: "1.36.3", Distribution: releaseinfo.Kubernetes,
		Components: map[string]string{"etcd": "registry.example/etcd:1"},
	})
	ca := filepath.Join(t.TempDir(), "ca.crt")
	s.Expect(os.WriteFile(ca, registry.CA, 0o600)).To(Succeed())
	s.readyNode("10.0.0.9")
	s.installReleased()
	s.Eventually(func() error { return s.client.List(t.Context(), &hyperv1.NodePoolList{}) }).Should(Succeed())
	s.hosts(release, ca)
}
