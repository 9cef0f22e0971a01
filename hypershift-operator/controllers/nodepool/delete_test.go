// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// TestDeleteOne checks that an annotation identifies the owner of an object with the pool's name.
func TestDeleteOne(t *testing.T) {
	for _, tc := range []struct {
		name, owner string
		deleted     bool
	}{
		{"When the object belongs to the NodePool, it should be deleted", "clusters/demo", true},
		{"When the object has no owner, it should be deleted", "", true},
		{"When the object belongs to another NodePool, it should be kept", "elsewhere/demo", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			hc := fixture.HostedCluster("clusters")
			pool := fixture.NodePool("clusters")
			set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Hosted("clusters"), Name: pool.Name}}
			if tc.owner != "" {
				set.Annotations = map[string]string{hyperv1.NodePoolAnnotation: tc.owner}
			}
			c := fake.NewClientBuilder().WithScheme(fixture.Scheme()).
				WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: set.Namespace}}, hc, pool, set).Build()
			s := newReconciliation(pool)
			s.HC = hc
			for range 2 { // The second call finds the object gone.
				_, err := s.Delete(t.Context(), c, set.DeepCopy())
				g.Expect(err).NotTo(HaveOccurred())
			}
			err := c.Get(t.Context(), ctrlKey(set.Namespace, set.Name), set)
			g.Expect(apierrors.IsNotFound(err)).To(Equal(tc.deleted))
		})
	}
}
