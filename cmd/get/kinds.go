// SPDX-License-Identifier: Apache-2.0

package get

import (
	"context"
	"strings"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/look"
)

// ageHeader is the header of the ages, whose change is no change of the object.
const ageHeader = "AGE"

const namespaceHeader = "NAMESPACE"

func clusters() kind {
	return kind{
		use: "clusters [NAME...]", aliases: []string{"cluster", "hc", "hostedcluster", "hostedclusters"},
		short: "List hosted clusters",
		long:  "List hosted clusters. MESSAGE is the first condition that is not as it should be.",
		example: `  # All clusters of all namespaces
  hypershift get clusters -A
  # One cluster with all columns, and each of its changes
  hypershift get clusters demo -o wide --watch`,
		resource: "hostedcluster.hypershift.openshift.io",
		columns: []column{
			{header: namespaceHeader}, {header: "NAME"}, {header: "STATE"}, {header: "VERSION"}, {header: "NODES"},
			{header: "PLATFORM"}, {header: "API", wide: true}, {header: "DESIRED", wide: true},
			{header: "RELEASE IMAGE", wide: true}, {header: ageHeader}, {header: "MESSAGE"},
		},
		stateColumn: 2, read: readClusters,
		complete: func(f *look.Flags) look.Completion { return f.CompleteClusters(0) },
	}
}

func readClusters(ctx context.Context, g *get) ([]item, error) {
	list, err := g.reader.HostedClusters(ctx, g.Selected())
	if err != nil {
		return nil, err
	}
	pools, err := g.reader.NodePools(ctx, g.Selected(), "")
	if err != nil {
		return nil, err
	}
	nodes := map[client.ObjectKey][]hyperv1.NodePool{}
	for i := range pools {
		key := client.ObjectKey{Namespace: pools[i].Namespace, Name: pools[i].Spec.ClusterName}
		nodes[key] = append(nodes[key], pools[i])
	}
	var items []item
	for i := range list {
		hc := &list[i]
		key := client.ObjectKeyFromObject(hc)
		items = append(items, item{key: key.String(), name: hc.Name, object: hc, cells: []string{
			hc.Namespace, hc.Name, string(look.StateOfCluster(hc)), look.Or(look.CompletedVersion(hc)),
			look.SumOfNodes(nodes[key]), string(hc.Spec.Platform.Type), look.Endpoint(hc), look.Or(look.DesiredVersion(hc)),
			hc.Spec.Release.Image, look.Age(hc.CreationTimestamp, g.now()),
			look.Text(look.FindingOfCluster(hc), g.now()),
		}})
	}
	return items, nil
}

func nodePools() kind {
	return kind{
		use: "nodepools [NAME...]", aliases: []string{"nodepool", "np"},
		short: "List NodePools",
		long:  "List NodePools. MESSAGE is the first condition that is not as it should be.",
		example: `  # The NodePools of one cluster
  hypershift get nodepools --cluster-name demo
  # The names of all NodePools, for a script
  hypershift get nodepools -A -o name`,
		resource: "nodepool.hypershift.openshift.io", byCluster: true,
		columns: []column{
			{header: namespaceHeader}, {header: "NAME"}, {header: "CLUSTER"}, {header: "STATE"}, {header: "NODES"},
			{header: "AUTOSCALING"}, {header: "VERSION"}, {header: "UPDATE", wide: true}, {header: "AUTOREPAIR", wide: true},
			{header: "ARCH", wide: true}, {header: "RELEASE IMAGE", wide: true}, {header: ageHeader}, {header: "MESSAGE"},
		},
		stateColumn: 3, read: readNodePools,
		complete: func(f *look.Flags) look.Completion { return f.CompleteNodePools(0) },
	}
}

func readNodePools(ctx context.Context, g *get) ([]item, error) {
	list, err := g.reader.NodePools(ctx, g.Selected(), g.cluster)
	if err != nil {
		return nil, err
	}
	var items []item
	for i := range list {
		p := &list[i]
		repair := "no"
		if p.Spec.Management.AutoRepair {
			repair = "yes"
		}
		items = append(items, item{key: client.ObjectKeyFromObject(p).String(), name: p.Name, object: p, cells: []string{
			p.Namespace, p.Name, p.Spec.ClusterName, string(look.StateOfNodePool(p)), look.Nodes(p),
			look.Or(look.Autoscaled(p)), look.Or(p.Status.Version), string(p.Spec.Management.UpgradeType), repair,
			look.Or(p.Spec.Arch), p.Spec.Release.Image, look.Age(p.CreationTimestamp, g.now()),
			look.Text(look.FindingOfNodePool(p), g.now()),
		}})
	}
	return items, nil
}

func machines() kind {
	return kind{
		use: "machines [NAME...]", aliases: []string{"machine"},
		short: "List the machines of hosted clusters",
		long: "List the Machines of hosted clusters with the host that each runs on. The Machines are in the hosted " +
			"namespaces: a user without rights there sees the NodePools only.",
		example: `  # The machines of one cluster, with provider id and addresses
  hypershift get machines --cluster-name demo -o wide
  # Follow an installation
  hypershift get machines -n clusters --watch`,
		resource: "machine.cluster.x-k8s.io", byCluster: true,
		columns: []column{
			{header: namespaceHeader}, {header: "NAME"}, {header: "CLUSTER"}, {header: "NODEPOOL"}, {header: "PHASE"},
			{header: "HOST"}, {header: "ID"}, {header: "ZONE"}, {header: "HOST STATE"}, {header: "NODE", wide: true},
			{header: "VERSION", wide: true}, {header: "ADDRESSES", wide: true}, {header: "VM HOST", wide: true},
			{header: "PROVIDER ID", wide: true}, {header: ageHeader}, {header: "MESSAGE", wide: true},
		},
		stateColumn: 4, read: readMachines,
		complete: func(f *look.Flags) look.Completion { return f.CompleteMachines(0) },
	}
}

func readMachines(ctx context.Context, g *get) ([]item, error) {
	var clusters []hyperv1.HostedCluster
	if g.cluster != "" {
		hc, err := g.reader.HostedCluster(ctx, g.Key(g.cluster))
		if err != nil {
			return nil, err
		}
		clusters = append(clusters, *hc)
	} else {
		var err error
		if clusters, err = g.reader.HostedClusters(ctx, g.Selected()); err != nil {
			return nil, err
		}
	}
	list, err := g.reader.Machines(ctx, clusters)
	if err != nil {
		return nil, err
	}
	var items []item
	for i := range list {
		m := &list[i]
		h := ptr.Deref(m.Hardware, look.Hardware{})
		key := client.ObjectKeyFromObject(m).String()
		items = append(items, item{key: key, name: m.Name, object: &m.Machine, cells: []string{
			m.HostedCluster.Namespace, m.Name, m.HostedCluster.Name, m.NodePool.Name, string(look.StateOfMachine(m)),
			look.Or(h.Host), look.Or(h.ID), look.Or(m.Zone()), look.Or(h.State), look.Or(m.Status.NodeRef.Name),
			look.Or(m.Spec.Version), look.Or(strings.Join(m.Addresses(), ",")), look.Or(h.Parent), look.Or(m.Spec.ProviderID),
			look.Age(m.CreationTimestamp, g.now()), look.Text(m.Cause(), g.now()),
		}})
	}
	return items, nil
}
