// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/platforms"
	"github.com/openshift/hypershift/support/upsert"
)

// clusterName is the name of each object of config.openshift.io.
var clusterName = metav1.ObjectMeta{Name: "cluster"}

// defaultIssuer is the issuer of service account tokens unless the cluster sets one.
const defaultIssuer = "https://kubernetes.default.svc"

// applyConfig applies the objects of config.openshift.io. An object that is rejected does not block the others.
func (r *Reconciler) applyConfig(ctx context.Context, s *scope) error {
	return errors.Join(
		r.applyInfrastructure(ctx, s.hcp),
		r.apply(ctx, dnsConfig(s.hcp)),
		r.apply(ctx, ingressConfig(s.hcp)),
		r.applyNetworkConfig(ctx, s.hcp),
		r.applyProxyConfig(ctx, s.hcp),
		r.applyUserConfig(ctx, s.hcp),
	)
}

// applyInfrastructure reports the platform type to the guest. It comes from the platform's traits: for MAAS it is None,
// since the guest needs no integration with MAAS.
func (r *Reconciler) applyInfrastructure(ctx context.Context, hcp *hyperv1.HostedControlPlane) error {
	traits, known := platforms.Of(hcp.Spec.Platform.Type)
	if !known {
		return fmt.Errorf("platform %q is not known to this operator", hcp.Spec.Platform.Type)
	}
	infrastructure := &configv1.Infrastructure{ObjectMeta: clusterName}
	infrastructure.Spec.PlatformSpec.Type = traits.InfrastructureType
	if err := r.apply(ctx, infrastructure); err != nil {
		return err
	}
	return upsert.Status(ctx, r.Guest, infrastructure, func() {
		setInfrastructureStatus(hcp, traits.InfrastructureType, &infrastructure.Status)
	})
}

func setInfrastructureStatus(hcp *hyperv1.HostedControlPlane, platform configv1.PlatformType, status *configv1.InfrastructureStatus) {
	host, port := hcp.Status.ControlPlaneEndpoint.Host, strconv.Itoa(int(hcp.Status.ControlPlaneEndpoint.Port))
	status.APIServerInternalURL = "https://" + net.JoinHostPort(host, port)
	if hcp.Spec.KubeAPIServerDNSName != "" {
		host = hcp.Spec.KubeAPIServerDNSName
	}
	status.APIServerURL = "https://" + net.JoinHostPort(host, port)
	status.EtcdDiscoveryDomain = baseDomain(hcp)
	status.InfrastructureName = hcp.Spec.InfraID
	status.ControlPlaneTopology = configv1.ExternalTopologyMode
	status.InfrastructureTopology = configv1.SingleReplicaTopologyMode
	if hcp.Spec.InfrastructureAvailabilityPolicy == hyperv1.HighlyAvailable {
		status.InfrastructureTopology = configv1.HighlyAvailableTopologyMode
	}
	if status.CPUPartitioning == "" {
		status.CPUPartitioning = configv1.CPUPartitioningNone
	}
	//nolint:staticcheck // Readers of the deprecated field still exist.
	status.Platform = platform
	if status.PlatformStatus == nil {
		status.PlatformStatus = &configv1.PlatformStatus{}
	}
	status.PlatformStatus.Type = platform
}

// baseDomain returns the DNS domain of this cluster.
func baseDomain(hcp *hyperv1.HostedControlPlane) string {
	prefix := hcp.Name
	if p := hcp.Spec.DNS.BaseDomainPrefix; p != nil {
		prefix = *p
	}
	if prefix == "" {
		return hcp.Spec.DNS.BaseDomain
	}
	return prefix + "." + hcp.Spec.DNS.BaseDomain
}

func dnsConfig(hcp *hyperv1.HostedControlPlane) *configv1.DNS {
	dns := &configv1.DNS{ObjectMeta: clusterName}
	dns.Spec.BaseDomain = baseDomain(hcp)
	if id := hcp.Spec.DNS.PublicZoneID; id != "" {
		dns.Spec.PublicZone = &configv1.DNSZone{ID: id}
	}
	if id := hcp.Spec.DNS.PrivateZoneID; id != "" {
		dns.Spec.PrivateZone = &configv1.DNSZone{ID: id}
	}
	return dns
}

func ingressConfig(hcp *hyperv1.HostedControlPlane) *configv1.Ingress {
	ingress := &configv1.Ingress{ObjectMeta: clusterName}
	if config := hcp.Spec.Configuration; config != nil && config.Ingress != nil {
		ingress.Spec = *config.Ingress.DeepCopy()
	}
	if ingress.Spec.Domain == "" {
		ingress.Spec.Domain = "apps." + baseDomain(hcp)
	}
	return ingress
}

func (r *Reconciler) applyNetworkConfig(ctx context.Context, hcp *hyperv1.HostedControlPlane) error {
	network := &configv1.Network{ObjectMeta: clusterName}
	if config := hcp.Spec.Configuration; config != nil && config.Network != nil {
		network.Spec = *config.Network.DeepCopy()
	}
	network.Spec.NetworkType = string(hcp.Spec.Networking.NetworkType)
	network.Spec.ClusterNetwork, network.Spec.ServiceNetwork = nil, nil
	for _, entry := range hcp.Spec.Networking.ClusterNetwork {
		//nolint:gosec // The API admits no negative one.
		network.Spec.ClusterNetwork = append(network.Spec.ClusterNetwork,
			configv1.ClusterNetworkEntry{CIDR: entry.CIDR.String(), HostPrefix: uint32(entry.HostPrefix)})
	}
	for _, entry := range hcp.Spec.Networking.ServiceNetwork {
		network.Spec.ServiceNetwork = append(network.Spec.ServiceNetwork, entry.CIDR.String())
	}
	return r.apply(ctx, network)
}

// applyProxyConfig writes the proxy of the guest, and in its status the addresses that must bypass it.
func (r *Reconciler) applyProxyConfig(ctx context.Context, hcp *hyperv1.HostedControlPlane) error {
	proxy := &configv1.Proxy{ObjectMeta: clusterName}
	if config := hcp.Spec.Configuration; config != nil && config.Proxy != nil {
		proxy.Spec = *config.Proxy.DeepCopy()
	}
	spec := proxy.Spec
	if err := r.apply(ctx, proxy); err != nil {
		return err
	}
	return upsert.Status(ctx, r.Guest, proxy, func() {
		used := nodeinput.ReadProxy(&spec, hcp.Spec.Networking, hcp.Status.ControlPlaneEndpoint.Host)
		proxy.Status = configv1.ProxyStatus{HTTPProxy: used.HTTP, HTTPSProxy: used.HTTPS, NoProxy: used.NoProxy}
	})
}

// applyUserConfig copies the other kinds of the cluster's configuration into the guest.
func (r *Reconciler) applyUserConfig(ctx context.Context, hcp *hyperv1.HostedControlPlane) error {
	config := hcp.Spec.Configuration
	if config == nil {
		config = &hyperv1.ClusterConfiguration{}
	}
	image, apiServer := &configv1.Image{ObjectMeta: clusterName}, &configv1.APIServer{ObjectMeta: clusterName}
	authentication, gates := &configv1.Authentication{ObjectMeta: clusterName}, &configv1.FeatureGate{ObjectMeta: clusterName}
	scheduler := &configv1.Scheduler{ObjectMeta: clusterName}
	copySpec(config.Image, &image.Spec)
	copySpec(config.APIServer, &apiServer.Spec)
	copySpec(config.Authentication, &authentication.Spec)
	copySpec(config.FeatureGate, &gates.Spec)
	copySpec(config.Scheduler, &scheduler.Spec)
	authentication.Spec.ServiceAccountIssuer = hcp.Spec.IssuerURL
	if authentication.Spec.ServiceAccountIssuer == "" {
		authentication.Spec.ServiceAccountIssuer = defaultIssuer
	}
	var failures []error
	for _, obj := range []client.Object{image, apiServer, authentication, gates, scheduler} {
		failures = append(failures, r.apply(ctx, obj))
	}
	return errors.Join(failures...)
}

func copySpec[T any](from, to *T) {
	if from != nil {
		*to = *from
	}
}
