// SPDX-License-Identifier: Apache-2.0

package etcdbackup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/backup"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/managementnetwork"
	"github.com/openshift/hypershift/support/objectstore"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	// appLabel is the app label of pods and Jobs, and the name of the RBAC objects that let the pods write the status.
	appLabel = "etcd-backup"
	// attempts is how often a pod may fail: a failed node or a temporary error of the storage must not fail the backup.
	attempts = 3
	// removal is the time limit for the removal of a stored bundle.
	removal = 10 * time.Minute
)

// hostIP provides the address of the pod's node: no tenant's object store may be at that address.
var hostIP = corev1.EnvVar{Name: objectstore.EnvHostIP, ValueFrom: &corev1.EnvVarSource{
	FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.hostIP"},
}}

func jobName(asked *hyperv1.HCPEtcdBackup) string     { return appLabel + "-" + string(asked.UID) }
func removalName(asked *hyperv1.HCPEtcdBackup) string { return appLabel + "-rm-" + string(asked.UID) }

// begin creates what the pod needs, and the Job last.
func (r *Reconciler) begin(ctx context.Context, s *scope, task backup.Task) error {
	if r.Image == "" {
		return errNoImage
	}
	if err := r.allow(ctx, s.hcp); err != nil {
		return err
	}
	s.job = r.job(jobName(s.backup), s.backup, backup.Deadline)
	addEtcd(&s.job.Spec.Template.Spec)
	if s.hcp != nil {
		place(s.hcp, &s.job.Spec.Template.Spec)
	}
	return r.launch(ctx, s.backup, s.job, task)
}

func (r *Reconciler) launch(ctx context.Context, asked *hyperv1.HCPEtcdBackup, job *batchv1.Job, task backup.Task) error {
	data, err := task.Encode()
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name}}
	if _, err := upsert.Object(ctx, r.Client, secret, func() error {
		secret.Data = map[string][]byte{backup.TaskFile: data}
		return controllerutil.SetControllerReference(asked, secret, r.Client.Scheme())
	}); err != nil {
		return err
	}
	if err := controllerutil.SetControllerReference(asked, job, r.Client.Scheme()); err != nil {
		return err
	}
	if err := r.Client.Create(ctx, job); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	return nil
}

// allow lets the pods read HCPEtcdBackups and write their status, and nothing else.
func (r *Reconciler) allow(ctx context.Context, hcp *hyperv1.HostedControlPlane) error {
	named := metav1.ObjectMeta{Namespace: hcp.Namespace, Name: appLabel}
	account, role, binding := &corev1.ServiceAccount{ObjectMeta: named}, &rbacv1.Role{ObjectMeta: named}, &rbacv1.RoleBinding{ObjectMeta: named}
	for obj, shape := range map[client.Object]func(){
		account: func() { account.ImagePullSecrets = []corev1.LocalObjectReference{{Name: hosted.PullSecret}} },
		role: func() {
			group := []string{hyperv1.GroupVersion.Group}
			role.Rules = []rbacv1.PolicyRule{
				{APIGroups: group, Resources: []string{"hcpetcdbackups"}, Verbs: []string{"get"}},
				{APIGroups: group, Resources: []string{"hcpetcdbackups/status"}, Verbs: []string{"patch"}},
			}
		},
		binding: func() {
			binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: appLabel}
			binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: hcp.Namespace, Name: appLabel}}
		},
	} {
		if _, err := upsert.Object(ctx, r.Client, obj, func() error {
			shape()
			return controllerutil.SetControllerReference(hcp, obj, r.Client.Scheme())
		}); err != nil {
			return err
		}
	}
	return nil
}

// job returns a Job that runs a task. Its pods meet the Pod Security level "restricted".
func (r *Reconciler) job(name string, asked *hyperv1.HCPEtcdBackup, deadline time.Duration) *batchv1.Job {
	labels := map[string]string{
		"app": appLabel, hyperv1.ManagedByLabel: "control-plane-operator", hyperv1.ControlPlaneNamespaceLabel: asked.Namespace,
		// The label lets a pod reach the management cluster's API and external storage.
		hyperv1.NeedManagementKASAccessLabel: "true",
	}
	container := corev1.Container{
		Name: appLabel, Image: r.Image, Env: append(slices.Clone(r.Env), hostIP),
		Command:                  []string{"/usr/bin/control-plane-operator", "etcd-backup"},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext: &corev1.SecurityContext{
			ReadOnlyRootFilesystem: ptr.To(true), AllowPrivilegeEscalation: ptr.To(false),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	pod := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: appLabel, ImagePullSecrets: []corev1.LocalObjectReference{{Name: hosted.PullSecret}},
		SecurityContext: &corev1.PodSecurityContext{
			RunAsUser: r.PodUID, FSGroup: r.PodUID, RunAsNonRoot: ptr.To(true),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{container},
	}
	mount(&pod, "task", backup.ConfigDir+"/"+backup.TaskDir, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}})
	addStorage(&pod, asked.Spec.Storage)
	component.Bound(&pod)
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: asked.Namespace, Name: name, Labels: labels},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To[int32](attempts - 1), ActiveDeadlineSeconds: ptr.To(int64(deadline.Seconds())),
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}
}

func addStorage(pod *corev1.PodSpec, storage hyperv1.HCPEtcdBackupStorage) {
	if storage.StorageType == hyperv1.PVCBackupStorage {
		mount(pod, "storage", backup.VolumeDir, corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: storage.PVC.ClaimName}})
		return
	}
	managementnetwork.Mount(pod)
	mount(pod, "credentials", backup.ConfigDir+"/"+backup.CredentialsDir, corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: storage.S3.Credentials.Name}})
}

// scratchSize is more than a snapshot and its bundle need for an etcd with the largest quota of 8 GiB.
var scratchSize = resource.MustParse("20Gi")

// addEtcd mounts the client certificate for etcd, the key that signs the bundle, and space for a snapshot.
func addEtcd(pod *corev1.PodSpec) {
	mount(pod, "etcd", backup.ConfigDir+"/"+backup.EtcdDir, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: pki.EtcdClient}})
	mount(pod, "etcd-ca", backup.ConfigDir+"/"+backup.EtcdCADir, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: pki.EtcdBundle}}})
	mount(pod, "signer", backup.ConfigDir+"/"+backup.SignerDir, corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: hosted.BackupSigner, Optional: ptr.To(true)}})
	mount(pod, "scratch", backup.ScratchDir,
		corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(scratchSize.DeepCopy())}})
}

func mount(pod *corev1.PodSpec, name, path string, source corev1.VolumeSource) {
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	container := &pod.Containers[0]
	readOnly := source.EmptyDir == nil && source.PersistentVolumeClaim == nil
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: readOnly})
}

// place schedules a pod by the placement rules of the control plane.
func place(hcp *hyperv1.HostedControlPlane, pod *corev1.PodSpec) {
	pod.NodeSelector, pod.Tolerations = hcp.Spec.NodeSelector, hcp.Spec.Tolerations
}

// jobOutcome returns how a Job ended, and why it failed; empty if it has not ended.
func jobOutcome(job *batchv1.Job) (batchv1.JobConditionType, string) {
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c.Type, cmp.Or(c.Message, c.Reason)
		}
	}
	return "", ""
}

// lastWords returns the error that the last pod of a Job ended with.
func (r *Reconciler) lastWords(ctx context.Context, job *batchv1.Job) (string, error) {
	pods := &corev1.PodList{}
	if err := r.Live.List(ctx, pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
		return "", fmt.Errorf("listing the pods of Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	var words string
	var last metav1.Time
	for i := range pods.Items {
		for _, status := range pods.Items[i].Status.ContainerStatuses {
			if end := status.State.Terminated; end != nil && end.Message != "" && !end.FinishedAt.Before(&last) {
				words, last = end.Message, end.FinishedAt
			}
		}
	}
	return complaint(words), nil
}

// complaint extracts the error of a program from the end of its log: the text after the last "Error:" at the beginning
// of a line.
func complaint(log string) string {
	log = strings.TrimSpace(log)
	if i := strings.LastIndex("\n"+log, "\nError:"); i >= 0 {
		log = strings.TrimPrefix(log[i:], "Error:")
	}
	return strings.TrimSpace(log)
}

// tidy deletes the task Secret, which contains keys, and the Job with its pods, which are no longer needed.
func (r *Reconciler) tidy(ctx context.Context, s *scope) (ctrl.Result, error) {
	if !over(s.backup) {
		return ctrl.Result{}, nil
	}
	if s.job != nil && s.job.DeletionTimestamp.IsZero() {
		if err := r.Client.Delete(ctx, s.job, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("deleting Job %s/%s: %w", s.job.Namespace, s.job.Name, err)
		}
	}
	return ctrl.Result{}, r.forget(ctx, s.backup.Namespace, jobName(s.backup))
}

func (r *Reconciler) forget(ctx context.Context, namespace, name string) error {
	secret := &corev1.Secret{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	if err == nil {
		err = r.Client.Delete(ctx, secret)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Secret %s/%s: %w", namespace, name, err)
	}
	return nil
}
