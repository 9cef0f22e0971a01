// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/hypershift-operator/platform/registry"
)

// newcomers ends the operator when a platform that was switched off gets its kinds: the container starts again and serves it. What
// is watched is chosen once, at the start.
type newcomers struct {
	cache     cache.Cache
	reader    client.Reader
	platforms registry.Registry
}

// NeedLeaderElection lets each of several operators learn of the kinds.
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
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		arrived, err := n.platforms.Arrived(ctx, n.reader)
		if err != nil {
			return err
		}
		if arrived != "" {
			return fmt.Errorf("the kinds of platform %s are served now, which they were not before: the operator starts again to serve the platform", arrived)
		}
	}
}
