// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// refusals are requests that a server refuses, such as "patch Machine".
type refusals []string

func (r refusals) of(verb string, obj any, subresource ...string) error {
	request := append([]string{verb, reflect.TypeOf(obj).Elem().Name()}, subresource...)
	if slices.Contains(r, strings.Join(request, " ")) {
		return errRefused
	}
	return nil
}

// on returns a reconciler with a fake server that has these objects and refuses some requests.
func on(refused refusals, objects ...client.Object) *Reconciler {
	whole := fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(objects...).WithStatusSubresource(
		&hyperv1.NodePool{}).Build()
	return &Reconciler{Releases: fixture.Payloads(), Platforms: fixture.Platforms(nil), Client: interceptor.NewClient(whole, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := refused.of("get", obj); err != nil {
				return err
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := refused.of("list", list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := refused.of("create", obj); err != nil {
				return err
			}
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if err := refused.of("update", obj); err != nil {
				return err
			}
			return c.Update(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := refused.of("patch", obj); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, obj client.Object, patch client.Patch,
			opts ...client.SubResourcePatchOption) error {
			if err := refused.of("patch", obj, name); err != nil {
				return err
			}
			return c.SubResource(name).Patch(ctx, obj, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if err := refused.of("delete", obj); err != nil {
				return err
			}
			return c.Delete(ctx, obj, opts...)
		},
	})}
}

// read returns an object of the hosted control plane namespace; nil if it does not exist.
func read[T client.Object](t *testing.T, r *Reconciler, obj T, name string) T {
	t.Helper()
	err := r.Client.Get(t.Context(), ctrlKey(fixture.Hosted("clusters"), name), obj)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		var none T
		return none
	}
	return obj
}

// inHosted returns the metadata of an object in the hosted control plane namespace, with annotations.
func inHosted(name string, annotations ...string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: fixture.Hosted("clusters"), Name: name}
	for i := 0; i+1 < len(annotations); i += 2 {
		annotate(&meta, annotations[i], annotations[i+1])
	}
	return meta
}

// housed sets the namespace of a machine to the hosted namespace in which the test server's objects are.
func housed(m *clusterv1.Machine) { m.Namespace = fixture.Hosted("clusters") }

// onMAAS sets the platform of a scope to MAAS.
func onMAAS(s *scope) *scope {
	s.platform, s.platformServed = fixture.Platforms(nil).For(hyperv1.MAASPlatform)
	return s
}

// says returns a condition as text: its status and reason, and after a colon its message.
func (s *scope) says(conditionType string) string {
	c, is := s.conditions[conditionType]
	if !is {
		return ""
	}
	return string(c.Status) + "/" + c.Reason + ": " + c.Message
}

func TestScope(t *testing.T) {
	g, s := NewWithT(t), pass()
	g.Expect(s.key()).To(Equal("clusters/demo"))
	g.Expect(s.namespace()).To(Equal("clusters-demo"))
	s.accept("A", "well")
	s.reject("B", "R", "bad")
	g.Expect(s.says("A")).To(Equal("True/AsExpected: well"))
	g.Expect(s.says("B")).To(Equal("False/R: bad"))
	s.clear("B")
	g.Expect(s.conditions).NotTo(HaveKey("B"), "also what this pass has told")
	g.Expect(s.cleared).To(ConsistOf("B"))
	g.Expect(s.inPlace()).To(BeFalse())
	s.pool.Spec.Management.UpgradeType = hyperv1.UpgradeTypeInPlace
	g.Expect(s.inPlace()).To(BeTrue())
	g.Expect(s.traits().KeepsOutdatedUserData).To(BeTrue())
	g.Expect(s.distribution().OwnOperators).To(BeFalse())
	s.release = fixture.Payloads()[fixture.OCPImage]
	g.Expect(s.distribution().OwnOperators).To(BeTrue())
}

func TestScopeView(t *testing.T) {
	g, s := NewWithT(t), pass()
	s.config.stream = "rhel-10"
	view := s.view()
	g.Expect(view.NodePool).To(BeIdenticalTo(s.pool))
	g.Expect(view.HostedCluster).To(BeIdenticalTo(s.hc))
	g.Expect(view.Release).To(BeIdenticalTo(s.release))
	g.Expect(view.Stream).To(Equal("rhel-10"))
	g.Expect(view.Kept).To(BeNil())
}

func TestAnnotate(t *testing.T) {
	secret := &corev1.Secret{}
	annotate(secret, "a", "1")
	annotate(secret, "b", "2")
	annotate(secret, "a", "3")
	if diff := cmp.Diff(map[string]string{"a": "3", "b": "2"}, secret.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}
