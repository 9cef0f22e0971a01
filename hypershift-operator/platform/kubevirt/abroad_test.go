// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// abroad is a management cluster, and an external cluster to which a plugin is connected by demo's kubeconfig.
type abroad struct {
	*Platform
	WithT *WithT
	// here is the management cluster, and there the external one. Calls through these clients are not counted and do not
	// fail.
	here, there client.WithWatch
	clock       *clocktesting.FakePassiveClock
	// calls counts the plugin's calls to the external cluster, by verb.
	calls map[string]int
	// fails returns the error of a call to the external cluster; nil for none.
	fails func(verb string) error
}

// newAbroad connects a plugin to an external cluster with these objects.
func newAbroad(t *testing.T, objects ...client.Object) *abroad {
	t.Helper()
	a := &abroad{WithT: NewWithT(t), clock: clocktesting.NewFakePassiveClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)), calls: map[string]int{}}
	a.Platform = &Platform{infra: infraClusters{clock: a.clock, timeout: patient}}
	a.here = testClient(t, userSecret("config", goodKubeconfig), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: infraCredentials}, Data: map[string][]byte{kubeconfigKey: []byte(goodKubeconfig)}}).(client.WithWatch)
	a.there = otherCluster(t, objects...)
	cluster, err := a.infra.cluster(infraTarget(testCluster(elsewhere())), []byte(goodKubeconfig))
	a.WithT.Expect(err).NotTo(HaveOccurred())
	cluster.place.Client = a.watched(a.there)
	return a
}

// otherCluster returns the client of a cluster with the kinds of OpenShift and KubeVirt.
func otherCluster(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	for _, kind := range []schema.GroupVersionKind{dataVolumes, networks} {
		scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func (a *abroad) call(verb string, do func() error) error {
	a.calls[verb]++
	if a.fails != nil {
		if err := a.fails(verb); err != nil {
			return err
		}
	}
	return do()
}

func (a *abroad) watched(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return a.call("get", func() error { return c.Get(ctx, key, obj, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return a.call("list", func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return a.call("create", func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return a.call("update", func() error { return c.Update(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return a.call("delete", func() error { return c.Delete(ctx, obj, opts...) })
		},
	})
}

// only makes calls of one verb fail, or of every verb if it is empty.
func only(verb string, err error) func(string) error {
	return func(called string) error {
		if verb == "" || called == verb {
			return err
		}
		return nil
	}
}

// later advances the clock until all cached findings have expired.
func (a *abroad) later() { a.clock.SetTime(a.clock.Now().Add(goodFor)) }

// Errors that an external API server, or the connection to it, may return.
var (
	anyKind      = schema.GroupResource{Resource: "things"}
	forbidden    = apierrors.NewForbidden(anyKind, "it", errors.New("user vms cannot"))
	unauthorized = apierrors.NewUnauthorized("who are you")
	absent       = apierrors.NewNotFound(anyKind, "it")
	unanswered   = context.DeadlineExceeded
	unavailable  = apierrors.NewServiceUnavailable("10.0.0.7 is down")
)

// volume returns a DataVolume with a disk image for a pool.
func volume(namespace, name, pool, image string) *unstructured.Unstructured {
	cache := &unstructured.Unstructured{Object: map[string]any{}}
	cache.SetGroupVersionKind(dataVolumes)
	cache.SetNamespace(namespace)
	cache.SetName(name)
	cache.SetLabels(map[string]string{cacheRoleLabel: cacheRole, cachePoolLabel: pool})
	cache.SetAnnotations(map[string]string{cacheImage: image})
	return cache
}

// volumesOf returns the names of all DataVolumes of a cluster.
func volumesOf(t *testing.T, c client.Client) []string {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(dataVolumes.GroupVersion().WithKind(dataVolumes.Kind + "List"))
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.GetNamespace()+"/"+item.GetName())
	}
	return names
}

// failingClient returns a client whose calls of one verb fail.
func failingClient(c client.WithWatch, verb string, err error) client.Client {
	return (&abroad{calls: map[string]int{}, fails: only(verb, err)}).watched(c)
}

// failingGet returns a client of the management cluster that fails to read one Secret.
func failingGet(c client.WithWatch, secret string) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		if key.Name == secret {
			return errors.New("timed out")
		}
		return c.Get(ctx, key, obj, opts...)
	}})
}
