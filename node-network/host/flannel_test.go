// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-network/host"
)

func TestFlannelMTU(t *testing.T) {
	path := filepath.Join(t.TempDir(), "subnet.env")
	flannel := host.Flannel{SubnetFile: path}

	t.Run("fails with the container to check until Flannel has written its settings", func(t *testing.T) {
		_, err := flannel.MTU()
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("container flannel")))
	})
	t.Run("returns the MTU of the settings", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(os.WriteFile(path, []byte("FLANNEL_NETWORK=10.132.0.0/14\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=false\n"), 0o600)).To(Succeed())
		g.Expect(flannel.MTU()).To(Equal(1450))
	})
	for name, content := range map[string]string{"is missing": "FLANNEL_IPMASQ=false\n", "is not a number": "FLANNEL_MTU=many\n", "is zero": "FLANNEL_MTU=0\n"} {
		t.Run("fails if the MTU "+name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
			_, err := flannel.MTU()
			g.Expect(err).To(MatchError(ContainSubstring("FLANNEL_MTU")))
		})
	}
}
