// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/finalizer"
	"github.com/openshift/hypershift/support/upsert"
)

// Poll is the requeue interval of a machine that is not yet running, and Settled of a machine with a Node.
const (
	Poll    = 2 * time.Second
	Settled = 20 * time.Second
)

// Machines reconciles the infrastructure machines of a contract.
type Machines struct {
	Client client.Client
	Contract
	Infrastructure Infrastructure
	// Nodes sets the provider ID of a machine's Node, as the platform's cloud provider does. It reports whether the Node
	// exists.
	Nodes func(ctx context.Context, cluster client.ObjectKey, names []string, providerID string) (bool, error)
	Clock clock.PassiveClock
	// Root is the prefix of the paths in Files; empty in a container.
	Root string
}

// Reconcile implements reconcile.Reconciler.
func (r *Machines) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := r.Machine()
	if err := r.Client.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	owner, cluster, err := r.owners(ctx, object)
	if err != nil {
		return ctrl.Result{}, err
	}
	if cluster != nil && ptr.Deref(cluster.Spec.Paused, false) || hasPause(object) {
		return ctrl.Result{RequeueAfter: Poll}, nil
	}
	if !object.GetDeletionTimestamp().IsZero() {
		return r.release(ctx, object)
	}
	if owner == nil || cluster == nil {
		return ctrl.Result{RequeueAfter: Poll}, nil // Cluster API has not set the owner yet.
	}
	if err := finalizer.Add(ctx, r.Client, object, r.Finalizer, nil); err != nil {
		return ctrl.Result{}, err
	}
	return r.provide(ctx, object, owner, cluster)
}

func hasPause(object client.Object) bool {
	_, paused := object.GetAnnotations()[clusterv1.PausedAnnotation]
	return paused
}

// owners returns the Machine and the Cluster of an infrastructure machine; nil for each one that does not exist.
func (r *Machines) owners(ctx context.Context, object client.Object) (*clusterv1.Machine, *clusterv1.Cluster, error) {
	cluster := &clusterv1.Cluster{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: object.GetLabels()[clusterv1.ClusterNameLabel]}, cluster)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the Cluster of %s: %w", object.GetName(), err)
	}
	for _, ref := range object.GetOwnerReferences() {
		if ref.Kind != "Machine" {
			continue
		}
		machine := &clusterv1.Machine{}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: ref.Name}, machine)
		if err != nil {
			return nil, cluster, client.IgnoreNotFound(err)
		}
		return machine, cluster, nil
	}
	return nil, cluster, nil
}

func (r *Machines) release(ctx context.Context, object client.Object) (ctrl.Result, error) {
	if err := r.Able(); err != nil {
		return ctrl.Result{}, err
	}
	gone, err := r.Infrastructure.Release(ctx, key(object))
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("releasing the machine of %s: %w", object.GetName(), err)
	}
	if !gone {
		return ctrl.Result{RequeueAfter: Poll}, nil
	}
	return ctrl.Result{}, finalizer.Remove(ctx, r.Client, object, r.Finalizer)
}

func (r *Machines) provide(ctx context.Context, object client.Object, owner *clusterv1.Machine, cluster *clusterv1.Cluster) (ctrl.Result, error) {
	if why := waitsFor(owner, cluster); why != "" {
		return ctrl.Result{RequeueAfter: Poll}, r.waiting(ctx, object, why)
	}
	if err := r.Able(); err != nil {
		return ctrl.Result{RequeueAfter: Poll}, r.waiting(ctx, object, err.Error())
	}
	bootstrap := &corev1.Secret{}
	name := client.ObjectKey{Namespace: object.GetNamespace(), Name: *owner.Spec.Bootstrap.DataSecretName}
	if err := r.Client.Get(ctx, name, bootstrap); err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the bootstrap data of %s in Secret %s: %w", object.GetName(), name.Name, err)
	}
	order, err := r.order(ctx, r.Client, object, bootstrap.Data["value"])
	if err != nil {
		return ctrl.Result{}, err
	}
	order.Key = key(object)
	machine, err := r.Infrastructure.Provide(ctx, order)
	if err != nil {
		return ctrl.Result{}, errors.Join(fmt.Errorf("providing the machine of %s: %w", object.GetName(), err), r.waiting(ctx, object, err.Error()))
	}
	providerID := r.providerID(object, machine)
	if err := upsert.Patch(ctx, r.Client, object, func() { r.specify(object, providerID, machine) }); err != nil {
		return ctrl.Result{}, err
	}
	if err := upsert.Status(ctx, r.Client, object, func() { r.report(object, metav1.NewTime(r.Clock.Now()), machine) }); err != nil {
		return ctrl.Result{}, err
	}
	if !machine.Running {
		return ctrl.Result{RequeueAfter: Poll}, nil
	}
	return r.tellNode(ctx, cluster, machine, providerID)
}

func (r *Machines) waiting(ctx context.Context, object client.Object, why string) error {
	return upsert.Status(ctx, r.Client, object, func() { r.wait(object, metav1.NewTime(r.Clock.Now()), why) })
}

func (r *Machines) tellNode(ctx context.Context, cluster *clusterv1.Cluster, machine Machine, providerID string) (ctrl.Result, error) {
	there, err := r.Nodes(ctx, client.ObjectKeyFromObject(cluster), machine.Names, providerID)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !there {
		return ctrl.Result{RequeueAfter: Poll}, nil
	}
	return ctrl.Result{RequeueAfter: Settled}, nil
}

// waitsFor returns what a machine waits for before it is provided; empty if nothing is missing.
func waitsFor(owner *clusterv1.Machine, cluster *clusterv1.Cluster) string {
	switch {
	case !ptr.Deref(cluster.Status.Initialization.InfrastructureProvisioned, false):
		return "the infrastructure of the cluster is not ready"
	case owner.Spec.Bootstrap.DataSecretName == nil:
		return "there is no bootstrap data"
	}
	return ""
}

// key returns the key of an object's request. It comes from the UID, so it stays the same after a restart of the
// process.
func key(object client.Object) string { return "standin-" + string(object.GetUID()) }

// Able returns an error if a file that the operator mounts for the provider is missing or lacks its content.
func (r *Machines) Able() error {
	var names []string
	for name := range r.Files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		content, err := os.ReadFile(r.Root + name)
		if err != nil {
			return fmt.Errorf("the provider cannot work: %w", err)
		}
		if !strings.Contains(string(content), r.Files[name]) {
			return fmt.Errorf("the provider cannot work: %s has no %q", name, r.Files[name])
		}
	}
	return nil
}

// Clusters reconciles the infrastructure clusters of a contract whose provider itself sets them ready.
type Clusters struct {
	Client client.Client
	Contract
}

// Reconcile implements reconcile.Reconciler.
func (r *Clusters) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cluster := r.Cluster()
	if err := r.Client.Get(ctx, request.NamespacedName, cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if len(cluster.GetOwnerReferences()) == 0 {
		return ctrl.Result{RequeueAfter: Poll}, nil // Cluster API has not set the owner yet.
	}
	return ctrl.Result{}, upsert.Status(ctx, r.Client, cluster, func() { r.clusterReady(cluster) })
}
