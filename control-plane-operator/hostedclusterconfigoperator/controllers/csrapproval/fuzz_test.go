// SPDX-License-Identifier: Apache-2.0

package csrapproval

import (
	"crypto/x509"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// FuzzRequest checks that a CertificateSigningRequest of a machine is only accepted if it is signed by its own key and
// requests a node's certificate.
func FuzzRequest(f *testing.F) {
	f.Add(pemRequest(f, x509.CertificateRequest{Subject: nodeSubject("worker-1")}))
	f.Add(pemRequest(f, x509.CertificateRequest{Subject: nodeSubject("worker-2"), DNSNames: []string{"worker-1"}}))
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n"))
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\nmore"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		request, err := parse(raw)
		if err == nil && request.CheckSignature() != nil {
			t.Fatal("a request was read that nobody signed")
		}
		csr := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeletServingSignerName, Username: "system:node:worker-1", Groups: []string{nodeGroup},
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageServerAuth}, Request: raw,
		}}
		if problem := authorizeAny(csr); problem == nil && err != nil {
			t.Fatalf("what cannot be read was approved: %v", err)
		} else if problem == nil && request.Subject.CommonName != nodeUserPrefix+"worker-1" {
			t.Fatalf("node worker-1 got a certificate of %q", request.Subject.CommonName)
		}
	})
}

// authorizeAny authorizes a request against a Machine that has every name.
func authorizeAny(csr *certificatesv1.CertificateSigningRequest) error {
	machine := clusterv1.Machine{}
	machine.Status.NodeRef.Name = "worker-1"
	machine.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineHostName, Address: "worker-1"}}
	_, err := authorize(csr, facts{machines: []clusterv1.Machine{machine}})
	return err
}
