// SPDX-License-Identifier: Apache-2.0

package cloudconfig

import (
	"bytes"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/pki"
)

// authorities returns the certificates of several CAs, because clients of an ignition-server trust more than one during
// a rotation.
func authorities(tb testing.TB, count int) []byte {
	tb.Helper()
	var bundle bytes.Buffer
	for range count {
		ca, err := pki.NewCA(pki.Name{CommonName: "ignition-root-ca", OrganizationalUnits: []string{"openshift"}}, time.Now())
		if err != nil {
			tb.Fatal(err)
		}
		bundle.Write(ca.CertPEM)
	}
	return bundle.Bytes()
}

func TestSize(t *testing.T) {
	t.Run("When the CA is rotated, the user-data should have room for the old and the new CA", func(t *testing.T) {
		g := NewWithT(t)
		in := input()
		in.CA = authorities(t, 3)
		rendered, err := Render(in)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(rendered)).To(BeNumerically("<", maxSize*3/4), "and some to spare")
	})
}

// BenchmarkUserData measures the user-data that MAAS stores for each machine, in bytes; the goal is less than 16 KiB.
func BenchmarkUserData(b *testing.B) {
	for name, count := range map[string]int{"settled": 1, "rotating": 2} {
		b.Run(name, func(b *testing.B) {
			in := input()
			in.CA = authorities(b, count)
			var rendered []byte
			for b.Loop() {
				var err error
				if rendered, err = Render(in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(rendered)), "bytes")
		})
	}
}
