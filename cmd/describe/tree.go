// SPDX-License-Identifier: Apache-2.0

package describe

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/look"
	"github.com/openshift/hypershift/support/terminal"
)

func (d *describe) clusterTree(ctx context.Context, name string) (*look.Branch, error) {
	hc, err := d.reader.HostedCluster(ctx, d.Key(name))
	if err != nil {
		return nil, err
	}
	pools, err := d.reader.NodePools(ctx, d.Namespace, name)
	if err != nil {
		return nil, err
	}
	machines, err := d.reader.Machines(ctx, []hyperv1.HostedCluster{*hc})
	if err != nil {
		return nil, err
	}
	root := d.ofCluster(hc)
	for i := range pools {
		branch := d.ofNodePool(&pools[i])
		branch.Children = d.ofMachines(machines, pools[i].Name)
		root.Children = append(root.Children, branch)
	}
	// Machines whose NodePool is gone are still allocated.
	for _, pool := range orphaned(machines, pools) {
		branch := &look.Branch{Children: d.ofMachines(machines, pool)}
		branch.Line = []look.Span{{Style: terminal.Bold, Text: "NodePool " + pool}, {Style: terminal.Bad, Text: "gone"}}
		root.Children = append(root.Children, branch)
	}
	return root, nil
}

// orphaned returns the names of pools that have machines and do not exist.
func orphaned(machines []look.Machine, pools []hyperv1.NodePool) []string {
	var names []string
	for i := range machines {
		name := machines[i].NodePool.Name
		exists := slices.ContainsFunc(pools, func(p hyperv1.NodePool) bool { return p.Name == name })
		if !exists && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (d *describe) nodePoolTree(ctx context.Context, name string) (*look.Branch, error) {
	pool, err := d.reader.NodePool(ctx, d.Key(name))
	if err != nil {
		return nil, err
	}
	branch := d.ofNodePool(pool)
	hc, err := d.reader.HostedCluster(ctx, d.Key(pool.Spec.ClusterName))
	if apierrors.IsNotFound(err) {
		branch.Findings = append(branch.Findings, look.Span{Style: terminal.Bad, Text: err.Error()})
		return branch, nil
	}
	if err != nil {
		return nil, err
	}
	machines, err := d.reader.Machines(ctx, []hyperv1.HostedCluster{*hc})
	if err != nil {
		return nil, err
	}
	branch.Children = d.ofMachines(machines, name)
	root := d.ofCluster(hc)
	root.Children = []*look.Branch{branch}
	return root, nil
}

func (d *describe) machineTree(ctx context.Context, name string) (*look.Branch, error) {
	m, clusters, err := d.reader.FindMachine(ctx, d.Namespace, name)
	if err != nil {
		return nil, err
	}
	branch := d.ofMachine(m)
	if pool, err := d.reader.NodePool(ctx, m.NodePool); err == nil {
		above := d.ofNodePool(pool)
		above.Children = []*look.Branch{branch}
		branch = above
	}
	for i := range clusters {
		if clusters[i].Name == m.HostedCluster.Name {
			above := d.ofCluster(&clusters[i])
			above.Children = []*look.Branch{branch}
			branch = above
		}
	}
	return branch, nil
}

// line describes an object: what it is, its state, and more.
func (d *describe) line(what string, state look.State, created metav1.Time, more ...string) []look.Span {
	spans := []look.Span{{Style: terminal.Bold, Text: what}, {Style: state.Style(), Text: string(state)}}
	for _, text := range more {
		spans = append(spans, look.Span{Text: text})
	}
	return append(spans, look.Span{Style: terminal.Faint, Text: "age " + look.Age(created, d.now)})
}

// labeled returns a text with a label; empty if the text is empty.
func labeled(label, text string) string {
	if text == "" || text == look.None {
		return ""
	}
	return label + " " + text
}

func (d *describe) ofCluster(hc *hyperv1.HostedCluster) *look.Branch {
	completed, desired := look.CompletedVersion(hc), look.DesiredVersion(hc)
	version := labeled("version", completed)
	if desired != "" && desired != completed {
		version = strings.TrimSpace(version + " to be " + desired)
	}
	return &look.Branch{
		Line: d.line("HostedCluster "+hc.Namespace+"/"+hc.Name, look.StateOfCluster(hc), hc.CreationTimestamp,
			string(hc.Spec.Platform.Type), version, labeled("API", look.Endpoint(hc))),
		Details:  []string{"release " + hc.Spec.Release.Image},
		Findings: look.FindingSpan(look.FindingOfCluster(hc), d.now),
	}
}

func (d *describe) ofNodePool(p *hyperv1.NodePool) *look.Branch {
	details := []string{"release " + p.Spec.Release.Image + ", updates by " + string(p.Spec.Management.UpgradeType)}
	if bounds := look.Autoscaled(p); bounds != "" {
		details[0] += ", autoscaled " + bounds
	}
	return &look.Branch{
		Line: d.line("NodePool "+p.Name, look.StateOfNodePool(p), p.CreationTimestamp,
			look.Nodes(p)+" nodes", labeled("version", p.Status.Version)),
		Details:  details,
		Findings: look.FindingSpan(look.FindingOfNodePool(p), d.now),
	}
}

func (d *describe) ofMachines(machines []look.Machine, pool string) []*look.Branch {
	var all []*look.Branch
	for i := range machines {
		if machines[i].NodePool.Name == pool {
			all = append(all, d.ofMachine(&machines[i]))
		}
	}
	return all
}

func (d *describe) ofMachine(m *look.Machine) *look.Branch {
	branch := &look.Branch{
		Line: d.line("Machine "+m.Name, look.StateOfMachine(m), m.CreationTimestamp,
			labeled("node", m.Status.NodeRef.Name), labeled("version", m.Spec.Version)),
		Findings: look.FindingSpan(look.FindingOfMachine(m), d.now),
	}
	if m.Hardware == nil {
		place := append([]string{labeled("zone", m.Zone()), m.Spec.ProviderID}, m.Addresses()...)
		if text := strings.TrimSpace(strings.Join(place, "  ")); text != "" {
			branch.Details = []string{text}
		}
		return branch
	}
	h := ptr.Deref(m.Hardware, look.Hardware{})
	host := &look.Branch{
		Line: d.line(h.Kind+" "+h.Name, look.State(look.Or(h.State)), h.Created,
			labeled("host", h.Host), labeled("id", h.ID), labeled("zone", m.Zone()), labeled("on", h.Parent), h.ProviderID),
		Findings: look.FindingSpan(h.Finding, d.now),
	}
	// The states are the platform's own words.
	host.Line[1].Style = terminal.Attention
	if h.Finding == nil {
		host.Line[1].Style = terminal.Good
	}
	if addresses := m.Addresses(); len(addresses) > 0 {
		host.Details = []string{"addresses " + strings.Join(addresses, ", ")}
	}
	branch.Children = []*look.Branch{host}
	return branch
}
