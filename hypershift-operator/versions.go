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
	"github.com/openshift/hypershift/support/supportedversions"
	"github.com/openshift/hypershift/support/upsert"
	"github.com/openshift/hypershift/support/version"
)

// versionsRetry is the delay after a failed write; versionsEvery is the interval between checks for changes by others.
const versionsRetry, versionsEvery = 10 * time.Second, 5 * time.Minute

// addVersions makes the leading operator publish its version, and undo changes that others made.
func addVersions(mgr ctrl.Manager, namespace, defaultRelease string) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		tellVersions(ctx, mgr.GetClient(), namespace, defaultRelease, versionsRetry, versionsEvery)
		return nil
	}))
}

// tellVersions publishes the versions until the context ends. They are only informative, so errors do not stop the
// operator.
func tellVersions(ctx context.Context, c client.Client, namespace, defaultRelease string, retry, every time.Duration) {
	for ctx.Err() == nil {
		next := every
		if err := publishVersions(ctx, c, namespace, defaultRelease); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot determine the operator's version yet")
			next = retry
		}
		select {
		case <-ctx.Done():
		case <-time.After(next):
		}
	}
}

// publishVersions writes the ConfigMap. An empty default release is left out.
func publishVersions(ctx context.Context, c client.Client, namespace, defaultRelease string) error {
	data := map[string]string{supportedversions.Server: version.Commit(), supportedversions.Release: skew.Version}
	for key, distribution := range map[string]releaseinfo.Distribution{
		supportedversions.OpenShift: releaseinfo.OpenShift, supportedversions.Kubernetes: releaseinfo.Kubernetes,
	} {
		list, err := json.Marshal(map[string][]string{"versions": distributions.Of(distribution).Minors})
		if err != nil {
			return fmt.Errorf("encoding the supported versions: %w", err)
		}
		data[key] = string(list)
	}
	if defaultRelease != "" {
		data[supportedversions.DefaultRelease] = defaultRelease
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: supportedversions.Name}}
	_, err := upsert.Object(ctx, c, cm, func() error {
		metav1.SetMetaDataLabel(&cm.ObjectMeta, supportedversions.Label, "true")
		cm.Data = data
		return nil
	})
	return err
}
