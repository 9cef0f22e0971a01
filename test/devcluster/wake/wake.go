// SPDX-License-Identifier: Apache-2.0

// Package wake wakes up a loop when something that it watches has changed.
package wake

import "k8s.io/client-go/tools/cache"

// OnChange sends to poke at each event. The channel needs room for one value only, because one reconcile covers all
// earlier changes.
func OnChange(poke chan<- struct{}) cache.ResourceEventHandlerFuncs {
	wake := func() {
		select {
		case poke <- struct{}{}:
		default:
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { wake() },
		UpdateFunc: func(any, any) { wake() },
		DeleteFunc: func(any) { wake() },
	}
}
