// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/hypershift-operator/tenancy"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/reference"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	// unusedFor is how long a copy must be unused before it is deleted. The operators of the control plane read some
	// copies without mounting them, and may briefly act on an earlier HostedControlPlane.
	unusedFor = 10 * time.Minute
	// unusedPoll is the interval between checks for users of a copy: no watch reports that the last pod is gone.
	unusedPoll = 2 * time.Minute
)

// Unused deletes copies that nothing uses any more.
type Unused struct {
	Client     client.Client
	LiveReader client.Reader
}

// Reconcile deletes copies that are no longer used, including those of version 0.1.0, which had the names that
// users chose. It runs after the HostedControlPlane names the new copies.
func (r Unused) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	candidates, err := r.copiesNotNamed(ctx, s)
	if err != nil || len(candidates) == 0 {
		return ctrl.Result{}, err
	}
	used, err := r.usedByWorkloads(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	var failures []error
	again := time.Duration(0)
	for _, candidate := range candidates {
		left, err := r.removeUnused(ctx, s, candidate, used.Has(candidate.GetName()))
		failures = append(failures, err)
		if left > 0 && (again == 0 || left < again) {
			again = left
		}
	}
	return ctrl.Result{RequeueAfter: again}, errors.Join(failures...)
}

// removeUnused deletes a copy that was unused for long enough. Otherwise it returns the delay until the next check.
func (r Unused) removeUnused(ctx context.Context, s *cluster.Scope, copied client.Object, used bool) (time.Duration,
	error) {
	text, marked := copied.GetAnnotations()[hyperv1.UserCopyUnusedSinceAnnotation]
	since, err := time.Parse(time.RFC3339, text)
	switch {
	case used && marked:
		annotations := copied.GetAnnotations()
		delete(annotations, hyperv1.UserCopyUnusedSinceAnnotation)
		copied.SetAnnotations(annotations)
		return unusedPoll, r.updateCopy(ctx, copied)
	case used:
		return unusedPoll, nil
	case err != nil:
		cluster.Annotate(copied, hyperv1.UserCopyUnusedSinceAnnotation, s.Now.UTC().Format(time.RFC3339))
		return unusedFor, r.updateCopy(ctx, copied)
	case s.Now.Sub(since) < unusedFor:
		return unusedFor - s.Now.Sub(since), nil
	}
	_, err = upsert.Gone(ctx, r.Client, copied)
	return 0, err
}

func (r Unused) updateCopy(ctx context.Context, copied client.Object) error {
	if err := r.Client.Update(ctx, copied); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("updating the unused copy %T %s: %w", copied, client.ObjectKeyFromObject(copied), err)
	}
	return nil
}

// copiesNotNamed returns the cluster's copies in the hosted namespace that the HostedControlPlane does not name.
func (r Unused) copiesNotNamed(ctx context.Context, s *cluster.Scope) ([]client.Object, error) {
	named := namedInControlPlane(s)
	var found []client.Object
	for _, kind := range []string{"Secret", "ConfigMap"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := r.Client.List(ctx, list, client.InNamespace(s.Namespace)); err != nil {
			return nil, fmt.Errorf("listing the %ss of namespace %s: %w", kind, s.Namespace, err)
		}
		for i := range list.Items {
			item := &list.Items[i]
			if tenancy.Owner(item) != s.BackPointer() || len(item.OwnerReferences) > 0 ||
				item.Labels[hyperv1.OperatorObjectLabel] != "" ||
				named.Has(item.Name) || !item.DeletionTimestamp.IsZero() {
				continue
			}
			var obj client.Object = &corev1.Secret{}
			if kind == "ConfigMap" {
				obj = &corev1.ConfigMap{}
			}
			if err := r.LiveReader.Get(ctx, client.ObjectKeyFromObject(item), obj); err != nil {
				if client.IgnoreNotFound(err) == nil {
					continue
				}
				return nil, fmt.Errorf("reading %s %s/%s: %w", kind, item.Namespace, item.Name, err)
			}
			found = append(found, obj)
		}
	}
	return found, nil
}

// namedInControlPlane returns the names that the control plane's operators read, whether or not a pod mounts them. The
// fixed names are included: an operator of version 0.1.0 did not label those copies, and a copy stays if its source is
// missing.
func namedInControlPlane(s *cluster.Scope) sets.Set[string] {
	named := sets.New(naming.PullSecret, naming.SAKey, hosted.KubevirtCredentials)
	if s.HC.Spec.SSHKey.Name != "" {
		named.Insert(naming.SSHKey)
	}
	if reference.Name(s.HC.Spec.AdditionalTrustBundle) != "" {
		named.Insert(naming.TrustBundle)
	}
	for _, ref := range hosted.ControlPlaneReferences(&s.HCP.Spec) {
		named.Insert(*ref.Name)
	}
	if s.Platform != nil {
		named.Insert(hosted.CopyName(hosted.UsePlatform, s.Platform.CredentialsSecret(s.HC)))
	}
	return named
}

// usedByWorkloads returns the names of Secrets and ConfigMaps that Deployments, pods or backups of the hosted namespace
// use. It includes those of the last valid spec, which the control plane uses while its current spec is invalid.
func (r Unused) usedByWorkloads(ctx context.Context, s *cluster.Scope) (sets.Set[string], error) {
	used := sets.New[string]()
	if err := r.addLastValid(ctx, s, used); err != nil {
		return nil, err
	}
	for _, list := range []client.ObjectList{&corev1.PodList{}, &appsv1.DeploymentList{}, &hyperv1.HCPEtcdBackupList{}} {
		if err := r.LiveReader.List(ctx, list, client.InNamespace(s.Namespace)); err != nil {
			return nil, fmt.Errorf("listing %T of namespace %s: %w", list, s.Namespace, err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			switch obj := item.(type) {
			case *corev1.Pod:
				if obj.Status.Phase != corev1.PodSucceeded && obj.Status.Phase != corev1.PodFailed {
					mountedBy(&obj.Spec, used)
				}
			case *appsv1.Deployment:
				mountedBy(&obj.Spec.Template.Spec, used)
			case *hyperv1.HCPEtcdBackup:
				used.Insert(obj.Spec.EncryptionKey.Name, obj.Spec.Storage.S3.Credentials.Name)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return used, nil
}

// addLastValid adds the names of the last valid spec, which the control-plane-operator uses while the current one is
// invalid.
func (r Unused) addLastValid(ctx context.Context, s *cluster.Scope, used sets.Set[string]) error {
	data, err := hostedSecretData(ctx, r.Client, s, hosted.LastValidSpec)
	if err != nil || len(data[hosted.LastValidSpecKey]) == 0 {
		return err
	}
	spec := &hyperv1.HostedControlPlaneSpec{}
	if err := json.Unmarshal(data[hosted.LastValidSpecKey], spec); err != nil {
		return fmt.Errorf("reading the last valid spec in Secret %s/%s: %w", s.Namespace, hosted.LastValidSpec, err)
	}
	for _, ref := range hosted.ControlPlaneReferences(spec) {
		used.Insert(*ref.Name)
	}
	return nil
}

// mountedBy adds the names of the Secrets and ConfigMaps that a pod uses.
func mountedBy(pod *corev1.PodSpec, used sets.Set[string]) {
	for _, volume := range pod.Volumes {
		if volume.Secret != nil {
			used.Insert(volume.Secret.SecretName)
		}
		if volume.ConfigMap != nil {
			used.Insert(volume.ConfigMap.Name)
		}
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.Secret != nil {
				used.Insert(source.Secret.Name)
			}
			if source.ConfigMap != nil {
				used.Insert(source.ConfigMap.Name)
			}
		}
	}
	for _, secret := range pod.ImagePullSecrets {
		used.Insert(secret.Name)
	}
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			usedByContainer(&containers[i], used)
		}
	}
}

func usedByContainer(container *corev1.Container, used sets.Set[string]) {
	for _, env := range container.Env {
		if env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil {
			used.Insert(env.ValueFrom.SecretKeyRef.Name)
		}
		if env.ValueFrom != nil && env.ValueFrom.ConfigMapKeyRef != nil {
			used.Insert(env.ValueFrom.ConfigMapKeyRef.Name)
		}
	}
	for _, env := range container.EnvFrom {
		if env.SecretRef != nil {
			used.Insert(env.SecretRef.Name)
		}
		if env.ConfigMapRef != nil {
			used.Insert(env.ConfigMapRef.Name)
		}
	}
}
