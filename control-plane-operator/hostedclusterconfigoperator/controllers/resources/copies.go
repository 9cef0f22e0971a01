// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/reference"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	configNamespace = "openshift-config"
	userCAName      = "user-ca-bundle"
)

// applyCopies copies the pull secret and the CAs that the user provided into the guest.
func (r *Reconciler) applyCopies(ctx context.Context, s *scope) error {
	source := &corev1.Secret{}
	if err := r.read(ctx, s, s.hcp.Spec.PullSecret.Name, source); err != nil {
		return err
	}
	err := r.apply(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: configNamespace, Name: "pull-secret"},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: source.Data[corev1.DockerConfigJsonKey]},
	})
	if err != nil {
		return err
	}
	target := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: configNamespace, Name: userCAName}}
	name := reference.Name(s.hcp.Spec.AdditionalTrustBundle)
	if name == "" {
		_, err := upsert.Gone(ctx, r.Guest, target)
		return err
	}
	bundle := &corev1.ConfigMap{}
	if err := r.read(ctx, s, name, bundle); err != nil {
		return err
	}
	target.Data = bundle.Data
	return r.apply(ctx, target)
}

func (r *Reconciler) read(ctx context.Context, s *scope, name string, obj client.Object) error {
	key := client.ObjectKey{Namespace: s.hcp.Namespace, Name: name}
	if err := r.Management.Get(ctx, key, obj); err != nil {
		return fmt.Errorf("reading %T %s: %w", obj, key, err)
	}
	return nil
}
