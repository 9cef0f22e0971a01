// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/naming"
)

// TestRestartWithCertificate renews the API server's serving certificate with operators of both generations.
func TestRestartWithCertificate(t *testing.T) {
	c := fixture.Start(t)
	for name, tc := range map[string]struct {
		namespace   string
		labels      []string
		annotations map[string]string
		restarts    bool
	}{
		"the operator of 4.14 to 4.19 is requested to restart Pods": {namespace: "certificate-first", restarts: true},
		"the operator of 4.20 or later is not requested to restart Pods": {
			namespace: "certificate-second", labels: []string{secondOperator},
		},
		"a cluster with PKI reconciliation disabled is not requested to restart Pods": {namespace: "certificate-foreign",
			annotations: map[string]string{hyperv1.DisablePKIReconciliationAnnotation: "true"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWorld(t, c, tc.namespace)
			s.Releases = lineReleases{labels: tc.labels, Releases: fixture.Payloads()}
			s.start(func(hc *hyperv1.HostedCluster) {
				hc.Spec.Release.Image = fixture.OCPImage
				hc.Annotations = tc.annotations
			})
			s.mustPass()
			s.serve()
			serving := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: naming.KASServingCert},
				Data:       map[string][]byte{"tls.crt": []byte("first")},
			}
			fixture.Create(t, c, serving)
			s.mustPass()
			s.Expect(s.controlPlane().Annotations).NotTo(HaveKey(hyperv1.RestartDateAnnotation),
				"the first certificate is that of the pods")
			serving.Data["tls.crt"] = []byte("second")
			s.Expect(c.Update(t.Context(), serving)).To(Succeed())
			s.mustPass()
			if !tc.restarts {
				s.Expect(s.controlPlane().Annotations).NotTo(HaveKey(hyperv1.RestartDateAnnotation))
				return
			}
			hash := s.controlPlane().Annotations[hyperv1.KASServingCertHashAnnotation]
			s.Expect(hash).NotTo(BeEmpty())
			s.Expect(s.controlPlane().Annotations).To(HaveKeyWithValue(hyperv1.RestartDateAnnotation, "CertHash:"+hash))
			s.change(func(hc *hyperv1.HostedCluster) { hc.Annotations[hyperv1.RestartDateAnnotation] = "now" })
			s.mustPass()
			s.Expect(s.controlPlane().Annotations).To(HaveKeyWithValue(hyperv1.RestartDateAnnotation, "now"),
				"the user's request follows")
		})
	}
}

// TestOperatorFromTheBeginning reconciles an OpenShift cluster whose control plane has no address yet.
func TestOperatorFromTheBeginning(t *testing.T) {
	c := fixture.Start(t)
	s := newWorld(t, c, "no-address")
	s.start(func(hc *hyperv1.HostedCluster) {
		hc.Spec.Release.Image = fixture.OCPImage
		hc.Annotations = map[string]string{
			hyperv1.CertificateValidityAnnotation: "720h", hyperv1.CertificateRenewalAnnotation: "70",
		}
	})
	s.Settings.PassedEnv = map[string]string{"CERTIFICATE_VALIDITY": "8760h", "DEFAULT_INGRESS_DOMAIN": "apps.example"}
	s.mustPass()
	t.Run("the managers are components of the control plane before it has an address", func(t *testing.T) {
		components := &hyperv1.ControlPlaneComponentList{}
		s.Expect(c.List(t.Context(), components, client.InNamespace(s.hosted()))).To(Succeed())
		var names []string
		for i := range components.Items {
			names = append(names, components.Items[i].Name)
		}
		NewWithT(t).Expect(names).To(ConsistOf("capi-provider", "cluster-api", "control-plane-operator"))
	})
	t.Run("the operator gets the certificate validity and the ingress domain", func(t *testing.T) {
		deployment := &appsv1.Deployment{}
		s.get(deployment, controlPlaneOperatorName)
		NewWithT(t).Expect(deployment.Spec.Template.Spec.Containers[0].Env).To(And(
			ContainElement(corev1.EnvVar{Name: "CERTIFICATE_VALIDITY", Value: "720h"}),
			ContainElement(corev1.EnvVar{Name: "DEFAULT_INGRESS_DOMAIN", Value: "apps.example"}),
			Not(ContainElement(HaveField("Name", "CERTIFICATE_RENEWAL_PERCENTAGE"))),
		))
	})
	t.Run("an invalid annotation is reported as without effect", func(t *testing.T) {
		valid := s.condition(hyperv1.ValidHostedClusterConfiguration)
		NewWithT(t).Expect(valid.Status).To(Equal(metav1.ConditionTrue))
		NewWithT(t).Expect(valid.Message).To(ContainSubstring(
			`without effect: annotation hypershift.openshift.io/certificate-renewal: "70" is not a number between 0 and 1`))
	})
}
