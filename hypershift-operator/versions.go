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
	"github.com/openshift/hypershift/support/upsert"
	"github.com/openshift/hypershift/support/version"
)

const (
	// supportedVersions is the ConfigMap in which `hypershift version`, and what shows releases to choose from, looks for what the
	// operator is. Its key of the same name holds the minor versions of OpenShift; whoever reads that knows of no other distribution.
	supportedVersions           = "supported-versions"
	supportedKubernetesVersions = "supported-kubernetes-versions"
	supportedVersionsLabel      = "hypershift.openshift.io/supported-versions"
	// versionsRetry is how soon it is told again what could not be told, versionsEvery how often it is looked whether somebody changed it.
	versionsRetry, versionsEvery = 10 * time.Second, 5 * time.Minute
)

// addVersions has the working operator tell which one it is, and correct what somebody made of that.
func addVersions(mgr ctrl.Manager, namespace string) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		tellVersions(ctx, mgr.GetClient(), namespace, versionsRetry, versionsEvery)
		return nil
	}))
}

// tellVersions tells until the context ends. It is for people only: an operator that may not tell goes on working.
func tellVersions(ctx context.Context, c client.Client, namespace string, retry, every time.Duration) {
	for ctx.Err() == nil {
		next := every
		if err := publishVersions(ctx, c, namespace); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot tell the operator's version yet")
			next = retry
		}
		select {
		case <-ctx.Done():
		case <-time.After(next):
		}
	}
}

func publishVersions(ctx context.Context, c client.Client, namespace string) error {
	data := map[string]string{"server-version": version.Commit()}
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
