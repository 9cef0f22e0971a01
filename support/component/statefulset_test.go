// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func setYAML(size string) string {
	return `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: ` + size + `}}}
`
}

// TestReplaceStatefulSet checks that a StatefulSet is replaced when its volume claim templates change: they are
// immutable.
func TestReplaceStatefulSet(t *testing.T) {
	g, s := NewWithT(t), newScope()
	var orphaned []bool
	s.Client = interceptor.NewClient(s.Client.(client.WithWatch), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			asked := (&client.DeleteOptions{}).ApplyOptions(opts)
			orphaned = append(orphaned, asked.PropagationPolicy != nil && *asked.PropagationPolicy == "Orphan")
			return c.Delete(ctx, obj, opts...)
		},
	})
	of := func(size string) *Component {
		return web(func(c *Component) { c.Manifests = manifests(map[string]string{"statefulset.yaml": setYAML(size)}) })
	}
	g.Expect(of("8Gi").Reconcile(t.Context(), s)).To(Succeed())
	first := get(t, s, "web", &appsv1.StatefulSet{})
	g.Expect(of("8192Mi").Reconcile(t.Context(), s)).To(Succeed())
	g.Expect(orphaned).To(BeEmpty(), "the same size in other words")
	g.Expect(get(t, s, "web", &appsv1.StatefulSet{}).UID).To(Equal(first.UID))

	larger := of("16Gi")
	g.Expect(larger.Reconcile(t.Context(), s)).To(Succeed())
	g.Expect(orphaned).To(Equal([]bool{true}), "its pods stay")
	g.Expect(gone(t, s, "web", &appsv1.StatefulSet{})).To(BeTrue())
	g.Expect(larger.Reconcile(t.Context(), s)).To(Succeed())
	set := get(t, s, "web", &appsv1.StatefulSet{})
	g.Expect(set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String()).To(Equal("16Gi"))

	set.Finalizers = []string{"orphan"}
	g.Expect(s.Client.Update(t.Context(), set)).To(Succeed())
	g.Expect(s.Client.Delete(t.Context(), set)).To(Succeed())
	before := get(t, s, "web", &appsv1.StatefulSet{}).ResourceVersion
	s.Images = payload{"web": "registry/web:2"}
	g.Expect(larger.Reconcile(t.Context(), s)).To(Succeed())
	g.Expect(get(t, s, "web", &appsv1.StatefulSet{}).ResourceVersion).To(Equal(before), "one that goes is waited for")
}
