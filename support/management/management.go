// SPDX-License-Identifier: Apache-2.0

// Package management says which of the optional APIs a management cluster serves. Nothing of them is required: what needs one is done
// where it is.
package management

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The groups of APIs that only some management clusters serve.
const (
	// Routes publish services by host names, in OpenShift.
	Routes = "route.openshift.io"
	// Security is OpenShift's, whose SecurityContextConstraints choose the user of each pod.
	Security = "security.openshift.io"
	// Configuration is OpenShift's: its proxy, and the registries that mirror others.
	Configuration = "config.openshift.io"
	// Monitoring is the Prometheus operator's, in OpenShift and elsewhere.
	Monitoring = "monitoring.coreos.com"
)

// telling is the kind of each group that tells whether the group is there.
var telling = map[string]string{
	Routes: "Route", Security: "SecurityContextConstraints", Configuration: "Proxy", Monitoring: "ServiceMonitor",
}

// Groups are all optional groups, sorted.
func Groups() []string { return []string{Configuration, Monitoring, Routes, Security} }

// APIs are the optional groups that a management cluster serves.
type APIs []string

// Has tells whether a group is served.
func (a APIs) Has(group string) bool { return slices.Contains(a, group) }

// Discover asks a management cluster for them.
func Discover(mapper meta.RESTMapper) (APIs, error) {
	var found APIs
	for _, group := range Groups() {
		served, err := Serves(mapper, schema.GroupKind{Group: group, Kind: telling[group]})
		if err != nil {
			return nil, err
		}
		if served {
			found = append(found, group)
		}
	}
	return found, nil
}

// Serves tells whether the management cluster has a kind. It asks again whenever it has not, so one that comes later is found.
func Serves(mapper meta.RESTMapper, kind schema.GroupKind) (bool, error) {
	_, err := mapper.RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking the management cluster whether it serves %s: %w", kind, err)
	}
	return true, nil
}
