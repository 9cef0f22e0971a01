// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/progress"
)

// notesName is the ConfigMap in which the control-plane-operator notes how far each member of etcd is.
const notesName = "etcd-members"

// discard takes etcd and its data from a cluster that lives, where the user said so: it goes back to the backup. The API server goes first, so
// that nobody is told what will not have been. Keys stay: they are those of the backup, or putKeys says which is not.
func (r *restoring) discard(ctx context.Context) error {
	if !r.discardData {
		return nil
	}
	namespace, goneOnce := r.hostedNamespace(), false
	return r.report.Wait(ctx, "the data of namespace "+namespace, r.timeout, pollInterval, func(ctx context.Context) (progress.State, error) {
		hcp := &hyperv1.HostedControlPlane{}
		if err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: r.cluster.Name}, hcp); err != nil {
			return progress.State{}, err
		}
		if hcp.Annotations[hyperv1.RestoringAnnotation] == "" {
			return progress.State{Message: "waiting until the control-plane-operator puts nothing back"}, nil
		}
		left, err := r.deleteData(ctx, namespace)
		if err != nil || left != "" {
			goneOnce = false
			return progress.State{Message: "waiting for " + left + " to go"}, err
		}
		// A pass of the control-plane-operator that had begun may have put something back.
		done := goneOnce
		goneOnce = true
		return progress.State{Done: done, Message: "the API server, etcd and its data are gone"}, nil
	})
}

// deleteData deletes what is left, and names the first of it.
func (r *restoring) deleteData(ctx context.Context, namespace string) (string, error) {
	objects := []client.Object{&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver"}}, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: etcdName}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: notesName}}}
	for _, member := range r.members() {
		if r.filled(ctx, namespace, member) {
			continue // By an earlier run of this command.
		}
		objects = append(objects, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: member}}, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: dataClaim + member}})
	}
	left := ""
	for _, obj := range objects {
		obj.SetNamespace(namespace)
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

// filled tells that the volume of a member has the data of the backup already.
func (r *restoring) filled(ctx context.Context, namespace, member string) bool {
	pod := &corev1.Pod{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: podPrefix + member}, pod)
	return err == nil && pod.Status.Phase == corev1.PodSucceeded
}
