// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/pki"
)

// deploy adds a component with one pod. The pod has those mounts of the API server that a rotation changes.
func (w *world) deploy() {
	w.t.Helper()
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{hyperv1.ControlPlaneComponentLabel: "api"}},
		Spec: corev1.PodSpec{Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: KASServer}}},
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: ServiceAccountKeys}}},
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: ClientBundle}}}},
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: RootBundle}}}},
		}},
	}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "api", Labels: map[string]string{hyperv1.ManagedByLabel: "control-plane-operator"}},
		Spec:       appsv1.DeploymentSpec{Template: template},
	}
	if err := w.r.Client.Create(w.t.Context(), deployment); err != nil {
		w.t.Fatal(err)
	}
	w.roll()
}

// roll acts as the components phase and the controller of a Deployment. It replaces the pod with one that has loaded
// the current mounts.
func (w *world) roll() {
	w.t.Helper()
	if err := component.Refresh(w.t.Context(), w.r.Client, namespace); err != nil {
		w.t.Fatal(err)
	}
	deployment := &appsv1.Deployment{}
	if err := w.r.Client.Get(w.t.Context(), crclient.ObjectKey{Namespace: namespace, Name: "api"}, deployment); err != nil {
		w.t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: *deployment.Spec.Template.ObjectMeta.DeepCopy(), Spec: deployment.Spec.Template.Spec}
	pod.Namespace, pod.Name = namespace, "api-0"
	if err := crclient.IgnoreNotFound(w.r.Client.Delete(w.t.Context(), pod.DeepCopy())); err != nil {
		w.t.Fatal(err)
	}
	if err := w.r.Client.Create(w.t.Context(), pod); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) stages() map[string]pki.Stage {
	w.t.Helper()
	list := &corev1.SecretList{}
	if err := w.r.Client.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	return Rotating(list.Items)
}

func (w *world) annotate(annotations map[string]string) { w.hcp.Annotations = annotations }

func TestRotate(t *testing.T) {
	w := newWorld(t)
	g := NewWithT(t)
	settle := func() {
		for range 2 {
			g.Expect(w.pass()).To(Succeed())
		}
	}
	settle()
	w.deploy()
	old := w.secret(RootCA).Data["ca.crt"]
	oldAdmin := parsed(t, w.secret(SystemAdminClient).Data["tls.crt"])
	every := func(stage pki.Stage) map[string]pki.Stage {
		all := map[string]pki.Stage{}
		for _, name := range Signers() {
			all[name] = stage
		}
		return all
	}

	t.Run("When all signers rotate, each step should wait until the Pods have loaded the previous one", func(t *testing.T) {
		g := NewWithT(t)
		w.annotate(map[string]string{RotationAnnotation: "all=1," + SREBreakGlassSigner + "=1"})
		for _, stage := range []pki.Stage{pki.Trusting, pki.Signing} {
			for range 4 {
				g.Expect(w.pass()).To(Succeed())
				g.Expect(w.stages()).To(Equal(every(stage)))
			}
			before := w.versions()
			g.Expect(w.pass()).To(Succeed())
			g.Expect(w.versions()).To(Equal(before), "waiting writes nothing")
			w.roll()
			g.Expect(w.pass()).To(Succeed())
		}
		g.Expect(w.stages()).To(Equal(every(pki.Overlapping)))
	})

	t.Run("When a signer has been replaced, kubeconfigs and certificates should still trust the old CA", func(t *testing.T) {
		g := NewWithT(t)
		config, err := clientcmd.RESTConfigFromKubeConfig(w.secret(BootstrapKubeconfig).Data["kubeconfig"])
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(config.CAData)).To(ContainSubstring(string(old)))
		g.Expect(string(config.CAData)).To(ContainSubstring(string(w.secret(RootCA).Data["ca.crt"])))
		g.Expect(string(w.secret(KASServer).Data["ca.crt"])).To(ContainSubstring(string(old)))
	})

	t.Run("When the overlap ends, it should drop old signers, and those of kubelets a week later", func(t *testing.T) {
		g := NewWithT(t)
		settle()
		g.Expect(slices.Sorted(maps.Keys(w.stages()))).To(Equal([]string{
			ClusterSignerCA, CustomerBreakGlassSigner, ServiceAccountKeys, SREBreakGlassSigner, SystemAdminSigner,
		}))
		w.clock.SetTime(w.clock.Now().Add(NodeCertificateLife))
		settle()
		g.Expect(w.stages()).To(HaveKey(ClusterSignerCA), "certificates of kubelets live a week")
		w.clock.SetTime(w.clock.Now().Add(25 * time.Hour))
		settle()
		g.Expect(slices.Sorted(maps.Keys(w.stages()))).To(Equal([]string{ServiceAccountKeys, SystemAdminSigner}))
		_, err := oldAdmin.Verify(verifyOptions(w))
		g.Expect(err).NotTo(HaveOccurred(), "a copy of the admin's kubeconfig goes on")
	})

	t.Run("When the overlap is 0s, the API server should reject an old copy of the admin kubeconfig", func(t *testing.T) {
		g := NewWithT(t)
		w.annotate(map[string]string{RotationAnnotation: "all=1," + SREBreakGlassSigner + "=1", OverlapAnnotation: "0s"})
		settle()
		g.Expect(w.stages()).To(BeEmpty())
		_, err := oldAdmin.Verify(verifyOptions(w))
		g.Expect(err).To(HaveOccurred())
		_, err = parsed(t, w.secret(SystemAdminClient).Data["tls.crt"]).Verify(verifyOptions(w))
		g.Expect(err).NotTo(HaveOccurred())
	})

	t.Run("When one signer is named, it should rotate no other", func(t *testing.T) {
		g := NewWithT(t)
		w.roll()
		root := w.secret(RootCA)
		w.annotate(map[string]string{RotationAnnotation: "all=1,system-admin-signer=lost-laptop," + SREBreakGlassSigner +
			"=1", OverlapAnnotation: "0s"})
		settle()
		g.Expect(w.stages()).To(Equal(map[string]pki.Stage{SystemAdminSigner: pki.Trusting}))
		g.Expect(w.secret(RootCA).ResourceVersion).To(Equal(root.ResourceVersion))
		for range 4 {
			w.roll()
			settle()
		}
		g.Expect(w.stages()).To(BeEmpty())
	})
}

// TestProvidersSigner checks that tenants can rotate all signers of their cluster, except the signer of the provider's
// break-glass certificates.
func TestProvidersSigner(t *testing.T) {
	g := NewWithT(t)
	requests, err := requestsOf("all=1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(requests).NotTo(HaveKey(SREBreakGlassSigner))
	g.Expect(requests).To(HaveLen(len(Signers()) - 1))
	requests, err = requestsOf("all=1," + SREBreakGlassSigner + "=2")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(requests).To(HaveKeyWithValue(SREBreakGlassSigner, "2"))
}

// verifyOptions returns the options with which the API server verifies a client's certificate.
func verifyOptions(w *world) x509.VerifyOptions {
	return x509.VerifyOptions{Roots: w.bundle(ClientBundle), CurrentTime: w.clock.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
}

// TestOneStepAtATime checks that a rotation waits until pods have had time to load what was just written.
func TestOneStepAtATime(t *testing.T) {
	t.Run("When a reconcile has written any object, it should not take the next rotation step", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		g.Expect(w.pass()).To(Succeed())
		w.deploy()
		w.annotate(map[string]string{RotationAnnotation: "root-ca=1"})
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.pass()).To(Succeed())
		w.roll()
		for _, lost := range []crclient.Object{
			w.secret(AdminKubeconfig), w.secret(SchedulerClient),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: EtcdBundle}},
		} {
			g.Expect(w.r.Client.Delete(t.Context(), lost)).To(Succeed())
			g.Expect(w.pass()).To(Succeed())
			g.Expect(w.stages()).To(Equal(map[string]pki.Stage{RootCA: pki.Trusting}), lost.GetName())
		}
		w.roll()
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.stages()).To(Equal(map[string]pki.Stage{RootCA: pki.Signing}))
	})
	t.Run("When a cluster is new, it should treat the requested rotation as done", func(t *testing.T) {
		g, w := NewWithT(t), newWorld(t)
		w.annotate(map[string]string{RotationAnnotation: "all=1"})
		for range 3 {
			g.Expect(w.pass()).To(Succeed())
		}
		g.Expect(w.stages()).To(BeEmpty())
	})
}

func TestRotateWithDeadHost(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	g.Expect(w.pass()).To(Succeed())
	w.deploy()
	leaving := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "api-dead", Labels: map[string]string{hyperv1.ControlPlaneComponentLabel: "api"}, Finalizers: []string{"test/host"},
	}}
	g.Expect(w.r.Client.Create(t.Context(), leaving)).To(Succeed())
	g.Expect(w.r.Client.Delete(t.Context(), leaving)).To(Succeed())
	w.annotate(map[string]string{RotationAnnotation: "root-ca=1"})
	w.clock.SetTime(time.Now())
	for range 3 {
		g.Expect(w.pass()).To(Succeed())
		w.roll()
	}
	g.Expect(w.stages()).To(Equal(map[string]pki.Stage{RootCA: pki.Trusting}), "a pod on its way out may still serve")
	w.clock.SetTime(time.Now().Add(6 * time.Minute))
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.stages()).To(Equal(map[string]pki.Stage{RootCA: pki.Signing}), "a host that died does not hold it for ever")
}

func TestRequestsOf(t *testing.T) {
	for _, tc := range []struct{ text, signer, want, wrong string }{
		{text: "", signer: RootCA},
		{text: "root-ca=1", signer: RootCA, want: "1"},
		{text: "root-ca=1", signer: EtcdSigner},
		{text: " all=2026-11 , root-ca=1 ", signer: RootCA, want: "2026-11 1"},
		{text: "all=2026-11,root-ca=1", signer: ServiceAccountKeys, want: "2026-11"},
		{text: "root-ca", wrong: "has no value; write it as in root-ca="},
		{text: "root=1", wrong: `there is no signer "root"; there are cluster-signer-ca, customer-system-admin-signer`},
	} {
		t.Run("When the annotation is "+tc.text+" it should return the mark of each signer", func(t *testing.T) {
			g := NewWithT(t)
			got, err := requestsOf(tc.text)
			if tc.wrong != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.wrong)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got[tc.signer]).To(Equal(tc.want))
		})
	}
}

func TestWrongRotation(t *testing.T) {
	w := newWorld(t)
	for name, annotations := range map[string]map[string]string{
		"an unknown signer": {RotationAnnotation: "etcd=1"}, "an overlap in days": {OverlapAnnotation: "8d"}, "a negative overlap": {OverlapAnnotation: "-1h"},
	} {
		t.Run("When an annotation has "+name+" it should return an error and still issue certificates", func(t *testing.T) {
			g := NewWithT(t)
			w.annotate(annotations)
			g.Expect(w.pass()).To(MatchError(ContainSubstring("annotation hypershift.openshift.io/")))
			g.Expect(w.secret(AdminKubeconfig).Data).NotTo(BeEmpty())
			g.Expect(w.stages()).To(BeEmpty())
		})
	}
	t.Run("When the user brings the service account key, it should leave the key and return how to rotate it", func(t *testing.T) {
		g := NewWithT(t)
		w.annotate(nil)
		g.Expect(w.pass()).To(Succeed())
		before := w.secret(ServiceAccountKeys).ResourceVersion
		w.hcp.Spec.ServiceAccountSigningKey = &corev1.LocalObjectReference{Name: "mine"}
		w.annotate(map[string]string{RotationAnnotation: "sa-signing-key=1"})
		for range 2 {
			g.Expect(w.pass()).To(MatchError(ContainSubstring("rotate it there")))
		}
		g.Expect(w.secret(ServiceAccountKeys).ResourceVersion).To(Equal(before))
	})
}
