// SPDX-License-Identifier: Apache-2.0

// Package look reads hosted clusters, their NodePools and their machines for the commands that show or change them.
//
// It reads with the rights of the user. What a user may not read is left out, and Reader.Denied says so.
package look

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/kube"
)

// Reader reads clusters from a management cluster.
type Reader struct {
	client   client.Reader
	hardware []HardwareReader
	// denied are the namespaces in which the user may not read machines.
	denied map[string]bool
}

// New returns a Reader. hardware reads the machines of each platform that has machines.
func New(c client.Reader, hardware []HardwareReader) *Reader {
	return &Reader{client: c, hardware: hardware, denied: map[string]bool{}}
}

// Machine is a Machine of Cluster API with what it belongs to and what it runs on.
type Machine struct {
	clusterv1.Machine
	// HostedCluster and NodePool name the owners.
	HostedCluster, NodePool client.ObjectKey
	// Hardware is nil if the platform reports none.
	Hardware *Hardware
}

// HostedClusters returns the clusters of a namespace, sorted; of all namespaces if it is empty.
func (r *Reader) HostedClusters(ctx context.Context, namespace string) ([]hyperv1.HostedCluster, error) {
	list := &hyperv1.HostedClusterList{}
	if err := r.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list HostedClusters%s: %w", in(namespace), remedy(err))
	}
	sortByKey(list.Items, func(hc *hyperv1.HostedCluster) client.Object { return hc })
	return list.Items, nil
}

// HostedCluster returns one cluster.
func (r *Reader) HostedCluster(ctx context.Context, key client.ObjectKey) (*hyperv1.HostedCluster, error) {
	hc := &hyperv1.HostedCluster{}
	switch err := r.client.Get(ctx, key, hc); {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no HostedCluster %s; check the name and --namespace%w", key, silent{err})
	case err != nil:
		return nil, fmt.Errorf("read HostedCluster %s: %w", key, remedy(err))
	}
	return hc, nil
}

// NodePools returns the pools of a namespace, sorted; of all namespaces if it is empty. If cluster is not empty, only
// its pools are returned.
func (r *Reader) NodePools(ctx context.Context, namespace, cluster string) ([]hyperv1.NodePool, error) {
	list := &hyperv1.NodePoolList{}
	if err := r.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list NodePools%s: %w", in(namespace), remedy(err))
	}
	list.Items = slices.DeleteFunc(list.Items, func(p hyperv1.NodePool) bool {
		return cluster != "" && p.Spec.ClusterName != cluster
	})
	sortByKey(list.Items, func(p *hyperv1.NodePool) client.Object { return p })
	return list.Items, nil
}

// NodePool returns one pool.
func (r *Reader) NodePool(ctx context.Context, key client.ObjectKey) (*hyperv1.NodePool, error) {
	pool := &hyperv1.NodePool{}
	switch err := r.client.Get(ctx, key, pool); {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no NodePool %s; check the name and --namespace%w", key, silent{err})
	case err != nil:
		return nil, fmt.Errorf("read NodePool %s: %w", key, remedy(err))
	}
	return pool, nil
}

// manyNamespaces is the number of hosted namespaces from which on a list of all namespaces is tried first.
const manyNamespaces = 4

// Machines returns the machines of the clusters, sorted by cluster, pool and name.
func (r *Reader) Machines(ctx context.Context, clusters []hyperv1.HostedCluster) ([]Machine, error) {
	owners := map[string][]client.ObjectKey{}
	for i := range clusters {
		namespace := kube.HostedNamespace(clusters[i].Namespace, clusters[i].Name)
		owners[namespace] = append(owners[namespace], client.ObjectKeyFromObject(&clusters[i]))
	}
	namespaces := slices.Sorted(maps.Keys(owners))
	if len(namespaces) >= manyNamespaces {
		all, err := r.machinesIn(ctx, "", owners)
		if err == nil {
			return all, nil
		}
		if !apierrors.IsForbidden(err) {
			return nil, err
		}
	}
	var all []Machine
	for _, namespace := range namespaces {
		machines, err := r.machinesIn(ctx, namespace, owners)
		if apierrors.IsForbidden(err) {
			r.denied[namespace] = true
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, machines...)
	}
	return all, nil
}

// machinesIn reads a namespace, or all of them.
func (r *Reader) machinesIn(
	ctx context.Context, namespace string, owners map[string][]client.ObjectKey,
) ([]Machine, error) {
	list := &clusterv1.MachineList{}
	if err := r.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		if meta.IsNoMatchError(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("list the Machines%s: %w", in(namespace), err)
	}
	hardware, err := r.hardwareIn(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var all []Machine
	for i := range list.Items {
		m := Machine{Machine: list.Items[i]}
		in, name, ok := strings.Cut(m.Annotations[hyperv1.NodePoolAnnotation], "/")
		owner := slices.IndexFunc(owners[m.Namespace], func(hc client.ObjectKey) bool { return hc.Namespace == in })
		if !ok || owner < 0 {
			continue
		}
		m.HostedCluster = owners[m.Namespace][owner]
		m.NodePool = client.ObjectKey{Namespace: in, Name: name}
		ref := m.Spec.InfrastructureRef
		if found, ok := hardware[hardwareKey{ref.Kind, m.Namespace, ref.Name}]; ok {
			m.Hardware = &found
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Machine) int { return strings.Compare(a.order(), b.order()) })
	return all, nil
}

func (m *Machine) order() string {
	return m.HostedCluster.String() + "\x00" + m.NodePool.Name + "\x00" + m.Name
}

// Denied says in one sentence what the user may not read; empty if everything was read.
func (r *Reader) Denied() string {
	if len(r.denied) == 0 {
		return ""
	}
	namespaces := slices.Sorted(maps.Keys(r.denied))
	what := "namespace " + namespaces[0]
	if len(namespaces) > 1 {
		what = fmt.Sprintf("%d hosted namespaces, such as %s", len(namespaces), namespaces[0])
	}
	return "Machines are not shown: you have no right to list them in " + what +
		"; an administrator of the management cluster can see them."
}

// silent is an error that other code can recognize, and that adds nothing to the text.
type silent struct{ error }

func (silent) Error() string   { return "" }
func (s silent) Unwrap() error { return s.error }

// remedy adds to an error what the user can do.
func remedy(err error) error {
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("%w; HyperShift is not installed in this management cluster: run hypershift install, or choose "+
			"another with --kubeconfig or --context", err)
	}
	return err
}

func in(namespace string) string {
	if namespace == "" {
		return " of all namespaces"
	}
	return " of namespace " + namespace
}

func sortByKey[T any](items []T, object func(*T) client.Object) {
	slices.SortFunc(items, func(a, b T) int {
		one, other := client.ObjectKeyFromObject(object(&a)), client.ObjectKeyFromObject(object(&b))
		return strings.Compare(one.String(), other.String())
	})
}
