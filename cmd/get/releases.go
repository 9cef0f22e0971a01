// SPDX-License-Identifier: Apache-2.0

package get

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/cmd/look"
)

// release is a release image that clusters or NodePools use.
type release struct {
	Image string `json:"image"`
	// Version is empty until the operator has read the image.
	Version   string   `json:"version,omitempty"`
	Clusters  []string `json:"clusters,omitempty"`
	NodePools []string `json:"nodePools,omitempty"`
}

func releases() kind {
	return kind{
		use: "releases [IMAGE...]", aliases: []string{"release"},
		short: "List the release images that clusters and NodePools use",
		long: "List the release images in the specs of clusters and NodePools, with their versions. " +
			"The command release info prints the content of one.",
		example: `  # All releases of the management cluster
  hypershift get releases -A
  # With the names of their clusters and NodePools
  hypershift get releases -A -o wide`,
		columns: []column{
			{header: namespaceHeader}, {header: "VERSION"}, {header: "CLUSTERS"}, {header: "NODEPOOLS"}, {header: "IMAGE"},
			{header: "CLUSTER NAMES", wide: true}, {header: "NODEPOOL NAMES", wide: true},
		},
		stateColumn: 1, read: readReleases,
	}
}

// readReleases lists the releases of each namespace apart: tenants do not share them.
func readReleases(ctx context.Context, g *get) ([]item, error) {
	clusters, err := g.reader.HostedClusters(ctx, g.Selected())
	if err != nil {
		return nil, err
	}
	pools, err := g.reader.NodePools(ctx, g.Selected(), "")
	if err != nil {
		return nil, err
	}
	found := map[client.ObjectKey]*release{}
	of := func(namespace, image string) *release {
		key := client.ObjectKey{Namespace: namespace, Name: image}
		if found[key] == nil {
			found[key] = &release{Image: image}
		}
		return found[key]
	}
	for i := range clusters {
		hc := &clusters[i]
		r := of(hc.Namespace, hc.Spec.Release.Image)
		r.Clusters = append(r.Clusters, hc.Name)
		if version := look.VersionOfRelease(hc); version != "" {
			r.Version = version
		}
	}
	for i := range pools {
		p := &pools[i]
		r := of(p.Namespace, p.Spec.Release.Image)
		r.NodePools = append(r.NodePools, p.Name)
		if r.Version == "" && !look.Updates(p) {
			r.Version = p.Status.Version
		}
	}
	keys := slices.SortedFunc(maps.Keys(found), func(a, b client.ObjectKey) int {
		return strings.Compare(a.String(), b.String())
	})
	var items []item
	for _, key := range keys {
		r := found[key]
		items = append(items, item{key: key.String(), name: r.Image, object: r, cells: []string{
			key.Namespace, look.Or(r.Version), strconv.Itoa(len(r.Clusters)), strconv.Itoa(len(r.NodePools)), r.Image,
			look.Or(strings.Join(r.Clusters, ",")), look.Or(strings.Join(r.NodePools, ",")),
		}})
	}
	return items, nil
}
