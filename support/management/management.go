// SPDX-License-Identifier: Apache-2.0

// Package management detects which optional APIs a management cluster serves. None of them is required. A feature that
// needs one is active only where the cluster serves it.
package management

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The API groups that only some management clusters serve.
const (
	// Routes is the group of OpenShift's Routes, which publish services by host names.
	Routes = "route.openshift.io"
	// Security is the group of OpenShift's SecurityContextConstraints, which choose the user of each pod.
	Security = "security.openshift.io"
	// Configuration is the group of OpenShift's configuration: its proxy, and the mirror registries.
	Configuration = "config.openshift.io"
	// Monitoring is the group of the Prometheus operator, in OpenShift and elsewhere.
	Monitoring = "monitoring.coreos.com"
)

// telling holds one kind of each group. The cluster serves the group if it serves the kind.
var telling = map[string]string{
	Routes: "Route", Security: "SecurityContextConstraints", Configuration: "Proxy", Monitoring: "ServiceMonitor",
}

// Groups returns all optional groups, sorted.
func Groups() []string { return []string{Configuration, Monitoring, Routes, Security} }

// APIs are the optional groups that a management cluster serves.
type APIs []string

// Has reports whether the cluster serves a group.
func (a APIs) Has(group string) bool { return slices.Contains(a, group) }

// Discover returns the optional groups that a management cluster serves.
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

// Serves reports whether the management cluster serves a kind. If the mapper does not know the kind, it queries the
// cluster, so a kind that is installed later is found too.
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
