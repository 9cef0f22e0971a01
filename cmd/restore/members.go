// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/bundle"
	"github.com/openshift/hypershift/support/component"
)

const (
	etcdName = "etcd"
	// dataPath is etcd's data folder. dataClaim is the prefix of the names of its PersistentVolumeClaims: the StatefulSet
	// adopts existing claims.
	dataPath, dataClaim = "/var/lib/data", "data-"
	// defaultSize is the default size of the control plane.
	defaultSize = "8Gi"
	// podPrefix is the prefix of the names of the pods that fill volumes.
	podPrefix = "restore-"
	// restoreLabel marks the pods that fill volumes. Its value identifies the backup and the start of the restore.
	restoreLabel = "hypershift.openshift.io/etcd-restore"
	// writesPerSecond is more than an etcd can sustain. leastBump is more than it writes in a day or two.
	writesPerSecond, leastBump = 10_000, 1_000_000_000
)

// members returns the names of etcd's pods.
func (r *restoring) members() []string {
	replicas := 1
	if r.cluster.Spec.ControllerAvailabilityPolicy == hyperv1.HighlyAvailable {
		replicas = 3
	}
	var all []string
	for i := range replicas {
		all = append(all, fmt.Sprintf("%s-%d", etcdName, i))
	}
	return all
}

// putMembers fills the volume of each member with the snapshot, one after the other. All pods that fill volumes exist
// and wait before that: local volumes determine the nodes of the members, and the scheduler ignores completed pods when
// it spreads them.
func (r *restoring) putMembers(ctx context.Context) error {
	for _, member := range r.members() {
		if err := r.place(ctx, member); err != nil {
			return fmt.Errorf("make the volume of %s: %w", member, err)
		}
	}
	for _, member := range r.members() {
		if err := r.fill(ctx, member); err != nil {
			return fmt.Errorf("fill the volume of %s: %w", member, err)
		}
		r.report.Printf("%s has its data", member)
	}
	return nil
}

// putClaim creates the claim of a member, and reports whether it is bound.
func (r *restoring) putClaim(ctx context.Context, member string) (bound bool, err error) {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.hostedNamespace(), Name: dataClaim + member, Labels: map[string]string{"app": etcdName}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(defaultSize)}},
		},
	}
	if managed := r.cluster.Spec.Etcd.Managed; managed != nil && managed.Storage.PersistentVolume != nil {
		claim.Spec.StorageClassName = managed.Storage.PersistentVolume.StorageClassName
		if size := managed.Storage.PersistentVolume.Size; size != nil {
			claim.Spec.Resources.Requests[corev1.ResourceStorage] = *size
		}
	}
	key := client.ObjectKeyFromObject(claim)
	if err = r.client.Create(ctx, claim); apierrors.IsAlreadyExists(err) {
		err = r.client.Get(ctx, key, claim)
	}
	if err != nil {
		return false, fmt.Errorf("make PersistentVolumeClaim %s: %w", key, err)
	}
	return claim.Spec.VolumeName != "", nil
}

// filler returns the key of the pod that fills the volume of a member.
func (r *restoring) filler(member string) client.ObjectKey {
	return client.ObjectKey{Namespace: r.hostedNamespace(), Name: podPrefix + member}
}

// snapshotID identifies a snapshot.
func (r *restoring) snapshotID() string {
	sum := r.contents.Header.Snapshot.SHA256
	return sum[:min(len(sum), 16)]
}

// backupID identifies a restore. Members that were made from different snapshots, or that begin at different revisions,
// would form one cluster with inconsistent data.
func (r *restoring) backupID() string {
	return fmt.Sprintf("%s.%d", r.snapshotID(), r.began.Unix())
}

// begin sets the start time of this restore: now, unless the pods of an earlier run of this command have another.
func (r *restoring) begin(ctx context.Context) error {
	pods := &corev1.PodList{}
	if err := r.client.List(ctx, pods, client.InNamespace(r.hostedNamespace()), client.HasLabels{restoreLabel}); err != nil {
		return fmt.Errorf("list the pods that fill volumes in namespace %s: %w", r.hostedNamespace(), err)
	}
	r.began = time.Now()
	for _, pod := range pods.Items {
		snapshot, seconds, _ := strings.Cut(pod.Labels[restoreLabel], ".")
		at, err := strconv.ParseInt(seconds, 10, 64)
		if err == nil && snapshot == r.snapshotID() && pod.DeletionTimestamp.IsZero() {
			r.began = time.Unix(at, 0)
		}
	}
	return nil
}

// bump returns by how much the restored revisions exceed the snapshot's. The result is the revision of a cluster that
// has written writesPerSecond since the epoch. It is higher than any revision this cluster has reached before, also
// after restores from the same backup or a later one. Clients that watched the cluster before see a newer revision, and
// list again.
func (r *restoring) bump() int64 {
	if raised := r.began.Unix()*writesPerSecond - r.contents.Header.Snapshot.Revision; raised > 0 {
		return raised
	}
	return leastBump // The clock is far behind.
}

// filled reports whether an earlier run of this command has already filled the volume of a member from this backup.
func (r *restoring) filled(ctx context.Context, member string) (bool, error) {
	pod := &corev1.Pod{}
	if err := r.client.Get(ctx, r.filler(member), pod); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return pod.Status.Phase == corev1.PodSucceeded && pod.DeletionTimestamp.IsZero() && pod.Labels[restoreLabel] == r.backupID(), nil
}

// place runs a pod that mounts the member's volume and waits for the snapshot. It replaces a pod of any other earlier
// run, which no command would feed.
func (r *restoring) place(ctx context.Context, member string) error {
	key := r.filler(member)
	if filled, err := r.filled(ctx, member); filled || err != nil {
		return err
	}
	bound, err := r.putClaim(ctx, member)
	if err != nil {
		return err
	}
	earlier := &corev1.Pod{}
	switch err := r.client.Get(ctx, key, earlier); {
	case err == nil:
		if err := r.removePod(ctx, earlier); err != nil {
			return err
		}
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read Pod %s: %w", key, err)
	}
	pod, err := r.pod(ctx, key.Name, member)
	if err != nil {
		return err
	}
	if !bound {
		r.keepApart(pod)
	}
	if err := r.client.Create(ctx, pod); err != nil {
		return fmt.Errorf("make Pod %s: %w", key, err)
	}
	return r.awaitPod(ctx, key, corev1.PodRunning)
}

// fill sends the snapshot to the waiting pod.
func (r *restoring) fill(ctx context.Context, member string) error {
	key := r.filler(member)
	if filled, err := r.filled(ctx, member); filled || err != nil {
		return err
	}
	err := r.open(func(contents bundle.Contents, snapshot io.Reader) error {
		if contents.Digest() != r.contents.Digest() {
			return errors.New("the file is another than the one that was verified; restore again")
		}
		return r.feed(ctx, key, etcdName, snapshot)
	})
	if err != nil {
		return err
	}
	return r.awaitPod(ctx, key, corev1.PodSucceeded)
}

// pod returns a pod that has the image and the settings of the control-plane-operator.
func (r *restoring) pod(ctx context.Context, name, member string) (*corev1.Pod, error) {
	operator := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: r.hostedNamespace(), Name: operatorName}
	if err := r.client.Get(ctx, key, operator); err != nil {
		return nil, fmt.Errorf("read Deployment %s: %w", key, err)
	}
	from, off := operator.Spec.Template.Spec, false
	container := from.Containers[0]
	var nodes *corev1.NodeAffinity
	if from.Affinity != nil {
		nodes = from.Affinity.NodeAffinity // Nodes reserved for control planes are also for their volumes.
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name, Labels: map[string]string{restoreLabel: r.backupID()}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &off,
			SecurityContext: from.SecurityContext, ImagePullSecrets: from.ImagePullSecrets,
			NodeSelector: from.NodeSelector, Tolerations: from.Tolerations, Affinity: &corev1.Affinity{NodeAffinity: nodes},
			Containers: []corev1.Container{{
				Name: etcdName, Image: container.Image, ImagePullPolicy: container.ImagePullPolicy, SecurityContext: container.SecurityContext,
				Command: []string{operatorName, "restore-etcd", "--namespace=" + key.Namespace, "--member=" + member,
					"--members=" + strings.Join(r.members(), ","), "--data-dir=" + dataPath, "--revision-bump=" + strconv.FormatInt(r.bump(), 10)},
				Stdin: true, StdinOnce: true,
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				VolumeMounts:             []corev1.VolumeMount{{Name: "data", MountPath: dataPath}},
			}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: dataClaim + member}}}},
		},
	}, nil
}

// keepApart places the volumes by the same rule as etcd's pods: a volume in another place would leave its member
// unschedulable.
func (r *restoring) keepApart(pod *corev1.Pod) {
	zones, hosts := component.Apart(map[string]string{restoreLabel: r.backupID()})
	pod.Spec.Affinity.PodAntiAffinity = zones
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{hosts}
}

func (r *restoring) awaitPod(ctx context.Context, key client.ObjectKey, phase corev1.PodPhase) error {
	failed := ""
	err := r.report.Wait(ctx, "Pod "+key.String(), r.timeout, pollInterval, func(ctx context.Context) (progress.State, error) {
		pod := &corev1.Pod{}
		if err := r.client.Get(ctx, key, pod); err != nil {
			return progress.State{}, err
		}
		if pod.Status.Phase == corev1.PodFailed {
			failed = cmp.Or(said(pod), "it ended without a message")
		}
		done := pod.Status.Phase == phase || pod.Status.Phase == corev1.PodSucceeded || failed != ""
		return progress.State{Done: done, Message: fmt.Sprintf("pod %s is %s", key.Name, pod.Status.Phase)}, nil
	})
	if err == nil && failed != "" {
		return fmt.Errorf("Pod %s failed: %s", key, failed)
	}
	return err
}

func said(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		if ended := status.State.Terminated; ended != nil {
			return strings.TrimSpace(ended.Message)
		}
	}
	return pod.Status.Message
}

func (r *restoring) removePod(ctx context.Context, pod *corev1.Pod) error {
	if err := client.IgnoreNotFound(r.client.Delete(ctx, pod)); err != nil {
		return fmt.Errorf("delete Pod %s: %w", client.ObjectKeyFromObject(pod), err)
	}
	key := client.ObjectKeyFromObject(pod)
	return r.report.Wait(ctx, "Pod "+key.String(), r.timeout, pollInterval, func(ctx context.Context) (progress.State, error) {
		err := r.client.Get(ctx, key, &corev1.Pod{})
		if apierrors.IsNotFound(err) {
			return progress.State{Done: true, Message: "pod " + key.Name + " of an earlier run is gone"}, nil
		}
		return progress.State{Message: "waiting for pod " + key.Name + " of an earlier run to go"}, err
	})
}

// removePods removes the pods that filled volumes: they keep the claims in use.
func (r *restoring) removePods(ctx context.Context) error {
	err := r.client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(r.hostedNamespace()), client.HasLabels{restoreLabel})
	if err != nil {
		return fmt.Errorf("delete the pods that filled volumes in namespace %s: %w", r.hostedNamespace(), err)
	}
	return nil
}
