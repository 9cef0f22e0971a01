// SPDX-License-Identifier: Apache-2.0

package etcdbackup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/backup"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
	"github.com/openshift/hypershift/support/bundle"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/reference"
)

// machineKinds are the kinds of objects in the management cluster that identify the machine of a node. A restore uses
// these objects to find the machines.
var machineKinds = []schema.GroupVersionKind{
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Machine"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Kind: "MaasMachine"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Kind: "MaasCluster"},
}

// task returns the work of the pod. If it returns an error about something missing, the user can fix that while the
// backup waits.
func (r *Reconciler) task(ctx context.Context, s *scope) (backup.Task, error) {
	task := r.location(s.backup)
	task.Etcd = etcd.URL(s.hcp)
	key := &corev1.Secret{}
	if err := r.secret(ctx, s.backup.Namespace, s.backup.Spec.EncryptionKey.Name, key); err != nil {
		return task, fmt.Errorf("spec.encryptionKey: %w", err)
	}
	recipients, err := bundle.Recipients(key)
	if err != nil {
		return task, fmt.Errorf("spec.encryptionKey: %w", err)
	}
	for _, recipient := range recipients {
		text, ok := recipient.(fmt.Stringer)
		if !ok {
			return task, fmt.Errorf("spec.encryptionKey: Secret %s has a key that cannot be passed on", key.Name)
		}
		task.Recipients = append(task.Recipients, text.String())
	}
	if name := s.backup.Spec.Storage.S3.Credentials.Name; name != "" {
		if err := r.secret(ctx, s.backup.Namespace, name, &corev1.Secret{}); err != nil {
			return task, fmt.Errorf("spec.storage.s3.credentials: %w", err)
		}
	}
	task.Contents, err = r.contents(ctx, s.hcp)
	return task, err
}

func (r *Reconciler) secret(ctx context.Context, namespace, name string, into *corev1.Secret) error {
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no Secret %s/%s: create it", namespace, name)
	}
	return err
}

// location returns the storage location of a backup. The name begins with the time, so that names sort by time.
func (r *Reconciler) location(asked *hyperv1.HCPEtcdBackup) backup.Task {
	return backup.Task{
		Namespace: asked.Namespace, Backup: asked.Name, Storage: asked.Spec.Storage,
		Object: fmt.Sprintf("%s/%s-%s%s", asked.Namespace, asked.CreationTimestamp.UTC().Format("20060102T150405Z"), asked.Name, bundle.Extension),
	}
}

func (r *Reconciler) contents(ctx context.Context, hcp *hyperv1.HostedControlPlane) (bundle.Contents, error) {
	contents := bundle.Contents{Header: header(hcp)}
	all := &corev1.SecretList{}
	if err := r.Client.List(ctx, all, client.InNamespace(hcp.Namespace)); err != nil {
		return contents, fmt.Errorf("listing the Secrets of namespace %s: %w", hcp.Namespace, err)
	}
	for i := range all.Items {
		if kept(hcp, &all.Items[i]) {
			contents.Secrets = append(contents.Secrets, bundle.Of(&all.Items[i]))
		}
	}
	slices.SortFunc(contents.Secrets, func(a, b corev1.Secret) int { return strings.Compare(a.Name, b.Name) })
	plane, err := runtime.DefaultUnstructuredConverter.ToUnstructured(hcp)
	if err != nil {
		return contents, err
	}
	object := unstructured.Unstructured{Object: plane}
	object.SetGroupVersionKind(hyperv1.GroupVersion.WithKind("HostedControlPlane"))
	contents.Objects = append(contents.Objects, trimmed(object))
	for _, kind := range machineKinds {
		machines := &unstructured.UnstructuredList{}
		machines.SetGroupVersionKind(kind)
		err := r.Live.List(ctx, machines, client.InNamespace(hcp.Namespace))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue // The platform has no machines of this kind.
		}
		if err != nil {
			return contents, fmt.Errorf("listing %ss of namespace %s: %w", kind.Kind, hcp.Namespace, err)
		}
		for _, machine := range machines.Items {
			contents.Objects = append(contents.Objects, trimmed(machine))
		}
	}
	return contents, nil
}

func trimmed(object unstructured.Unstructured) unstructured.Unstructured {
	object.SetManagedFields(nil)
	return object
}

// kept reports whether a backup must contain a Secret because the snapshot is useless without it. These are the
// Secrets that a restore writes, and the keys of secretEncryption.
func kept(hcp *hyperv1.HostedControlPlane, secret *corev1.Secret) bool {
	if bundle.Restored(secret.Name) {
		return hosted.Trusted(secret) == nil
	}
	encryption := hcp.Spec.SecretEncryption
	return encryption != nil && encryption.AESCBC != nil && secret.Name != "" &&
		(secret.Name == encryption.AESCBC.ActiveKey.Name || secret.Name == reference.Name(encryption.AESCBC.BackupKey))
}

func header(hcp *hyperv1.HostedControlPlane) bundle.Header {
	h := bundle.Header{
		Name: hcp.Name, HostedNamespace: hcp.Namespace, InfraID: hcp.Spec.InfraID, ClusterID: hcp.Spec.ClusterID, ReleaseImage: hcp.Spec.ReleaseImage,
	}
	// The hypershift-operator sets the annotation to the HostedCluster of the control plane: namespace/name.
	if namespace, name, ok := strings.Cut(hcp.Annotations[hyperv1.HostedClusterAnnotation], "/"); ok {
		h.Namespace, h.Name = namespace, name
	}
	if version := hcp.Status.VersionStatus; version != nil && len(version.History) > 0 {
		h.KubernetesVersion = version.History[0].Version
	}
	if end := hcp.Status.ControlPlaneEndpoint; end.Host != "" {
		h.APIServer = net.JoinHostPort(end.Host, strconv.Itoa(int(end.Port)))
	}
	return h
}

func (r *Reconciler) paused(hcp *hyperv1.HostedControlPlane) bool {
	return pause.Until(hcp.Spec.PausedUntil, r.Clock.Now()).Paused
}

// moving returns the reason why a key migration blocks the backup: a snapshot would also need the previous key, which
// is no longer in any spec.
func moving(hcp *hyperv1.HostedControlPlane) string {
	if c := meta.FindStatusCondition(hcp.Status.Conditions, string(hyperv1.EtcdDataEncryptionUpToDate)); c != nil && c.Status == "False" {
		return c.Message
	}
	return ""
}

// unhealthy returns the reason why no snapshot can be taken; empty if one can.
func unhealthy(hcp *hyperv1.HostedControlPlane) string {
	for _, t := range []hyperv1.ConditionType{hyperv1.EtcdMembersHealthy, hyperv1.EtcdAvailable} {
		c := meta.FindStatusCondition(hcp.Status.Conditions, string(t))
		switch {
		case c == nil && t == hyperv1.EtcdAvailable:
			return "it has not started yet"
		case c == nil || c.Status == "True":
		case t == hyperv1.EtcdAvailable, c.Reason == hyperv1.EtcdQuorumLostReason, c.Reason == hyperv1.EtcdWaitingForQuorumReason:
			return c.Message
		}
	}
	return ""
}

// errNoImage is returned if the operator was started without its own image.
var errNoImage = errors.New("the operator does not know its own image")
