// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"crypto/tls"
	"crypto/x509"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/releaseinfo"
)

func TestWebhookCertificate(t *testing.T) {
	for name, tc := range map[string]struct {
		had   map[string][]byte
		kind  corev1.SecretType
		keeps bool
		is    corev1.SecretType
	}{
		"When the Secret does not exist, it should be created":                      {nil, "", false, corev1.SecretTypeTLS},
		"When the certificate exists, it should be kept":                            {map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k")}, corev1.SecretTypeTLS, true, corev1.SecretTypeTLS},
		"When the key is missing, it should create a new certificate and key":       {map[string][]byte{"tls.crt": []byte("c")}, corev1.SecretTypeOpaque, false, corev1.SecretTypeOpaque},
		"When the certificate is empty, it should create a new certificate and key": {map[string][]byte{"tls.crt": {}, "tls.key": []byte("k")}, corev1.SecretTypeTLS, false, corev1.SecretTypeTLS},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), withScope()
			d, secret := newDesk(), s.Secret(naming.CAPIWebhookCert)
			if tc.had != nil {
				d = newDesk(&corev1.Secret{ObjectMeta: secret.ObjectMeta, Data: tc.had, Type: tc.kind})
			}
			g.Expect(d.webhookCertificate(t.Context(), s)).To(Succeed())
			g.Expect(d.Has(t, secret)).To(BeTrue())
			g.Expect(secret.Annotations).To(HaveKeyWithValue(hyperv1.HostedClusterAnnotation, "clusters/demo"))
			g.Expect(secret.Type).To(Equal(tc.is))
			if tc.keeps {
				g.Expect(secret.Data).To(Equal(tc.had))
				return
			}
			pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
			g.Expect(err).NotTo(HaveOccurred())
			certificate, err := x509.ParseCertificate(pair.Certificate[0])
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(certificate.Subject.CommonName).To(Equal("capi-webhooks"))
			g.Expect(certificate.Subject.OrganizationalUnit).To(Equal([]string{"openshift"}))
			g.Expect(certificate.NotBefore).To(BeTemporally("<=", now))
			g.Expect(certificate.NotAfter).To(BeTemporally(">", now))
		})
	}
	t.Run("When the API server refuses the create, it should return an error", func(t *testing.T) {
		d := newDesk()
		d.Refuse = "create v1.Secret"
		NewWithT(t).Expect(d.webhookCertificate(t.Context(), withScope())).To(MatchError(errNotNow))
	})
}

func TestClaimClusterWide(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		there  bool
		fails  bool
	}{
		"the object is new":                                           {nil, false, false},
		"the object belongs to the cluster":                           {map[string]string{cluster.OwnerNamespace: "clusters", cluster.OwnerName: "demo"}, true, false},
		"an existing object has no owner":                             {nil, true, true},
		"the object belongs to a cluster in another namespace":        {map[string]string{cluster.OwnerNamespace: "others", cluster.OwnerName: "demo"}, true, true},
		"the object belongs to another cluster in the same namespace": {map[string]string{cluster.OwnerNamespace: "clusters", cluster.OwnerName: "other"}, true, true},
		"a new object has the labels of another cluster":              {map[string]string{cluster.OwnerNamespace: "others", cluster.OwnerName: "demo"}, false, false},
	} {
		t.Run("When "+name+", it should get the cluster's labels unless another owner has it", func(t *testing.T) {
			g, role := NewWithT(t), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}}
			if tc.there {
				role.ResourceVersion = "1"
			}
			err := withScope().ClaimClusterWide(role)
			g.Expect(err != nil).To(Equal(tc.fails))
			if !tc.fails {
				g.Expect(role.Labels).To(Equal(map[string]string{cluster.OwnerNamespace: "clusters", cluster.OwnerName: "demo"}))
			}
		})
	}
}

// TestOneReplica checks that managers always have one replica, because a second one would only wait for the first.
func TestOneReplica(t *testing.T) {
	s := managed(t, fixture.ReleaseImage, func(hc *hyperv1.HostedCluster) { hc.Spec.ControllerAvailabilityPolicy = hyperv1.HighlyAvailable })
	for _, deployment := range testReconciler().managers(t, s) {
		NewWithT(t).Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)), deployment.Name)
	}
}

// TestFlagsOfOlderReleases checks that managers only get flags that their release supports, because an unknown flag
// stops a manager at startup.
func TestFlagsOfOlderReleases(t *testing.T) {
	for version, want := range map[string][]bool{"4.18.9": {false, false, false}, "4.19.0": {true, false, false}, "4.20.0": {true, true, false}, "4.23.0": {true, true, true}} {
		t.Run("When the release is "+version+", Cluster API should get only flags that it supports", func(t *testing.T) {
			g, s := NewWithT(t), managed(t, fixture.OCPImage)
			s.Release = releaseinfo.New(fixture.OCPImage, releaseinfo.Payload{Version: version, Distribution: releaseinfo.OpenShift, Components: map[string]string{capiManagerTag: "capi:1"}})
			obj, err := s.capiManager().Render(t.Context(), testReconciler().components(s))
			g.Expect(err).NotTo(HaveOccurred())
			args := obj.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Args
			for i, flag := range []string{"--feature-gates=MachineSetPreflightChecks=false", "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields", "--tls-min-version=VersionTLS12"} {
				if want[i] {
					g.Expect(args).To(ContainElement(flag))
				} else {
					g.Expect(args).NotTo(ContainElement(flag))
				}
			}
		})
	}
}
