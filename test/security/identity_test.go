// SPDX-License-Identifier: Apache-2.0

package security

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/csrapproval"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/testenv"
)

// guest is an API server that nodes join, with the controllers that approve them.
type guest struct {
	*operator
	config   *rest.Config
	users    testenv.Users
	admin    client.Client
	alarms   chan string
	approver *csrapproval.Reconciler
	machine  *clusterv1.Machine
}

// newGuest returns a guest with one Machine, worker-1, which is about to join.
func newGuest(t *testing.T, tenant string) *guest {
	o := newOperator(t, tenant)
	hcp := o.controlPlane()
	recorder := events.NewFakeRecorder(10)
	g := &guest{operator: o, alarms: recorder.Events}
	g.config, g.users = testenv.StartUsers(t)
	g.admin = g.as("")
	g.approver = &csrapproval.Reconciler{
		Guest: g.admin, Live: g.admin, Management: o.client, Namespace: o.hosted(), Recorder: recorder,
		Pause: pause.Gate{Management: o.client, ControlPlane: client.ObjectKeyFromObject(hcp), Clock: testingclock.NewFakePassiveClock(time.Now())},
	}
	g.machine = g.newMachine("workers-a", "worker-1")
	return g
}

// newMachine creates a Machine whose node will have this name.
func (g *guest) newMachine(name, node string) *clusterv1.Machine {
	g.t.Helper()
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: g.hosted(), Name: name, Finalizers: []string{"test/machine"}}, Spec: clusterv1.MachineSpec{
		ClusterName: "demo", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("user-data")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "MaasMachine", Name: name},
	}}
	fixture.Create(g.t, g.client, machine)
	machine.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineHostName, Address: node}}
	g.Expect(g.client.Status().Update(g.t.Context(), machine)).To(Succeed())
	return machine
}

// as returns a client of the guest for a user; with an empty name, the administrator's client.
func (g *guest) as(user string, groups ...string) client.Client {
	config := rest.CopyConfig(g.config)
	if user != "" {
		// The test is about which requests are approved; any user may send requests.
		config.Impersonate.UserName, config.Impersonate.Groups = user, append(groups, "system:masters")
	}
	c, err := client.New(config, client.Options{Scheme: fixture.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	return c
}

// ask requests a certificate of worker-1 for a new key, and returns the decision; empty if there is none.
func (g *guest) ask(c client.Client, name string) certificatesv1.RequestConditionType {
	g.t.Helper()
	return g.askFor(c, name, "worker-1", certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth)
}

// request returns a kubelet's certificate request, signed by a new key.
func (g *guest) request(node string, names []string) []byte {
	g.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}, DNSNames: names}, key)
	g.Expect(err).NotTo(HaveOccurred())
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// askFor requests a certificate of any node, from a signer.
func (g *guest) askFor(c client.Client, name, node, signer string, usage certificatesv1.KeyUsage) certificatesv1.RequestConditionType {
	g.t.Helper()
	var names []string
	if usage == certificatesv1.UsageServerAuth {
		names = []string{node}
	}
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: signer, Usages: []certificatesv1.KeyUsage{usage},
		Request: g.request(node, names),
	}}
	g.Expect(c.Create(g.t.Context(), csr)).To(Succeed())
	_, err := g.approver.Reconcile(g.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(csr)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(g.admin.Get(g.t.Context(), client.ObjectKeyFromObject(csr), csr)).To(Succeed())
	if len(csr.Status.Conditions) == 0 {
		return ""
	}
	return csr.Status.Conditions[0].Type
}

func TestIdentityOfAJoiningNode(t *testing.T) {
	g := newGuest(t, "joining")
	worker := g.as(pki.NodeBootstrapper)
	t.Run("When two requests claim the identity of a joining machine, the second should be denied and reported", func(t *testing.T) {
		g.Expect(g.ask(worker, "machine")).To(Equal(certificatesv1.CertificateApproved))
		g.Expect(g.ask(worker, "thief")).To(Equal(certificatesv1.CertificateDenied))
		g.Expect(g.alarms).To(Receive(ContainSubstring("Warning NodeIdentityRefused")))
	})
	t.Run("When the machine has its Node, bootstrap credentials should not get the identity", func(t *testing.T) {
		g.Expect(g.admin.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}})).To(Succeed())
		g.Expect(g.client.Get(t.Context(), client.ObjectKeyFromObject(g.machine), g.machine)).To(Succeed())
		g.machine.Status.NodeRef.Name = "worker-1"
		g.Expect(g.client.Status().Update(t.Context(), g.machine)).To(Succeed())
		g.Expect(g.ask(worker, "late-thief")).To(Equal(certificatesv1.CertificateDenied))
	})
	t.Run("When a node's Machine exists, the node should renew its certificate, but not once it is deleted", func(t *testing.T) {
		node := g.as("system:node:worker-1", "system:nodes")
		g.Expect(g.ask(node, "renewal")).To(Equal(certificatesv1.CertificateApproved))
		g.Expect(g.client.Delete(t.Context(), g.machine)).To(Succeed())
		g.Expect(g.ask(node, "renewal-of-the-leaving")).To(BeEmpty())
		g.Expect(g.client.Get(t.Context(), client.ObjectKeyFromObject(g.machine), g.machine)).To(Succeed())
		g.machine.Finalizers = nil
		g.Expect(g.client.Update(t.Context(), g.machine)).To(Succeed())
		g.Expect(g.ask(node, "renewal-of-the-gone")).To(BeEmpty())
	})
}
