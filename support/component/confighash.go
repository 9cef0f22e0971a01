// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

const configHashAnnotation = hyperv1.ComponentConfigHashAnnotation

// ReloadedAnnotation, with any value, marks a ConfigMap whose changes must not restart running pods.
const ReloadedAnnotation = "component.hypershift.openshift.io/not-for-running-pods"

// stamp annotates the pod template with a hash of the mounted objects: a change of the hash rolls the pods.
func (c *Component) stamp(ctx context.Context, scope *Scope, w *workload) error {
	hash, err := configHash(ctx, c.target(scope), w.object.GetNamespace(), &w.template.Spec)
	if err != nil {
		return fmt.Errorf("component %s: %w", c.Name, err)
	}
	metav1.SetMetaDataAnnotation(&w.template.ObjectMeta, configHashAnnotation, hash)
	return nil
}

// configHash returns a hash of all ConfigMaps and Secrets that a pod mounts.
func configHash(ctx context.Context, cluster client.Reader, namespace string, pod *corev1.PodSpec) (string, error) {
	configMaps, secrets := mounted(pod)
	key := func(name string) client.ObjectKey {
		return client.ObjectKey{Namespace: namespace, Name: name}
	}
	sum := sha256.New()
	for _, name := range configMaps {
		cm := &corev1.ConfigMap{}
		if err := read(ctx, cluster, key(name), cm); err != nil {
			return "", err
		}
		if cm.Annotations[ReloadedAnnotation] != "" {
			continue
		}
		add(sum, "configmap", name, cm.Data)
		add(sum, "configmap", name, cm.BinaryData)
	}
	for _, name := range secrets {
		secret := &corev1.Secret{}
		if err := read(ctx, cluster, key(name), secret); err != nil {
			return "", err
		}
		add(sum, "secret", name, secret.Data)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// read reads a mounted object. A missing object counts as empty, and the kubelet waits for it.
func read(ctx context.Context, cluster client.Reader, key client.ObjectKey, obj client.Object) error {
	err := cluster.Get(ctx, key, obj)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %T %s for the config hash: %w", obj, key, err)
	}
	return nil
}

func mounted(pod *corev1.PodSpec) (configMaps, secrets []string) {
	for _, volume := range pod.Volumes {
		if volume.ConfigMap != nil {
			configMaps = append(configMaps, volume.ConfigMap.Name)
		}
		if volume.Secret != nil {
			secrets = append(secrets, volume.Secret.SecretName)
		}
	}
	slices.Sort(configMaps)
	slices.Sort(secrets)
	return slices.Compact(configMaps), slices.Compact(secrets)
}

func add[T string | []byte](sum hash.Hash, kind, name string, data map[string]T) {
	for _, key := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(sum, "%s %s %s %d ", kind, name, key, len(data[key]))
		sum.Write([]byte(data[key]))
	}
}
