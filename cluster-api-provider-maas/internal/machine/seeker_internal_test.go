// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// seeker returns a fixture with everything that a MaasMachine needs to be allocated and deployed. It has a Machine, a
// MaasCluster, bootstrap data, and a clock shared with MAAS.
func seeker(t *testing.T, user string, self *infrav1.MaasMachine, machines ...simtest.Machine) *rack {
	t.Helper()
	return seekerOf(t, user, self, simtest.Seed(machines...))
}

func seekerOf(t *testing.T, user string, self *infrav1.MaasMachine, seed string) *rack {
	t.Helper()
	if self.Spec.Image == "" {
		self.Spec.Image = "custom/node-image"
	}
	if self.CreationTimestamp.IsZero() {
		self.CreationTimestamp = metav1.NewTime(simtest.Start)
	}
	k := rackOf(t, user, self, seed)
	k.Reconciler.Clock = k.site.Clock
	k.cluster = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
	k.owner = &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "owner"}}
	k.owner.Spec.Bootstrap.DataSecretName = ptr.To("bootstrap")
	k.Reader = fakeclient.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "bootstrap"}, Data: map[string][]byte{bootstrapKey: []byte("#cloud-config\n")}}).Build()
	k.infra.UID, k.infra.Finalizers = "cluster", []string{infrav1.ClusterFinalizer}
	if err := k.Client.Create(t.Context(), k.infra); err != nil {
		t.Fatal(err)
	}
	return k
}

// look reads a machine from MAAS into the scope.
func (k *rack) look(id string) *rack {
	k.t.Helper()
	m, err := k.identity.Inventory.Refresh(k.t.Context(), id)
	if err != nil {
		k.t.Fatal(err)
	}
	k.observed = m
	return k
}

// reason returns the reason of the problem, or "" if there is none.
func (k *rack) reason() string {
	if k.findings.problem == nil {
		return ""
	}
	return k.findings.problem.Reason
}

// expectReason checks the reason with which a phase ended, and its requeue delay. Without a reason, the phase must not
// end with an error.
func (k *rack) expectReason(result ctrl.Result, err error, reason string, again time.Duration) {
	k.t.Helper()
	if k.reason() != reason || (err != nil) != (reason != "") {
		k.t.Errorf("it ends with %+v: %v", k.findings.problem, err)
	}
	if result.RequeueAfter < again || result.RequeueAfter > again+again/5 {
		k.t.Errorf("it is looked at again after %s, and not %s", result.RequeueAfter, again)
	}
}

// stored returns the MaasMachine as the API server has it, storedCluster its MaasCluster.
func (k *rack) stored() *infrav1.MaasMachine {
	k.t.Helper()
	m := &infrav1.MaasMachine{}
	if err := k.Client.Get(k.t.Context(), client.ObjectKeyFromObject(k.machine), m); err != nil {
		k.t.Fatal(err)
	}
	return m
}

func (k *rack) storedCluster() *infrav1.MaasCluster {
	k.t.Helper()
	m := &infrav1.MaasCluster{}
	if err := k.Client.Get(k.t.Context(), client.ObjectKeyFromObject(k.infra), m); err != nil {
		k.t.Fatal(err)
	}
	return m
}

var errUnwritten = errors.New("somebody wrote in between")

// unwritable makes all changes to objects of a kind fail. writable makes them fail after the given number of changes.
func unwritable[T client.Object](k *rack) { writable[T](k, 0) }

func writable[T client.Object](k *rack, times int) {
	k.Client = interceptor.NewClient(k.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if _, is := obj.(T); is {
				if times--; times < 0 {
					return errUnwritten
				}
			}
			return c.Patch(ctx, obj, patch, opts...)
		}})
}

// maybe calls do, unless it is nil.
func maybe[T any](do func(T), to T) {
	if do != nil {
		do(to)
	}
}
