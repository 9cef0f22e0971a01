// SPDX-License-Identifier: Apache-2.0

// Package wake tells a loop that something it looks at has changed.
package wake

import "k8s.io/client-go/tools/cache"

// OnChange pokes at each event. The channel holds one poke: a loop that looks at everything need not be told twice.
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
