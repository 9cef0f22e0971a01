// SPDX-License-Identifier: Apache-2.0

// Package supportedversions names the content of the ConfigMap in which the operator publishes its versions and the
// release of clusters that name none.
package supportedversions

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Name is the name of the ConfigMap in the operator's namespace. `hypershift version` and tools that list releases
	// read it.
	Name = "supported-versions"
	// OpenShift is the key with the minor versions of OpenShift, because readers of that key know no other distribution.
	OpenShift = "supported-versions"
	// Kubernetes is the key with the minor versions of Kubernetes.
	Kubernetes = "supported-kubernetes-versions"
	// Release is the key with the operator's version number. `hypershift version` compares it with its own.
	Release = "release-version"
	// Server is the key with the operator's revision.
	Server = "server-version"
	// DefaultRelease is the key with the release image of clusters that name none. It is absent if the installer chose
	// none.
	DefaultRelease = "default-release-image"
	// Label marks the ConfigMap.
	Label = "hypershift.openshift.io/supported-versions"

	// DefaultReleaseFlag is the flag of `hypershift install` and of the operator that sets DefaultRelease.
	DefaultReleaseFlag = "default-release-image"
	// DefaultNamespace is the operator's namespace unless the installer chose another.
	DefaultNamespace = "hypershift"
)

// ErrNoDefaultRelease is the error of ReadDefaultRelease if none is recorded.
var ErrNoDefaultRelease = errors.New("no default release is recorded")

// ReadDefaultRelease returns the release image of clusters that name none, as the operator's namespace records it. Only
// that namespace is trusted: tenants can create a ConfigMap of the same name and label in theirs.
func ReadDefaultRelease(ctx context.Context, c client.Reader, namespace string) (string, error) {
	key := client.ObjectKey{Namespace: namespace, Name: Name}
	cm := &corev1.ConfigMap{}
	err := c.Get(ctx, key, cm)
	switch {
	case apierrors.IsNotFound(err), err == nil && cm.Data[DefaultRelease] == "":
		return "", fmt.Errorf("%w in ConfigMap %s", ErrNoDefaultRelease, key)
	case err != nil:
		return "", fmt.Errorf("reading the default release in ConfigMap %s: %w", key, err)
	}
	return cm.Data[DefaultRelease], nil
}

// ConfigMap returns the ConfigMap with only the default release. The operator adds the rest.
func ConfigMap(namespace, defaultRelease string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Name, Labels: map[string]string{Label: "true"}},
		Data:       map[string]string{DefaultRelease: defaultRelease},
	}
}
