// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

func TestJanitor(t *testing.T) {
	secret := func(name, pool string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name}}
		if pool != "" {
			s.Annotations = map[string]string{hyperv1.NodePoolAnnotation: pool}
		}
		return s
	}
	for _, tc := range []struct {
		name   string
		secret *corev1.Secret
		goes   bool
	}{
		{"When the pool exists, it should keep the token", secret("token-demo-1234", "clusters/demo"), false},
		{"When the pool is gone, it should delete the token", secret("token-old-1234", "clusters/old"), true},
		{"When the pool is gone, it should delete the user-data", secret("user-data-old-1234", "clusters/old"), true},
		{"When a Secret belongs to no pool, it should keep the Secret", secret("token-of-somebody", ""), false},
		{"When a Secret is of another kind, it should keep the Secret", secret("kubeconfig", "clusters/old"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(tc.secret, fixture.NodePool("clusters")).Build()
			_, err := (&Janitor{Client: c}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(tc.secret)})
			g.Expect(err).NotTo(HaveOccurred())
			err = c.Get(t.Context(), client.ObjectKeyFromObject(tc.secret), &corev1.Secret{})
			g.Expect(apierrors.IsNotFound(err)).To(Equal(tc.goes))
		})
	}
}

// TestJanitorLeaves covers the cases in which a Secret is not deleted.
func TestJanitorLeaves(t *testing.T) {
	orphan := &corev1.Secret{ObjectMeta: scopetest.InHosted("token-old-1234", hyperv1.NodePoolAnnotation, "clusters/old")}
	leaves := orphan.DeepCopy()
	leaves.Finalizers, leaves.DeletionTimestamp = []string{"test/waits"}, ptr.To(metav1.Now())
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, orphan.Name)
	for name, test := range map[string]struct {
		refused scopetest.Refusals
		objects []client.Object
		want    error
	}{
		"the Secret is gone, it should succeed":                      {scopetest.Refusals{"delete Secret"}, nil, nil},
		"the Secret is being deleted, it should not delete it again": {scopetest.Refusals{"delete Secret"}, []client.Object{leaves}, nil},
		"the Secret cannot be read, it should return the error":      {scopetest.Refusals{"get Secret"}, []client.Object{orphan}, scopetest.ErrRefused},
		"the pool cannot be read, it should return the error":        {scopetest.Refusals{"get NodePool"}, []client.Object{orphan}, scopetest.ErrRefused},
		"the Secret cannot be deleted, it should return the error":   {scopetest.Refusals{"delete Secret"}, []client.Object{orphan}, scopetest.ErrRefused},
		"the Secret is deleted concurrently, it should succeed":      {nil, []client.Object{orphan}, gone},
	} {
		t.Run("When the stream of a Kubernetes pool is set to "+name, func(t *testing.T) {
			g := NewWithT(t)
			c := scopetest.Server(test.refused, test.objects...)
			want := test.want
			if want == gone {
				c = interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
					Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return gone },
				})
				want = nil
			}
			result, err := (&Janitor{Client: c}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(orphan)})
			g.Expect(result.IsZero()).To(BeTrue())
			if want == nil {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(want))
		})
	}
}

func TestJanitorsSecrets(t *testing.T) {
	for name, want := range map[string]bool{"token-demo-1": true, "user-data-demo-1": true, "tokens": false, "user-datas": false, "my-token-demo-1": false, "kubeconfig": false} {
		secret := &corev1.Secret{ObjectMeta: scopetest.InHosted(name, hyperv1.NodePoolAnnotation, "clusters/demo")}
		NewWithT(t).Expect(ofPool(secret)).To(Equal(want), name)
		secret.Annotations = nil
		NewWithT(t).Expect(ofPool(secret)).To(BeFalse(), name)
	}
}

// TestJanitorsName checks the name of the controller. No manager is started: the error for a second controller with
// the same name contains the name.
func TestJanitorsName(t *testing.T) {
	janitor := func(scheme *runtime.Scheme, again bool) error {
		mgr, err := ctrl.NewManager(&rest.Config{Host: "127.0.0.1:1"}, ctrl.Options{
			Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: &again},
		})
		if err != nil {
			t.Fatal(err)
		}
		return (&Janitor{Client: mgr.GetClient()}).SetupWithManager(mgr)
	}
	g := NewWithT(t)
	g.Expect(janitor(fixture.Scheme(), true)).To(Succeed())
	g.Expect(janitor(runtime.NewScheme(), true)).To(MatchError(ContainSubstring("Secret")), "a kind that nobody has registered")
	_ = janitor(fixture.Scheme(), false) // Registers the name, unless an earlier run of this test in the process has.
	g.Expect(janitor(fixture.Scheme(), false)).To(MatchError(ContainSubstring(" nodepool-secret-janitor ")))
}
