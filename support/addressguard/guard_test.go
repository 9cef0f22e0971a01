// SPDX-License-Identifier: Apache-2.0

package addressguard_test

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/addressguard"
)

// TestForRegistries checks which registries a program in a hosted namespace may call.
func TestForRegistries(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	// Without a file, a guard with the addresses of the management cluster blocks all addresses.
	t.Setenv(addressguard.EnvFile, filepath.Join(t.TempDir(), "missing"))
	guard, err := addressguard.ForRegistries()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for address, allowed := range map[string]bool{
		"10.96.0.1:443":       false,
		"127.0.0.1:5000":      false,
		"169.254.169.254:443": false,
		"[::1]:5000":          false,
		"10.96.0.20:443":      true,
		"192.0.2.10:5000":     true,
	} {
		t.Run(address, func(t *testing.T) {
			err := guard.Control("tcp", address, nil)
			NewWithT(t).Expect(err == nil).To(Equal(allowed))
		})
	}
}
