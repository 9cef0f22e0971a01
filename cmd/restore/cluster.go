// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/progress"
)

// operatorName is the Deployment of the control-plane-operator.
const operatorName = "control-plane-operator"

// find reads the HostedCluster. It returns an error if the restore would destroy its data, or if the backup is of
// another cluster.
func (r *restoring) find(ctx context.Context) error {
	header := r.contents.Header
	key := client.ObjectKey{Namespace: cmp.Or(r.namespace, header.Namespace), Name: cmp.Or(r.name, header.Name)}
	r.cluster = &hyperv1.HostedCluster{}
	err := r.client.Get(ctx, key, r.cluster)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no HostedCluster %s here: apply the one that was lost, with the Secrets that it names and the annotation %s: \"true\", and then restore",
			key, hyperv1.RestoringAnnotation)
	case err != nil:
		return fmt.Errorf("read HostedCluster %s: %w", key, err)
	case r.cluster.Annotations[hyperv1.RestoringAnnotation] == "" && !r.discardData:
		return fmt.Errorf("HostedCluster %s has no annotation %s, so it has a control plane with keys and data of its own, or is about to make one, and a restore would destroy "+
			"them: --discard-data gives its data up, and docs/how-to/restore.md says what that means", key, hyperv1.RestoringAnnotation)
	case r.cluster.Spec.InfraID != header.InfraID:
		return fmt.Errorf("HostedCluster %s has spec.infraID %q, and the backup is of one with %q: nodes and keys would not fit; make the HostedCluster with that infraID",
			key, r.cluster.Spec.InfraID, header.InfraID)
	case r.hostedNamespace() != header.HostedNamespace:
		return fmt.Errorf("HostedCluster %s has its control plane in namespace %s, and the backup is of one in %s, which is part of the names in certificates; give it the namespace and name that it had",
			key, r.hostedNamespace(), header.HostedNamespace)
	}
	if err := r.knowsMachines(); err != nil {
		return err
	}
	if err := r.knowsEncryptionKey(ctx); err != nil {
		return err
	}
	set := &appsv1.StatefulSet{}
	err = r.client.Get(ctx, client.ObjectKey{Namespace: r.hostedNamespace(), Name: etcdName}, set)
	if err == nil && !r.discardData {
		return fmt.Errorf("namespace %s has an etcd, which a restore would destroy: --discard-data gives its data up, and docs/how-to/restore.md says what that means", r.hostedNamespace())
	}
	return client.IgnoreNotFound(err)
}

func (r *restoring) hostedNamespace() string {
	return kube.HostedNamespace(r.cluster.Namespace, r.cluster.Name)
}

// awaitControlPlane waits for the control-plane-operator, whose Deployment is the template for the restore pods. It
// creates nothing yet.
func (r *restoring) awaitControlPlane(ctx context.Context) error {
	namespace := r.hostedNamespace()
	return r.report.Wait(ctx, "the control plane in namespace "+namespace, r.timeout, pollInterval, func(ctx context.Context) (progress.State, error) {
		hcp := &hyperv1.HostedControlPlane{}
		err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: r.cluster.Name}, hcp)
		if err == nil {
			err = r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: operatorName}, &appsv1.Deployment{})
		}
		if apierrors.IsNotFound(err) {
			if err := r.client.Get(ctx, client.ObjectKeyFromObject(r.cluster), r.cluster); err != nil {
				return progress.State{}, err
			}
			return progress.State{Message: fmt.Sprintf("waiting for the operator to make HostedControlPlane and control-plane-operator in namespace %s; %s",
				namespace, progress.FirstUnmet(r.cluster.Status.Conditions, string(hyperv1.ValidHostedClusterConfiguration)))}, nil
		}
		return progress.State{Done: err == nil, Message: "the control plane waits for its keys and data"}, err
	})
}

// awaitCluster waits until the cluster is available, and reports if its nodes cannot reach it.
func (r *restoring) awaitCluster(ctx context.Context) error {
	key := client.ObjectKeyFromObject(r.cluster)
	err := r.report.Wait(ctx, "HostedCluster "+key.String(), r.timeout, pollInterval, func(ctx context.Context) (progress.State, error) {
		if err := r.client.Get(ctx, key, r.cluster); err != nil {
			return progress.State{}, err
		}
		hcp := &hyperv1.HostedControlPlane{}
		if err := r.client.Get(ctx, client.ObjectKey{Namespace: r.hostedNamespace(), Name: r.cluster.Name}, hcp); err != nil {
			return progress.State{}, err
		}
		// The HostedCluster copies this condition, and may still have the previous value.
		if !meta.IsStatusConditionTrue(hcp.Status.Conditions, string(hyperv1.HostedControlPlaneAvailable)) {
			return progress.State{Message: progress.FirstUnmet(hcp.Status.Conditions, string(hyperv1.HostedControlPlaneAvailable))}, nil
		}
		if meta.IsStatusConditionTrue(r.cluster.Status.Conditions, string(hyperv1.HostedClusterAvailable)) {
			return progress.State{Done: true, Message: "the cluster is available"}, nil
		}
		return progress.State{Message: progress.FirstUnmet(r.cluster.Status.Conditions, string(hyperv1.HostedClusterAvailable))}, nil
	})
	if err != nil {
		return fmt.Errorf("%w; look further with: kubectl describe hostedcluster -n %s %s", err, key.Namespace, key.Name)
	}
	endpoint := r.cluster.Status.ControlPlaneEndpoint
	now, was := net.JoinHostPort(endpoint.Host, strconv.Itoa(int(endpoint.Port))), r.contents.Header.APIServer
	if was != "" && now != was {
		r.report.Printf("WARNING: the API server is at %s, but nodes expect it at %s; point that address at this management cluster, or the nodes stay NotReady", now, was)
	}
	return nil
}

// lostInfrastructure returns the UID under which MAAS knows the cluster; empty for other platforms.
func (r *restoring) lostInfrastructure() string {
	if r.infrastructure != "" {
		return r.infrastructure
	}
	for _, object := range r.contents.Objects {
		if object.GetKind() == "MaasCluster" {
			return cmp.Or(object.GetAnnotations()[infrav1.RestoredFromAnnotation], string(object.GetUID()))
		}
	}
	return ""
}

// knowsMachines rejects the restore of a cluster on MAAS if its machines cannot be found. The cluster would get new
// machines, and nothing would own the running ones.
func (r *restoring) knowsMachines() error {
	if r.cluster.Spec.Platform.Type != hyperv1.MAASPlatform || r.lostInfrastructure() != "" || r.discardData {
		return nil
	}
	return fmt.Errorf("the backup does not say which MaasCluster the machines of HostedCluster %s are of: say it with --infrastructure-uid; each of them has it in MAAS, "+
		"as workload annotation hypershift-cluster-uid", client.ObjectKeyFromObject(r.cluster))
}
