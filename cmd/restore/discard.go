// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/dataguard"
)

// notesName is the ConfigMap in which the control-plane-operator records the progress of each etcd member.
const notesName = "etcd-members"

// discard deletes etcd and its data from a running cluster if the user requested it: the cluster returns to the backup.
// It deletes the API server first, so that no client reads data that the restore discards. The keys stay: they equal
// those of the backup, or putKeys names the one that differs.
func (r *restoring) discard(ctx context.Context) error {
	if !r.discardData {
		return nil
	}
	namespace := r.hostedNamespace()
	return r.report.Wait(ctx, "the data of namespace "+namespace, r.timeout, pollInterval, func(ctx context.Context) (progress.State, error) {
		hcp := &hyperv1.HostedControlPlane{}
		if err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: r.cluster.Name}, hcp); err != nil {
			return progress.State{}, err
		}
		if !waitsForBackup(hcp) {
			return progress.State{Message: "waiting until the control-plane-operator stops reconciling the data"}, nil
		}
		left, err := r.deleteData(ctx, namespace)
		if err != nil || left != "" {
			return progress.State{Message: "waiting for " + left + " to go"}, err
		}
		return progress.State{Done: true, Message: "the API server, etcd and its data are gone"}, nil
	})
}

// waitsForBackup reports whether the control-plane-operator has confirmed that it waits. From then on it recreates
// nothing, and its reports are current.
func waitsForBackup(hcp *hyperv1.HostedControlPlane) bool {
	c := meta.FindStatusCondition(hcp.Status.Conditions, string(hyperv1.HostedControlPlaneAvailable))
	return hcp.Annotations[hyperv1.RestoringAnnotation] != "" && c != nil && c.Reason == hyperv1.WaitingForBackupReason
}

// deleteData deletes what is left, and returns the name of the first object.
func (r *restoring) deleteData(ctx context.Context, namespace string) (string, error) {
	objects := []client.Object{&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver"}}, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: etcdName}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: notesName}}}
	data, err := r.data(ctx)
	if err != nil {
		return "", err
	}
	objects = append(objects, data...)
	left := ""
	for _, obj := range objects {
		obj.SetNamespace(namespace)
		if err := release(ctx, r.client, obj); err != nil {
			return "", err
		}
		err := r.client.Delete(ctx, obj, client.PropagationPolicy(metav1.DeletePropagationForeground))
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("delete %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
		}
		if left == "" {
			left = fmt.Sprintf("%T %s", obj, obj.GetName())
		}
	}
	return left, nil
}

// release lets the volumes of etcd be deleted, which the API server refuses otherwise.
func release(ctx context.Context, c client.Client, obj client.Object) error {
	if _, ok := obj.(*corev1.PersistentVolumeClaim); !ok {
		return nil
	}
	return dataguard.Release(ctx, c, obj)
}

// data returns the volumes of all members and the pods that use them, unless an earlier run of this command has filled
// all volumes. It keeps no subset: the placement of the volumes depends on all of them.
func (r *restoring) data(ctx context.Context) ([]client.Object, error) {
	var objects []client.Object
	all := true
	for _, member := range r.members() {
		filled, err := r.filled(ctx, member)
		if err != nil {
			return nil, fmt.Errorf("read Pod %s: %w", r.filler(member), err)
		}
		all = all && filled
		objects = append(objects, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: r.filler(member).Name}}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: member}},
			&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: dataClaim + member}})
	}
	if all {
		return nil, nil
	}
	return objects, nil
}
