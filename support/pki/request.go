// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"time"
)

// SignClient signs a request for a client certificate. It takes only the subject and the key from the request. The
// returned certificate (PEM, with the chain of its signer) is valid for validity, and no longer than its signer.
func (ca *KeyPair) SignClient(request *x509.CertificateRequest, validity time.Duration, now time.Time) ([]byte, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      request.Subject,
		NotBefore:    now.Add(-backdate),
		NotAfter:     earlier(now.Add(validity), ca.Cert.NotAfter),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:  Leaf{Client: true}.usages(),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.Cert, request.PublicKey, ca.key)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate for %q: %w", request.Subject.CommonName, err)
	}
	return slices.Concat(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), ca.Chain), nil
}
