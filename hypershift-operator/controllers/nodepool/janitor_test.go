// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
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
		{"When the pool lives it should keep its token", secret("token-demo-1234", "clusters/demo"), false},
		{"When the pool is gone it should delete its token", secret("token-old-1234", "clusters/old"), true},
		{"When the pool is gone it should delete its user-data", secret("user-data-old-1234", "clusters/old"), true},
		{"When a Secret is of no pool it should leave it", secret("token-of-somebody", ""), false},
		{"When a Secret is of another kind it should leave it", secret("kubeconfig", "clusters/old"), false},
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
