// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/upsert"
)

// Prefixes of the names of the two Secrets by which a machine gets its configuration.
const (
	TokenPrefix    = "token"
	UserDataPrefix = "user-data"
)

// Secret returns the Secret of a configuration, without data.
func (s *Scope) Secret(prefix, hash string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Namespace(), Name: fmt.Sprintf("%s-%s-%s", prefix, s.Pool.Name, hash),
	}}
}

// ParseSecretName splits the name of a token or user-data Secret of this pool; the hash is empty for any other.
func (s *Scope) ParseSecretName(name string) (prefix, hash string) {
	for _, prefix := range []string{TokenPrefix, UserDataPrefix} {
		if hash, ok := strings.CutPrefix(name, prefix+"-"+s.Pool.Name+"-"); ok {
			return prefix, hash
		}
	}
	return "", ""
}

// Delete deletes an object that has the pool's name, and reports whether it is gone. Two clusters can have control
// plane namespaces of the same name, of which one was refused. An object of another pool is therefore not deleted.
// Cluster API does not delete paused objects, so Delete removes the pause.
func (s *Scope) Delete(ctx context.Context, c client.Client, obj client.Object) (bool, error) {
	key := client.ObjectKey{Namespace: s.Namespace(), Name: s.Pool.Name}
	if err := c.Get(ctx, key, obj); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return true, nil
		}
		return false, fmt.Errorf("reading %T %s to delete it: %w", obj, key, err)
	}
	if owner := obj.GetAnnotations()[hyperv1.NodePoolAnnotation]; owner != "" && owner != s.Key() {
		return true, nil
	}
	if err := SetPaused(ctx, c, obj, false); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return upsert.Gone(ctx, c, obj)
}

// SetPaused pauses or resumes an object of Cluster API.
func SetPaused(ctx context.Context, c client.Client, obj client.Object, paused bool) error {
	return upsert.Patch(ctx, c, obj, func() {
		if paused {
			Annotate(obj, clusterv1.PausedAnnotation, "true")
			return
		}
		delete(obj.GetAnnotations(), clusterv1.PausedAnnotation)
	})
}

// Exists reads an object and reports whether it exists.
func Exists(ctx context.Context, c client.Reader, obj client.Object) (bool, error) {
	key := client.ObjectKeyFromObject(obj)
	err := c.Get(ctx, key, obj)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading %T %s: %w", obj, key, err)
	}
	return err == nil, nil
}

// SecretData reads a Secret and returns its data; nil if the Secret does not exist.
func SecretData(ctx context.Context, c client.Reader, namespace, name string) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if err := c.Get(ctx, key, secret); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return secret.Data, nil
}

// Annotate sets an annotation.
func Annotate(obj metav1.Object, key, value string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}

// Seconds returns a duration in seconds, limited to the maximum of the API type, which is 68 years.
func Seconds(d time.Duration) *int32 {
	return ptr.To(int32(min(d.Seconds(), math.MaxInt32)))
}
