// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cmd/capacity"
	"github.com/openshift/hypershift/cmd/doctor"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/look"
	"github.com/openshift/hypershift/support/maas"
)

// failedMachinePrefix begins the annotations of a MaasCluster in which the provider records failed machines.
const failedMachinePrefix = "failed-machine.infrastructure.cluster.x-k8s.io/"

// constraintFlags are the flags of `create nodepool maas` that choose machines.
var constraintFlags = []string{
	"zone", "failure-domain", "resource-pool", "machine-type", "tags", "not-tags", "min-cpu", "min-memory",
	"min-disk-size",
}

// Capacity is platform MAAS for `capacity`. Its flags are those of `create cluster maas`.
type Capacity struct {
	*Cluster
	flags *pflag.FlagSet
	// guard returns the addresses that a tenant's endpoint may have; tests replace it.
	guard func() (*maas.Guard, error)
}

// NewCapacity returns the platform MAAS for `capacity`.
func NewCapacity() capacity.Part {
	return &Capacity{Cluster: NewCluster(), guard: defaultGuard}
}

func defaultGuard() (*maas.Guard, error) { return maas.NewGuard("", "") }

// AddFlags implements capacity.Part.
func (p *Capacity) AddFlags(flags *pflag.FlagSet) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	p.Cluster.AddFlags(all)
	flags.SetNormalizeFunc(acceptSpellings)
	connect := []string{"maas-endpoint", "maas-api-key-file", "maas-api-key", "maas-ca-bundle", "credentials-secret"}
	for _, name := range append(connect, constraintFlags...) {
		flags.AddFlag(all.Lookup(name))
	}
	flags.Lookup("zone").Usage = "MAAS zone of the machines (default: the cluster's, or any)"
	p.flags = flags
}

// Constrained implements capacity.Part.
func (p *Capacity) Constrained() bool {
	for _, name := range constraintFlags {
		if p.flags.Changed(name) {
			return true
		}
	}
	return false
}

// Connected implements capacity.Part.
func (p *Capacity) Connected() bool { return p.Given() || p.credentialsSecret != "" }

// FromFlags implements capacity.Part.
func (p *Capacity) FromFlags(site doctor.Site) (*capacity.Site, error) {
	if err := errors.Join(p.pool.Complete(), p.completeCredentials(site.Stdin, site.Stderr)); err != nil {
		return nil, err
	}
	required := p.maas(site)
	return &capacity.Site{MAAS: required, Demands: []capacity.Demand{{MAAS: required}}}, nil
}

// OfCluster implements capacity.Part.
func (p *Capacity) OfCluster(
	ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, pools []hyperv1.NodePool,
) (*capacity.Site, error) {
	if hc.Spec.Platform.MAAS == nil {
		return nil, fmt.Errorf("HostedCluster %s/%s has no settings of MAAS", hc.Namespace, hc.Name)
	}
	site := &capacity.Site{MAAS: access(c, hc, p.guard)}
	var err error
	if site.Quarantined, err = quarantined(ctx, c, hc); err != nil {
		return nil, err
	}
	for i := range pools {
		pool := &pools[i]
		if pool.Spec.Platform.MAAS == nil {
			continue
		}
		site.Demands = append(site.Demands, capacity.Demand{
			NodePool: client.ObjectKeyFromObject(pool).String(), Nodes: look.Nodes(pool), MAAS: required(hc, pool),
		})
	}
	if p.flags != nil && (p.Constrained() || p.flags.Changed("arch")) {
		if err := p.pool.Complete(); err != nil {
			return nil, err
		}
		pool := &hyperv1.NodePool{}
		p.pool.Apply(pool)
		site.Demands = []capacity.Demand{{MAAS: required(hc, pool)}}
	}
	for _, demand := range site.Demands {
		demand.MAAS.Quarantined = site.Quarantined
	}
	return site, nil
}

// quarantined returns the machines that the provider of a cluster does not allocate, although they have no tag in MAAS:
// a plain user of MAAS may not set tags. It returns none if the user may not read the hosted namespace.
func quarantined(ctx context.Context, c client.Reader, hc *hyperv1.HostedCluster) (map[string]bool, error) {
	list := &infrav1.MaasClusterList{}
	namespace := kube.HostedNamespace(hc.Namespace, hc.Name)
	err := c.List(ctx, list, client.InNamespace(namespace))
	if apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the MaasClusters of namespace %q: %w", namespace, err)
	}
	found := map[string]bool{}
	for i := range list.Items {
		for key, text := range list.Items[i].Annotations {
			id, ours := strings.CutPrefix(key, failedMachinePrefix)
			var record struct {
				Quarantined bool `json:"quarantined"`
			}
			if ours && json.Unmarshal([]byte(text), &record) == nil && record.Quarantined {
				found[id] = true
			}
		}
	}
	return found, nil
}
