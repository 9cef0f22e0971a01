// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/platforms"
)

// nameReferences gives each field that names an object a unique name, and allocates the structures that contain it. It
// recognizes a reference by the name of its Go type, so it also finds references of new types.
func nameReferences(value reflect.Value, path string, depth int, names map[string]string) {
	const deepest = 12
	if depth > deepest {
		return
	}
	switch value.Kind() {
	case reflect.Pointer:
		if value.IsNil() {
			value.Set(reflect.New(value.Type().Elem()))
		}
		nameReferences(value.Elem(), path, depth+1, names)
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Struct {
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
			nameReferences(value.Index(0), path+"[0]", depth+1, names)
		}
	case reflect.Struct:
		kind := value.Type().Name()
		if name := value.FieldByName("Name"); name.IsValid() && name.Kind() == reflect.String && isReference(kind) {
			chosen := fmt.Sprintf("chosen-%d", len(names))
			name.SetString(chosen)
			names[chosen] = path
		}
		for i := range value.NumField() {
			if field := value.Type().Field(i); field.IsExported() {
				nameReferences(value.Field(i), path+"."+field.Name, depth+1, names)
			}
		}
	}
}

func isReference(kind string) bool {
	return strings.Contains(kind, "Reference") || strings.Contains(kind, "SecretRef")
}

// ofTheGuest is the path of references to Secrets in the guest, which no program of this project reads.
const ofTheGuest = "spec.Configuration.Ingress.ComponentRoutes"

// TestNoReferenceOfAUserReachesTheControlPlane covers each field of HostedCluster that names an object, for each
// platform. A new field fails this test unless it names a copy in the HostedControlPlane.
func TestNoReferenceOfAUserReachesTheControlPlane(t *testing.T) {
	for _, platform := range platforms.Known() {
		t.Run("When the platform is "+string(platform)+", every reference should name a copy", func(t *testing.T) {
			g := NewWithT(t)
			hc := fixture.HostedCluster("clusters")
			names := map[string]string{}
			nameReferences(reflect.ValueOf(&hc.Spec).Elem(), "spec", 0, names)
			hc.Spec.Platform.Type = platform
			g.Expect(len(names)).To(BeNumerically(">", 30), "the fields should be found")
			hcp := &hyperv1.HostedControlPlane{}
			s := newScope(hc)
			g.Expect(s.shapeControlPlane(hcp)).To(Succeed())
			raw, err := json.Marshal(hcp.Spec)
			g.Expect(err).NotTo(HaveOccurred())
			for name, path := range names {
				if !strings.HasPrefix(path, ofTheGuest) && strings.Contains(string(raw), `"`+name+`"`) {
					t.Errorf("%s names %q in the HostedControlPlane: add the field to hosted.References, or give its copy a fixed name", path, name)
				}
			}
		})
	}
}

// TestCopiesOfVersion010 upgrades a cluster from version 0.1.0, whose copies have the names that the user chose.
func TestCopiesOfVersion010(t *testing.T) {
	c := fixture.Start(t)
	s := newWorld(t, c, "of-version-010")
	s.start(func(hc *hyperv1.HostedCluster) {
		hc.Spec.AuditWebhook = &corev1.LocalObjectReference{Name: "audit"}
		hc.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC,
			AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: "key"}}}
		hc.Spec.Configuration = clustertest.Configuration("", "cas", "cert")
	})
	s.user("audit", map[string][]byte{"webhook-kubeconfig": []byte(clustertest.WebhookKubeconfig(`{"token":"t"}`))})
	s.user("key", map[string][]byte{"key": []byte("0123456789abcdef0123456789abcdef")})
	s.user("cert", map[string][]byte{"tls.crt": []byte("c")})
	fixture.Create(t, c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "cas"},
		Data: map[string]string{"ca-bundle.crt": "a"}})
	s.mustPass()
	s.asVersion010()

	copies := map[string]client.Object{
		hosted.CopyName(hosted.UseAuditWebhook, "audit"): &corev1.Secret{},
		hosted.CopyName(hosted.UseEncryptionKey, "key"):  &corev1.Secret{},
		hosted.CopyName(hosted.UseConfiguration, "cert"): &corev1.Secret{},
		hosted.CopyName(hosted.UseConfiguration, "cas"):  &corev1.ConfigMap{},
	}
	old := map[string]client.Object{"audit": &corev1.Secret{}, "key": &corev1.Secret{}, "cert": &corev1.Secret{},
		"cas": &corev1.ConfigMap{}}

	again, err := s.pass()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(again.RequeueAfter).To(BeNumerically(">", 0))
	s.Expect(s.controlPlane().Spec.AuditWebhook.Name).To(Equal("audit"), "the copies settle before they are named")
	for name, obj := range copies {
		s.get(obj, name)
		s.Expect(obj.GetLabels()).To(HaveKeyWithValue(hyperv1.UserCopyLabel, "true"))
	}

	s.mustPass()
	s.Expect(s.controlPlane().Spec.AuditWebhook.Name).To(Equal(hosted.CopyName(hosted.UseAuditWebhook, "audit")))
	s.Expect(s.controlPlane().Spec.Configuration).To(Equal(hosted.Configuration(s.cluster().Spec.Configuration)))
	for name, obj := range old {
		s.Expect(s.missing(obj, name)).To(BeFalse(), "%s is used until the control plane has rolled out", name)
	}

	s.clock.Step(time.Hour)
	s.mustPass()
	s.Expect(s.missing(old["cert"], "cert")).To(BeFalse(), "a Deployment still mounts it")
	s.Expect(s.missing(old["audit"], "audit")).To(BeTrue())
	s.Expect(s.missing(old["key"], "key")).To(BeTrue())
	s.Expect(s.missing(old["cas"], "cas")).To(BeTrue())

	s.Expect(c.Delete(t.Context(), s.servingDeployment())).To(Succeed())
	s.mustPass()
	s.Expect(s.missing(old["cert"], "cert")).To(BeFalse(), "it was used a moment ago")
	s.clock.Step(time.Hour)
	s.mustPass()
	s.Expect(s.missing(old["cert"], "cert")).To(BeTrue())
	for name, obj := range copies {
		s.get(obj, name)
	}
	for _, name := range []string{naming.PullSecret, naming.SSHKey} {
		s.get(&corev1.Secret{}, name)
	}
}

// servingDeployment returns a Deployment that mounts a Secret by the name that a user of version 0.1.0 chose.
func (s *world) servingDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "kube-apiserver"}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: "kube-apiserver"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "x", Image: "x"}},
				Volumes: []corev1.Volume{{Name: "named-0",
					VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "cert"}}}},
			}},
		}}
}

// asVersion010 restores the hosted namespace of version 0.1.0: no labels of the operator, copies with the user's names,
// and a HostedControlPlane that references them.
func (s *world) asVersion010() {
	s.t.Helper()
	secrets, configMaps := &corev1.SecretList{}, &corev1.ConfigMapList{}
	s.Expect(s.client.List(s.t.Context(), secrets, client.InNamespace(s.hosted()))).To(Succeed())
	s.Expect(s.client.List(s.t.Context(), configMaps, client.InNamespace(s.hosted()))).To(Succeed())
	for i := range secrets.Items {
		before := &secrets.Items[i]
		s.renameTo010(before, &corev1.Secret{Type: before.Type, Data: before.Data})
	}
	for i := range configMaps.Items {
		before := &configMaps.Items[i]
		s.renameTo010(before, &corev1.ConfigMap{Data: before.Data})
	}
	hcp := s.controlPlane()
	hcp.Spec.AuditWebhook.Name = "audit"
	hcp.Spec.SecretEncryption.AESCBC.ActiveKey.Name = "key"
	hcp.Spec.Configuration = s.cluster().Spec.Configuration
	s.Expect(s.client.Update(s.t.Context(), hcp)).To(Succeed())
	fixture.Create(s.t, s.client, s.servingDeployment())
}

func (s *world) renameTo010(before, after client.Object) {
	s.t.Helper()
	source, copied := before.GetAnnotations()[hyperv1.UserCopySourceAnnotation]
	labels := before.GetLabels()
	delete(labels, hyperv1.OperatorObjectLabel)
	if !copied {
		before.SetLabels(labels)
		s.Expect(s.client.Update(s.t.Context(), before)).To(Succeed())
		return
	}
	after.SetNamespace(s.hosted())
	after.SetName(source)
	after.SetAnnotations(map[string]string{hyperv1.HostedClusterAnnotation: s.request().String()})
	s.Expect(s.client.Create(s.t.Context(), after)).To(Succeed())
	s.Expect(s.client.Delete(s.t.Context(), before)).To(Succeed())
}
