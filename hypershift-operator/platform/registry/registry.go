// Package registry knows all platforms. It is the one place where a platform's type picks its plugin.
package registry

import (
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/maas"
	"github.com/openshift/hypershift/hypershift-operator/platform/none"
)

// Registry holds the plugins by platform type.
type Registry map[hyperv1.PlatformType]platform.Platform

// New returns all plugins.
func New(maasOptions maas.Options) Registry {
	return Registry{
		hyperv1.NonePlatform: none.Platform{},
		hyperv1.MAASPlatform: maas.New(maasOptions),
	}
}

// Limit leaves the plugins of the platforms whose kinds are installed, by the names that `install --limit-crd-install` takes
// and separated by commas; empty means all. None needs no kinds and stays: what a plugin watches and is not served would keep
// the whole operator from starting.
func (r Registry) Limit(installed string) Registry {
	if installed == "" {
		return r
	}
	limited := Registry{}
	for platformType, plugin := range r {
		named := func(name string) bool { return strings.EqualFold(strings.TrimSpace(name), string(platformType)) }
		if len(plugin.Watched()) == 0 || slices.ContainsFunc(strings.Split(installed, ","), named) {
			limited[platformType] = plugin
		}
	}
	return limited
}

// For returns the plugin of a platform and whether there is one.
func (r Registry) For(platformType hyperv1.PlatformType) (platform.Platform, bool) {
	plugin, known := r[platformType]
	return plugin, known
}

// Supported lists the platforms that have a plugin, sorted.
func (r Registry) Supported() []hyperv1.PlatformType {
	return slices.Sorted(maps.Keys(r))
}

// Watched are all kinds that any plugin wants to be watched.
func (r Registry) Watched() []client.Object {
	var kinds []client.Object
	for _, platformType := range r.Supported() {
		kinds = append(kinds, r[platformType].Watched()...)
	}
	return kinds
}
