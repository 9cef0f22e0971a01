// SPDX-License-Identifier: Apache-2.0

// Package registry contains all platforms. It is the only place where a platform's type selects its plugin.
package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/agent"
	"github.com/openshift/hypershift/hypershift-operator/platform/aws"
	"github.com/openshift/hypershift/hypershift-operator/platform/kubevirt"
	"github.com/openshift/hypershift/hypershift-operator/platform/maas"
	"github.com/openshift/hypershift/hypershift-operator/platform/none"
	"github.com/openshift/hypershift/support/platforms"
)

// Options are the flags of all platforms, by type.
type Options map[hyperv1.PlatformType]platform.Options

// All returns the platforms of this operator. A new platform needs a line here.
func All() Options {
	return Options{
		hyperv1.NonePlatform:     none.Options{},
		hyperv1.MAASPlatform:     &maas.Options{},
		hyperv1.AgentPlatform:    agent.Options{},
		hyperv1.KubevirtPlatform: &kubevirt.Options{},
		hyperv1.AWSPlatform:      &aws.Options{},
	}
}

// types returns the sorted types, so that flags and errors always have the same order.
func (o Options) types() []hyperv1.PlatformType { return slices.Sorted(maps.Keys(o)) }

// AddFlags adds the flags of all platforms.
func (o Options) AddFlags(flags *pflag.FlagSet) {
	for _, platformType := range o.types() {
		o[platformType].AddFlags(flags)
	}
}

// New creates all plugins. The provider image of each comes from the environment variable that its traits name.
func (o Options) New(env platform.Environment) (Registry, error) {
	plugins := map[hyperv1.PlatformType]platform.Platform{}
	var failures []error
	for _, platformType := range o.types() {
		traits, known := platforms.Of(platformType)
		if !known {
			return Registry{}, fmt.Errorf("platform %s has no row in the table of traits", platformType)
		}
		env.ProviderImage = os.Getenv(traits.ProviderImageEnv())
		plugin, err := o[platformType].New(env)
		failures = append(failures, err)
		plugins[platformType] = plugin
	}
	return Of(plugins), errors.Join(failures...)
}

// Registry contains the plugins by platform type, and records which of them are disabled. It is created before the
// controllers start and does not change afterwards.
type Registry struct {
	plugins map[hyperv1.PlatformType]platform.Platform
	// off is why a platform is disabled, by type.
	off map[hyperv1.PlatformType]string
	// absent are the platforms in off whose CRDs may still be installed.
	absent map[hyperv1.PlatformType]bool
}

// Of returns a registry that serves these plugins.
func Of(plugins map[hyperv1.PlatformType]platform.Platform) Registry {
	return Registry{plugins: plugins, off: map[hyperv1.PlatformType]string{}, absent: map[hyperv1.PlatformType]bool{}}
}

// For returns the plugin of a platform, nil if there is none, and whether it is served. A disabled plugin is only used
// to clean up outside its own kinds.
func (r Registry) For(platformType hyperv1.PlatformType) (platform.Platform, bool) {
	plugin, known := r.plugins[platformType]
	return plugin, known && r.off[platformType] == ""
}

// Why returns the reason why a platform is not served, and what to do; empty if it is served.
func (r Registry) Why(platformType hyperv1.PlatformType) string {
	if _, known := r.plugins[platformType]; !known {
		return fmt.Sprintf("use one of %v", r.Supported())
	}
	return r.off[platformType]
}

// Supported returns the platforms that are served, sorted.
func (r Registry) Supported() []hyperv1.PlatformType {
	return slices.DeleteFunc(r.types(), func(t hyperv1.PlatformType) bool { return r.off[t] != "" })
}

func (r Registry) types() []hyperv1.PlatformType { return slices.Sorted(maps.Keys(r.plugins)) }

// AddToScheme registers the kinds of all plugins, even of disabled ones, because their clusters can still be deleted.
func (r Registry) AddToScheme(scheme *runtime.Scheme) error {
	for _, platformType := range r.types() {
		if err := r.plugins[platformType].AddToScheme(scheme); err != nil {
			return fmt.Errorf("registering the kinds of platform %s: %w", platformType, err)
		}
	}
	return nil
}

// Watched returns all kinds that the served plugins need to be watched.
func (r Registry) Watched() []client.Object {
	var kinds []client.Object
	for _, platformType := range r.Supported() {
		kinds = append(kinds, r.plugins[platformType].Watched()...)
	}
	return kinds
}

// CRDs returns the CRDs of all platforms that are served.
func (r Registry) CRDs() []string {
	var names []string
	for _, platformType := range r.Supported() {
		names = append(names, r.plugins[platformType].CRDs()...)
	}
	return names
}

// Limit disables the platforms whose kinds are not installed. installed lists platforms as `install
// --limit-crd-install` does, separated by commas; empty disables none. Platforms without kinds stay enabled.
func (r Registry) Limit(installed string) Registry {
	if installed == "" {
		return r
	}
	for platformType, plugin := range r.plugins {
		named := func(name string) bool { return strings.EqualFold(strings.TrimSpace(name), string(platformType)) }
		if len(plugin.CRDs()) > 0 && !slices.ContainsFunc(strings.Split(installed, ","), named) {
			r.off[platformType] = fmt.Sprintf("it was installed for the platforms %s only: run `hypershift install` with %s in --limit-crd-install",
				installed, strings.ToLower(string(platformType)))
		}
	}
	return r
}

// SwitchOff reads the CRDs of each platform, and disables the platforms that lack a CRD.
func (r Registry) SwitchOff(ctx context.Context, c client.Reader) error {
	for _, platformType := range r.Supported() {
		missing, err := Missing(ctx, c, r.plugins[platformType].CRDs())
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			r.absent[platformType] = true
			r.off[platformType] = fmt.Sprintf("the management cluster does not serve %s: run `hypershift install` again, with %s in --limit-crd-install if that is set",
				strings.Join(missing, ", "), strings.ToLower(string(platformType)))
		}
	}
	return nil
}

// Arrived returns a platform that was disabled because of its CRDs and now has them; empty if there is none.
func (r Registry) Arrived(ctx context.Context, c client.Reader) (hyperv1.PlatformType, error) {
	for _, platformType := range slices.Sorted(maps.Keys(r.absent)) {
		missing, err := Missing(ctx, c, r.plugins[platformType].CRDs())
		if err != nil {
			return "", err
		}
		if len(missing) == 0 {
			return platformType, nil
		}
	}
	return "", nil
}

// Missing returns the names of the CRDs that are absent or not established yet.
func Missing(ctx context.Context, c client.Reader, names []string) ([]string, error) {
	var missing []string
	for _, name := range names {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := c.Get(ctx, client.ObjectKey{Name: name}, crd)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading CRD %s: %w", name, err)
		}
		if apierrors.IsNotFound(err) || !established(crd) {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}
