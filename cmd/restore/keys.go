// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// putKeys writes the Secrets of the backup into the hosted namespace. One of other content is somebody's, and not overwritten.
func (r *restoring) putKeys(ctx context.Context) error {
	for i := range r.contents.Secrets {
		secret := r.contents.Secrets[i].DeepCopy()
		secret.Namespace = r.hostedNamespace()
		key := client.ObjectKeyFromObject(secret)
		err := r.client.Create(ctx, secret)
		if apierrors.IsAlreadyExists(err) {
			err = r.same(ctx, &r.contents.Secrets[i], key)
		}
		if err != nil {
			return fmt.Errorf("write Secret %s: %w", key, err)
		}
	}
	r.report.Printf("%d Secrets with keys are in namespace %s", len(r.contents.Secrets), r.hostedNamespace())
	return nil
}

func (r *restoring) same(ctx context.Context, wanted *corev1.Secret, key client.ObjectKey) error {
	live := &corev1.Secret{}
	if err := r.client.Get(ctx, key, live); err != nil {
		return err
	}
	if !maps.EqualFunc(wanted.Data, live.Data, slices.Equal[[]byte]) {
		return fmt.Errorf("there is one with other content, which a restore would destroy; delete it if nothing needs it, and restore again")
	}
	return nil
}
