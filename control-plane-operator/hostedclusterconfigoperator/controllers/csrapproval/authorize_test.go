// SPDX-License-Identifier: Apache-2.0

package csrapproval

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/url"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
)

// pemRequest returns a signed request of the template.
func pemRequest(t testing.TB, template x509.CertificateRequest) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func nodeSubject(name string) pkix.Name {
	return pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}
}

// bootstrap returns the request of a machine that joins as worker-1.
func bootstrap(t testing.TB, edit ...func(*x509.CertificateRequest)) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	template := x509.CertificateRequest{Subject: nodeSubject("worker-1")}
	for _, f := range edit {
		f(&template)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "csr-1"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Username:   pki.NodeBootstrapper,
			Groups:     []string{"system:serviceaccounts", "system:authenticated"},
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			Request:    pemRequest(t, template),
		},
	}
}

// serving returns the request of node worker-1 for its serving certificate.
func serving(t testing.TB, edit ...func(*x509.CertificateRequest)) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	template := x509.CertificateRequest{
		Subject: nodeSubject("worker-1"), DNSNames: []string{"worker-1"}, IPAddresses: []net.IP{net.ParseIP("192.0.2.21")},
	}
	for _, f := range edit {
		f(&template)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "csr-2"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeletServingSignerName,
			Username:   "system:node:worker-1",
			Groups:     []string{"system:nodes", "system:authenticated"},
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
			Request:    pemRequest(t, template),
		},
	}
}

func machine(name, host, ip string) clusterv1.Machine {
	return clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name},
		Status: clusterv1.MachineStatus{Addresses: clusterv1.MachineAddresses{
			{Type: clusterv1.MachineHostName, Address: host},
			{Type: clusterv1.MachineInternalDNS, Address: host + ".maas"},
			{Type: clusterv1.MachineInternalIP, Address: ip},
		}},
	}
}

func world(edit ...func(*facts)) facts {
	f := facts{made: true, bootstrap: &bootstrapper{}, machines: []clusterv1.Machine{machine("pool-a", "worker-1", "192.0.2.21"), machine("pool-b", "worker-2", "192.0.2.22")}}
	for _, e := range edit {
		e(&f)
	}
	return f
}

func registered(f *facts) {
	f.nodes = append(f.nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}})
	f.machines[0].Status.NodeRef.Name = "worker-1"
}

func TestAuthorizeClient(t *testing.T) {
	cases := []struct {
		name   string
		csr    func(t testing.TB) *certificatesv1.CertificateSigningRequest
		facts  facts
		reason string
		waits  bool
		denied bool
	}{
		{name: "the node name is a host name of its Machine", facts: world()},
		{name: "the node name is a DNS name of its Machine", facts: world(), csr: func(t testing.TB) *certificatesv1.CertificateSigningRequest {
			return bootstrap(t, func(r *x509.CertificateRequest) { r.Subject = nodeSubject("worker-1.maas") })
		}},
		{name: "the bootstrap token is that of the Machine", facts: world(func(f *facts) { f.bootstrap.machine = "pool-a" })},
		{name: "the bootstrap token is that of another Machine", reason: "are those of machine pool-b, not of machine pool-a", denied: true,
			facts: world(func(f *facts) { f.bootstrap.machine = "pool-b" })},
		{name: "a newer Machine uses the shared credentials of older Machines", reason: "has bootstrap credentials of its own", denied: true,
			facts: world(func(f *facts) {
				f.bootstrap.until = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
				f.machines[0].CreationTimestamp = metav1.NewTime(f.bootstrap.until.Add(time.Second))
			})},
		{name: "a Machine as old as the shared credentials uses them", facts: world(func(f *facts) {
			f.bootstrap.until = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
			f.machines[0].CreationTimestamp = metav1.NewTime(f.bootstrap.until)
		})},
		{name: "the Machine has a certificate for another key", reason: "has a certificate for another key", denied: true,
			facts: world(func(f *facts) {
				f.machines[0].Annotations = map[string]string{hyperv1.NodeIdentityAnnotation: "worker-1 abc"}
			})},
		{name: "the Machine was recorded with another node name", facts: world(func(f *facts) {
			f.machines[0].Annotations = map[string]string{hyperv1.NodeIdentityAnnotation: "worker-9 abc"}
		})},
		{name: "no Machine has the name yet", facts: facts{bootstrap: &bootstrapper{}}, reason: "no machine has the name worker-1", waits: true},
		{name: "the Machine is being deleted", reason: "no machine has the name", waits: true, facts: world(func(f *facts) {
			f.machines[0].DeletionTimestamp = &metav1.Time{Time: time.Now()}
		})},
		{name: "two Machines have the name", reason: "both have the name", facts: world(func(f *facts) {
			f.machines[1].Status.Addresses[0].Address = "worker-1"
		})},
		{name: "the Machine has another node", reason: "is node other already", facts: world(func(f *facts) {
			f.machines[0].Status.NodeRef.Name = "other"
		})},
		{name: "the Machine already has that node", reason: "which renews its certificate", denied: true, facts: world(registered)},
		{name: "an old Node of that name still exists", reason: "node worker-1 exists", waits: true, facts: world(func(f *facts) {
			f.nodes = []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}}
		})},
		{name: "an unknown user sends the request", facts: world(func(f *facts) { f.bootstrap = nil }), reason: "may not ask", csr: func(t testing.TB) *certificatesv1.CertificateSigningRequest {
			csr := bootstrap(t)
			csr.Spec.Username = "system:serviceaccount:default:default"
			return csr
		}},
		{name: "another node sends the request", facts: world(func(f *facts) { f.bootstrap = nil }), reason: "may not ask", csr: func(t testing.TB) *certificatesv1.CertificateSigningRequest {
			csr := bootstrap(t)
			csr.Spec.Username, csr.Spec.Groups = "system:node:worker-2", []string{"system:nodes"}
			return csr
		}},
		{name: "the request is not for a node", facts: world(), reason: "not that of a node", csr: func(t testing.TB) *certificatesv1.CertificateSigningRequest {
			return bootstrap(t, func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:admin" })
		}},
		{name: "the request contains the group system:masters", facts: world(), reason: "organizations", csr: func(t testing.TB) *certificatesv1.CertificateSigningRequest {
			return bootstrap(t, func(r *x509.CertificateRequest) {
				r.Subject.Organization = append(r.Subject.Organization, "system:masters")
			})
		}},
		{name: "the request also contains the usage server auth", facts: world(), reason: `usage "server auth"`, csr: func(t testing.TB) *certificatesv1.CertificateSigningRequest {
			csr := bootstrap(t)
			csr.Spec.Usages = append(csr.Spec.Usages, certificatesv1.UsageServerAuth)
			return csr
		}},
		{name: "the request lacks the usage client auth", facts: world(), reason: `usage "client auth" is missing`, csr: func(t testing.TB) *certificatesv1.CertificateSigningRequest {
			csr := bootstrap(t)
			csr.Spec.Usages = csr.Spec.Usages[:1]
			return csr
		}},
		{name: "the request contains DNS names", facts: world(), reason: "no alternative names", csr: func(t testing.TB) *certificatesv1.CertificateSigningRequest {
			return bootstrap(t, func(r *x509.CertificateRequest) { r.DNSNames = []string{"kubernetes.default.svc"} })
		}},
		{name: "the request is not a certificate request", facts: world(), reason: "not one PEM block", csr: func(t testing.TB) *certificatesv1.CertificateSigningRequest {
			csr := bootstrap(t)
			csr.Spec.Request = []byte("hello")
			return csr
		}},
		{name: "the request contains two PEM blocks", facts: world(), reason: "not one PEM block", csr: func(t testing.TB) *certificatesv1.CertificateSigningRequest {
			csr := bootstrap(t)
			csr.Spec.Request = append(csr.Spec.Request, csr.Spec.Request...)
			return csr
		}},
	}
	for _, tc := range cases {
		t.Run("When "+tc.name+" it should "+outcome(tc.reason), func(t *testing.T) {
			csr := bootstrap(t)
			if tc.csr != nil {
				csr = tc.csr(t)
			}
			_, err := authorize(csr, tc.facts)
			check(t, err, tc.reason, tc.waits)
			if tc.denied {
				NewWithT(t).Expect(err).To(MatchError(errTaken))
			}
		})
	}
}

func TestAuthorizeRenewal(t *testing.T) {
	deleting := func(f *facts) { f.machines[0].DeletionTimestamp = &metav1.Time{Time: time.Now()} }
	for _, tc := range []struct {
		name   string
		facts  facts
		reason string
		waits  bool
	}{
		{name: "its Machine exists", facts: world(registered)},
		{name: "its Machine is being deleted", facts: world(registered, deleting), reason: "machine pool-a of node worker-1 is being deleted"},
		{name: "its Machine does not exist", facts: world(registered, func(f *facts) { f.machines = f.machines[1:] }), reason: "no machine has the name", waits: true},
		{name: "its Node does not exist", facts: world(), reason: "node worker-1 is gone"},
		{name: "there is no Machine in the cluster", facts: world(registered, func(f *facts) { f.machines = nil }), reason: "no Machine at all", waits: true},
		{name: "nodes have no Machines", facts: world(registered, func(f *facts) { f.machines, f.made = nil, false })},
	} {
		t.Run("When "+tc.name+" a renewal should "+outcome(tc.reason), func(t *testing.T) {
			csr := bootstrap(t)
			csr.Spec.Username, csr.Spec.Groups = "system:node:worker-1", []string{"system:nodes", "system:authenticated"}
			first, err := authorize(csr, tc.facts)
			check(t, err, tc.reason, tc.waits)
			NewWithT(t).Expect(first).To(BeNil(), "nothing is written down for it")
		})
	}
}

func TestAuthorizeServing(t *testing.T) {
	cases := []struct {
		name   string
		edit   func(*x509.CertificateRequest)
		change func(*certificatesv1.CertificateSigningRequest)
		facts  facts
		reason string
		waits  bool
	}{
		{name: "all names belong to its Machine", facts: world(registered)},
		{name: "the Machine does not reference its Node yet", facts: world()},
		{name: "the Machine is being deleted but still runs", facts: world(registered, func(f *facts) {
			f.machines[0].DeletionTimestamp = &metav1.Time{Time: time.Now()}
		})},
		{name: "an address belongs to another Machine", facts: world(registered), reason: "192.0.2.22 does not belong to machine pool-a", waits: true,
			edit: func(r *x509.CertificateRequest) { r.IPAddresses = append(r.IPAddresses, net.ParseIP("192.0.2.22")) }},
		{name: "a name does not belong to the Machine", facts: world(registered), reason: `"kubernetes" does not belong to machine pool-a`, waits: true,
			edit: func(r *x509.CertificateRequest) { r.DNSNames = append(r.DNSNames, "kubernetes") }},
		{name: "a name is the Machine's DNS name in another case", facts: world(registered),
			edit: func(r *x509.CertificateRequest) { r.DNSNames = []string{"WORKER-1.maas"} }},
		{name: "a name is an external name of the Machine", facts: world(registered, func(f *facts) {
			f.machines[0].Status.Addresses = append(f.machines[0].Status.Addresses, clusterv1.MachineAddress{Type: clusterv1.MachineExternalDNS, Address: "web.example.com"},
				clusterv1.MachineAddress{Type: clusterv1.MachineExternalIP, Address: "198.51.100.7"})
		}), edit: func(r *x509.CertificateRequest) {
			r.DNSNames, r.IPAddresses = []string{"web.example.com"}, []net.IP{net.ParseIP("198.51.100.7")}
		}},
		{name: "an IP address of the Machine is given as a DNS name", facts: world(registered), reason: `"192.0.2.21" does not belong to machine pool-a`, waits: true,
			edit: func(r *x509.CertificateRequest) { r.DNSNames = []string{"192.0.2.21"} }},
		{name: "a name is only that of the node", facts: world(registered, func(f *facts) { f.machines[0].Status.Addresses = f.machines[0].Status.Addresses[2:] })},
		{name: "the request has no name", facts: world(registered), reason: "needs a DNS name or an IP address",
			edit: func(r *x509.CertificateRequest) { r.DNSNames, r.IPAddresses = nil, nil }},
		{name: "the request has a URI", facts: world(registered), reason: "DNS names and IP addresses only",
			edit: func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} }},
		{name: "another node sends the request", facts: world(registered), reason: "is not node worker-1",
			change: func(c *certificatesv1.CertificateSigningRequest) { c.Spec.Username = "system:node:worker-2" }},
		{name: "the bootstrap user sends the request", facts: world(registered), reason: "is not node worker-1",
			change: func(c *certificatesv1.CertificateSigningRequest) { c.Spec.Username = pki.NodeBootstrapper }},
		{name: "the request also contains the usage client auth", facts: world(registered), reason: `usage "client auth"`,
			change: func(c *certificatesv1.CertificateSigningRequest) {
				c.Spec.Usages = append(c.Spec.Usages, certificatesv1.UsageClientAuth)
			}},
		{name: "its Machine does not exist", facts: facts{}, reason: "no machine has the name", waits: true},
	}
	for _, tc := range cases {
		t.Run("When "+tc.name+" it should "+outcome(tc.reason), func(t *testing.T) {
			edit := tc.edit
			if edit == nil {
				edit = func(*x509.CertificateRequest) {}
			}
			csr := serving(t, edit)
			if tc.change != nil {
				tc.change(csr)
			}
			_, err := authorize(csr, tc.facts)
			check(t, err, tc.reason, tc.waits)
		})
	}
}

func outcome(reason string) string {
	if reason == "" {
		return "be approved"
	}
	return "not be approved"
}

func check(t *testing.T, err error, reason string, waits bool) {
	t.Helper()
	g := NewWithT(t)
	if reason == "" {
		g.Expect(err).NotTo(HaveOccurred())
		return
	}
	g.Expect(err).To(MatchError(ContainSubstring(reason)))
	if waits {
		g.Expect(err).To(MatchError(errWait))
	} else {
		g.Expect(err).NotTo(MatchError(errWait))
	}
}

func TestRelevant(t *testing.T) {
	cases := map[string]struct {
		change func(*certificatesv1.CertificateSigningRequest)
		want   bool
	}{
		"is new": {func(*certificatesv1.CertificateSigningRequest) {}, true},
		"is for another signer": {func(c *certificatesv1.CertificateSigningRequest) {
			c.Spec.SignerName = certificatesv1.KubeAPIServerClientSignerName
		}, false},
		"was approved": {func(c *certificatesv1.CertificateSigningRequest) {
			c.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
		}, false},
		"was denied": {func(c *certificatesv1.CertificateSigningRequest) {
			c.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}
		}, false},
		"was signed": {func(c *certificatesv1.CertificateSigningRequest) { c.Status.Certificate = []byte("PEM") }, false},
	}
	for name, tc := range cases {
		t.Run("When a request "+name+" it should report whether it needs a decision", func(t *testing.T) {
			csr := bootstrap(t)
			tc.change(csr)
			NewWithT(t).Expect(relevant(csr)).To(Equal(tc.want))
		})
	}
}
