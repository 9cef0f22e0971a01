// SPDX-License-Identifier: Apache-2.0

package hostedclusterconfigoperator

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/testenv"
)

const (
	namespace = fixture.Namespace
	patience  = 2 * time.Minute
)

type payload map[string]string

func (p payload) Lookup(context.Context, string, []byte) (*releaseinfo.ReleaseImage, error) {
	return releaseinfo.New("", releaseinfo.Payload{Version: "1.36.3", Distribution: releaseinfo.Kubernetes, Components: p}), nil
}

func newClient(t *testing.T, config *rest.Config, management bool) client.Client {
	t.Helper()
	scheme := GuestScheme()
	if management {
		scheme = managementScheme()
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

// apiServerRuns reports a version as the control-plane-operator does.
func apiServerRuns(t *testing.T, management client.Client, version string) {
	t.Helper()
	kas := &hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-apiserver"}}
	create(t, management, kas)
	kas.Status.Version, kas.Status.ObservedGeneration = version, math.MaxInt32
	for _, t := range []hyperv1.ConditionType{hyperv1.ControlPlaneComponentAvailable, hyperv1.ControlPlaneComponentRolloutComplete} {
		meta.SetStatusCondition(&kas.Status.Conditions, metav1.Condition{Type: string(t), Status: metav1.ConditionTrue, Reason: "AsExpected"})
	}
	if err := management.Status().Update(t.Context(), kas); err != nil {
		t.Fatal(err)
	}
}

// joinRequest returns the first request of worker-1's kubelet.
func joinRequest(t *testing.T) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:worker-1", Organization: []string{"system:nodes"}},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "join"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature},
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		},
	}
}

// TestOperator runs the complete operator between two real API servers.
func TestOperator(t *testing.T) {
	managementConfig, guestConfig := testenv.Start(t, crds.HyperShift, crds.ClusterAPI), testenv.Start(t)
	management, guest := newClient(t, managementConfig, true), newClient(t, guestConfig, false)
	hcp := fixture.GuestControlPlane()
	create(t, management,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pull-secret"}, Type: corev1.SecretTypeDockerConfigJson,
			Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)},
		}, hcp)

	apiServerRuns(t, management, "1.36.3")

	o := &options{namespace: namespace, controlPlane: "demo", metricsAddr: "0", healthAddr: "0", countsNodes: true}
	c, err := o.connect(managementConfig, rest.CopyConfig(guestConfig))
	if err != nil {
		t.Fatal(err)
	}
	images := payload{"kube-proxy": "kube-proxy", "node-network": "node-network", "coredns": "coredns"}
	if err := o.addControllers(c, images); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- c.mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Errorf("the operator ended with %v", err)
		}
	})
	slice := func() ([]string, error) {
		s := &discoveryv1.EndpointSlice{}
		err := guest.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kubernetes"}, s)
		if err != nil || len(s.Endpoints) == 0 || s.Labels["hypershift.openshift.io/managed"] == "" {
			return nil, err
		}
		return s.Endpoints[0].Addresses, nil
	}

	t.Run("When the control plane is published, the guest should get its address", func(t *testing.T) {
		g := NewWithT(t)
		before := hcp.DeepCopy() // Use a patch: the operator may have written concurrently.
		hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "192.0.2.10", Port: 30443}
		g.Expect(management.Status().Patch(t.Context(), hcp, client.MergeFrom(before))).To(Succeed())
		g.Eventually(slice).WithTimeout(patience).Should(Equal([]string{"192.0.2.10"}))
	})

	t.Run("When a user deletes a managed object, it should recreate the object at once", func(t *testing.T) {
		g := NewWithT(t)
		g.Eventually(func() error {
			return guest.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "kube-dns"}, &corev1.Service{})
		}).WithTimeout(patience).Should(Succeed())
		old := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}}
		g.Expect(guest.Delete(t.Context(), old)).To(Succeed())
		g.Eventually(slice).WithTimeout(patience).Should(Equal([]string{"192.0.2.10"}))
	})

	t.Run("When a machine requests to join, it should be approved once its Machine reports the name", func(t *testing.T) {
		g := NewWithT(t)
		impersonating := rest.CopyConfig(guestConfig)
		impersonating.Impersonate.UserName, impersonating.Impersonate.Groups = pki.NodeBootstrapper, []string{"system:masters"}
		create(t, newClient(t, impersonating, false), joinRequest(t))
		machine := &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "pool-a",
				Labels:      map[string]string{"managed.hypershift.openshift.io.disk": "ssd"},
				Annotations: map[string]string{"hypershift.openshift.io/nodePool": "clusters/pool"},
			},
			Spec: clusterv1.MachineSpec{
				ClusterName:       "demo-abcde",
				Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To("user-data")},
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "MaasMachine", Name: "pool-a"},
			},
		}
		create(t, management, machine)
		before := machine.DeepCopy()
		machine.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineHostName, Address: "worker-1"}}
		g.Expect(management.Status().Patch(t.Context(), machine, client.MergeFrom(before))).To(Succeed())
		g.Eventually(func(g Gomega) {
			csr := &certificatesv1.CertificateSigningRequest{}
			g.Expect(guest.Get(t.Context(), client.ObjectKey{Name: "join"}, csr)).To(Succeed())
			g.Expect(csr.Status.Conditions).To(ContainElement(HaveField("Type", certificatesv1.CertificateApproved)))
		}).WithTimeout(patience).Should(Succeed())

		create(t, guest, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}})
		g.Expect(management.Get(t.Context(), client.ObjectKeyFromObject(machine), machine)).To(Succeed())
		g.Expect(machine.Annotations).To(HaveKey(hyperv1.NodeIdentityAnnotation), "who got the certificate is remembered")
		before = machine.DeepCopy()
		machine.Status.NodeRef.Name = "worker-1"
		g.Expect(management.Status().Patch(t.Context(), machine, client.MergeFrom(before))).To(Succeed())
		g.Eventually(func(g Gomega) {
			node := &corev1.Node{}
			g.Expect(guest.Get(t.Context(), client.ObjectKey{Name: "worker-1"}, node)).To(Succeed())
			g.Expect(node.Labels).To(HaveKeyWithValue("disk", "ssd"))
			g.Expect(node.Labels).To(HaveKeyWithValue("hypershift.openshift.io/nodePool", "pool"))
		}).WithTimeout(patience).Should(Succeed())
		g.Eventually(func(g Gomega) {
			g.Expect(management.Get(t.Context(), client.ObjectKeyFromObject(hcp), hcp)).To(Succeed())
			g.Expect(hcp.Status.NodeCount).To(HaveValue(Equal(1)))
		}).WithTimeout(patience).Should(Succeed())
	})
}

func TestValidate(t *testing.T) {
	err := (&options{}).validate()
	g := NewWithT(t)
	for _, flag := range []string{"--namespace", "--hosted-control-plane", "--target-kubeconfig"} {
		g.Expect(err).To(MatchError(ContainSubstring(flag + " is missing")))
	}
	g.Expect((&options{namespace: "a", controlPlane: "b", targetKubeconfig: "c"}).validate()).To(Succeed())
}
