// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/cluster"
	"github.com/openshift/hypershift/cmd/doctor"
	"github.com/openshift/hypershift/support/maas"
)

// connectFlags names the flags with which a command connects to MAAS.
const connectFlags = "--maas-endpoint and --maas-api-key-file"

// Doctor is platform MAAS for `doctor`. Its flags are those of `create cluster maas` that say which machines are
// needed.
type Doctor struct {
	*Cluster
}

// NewDoctor returns the platform MAAS for `doctor`.
func NewDoctor() doctor.Part { return Doctor{NewCluster()} }

// AddFlags implements doctor.Part.
func (d Doctor) AddFlags(flags *pflag.FlagSet) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	d.Cluster.AddFlags(all)
	flags.SetNormalizeFunc(acceptSpellings)
	for _, name := range []string{
		"maas-endpoint", "maas-api-key-file", "maas-api-key", "maas-ca-bundle", "credentials-secret",
		"maas-zone", "maas-failure-domains", "maas-resource-pool", "maas-dns-domain",
		"zone", "failure-domain", "resource-pool", "machine-type", "image", "tags", "not-tags",
		"min-cpu", "min-memory", "min-disk-size", "lxd-enabled", "static-ip-cidr",
	} {
		flags.AddFlag(all.Lookup(name))
	}
}

// SiteChecks implements doctor.Part.
func (d Doctor) SiteChecks(site doctor.Site) ([]doctor.Check, error) {
	p := d.Cluster
	if p.credentialsSecret == "" && !p.Given() {
		return []doctor.Check{{Part: "maas", Name: "endpoint", Run: func(context.Context) doctor.Outcome {
			return doctor.Outcome{Status: doctor.Skipped,
				Message: "set " + connectFlags + ", or --credentials-secret, to check MAAS"}
		}}}, nil
	}
	p.warnOfKey(site.Stderr)
	if err := p.completeCredentials(site.Stdin, nil); err != nil { // A check reports plain HTTP.
		return nil, err
	}
	return p.maas(site).Checks(), nil
}

// Preflight implements cluster.Preflighter.
func (p *Cluster) Preflight(env cluster.Environment, hc *hyperv1.HostedCluster, pool *hyperv1.NodePool) []doctor.Check {
	site := doctor.Site{Namespace: env.Namespace, Architecture: hyperv1.ArchitectureAMD64, Networks: networksOf(hc),
		Client: env.Client}
	if pool != nil {
		site.Architecture, site.Machines = pool.Spec.Arch, int(ptr.Deref(pool.Spec.Replicas, 0))
	}
	checked := p.maas(site)
	checked.Flat = flat(hc)
	return checked.Essential()
}

// maas returns what the flags require of a MAAS.
func (p *Cluster) maas(site doctor.Site) *doctor.MAAS {
	hc, pool := &hyperv1.HostedCluster{}, &hyperv1.NodePool{}
	p.Apply(hc)
	p.pool.Apply(pool)
	pool.Spec.Arch = site.Architecture
	pool.Spec.Replicas = ptr.To(int32(site.Machines)) //nolint:gosec // It comes from a flag or field of 32 bits.
	checked := required(hc, pool)
	checked.Networks, checked.Flat = site.Networks, true
	checked.From, checked.Config = connectFlags, func(context.Context) (maas.Config, error) { return p.Config(), nil }
	if p.credentialsSecret != "" {
		key := client.ObjectKey{Namespace: site.Namespace, Name: p.credentialsSecret}
		checked.From, checked.Config = fromSecret(key, site.Client)
	}
	return checked
}

// ClusterChecks implements doctor.Part.
func (d Doctor) ClusterChecks(c client.Client, hc *hyperv1.HostedCluster, pools []hyperv1.NodePool) []doctor.Check {
	if hc.Spec.Platform.MAAS == nil {
		return nil
	}
	shared := access(c, hc, defaultGuard)
	checks := shared.Access()
	for i := range pools {
		pool := &pools[i]
		missing := ptr.Deref(pool.Spec.Replicas, 0) - pool.Status.Replicas
		if pool.Spec.Platform.MAAS == nil || missing <= 0 || !pool.DeletionTimestamp.IsZero() {
			continue
		}
		lacks := required(hc, pool)
		lacks.Shared, lacks.From, lacks.Machines = shared, shared.From, int(missing)
		lacks.Networks, lacks.Flat = networksOf(hc), flat(hc)
		checks = append(checks, lacks.Places(" of "+pool.Name)...)
	}
	return checks
}

// access returns the MAAS of an existing cluster. A tenant chooses its endpoint, so it must not be an address that only
// this computer reaches.
func access(c client.Client, hc *hyperv1.HostedCluster, guard func() (*maas.Guard, error)) *doctor.MAAS {
	key := client.ObjectKey{Namespace: hc.Namespace, Name: hc.Spec.Platform.MAAS.IdentityRef.Name}
	from, read := fromSecret(key, func() (client.Client, error) { return c, nil })
	return &doctor.MAAS{From: from, Config: func(ctx context.Context) (maas.Config, error) {
		config, err := read(ctx)
		if err != nil {
			return config, err
		}
		config.Guard, err = guard()
		return config, err
	}}
}

// fromSecret returns the name of a credentials Secret, and the function that reads it.
func fromSecret(key client.ObjectKey, connect func() (client.Client, error)) (string,
	func(context.Context) (maas.Config, error)) {
	name := "Secret " + key.String()
	return name, func(ctx context.Context) (maas.Config, error) {
		c, err := connect()
		if err != nil {
			return maas.Config{}, err
		}
		secret := &corev1.Secret{}
		if err := c.Get(ctx, key, secret); err != nil {
			return maas.Config{}, fmt.Errorf("read %s: %w", name, err)
		}
		config, err := maas.ConfigFromSecret(secret.Data)
		if err != nil {
			return maas.Config{}, fmt.Errorf("%s: %w", name, err)
		}
		config.UserAgent = userAgent
		return config, nil
	}
}

// required returns what a cluster and one of its pools require of a MAAS.
func required(hc *hyperv1.HostedCluster, pool *hyperv1.NodePool) *doctor.MAAS {
	shared, own := hc.Spec.Platform.MAAS, pool.Spec.Platform.MAAS
	checked := &doctor.MAAS{
		Architecture: cmp.Or(pool.Spec.Arch, hyperv1.ArchitectureAMD64),
		Image:        own.Image,
		Domain:       shared.DNSDomain,
		Zones:        names(shared.FailureDomains),
		Pool:         string(cmp.Or(own.ResourcePool, shared.ResourcePool)),
		Tags:         names(own.Tags),
		NotTags:      names(own.NotTags),
		MinCPU:       int(ptr.Deref(own.MinCPU, 0)),
		MinMemoryMiB: int(ptr.Deref(own.MinMemory, 0)),
		MinDiskGB:    int(ptr.Deref(own.MinDiskSize, 0)),
		Machines:     int(ptr.Deref(pool.Spec.Replicas, 0)),
		Composed:     own.LXD != nil && own.LXD.Enabled,
	}
	if zone := string(cmp.Or(own.FailureDomain, own.Zone, shared.Zone)); zone != "" {
		checked.Zones = []string{zone}
	}
	if own.MachineType != "" && !slices.Contains(checked.Tags, own.MachineType) {
		checked.Tags = append(checked.Tags, own.MachineType)
	}
	if own.StaticIP != nil {
		checked.Subnet = own.StaticIP.CIDR
	}
	return checked
}

// flat reports whether the nodes of a cluster share a layer 2 network: the default network has no overlay.
func flat(hc *hyperv1.HostedCluster) bool { return hc.Spec.Networking.NetworkType != hyperv1.Other }

func networksOf(hc *hyperv1.HostedCluster) []netip.Prefix {
	var all []netip.Prefix
	add := func(text string) {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			all = append(all, prefix)
		}
	}
	for _, entry := range hc.Spec.Networking.ClusterNetwork {
		add(entry.CIDR.String())
	}
	for _, entry := range hc.Spec.Networking.ServiceNetwork {
		add(entry.CIDR.String())
	}
	return all
}

func names[T ~string](values []T) []string {
	var all []string
	for _, value := range values {
		all = append(all, string(value))
	}
	return all
}
