// SPDX-License-Identifier: Apache-2.0

package orphans

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// orphanage is a management cluster that has a control plane but no longer its HostedCluster.
type orphanage struct {
	*clustertest.Server
	*GomegaWithT
	t       *testing.T
	janitor *Janitor
	clock   *testingclock.FakeClock
	capi    *clusterv1.Cluster
	space   *corev1.Namespace
}

// servedBy is the record that the operator writes into the namespace of a MAAS cluster.
const servedBy = `{"namespace":"space-uid","cluster":"cluster-uid","infraID":"infra","platform":{"type":"MAAS","maas":{"identityRef":{"name":"demo-maas-credentials"}}}}`

func newOrphanage(t *testing.T, more ...client.Object) *orphanage {
	t.Helper()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "clusters-demo", UID: "space-uid", Labels: map[string]string{hyperv1.ControlPlaneNamespaceLabel: "true"},
		Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo",
			hyperv1.ServedClusterAnnotation: servedBy},
	}}
	capi := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "infra",
		Finalizers: []string{"test/machines"}}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "of-demo",
		Labels: map[string]string{cluster.OwnerNamespace: "clusters", cluster.OwnerName: "demo"}}}
	credentials := &corev1.Secret{ObjectMeta: clustertest.Ours(fixture.OperatorNamespace, fixture.CredentialsCopy("clusters").Name),
		Data: map[string][]byte{"MAAS_ENDPOINT": []byte(fixture.Endpoint), "MAAS_API_KEY": []byte(fixture.APIKey)}}
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: clustertest.Ours("clusters-demo", "demo")}
	d := clustertest.NewServer(append([]client.Object{space, capi, role, credentials, hcp}, more...)...)
	o := &orphanage{Server: d, clock: testingclock.NewFakeClock(clustertest.Now), GomegaWithT: NewWithT(t), t: t, capi: capi, space: space}
	o.starts(d.Refusing)
	return o
}

// starts starts a new process, which only knows the stored state.
func (o *orphanage) starts(c client.Client) {
	o.janitor = &Janitor{
		Client: c, LiveReader: o.Refusing, Clock: o.clock, Recorder: &events.FakeRecorder{}, Platforms: fixture.Platforms(nil),
		OperatorNamespace: fixture.OperatorNamespace, Grace: time.Hour,
	}
}

var demo = client.ObjectKey{Namespace: "clusters", Name: "demo"}

func (o *orphanage) look() (ctrl.Result, error) {
	return o.janitor.Reconcile(o.t.Context(), ctrl.Request{NamespacedName: demo})
}

func (o *orphanage) mustLook() ctrl.Result {
	o.t.Helper()
	result, err := o.look()
	o.Expect(err).NotTo(HaveOccurred())
	return result
}

// untouched checks that nothing is being deleted.
func (o *orphanage) untouched() {
	o.t.Helper()
	o.Expect(o.Has(o.t, o.capi)).To(BeTrue())
	o.Expect(o.capi.DeletionTimestamp).To(BeNil(), "the machines go on")
	o.Expect(o.Has(o.t, o.space)).To(BeTrue())
	o.Expect(o.Has(o.t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "of-demo"}})).To(BeTrue())
	o.Expect(o.Has(o.t, o.credentials())).To(BeTrue())
}

func (o *orphanage) credentials() *corev1.Secret {
	key := fixture.CredentialsCopy("clusters")
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}

// released removes the finalizer of the Cluster, as Cluster API does when all machines are released in MAAS.
func (o *orphanage) released() {
	o.t.Helper()
	o.Expect(o.Has(o.t, o.capi)).To(BeTrue())
	o.Expect(o.capi.DeletionTimestamp).NotTo(BeNil())
	o.capi.Finalizers = nil
	o.Expect(o.Direct.Update(o.t.Context(), o.capi)).To(Succeed())
}

// gone checks that nothing is left.
func (o *orphanage) gone() {
	o.t.Helper()
	for _, obj := range []client.Object{o.capi, o.space,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "of-demo"}}, o.credentials()} {
		o.Expect(o.Has(o.t, obj)).To(BeFalse(), "%T %s", obj, obj.GetName())
	}
}

func TestJanitor(t *testing.T) {
	t.Run("deletes the objects of a missing cluster, machines first and credentials last", func(t *testing.T) {
		o := newOrphanage(t)
		o.Expect(o.mustLook().RequeueAfter).To(Equal(time.Hour))
		o.untouched()
		o.Expect(o.space.Annotations).To(HaveKey(hyperv1.OrphanedSinceAnnotation))
		o.clock.Step(59 * time.Minute)
		o.Expect(o.mustLook().RequeueAfter).To(Equal(time.Minute))
		o.untouched()
		o.clock.Step(time.Minute)
		o.mustLook()
		o.Expect(o.Has(t, o.capi)).To(BeTrue())
		o.Expect(o.capi.DeletionTimestamp).NotTo(BeNil())
		o.Expect(o.Has(t, o.credentials())).To(BeTrue(), "MAAS is asked with these until the machines are released")
		o.Expect(o.Has(t, o.space)).To(BeTrue())
		o.Expect(o.space.DeletionTimestamp).To(BeNil(), "what releases machines runs in it")
		o.released()
		for range 3 {
			o.mustLook()
		}
		o.gone()
	})
	t.Run("deletes ClusterRoles and credentials when the namespace is already gone", func(t *testing.T) {
		o := newOrphanage(t)
		o.removed(t)
		o.Expect(o.mustLook().RequeueAfter).To(Equal(time.Hour))
		o.Expect(o.Has(t, o.credentials())).To(BeTrue())
		o.clock.Step(time.Hour)
		o.mustLook()
		o.Expect(o.Has(t, o.credentials())).To(BeFalse())
		o.Expect(o.Has(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "of-demo"}})).To(BeFalse())
	})
	t.Run("deletes immediately when an administrator requests it, even without a record", func(t *testing.T) {
		o := newOrphanage(t)
		o.annotate(hyperv1.ServedClusterAnnotation, "")
		o.annotate(hyperv1.OrphanPolicyAnnotation, hyperv1.OrphanPolicyDelete)
		o.capi.Spec.InfrastructureRef.Kind = "MaasCluster"
		o.Expect(o.Direct.Update(t.Context(), o.capi)).To(Succeed())
		o.mustLook()
		o.released()
		for range 3 {
			o.mustLook()
		}
		o.gone()
	})
}

// removed deletes the namespace and its objects, as an administrator can.
func (o *orphanage) removed(t *testing.T) {
	t.Helper()
	o.capi.Finalizers = nil
	o.Expect(o.Direct.Update(t.Context(), o.capi)).To(Succeed())
	o.Expect(o.Direct.Delete(t.Context(), o.capi)).To(Succeed())
	o.Expect(o.Direct.Delete(t.Context(), o.space)).To(Succeed())
}

func (o *orphanage) annotate(key, value string) {
	o.t.Helper()
	o.Expect(o.Has(o.t, o.space)).To(BeTrue())
	cluster.Annotate(o.space, key, value)
	if value == "" {
		delete(o.space.Annotations, key)
	}
	o.Expect(o.Direct.Update(o.t.Context(), o.space)).To(Succeed())
}

// TestJanitorKeeps checks each kind of namespace that must not be deleted.
func TestJanitorKeeps(t *testing.T) {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}}
	for name, prepare := range map[string]func(o *orphanage){
		"an existing cluster": func(o *orphanage) {
			o.Expect(o.Direct.Create(o.t.Context(),
				hc.DeepCopy())).To(Succeed())
		},
		"a namespace that an administrator keeps": func(o *orphanage) {
			o.annotate(hyperv1.OrphanPolicyAnnotation,
				hyperv1.OrphanPolicyKeep)
		},
		"a restored namespace": func(o *orphanage) {
			o.annotate(hyperv1.ServedClusterAnnotation, `{"namespace":"former-uid","cluster":"cluster-uid"}`)
		},
		"a namespace of an older operator": func(o *orphanage) { o.annotate(hyperv1.ServedClusterAnnotation, "") },
		"an invalid record":                func(o *orphanage) { o.annotate(hyperv1.ServedClusterAnnotation, "{") },
		"a namespace of another cluster": func(o *orphanage) {
			o.annotate(hyperv1.HostedClusterAnnotation,
				"clusters/other")
		},
		"a namespace without the name of its cluster":       func(o *orphanage) { o.annotate(hyperv1.HostedClusterAnnotation, "") },
		"a control plane that is paused indefinitely":       func(o *orphanage) { o.pause("true") },
		"a control plane that is paused until a later date": func(o *orphanage) { o.pause("2126-01-01T00:00:00Z") },
		"a namespace without the label": func(o *orphanage) {
			o.Expect(o.Has(o.t, o.space)).To(BeTrue())
			o.space.Labels = nil
			o.Expect(o.Direct.Update(o.t.Context(), o.space)).To(Succeed())
		},
	} {
		t.Run("keeps "+name, func(t *testing.T) {
			o := newOrphanage(t)
			prepare(o)
			for range 2 {
				o.mustLook()
				o.Expect(o.Has(t, o.capi)).To(BeTrue())
				o.Expect(o.capi.DeletionTimestamp).To(BeNil())
				o.Expect(o.Has(t, o.space)).To(BeTrue())
				o.clock.Step(59 * time.Minute)
			}
		})
	}
	t.Run("keeps everything when the API server does not serve HostedClusters", func(t *testing.T) {
		o := newOrphanage(t)
		o.annotate(hyperv1.OrphanedSinceAnnotation, clustertest.Now.Add(-2*time.Hour).UTC().Format(time.RFC3339))
		o.janitor.LiveReader = interceptor.NewClient(o.Direct, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if list.GetObjectKind().GroupVersionKind().Kind == "HostedClusterList" {
					return apierrors.NewNotFound(schema.GroupResource{Resource: "hostedclusters"}, "")
				}
				return c.List(ctx, list, opts...)
			}})
		_, err := o.look()
		o.Expect(err).To(HaveOccurred())
		o.untouched()
	})
	t.Run("stops when the cluster exists again, and resets the waiting time", func(t *testing.T) {
		o := newOrphanage(t)
		o.mustLook()
		o.clock.Step(59 * time.Minute)
		back := hc.DeepCopy()
		o.Expect(o.Direct.Create(t.Context(), back)).To(Succeed())
		o.mustLook()
		o.Expect(o.Has(t, o.space)).To(BeTrue())
		o.Expect(o.space.Annotations).NotTo(HaveKey(hyperv1.OrphanedSinceAnnotation))
		o.Expect(o.Direct.Delete(t.Context(), back)).To(Succeed())
		o.clock.Step(time.Hour)
		o.Expect(o.mustLook().RequeueAfter).To(Equal(time.Hour))
		o.untouched()
	})
	t.Run("stops between two steps when the cluster exists again", func(t *testing.T) {
		o := newOrphanage(t)
		o.mustLook()
		o.clock.Step(time.Hour)
		o.mustLook()
		o.released()
		o.Expect(o.Direct.Create(t.Context(), hc.DeepCopy())).To(Succeed())
		o.mustLook()
		o.Expect(o.Has(t, o.space)).To(BeTrue())
		o.Expect(o.space.DeletionTimestamp).To(BeNil(), "etcd's volumes stay")
		o.Expect(o.Has(t, o.credentials())).To(BeTrue())
	})
}

func (o *orphanage) pause(until string) {
	o.t.Helper()
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo"}}
	o.Expect(o.Has(o.t, hcp)).To(BeTrue())
	hcp.Spec.PausedUntil = ptr.To(until)
	o.Expect(o.Direct.Update(o.t.Context(), hcp)).To(Succeed())
}

// TestJanitorDies crashes the operator at each of its writes: the next process continues, and deletes nothing early.
func TestJanitorDies(t *testing.T) {
	errDied := errors.New("died")
	run := func(t *testing.T, failAt int) (writes int) {
		t.Helper()
		o := newOrphanage(t)
		died := false
		o.janitor.Client = counting(o.Refusing, func() error {
			if writes++; writes == failAt && !died {
				died = true
				return errDied
			}
			return nil
		})
		for range 12 {
			if _, err := o.look(); err != nil {
				o.Expect(err).To(MatchError(ContainSubstring(errDied.Error())))
				o.starts(o.janitor.Client)
			}
			if o.Has(t, o.capi) && o.capi.DeletionTimestamp != nil {
				o.Expect(o.Has(t, o.credentials())).To(BeTrue(), "they release the machines")
				o.released()
			}
			o.clock.Step(30 * time.Minute)
		}
		o.gone()
		return writes
	}
	for failAt := range run(t, 0) {
		t.Run(fmt.Sprintf("goes on after the process died at write %d", failAt+1), func(t *testing.T) { run(t, failAt+1) })
	}
}

// counting returns a client that runs the function "before" prior to each write.
func counting(c client.WithWatch, before func() error) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch,
			opts ...client.PatchOption) error {
			if err := before(); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if err := before(); err != nil {
				return err
			}
			return c.Delete(ctx, obj, opts...)
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, obj client.Object,
			opts ...client.DeleteAllOfOption) error {
			if err := before(); err != nil {
				return err
			}
			return c.DeleteAllOf(ctx, obj, opts...)
		},
	})
}
