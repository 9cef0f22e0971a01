// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/skew"
	"github.com/openshift/hypershift/support/upsert"
	"github.com/openshift/hypershift/support/version"
)

const (
	// supportedVersions is the ConfigMap that describes the operator. `hypershift version` and tools that list releases
	// read it. Its key of the same name holds the minor versions of OpenShift, because readers of that key know no other
	// distribution.
	supportedVersions           = "supported-versions"
	supportedKubernetesVersions = "supported-kubernetes-versions"
	supportedVersionsLabel      = "hypershift.openshift.io/supported-versions"
	// releaseVersion is the key with the operator's version number. `hypershift version` compares it with its own.
	releaseVersion = "release-version"
	// versionsRetry is the delay after a failed write; versionsEvery is the interval between checks for changes by others.
	versionsRetry, versionsEvery = 10 * time.Second, 5 * time.Minute
)

// addVersions makes the leading operator publish its version, and undo changes that others made.
func addVersions(mgr ctrl.Manager, namespace string) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		tellVersions(ctx, mgr.GetClient(), namespace, versionsRetry, versionsEvery)
		return nil
	}))
}

// tellVersions publishes the versions until the context ends. They are only informative, so errors do not stop the
// operator.
func tellVersions(ctx context.Context, c client.Client, namespace string, retry, every time.Duration) {
	for ctx.Err() == nil {
		next := every
		if err := publishVersions(ctx, c, namespace); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot determine the operator's version yet")
			next = retry
		}
		select {
		case <-ctx.Done():
		case <-time.After(next):
		}
	}
}

func publishVersions(ctx context.Context, c client.Client, namespace string) error {
	data := map[string]string{"server-version": version.Commit(), releaseVersion: skew.Version}
	for key, distribution := range map[string]releaseinfo.Distribution{
		supportedVersions: releaseinfo.OpenShift, supportedKubernetesVersions: releaseinfo.Kubernetes,
	} {
		list, err := json.Marshal(map[string][]string{"versions": distributions.Of(distribution).Minors})
		if err != nil {
			return fmt.Errorf("encoding the supported versions: %w", err)
		}
		data[key] = string(list)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: supportedVersions}}
	_, err := upsert.Object(ctx, c, cm, func() error {
		metav1.SetMetaDataLabel(&cm.ObjectMeta, supportedVersionsLabel, "true")
		cm.Data = data
		return nil
	})
	return err
}
