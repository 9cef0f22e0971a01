// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"net/url"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cmd/capacity"
)

// Console is the part of `console` that knows MAAS. It reads sites as `capacity` does.
type Console struct{ *Capacity }

// NewConsole returns the part of `console` for MAAS.
func NewConsole() *Console { return &Console{&Capacity{Cluster: NewCluster(), guard: defaultGuard}} }

// Kinds returns the infrastructure kinds of hosted namespaces.
func (*Console) Kinds() []client.ObjectList {
	return []client.ObjectList{&infrav1.MaasMachineList{}, &infrav1.MaasClusterList{}}
}

// Quarantined returns the system IDs of the machines that a cluster has quarantined.
func (*Console) Quarantined(
	ctx context.Context, c client.Reader, hc *hyperv1.HostedCluster,
) (map[string]bool, error) {
	return quarantined(ctx, c, hc)
}

// Report reads the MAAS of a cluster.
func (p *Console) Report(
	ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, pools []hyperv1.NodePool, names map[string]string,
) (*capacity.Report, error) {
	site, err := p.OfCluster(ctx, c, hc, pools)
	if err != nil {
		return nil, err
	}
	site.Clusters = names
	inventory, err := site.MAAS.Inventory(ctx)
	if err != nil {
		return nil, err
	}
	return capacity.NewReport(inventory, site), nil
}

// Link returns the address of a machine's page in MAAS; empty if the endpoint is not an HTTP address.
func (*Console) Link(endpoint, systemID string) string {
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Scheme != "https" && parsed.Scheme != "http" || parsed.Host == "" || systemID == "" {
		return ""
	}
	page := url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: parsed.Path}
	return page.JoinPath("r", "machine", url.PathEscape(systemID), "summary").String()
}
