// SPDX-License-Identifier: Apache-2.0

package images

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"time"

	. "github.com/onsi/gomega"
)

// fixed is a fixed time in the past.
var fixed = time.Unix(1_000_000, 0)

// selfSigned returns a self-signed certificate in DER.
func selfSigned(g Gomega) []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: fixed, NotAfter: fixed.AddDate(100, 0, 0), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.Expect(err).NotTo(HaveOccurred())
	return der
}
