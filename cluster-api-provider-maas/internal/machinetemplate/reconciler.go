// SPDX-License-Identifier: Apache-2.0

// Package machinetemplate writes the capacity of a machine to the status of MaasMachineTemplates. An autoscaler needs
// it to scale a group from zero.
package machinetemplate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/identity"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/placement"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/upsert"
)

// lookEvery is the interval at which MAAS is queried for the machine that it would allocate.
const lookEvery = 10 * time.Minute

// Reconciler writes the capacity of MaasMachineTemplates.
type Reconciler struct {
	Client client.Client
	// Identities resolves credentials to MAAS clients.
	Identities *identity.Resolver
}

// SetupWithManager registers the reconciler with the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("maasmachinetemplate").For(&infrav1.MaasMachineTemplate{}).WithOptions(options).Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the MaasMachineTemplate controller: %w", err)
	}
	return nil
}

// Reconcile writes the capacity of the next machine. If MAAS has no matching machine, the last known capacity stays, or
// the minimum that the template requires.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	template := &infrav1.MaasMachineTemplate{}
	if err := r.Client.Get(ctx, req.NamespacedName, template); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	cluster, infra, err := r.cluster(ctx, template)
	if err != nil || !template.DeletionTimestamp.IsZero() || cluster != nil && annotations.IsPaused(cluster, template) {
		return ctrl.Result{}, err
	}
	if spec := template.Spec.Template.Spec; spec.IsLXD() {
		request := lxd.RequestOf(spec, infra)
		made := capacity(request.Cores, request.MemoryMiB, request.Size().DiskBytes)
		return ctrl.Result{}, upsert.Status(ctx, r.Client, template, func() { template.Status.Capacity = made })
	}
	request := placement.Of(template.Spec.Template.Spec)
	capacity := template.Status.Capacity
	if len(capacity) == 0 {
		capacity = guaranteed(request)
	}
	var asking error
	if infra != nil {
		var next *maas.Machine
		if next, asking = r.next(ctx, template, infra, request); next != nil {
			capacity = of(next)
		}
	}
	if err := upsert.Status(ctx, r.Client, template, func() { template.Status.Capacity = capacity }); err != nil {
		return ctrl.Result{}, err
	}
	if asking != nil {
		return ctrl.Result{}, fmt.Errorf("asking MAAS which machine fits MaasMachineTemplate %s: %w", req, asking)
	}
	//nolint:gosec // It spreads calls in time, and no secret depends on it.
	return ctrl.Result{RequeueAfter: lookEvery + rand.N(lookEvery/5)}, nil
}

// cluster returns the Cluster of a template and its MaasCluster. It finds the Cluster by the label, or by the owner
// that Cluster API sets. Each is nil while it does not exist.
func (r *Reconciler) cluster(ctx context.Context, template *infrav1.MaasMachineTemplate) (*clusterv1.Cluster, *infrav1.MaasCluster, error) {
	cluster, err := util.GetOwnerCluster(ctx, r.Client, template.ObjectMeta)
	if name := template.Labels[clusterv1.ClusterNameLabel]; cluster == nil && err == nil && name != "" {
		cluster, err = util.GetClusterByName(ctx, r.Client, template.Namespace, name)
	}
	if err != nil || cluster == nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	infra := &infrav1.MaasCluster{}
	key := client.ObjectKey{Namespace: template.Namespace, Name: cluster.Spec.InfrastructureRef.Name}
	if err := r.Client.Get(ctx, key, infra); err != nil {
		return cluster, nil, client.IgnoreNotFound(err)
	}
	return cluster, infra, nil
}

// next returns the machine that MAAS would allocate; nil if there is none. It uses a dry-run allocation, for which MAAS
// renders no list. If MAAS might compose a machine in the dry run, next uses the cached list of Ready machines instead.
func (r *Reconciler) next(ctx context.Context, template *infrav1.MaasMachineTemplate, infra *infrav1.MaasCluster, request placement.Request) (*maas.Machine, error) {
	var secret client.ObjectKey
	if ref := infra.Spec.IdentityRef; ref != nil {
		secret = client.ObjectKey{Namespace: infra.Namespace, Name: ref.Name}
	}
	id, err := r.Identities.For(ctx, secret)
	if err != nil {
		return nil, err
	}
	request.Zones = infra.Spec.FailureDomains
	if zone := template.Spec.Template.Spec.FailureDomain; zone != nil && *zone != "" {
		request.Zones = []string{*zone}
	}
	if id.Inventory.MayCompose(ctx) {
		ready, err := id.Inventory.Survey(ctx)
		if fit := request.Candidates(ready, func(string) bool { return false }); len(fit) > 0 {
			return &fit[0], nil
		}
		return nil, err
	}
	zones := request.Zones
	if len(zones) == 0 {
		zones = []string{""}
	}
	for _, zone := range zones {
		allocation := request.Allocation(zone)
		allocation.DryRun = true
		m, err := id.Client.AllocateMachine(ctx, allocation)
		if err == nil || !placement.HasNone(err) {
			return m, err
		}
	}
	return nil, nil
}

// guaranteed returns the capacity that every machine of the template has.
func guaranteed(r placement.Request) corev1.ResourceList {
	return capacity(r.MinCPU, r.MinMemoryMiB, int64(r.MinDiskGB)*placement.BytesPerGB)
}

func of(m *maas.Machine) corev1.ResourceList {
	return capacity(m.CPUCount, m.MemoryMiB, placement.DiskBytes(*m))
}

func capacity(cores, memoryMiB int, diskBytes int64) corev1.ResourceList {
	list := corev1.ResourceList{}
	if cores > 0 {
		list[corev1.ResourceCPU] = *resource.NewQuantity(int64(cores), resource.DecimalSI)
	}
	if memoryMiB > 0 {
		list[corev1.ResourceMemory] = *resource.NewQuantity(int64(memoryMiB)<<20, resource.BinarySI)
	}
	if diskBytes > 0 {
		list[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(diskBytes, resource.DecimalSI)
	}
	return list
}
