// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/hypershift-operator/platform/registry"
)

// newcomersRetry is the delay before a failed request to the API server is repeated.
const newcomersRetry = 10 * time.Second

// newcomers stops the operator when the kinds of a disabled platform become available. The container then restarts and
// serves the platform, because the watches are chosen only once, at startup.
type newcomers struct {
	cache     cache.Cache
	reader    client.Reader
	platforms registry.Registry
}

// NeedLeaderElection returns false, so that every replica detects the kinds.
func (*newcomers) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (n *newcomers) Start(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	tell := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	kind := &metav1.PartialObjectMetadata{}
	kind.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	informer, err := n.cache.GetInformer(ctx, kind)
	if err != nil {
		return fmt.Errorf("watching CRDs: %w", err)
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { tell() }, UpdateFunc: func(any, any) { tell() },
	}); err != nil {
		return fmt.Errorf("watching CRDs: %w", err)
	}
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-again:
		}
		arrived, err := n.platforms.Arrived(ctx, n.reader)
		again = nil
		if err != nil {
			// Retry if the API server is busy: stopping the operator would not help.
			klog.FromContext(ctx).Error(err, "Cannot determine yet whether the kinds of another platform are served")
			again = time.After(newcomersRetry)
		}
		if arrived != "" {
			return fmt.Errorf("the kinds of platform %s are now served; restarting the operator to support the platform", arrived)
		}
	}
}
