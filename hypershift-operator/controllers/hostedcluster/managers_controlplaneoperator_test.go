// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// operatorOf returns the Deployment of the control-plane-operator.
func operatorOf(t *testing.T, r *Reconciler, s *scope) *appsv1.Deployment {
	t.Helper()
	obj, err := r.controlPlaneOperator(s).Render(t.Context(), r.components(s))
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*appsv1.Deployment)
}

func TestControlPlaneOperatorIsTold(t *testing.T) {
	env := func(d *appsv1.Deployment) map[string]string {
		all := map[string]string{}
		for _, v := range d.Spec.Template.Spec.Containers[0].Env {
			all[v.Name] = v.Value
		}
		return all
	}
	t.Run("When the cluster has no such settings, the Deployment should have none", func(t *testing.T) {
		g, s := NewWithT(t), managed(t, fixture.ReleaseImage)
		s.securityUID = ""
		deployment := operatorOf(t, &Reconciler{Client: newDesk().Client, Settings: Settings{OperatorImage: operatorImage}}, s)
		g.Expect(env(deployment)).NotTo(HaveKey("DEFAULT_SECURITY_CONTEXT_UID"))
		g.Expect(env(deployment)).To(HaveKeyWithValue("OPENSHIFT_IMG_OVERRIDES", "="))
		args := deployment.Spec.Template.Spec.Containers[0].Args
		g.Expect(args).To(ContainElement("--enable-ci-debug-output=false"))
		g.Expect(args).NotTo(ContainElement(Or(HavePrefix("--registry-overrides"), HavePrefix("--image-overrides"))))
	})
	t.Run("When images come from mirrors, it should get the mirrors and overrides", func(t *testing.T) {
		g, s := NewWithT(t), managed(t, fixture.ReleaseImage, func(hc *hyperv1.HostedCluster) {
			hc.Annotations = map[string]string{hyperv1.ImageOverridesAnnotation: "etcd=etcd:2"}
			hc.Spec.ImageContentSources = []hyperv1.ImageContentSource{{Source: "a", Mirrors: []string{"b", "c"}}, {Source: "none"}, {Source: "d", Mirrors: []string{"e"}}}
		})
		r := testReconciler()
		r.Settings.EnableCIDebugOutput = true
		deployment := operatorOf(t, r, s)
		g.Expect(env(deployment)).To(And(HaveKeyWithValue("OPENSHIFT_IMG_OVERRIDES", "a=b,a=c,d=e"), HaveKeyWithValue("DEFAULT_SECURITY_CONTEXT_UID", "1001")))
		g.Expect(deployment.Spec.Template.Spec.Containers[0].Args).To(ContainElements("--enable-ci-debug-output=true", "--image-overrides=etcd=etcd:2",
			"--registry-overrides=docker.io=mirror.example/docker,ghcr.io=mirror.example/ghcr,quay.io=mirror.example/quay"))
	})
	for image, adapted := range map[string]bool{fixture.OCPImage: true, fixture.ReleaseImage: false} {
		t.Run("When the release is "+image+", the platform should adapt only the operator of an OpenShift release", func(t *testing.T) {
			g, s, p := NewWithT(t), managed(t, image), &plugged{}
			s.Platform = p
			deployment := operatorOf(t, testReconciler(), s)
			g.Expect(deployment.Spec.Template.Spec.HostNetwork).To(Equal(adapted))
			for _, seen := range p.Seen {
				g.Expect(seen).To(Equal(s.ForPlatform(operatorImage)))
			}
		})
	}
	t.Run("When the release payload has no operator image, it should return an error", func(t *testing.T) {
		g, r, s := NewWithT(t), testReconciler(), managed(t, fixture.OCPImage)
		s.Release = releaseinfo.New(fixture.OCPImage, releaseinfo.Payload{Version: "4.20.1", Distribution: releaseinfo.OpenShift})
		g.Expect(r.controlPlaneOperatorImage(s)).To(BeEmpty())
		_, err := r.controlPlaneOperator(s).Render(t.Context(), r.components(s))
		g.Expect(err).To(MatchError(ContainSubstring("the release payload has no image for hypershift")))
	})
	t.Run("When a Kubernetes cluster names an operator image, it should run that image", func(t *testing.T) {
		g, s := NewWithT(t), managed(t, fixture.ReleaseImage)
		s.HC.Annotations = map[string]string{hyperv1.ControlPlaneOperatorImageAnnotation: "mine:1"}
		deployment := operatorOf(t, testReconciler(), s)
		g.Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(Equal("mine:1"))
		g.Expect(deployment.Spec.Template.Spec.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "TOKEN_MINTER_IMAGE", Value: "mine:1"}))
	})
}
