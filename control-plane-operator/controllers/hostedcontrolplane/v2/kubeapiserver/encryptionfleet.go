// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/hosted"
)

// encryptionAnnotation of a pod is the hash of the encryption configuration that the pod was created for.
const encryptionAnnotation = "hypershift.openshift.io/encryption-config"

// fleet is the observed state of the API servers.
type fleet struct {
	// exists reports whether there is a Deployment or a pod, and encrypts whether they have an encryption configuration.
	exists, encrypts bool
	// settled reports that the Deployment has rolled out.
	settled bool
	// hashes are the hashes of the encryption configurations of all pods that may still serve. They include terminating
	// pods: a terminating API server answers for more than a minute.
	hashes []string
}

func observeFleet(ctx context.Context, scope *component.Scope) (fleet, error) {
	var f fleet
	deployment := &appsv1.Deployment{}
	err := scope.Client.Get(ctx, client.ObjectKey{Namespace: scope.HCP.Namespace, Name: Name}, deployment)
	if client.IgnoreNotFound(err) != nil {
		return f, fmt.Errorf("reading Deployment %s: %w", Name, err)
	}
	if f.exists = err == nil; f.exists {
		wanted, s := ptr.Deref(deployment.Spec.Replicas, 1), deployment.Status
		f.settled = wanted > 0 && s.ObservedGeneration >= deployment.Generation && s.Replicas == wanted &&
			s.UpdatedReplicas == wanted && s.AvailableReplicas == wanted
		f.encrypts = hasEncryption(&deployment.Spec.Template.Spec)
	}
	pods := &corev1.PodList{}
	if err := scope.Client.List(ctx, pods, client.InNamespace(scope.HCP.Namespace), client.MatchingLabels{"app": Name}); err != nil {
		return f, fmt.Errorf("listing the pods of %s: %w", Name, err)
	}
	for i := range pods.Items {
		if phase := pods.Items[i].Status.Phase; phase == corev1.PodSucceeded || phase == corev1.PodFailed {
			continue
		}
		f.exists = true
		f.hashes = append(f.hashes, pods.Items[i].Annotations[encryptionAnnotation])
	}
	return f, nil
}

func hasEncryption(pod *corev1.PodSpec) bool {
	for _, v := range pod.Volumes {
		if v.Name == encryptionVolume {
			return true
		}
	}
	return false
}

// runs reports whether all API servers run the configuration in live.
func (f fleet) runs(live *corev1.Secret) bool {
	wanted := encryptionHash(live)
	for _, hash := range f.hashes {
		if hash != wanted {
			return false
		}
	}
	return f.settled && len(f.hashes) > 0
}

// annotateEncryption annotates the pods with the configuration that they are created for.
func annotateEncryption(ctx context.Context, scope *component.Scope, template *corev1.PodTemplateSpec) error {
	live := &corev1.Secret{}
	err := hosted.ReadTrusted(ctx, scope.Client, client.ObjectKey{Namespace: scope.HCP.Namespace, Name: EncryptionSecret},
		live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s: %w", EncryptionSecret, err)
	}
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	template.Annotations[encryptionAnnotation] = encryptionHash(live)
	return nil
}
