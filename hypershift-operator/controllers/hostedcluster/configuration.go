// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/reference"
)

// reconcileConfiguration rejects a spec that the operator does not support. It also finds errors that the API server's
// validation cannot find.
func (r *Reconciler) reconcileConfiguration(_ context.Context, s *scope) (ctrl.Result, error) {
	if !s.PlatformServed {
		s.Reject(hyperv1.SupportedHostedCluster, hyperv1.UnsupportedHostedClusterReason, fmt.Sprintf(
			"This operator cannot host clusters of platform %s: %s", s.HC.Spec.Platform.Type, r.Platforms.Why(s.HC.Spec.Platform.Type)))
		return ctrl.Result{}, phase.ErrStop
	}
	s.Accept(hyperv1.SupportedHostedCluster)
	if err := r.validate(s); err != nil {
		s.Reject(hyperv1.ValidHostedClusterConfiguration, hyperv1.InvalidConfigurationReason, err.Error())
		return ctrl.Result{}, phase.ErrStop
	}
	s.Accept(hyperv1.ValidHostedClusterConfiguration)
	return ctrl.Result{}, nil
}

func (r *Reconciler) validate(s *scope) error {
	hc := s.HC
	return errors.Join(
		r.validateLimits(hc),
		validateName(s),
		s.Platform.ValidateHostedCluster(hc),
		r.validateServices(hc),
		validateAllowedBlocks(hc),
		validateNetworks(hc),
		validateIdentity(hc),
		validateMirrors(hc),
	)
}

// validateMirrors rejects sources and mirrors that the list in the control plane's environment cannot represent
// unambiguously.
func validateMirrors(hc *hyperv1.HostedCluster) error {
	_, err := imageMirrors(hc.Spec.ImageContentSources)
	return err
}

// validateLimits enforces the same limits as the API server's policy, for clusters that are older than the policy.
func (r *Reconciler) validateLimits(hc *hyperv1.HostedCluster) error {
	var failures []error
	for _, refusal := range r.Settings.Limits.HostedCluster(hc) {
		failures = append(failures, errors.New(refusal))
	}
	return errors.Join(failures...)
}

// validateName checks the length of the control plane's namespace. The API server cannot check it, because the
// namespace is named after the cluster and the cluster's namespace.
func validateName(s *scope) error {
	if excess := len(s.Namespace) - validation.DNS1123LabelMaxLength; excess > 0 {
		return fmt.Errorf("the namespace of the control plane would be %q, %d characters too long: create the cluster with a shorter name", s.Namespace, excess)
	}
	return nil
}

var uuidPattern = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

func validateIdentity(hc *hyperv1.HostedCluster) error {
	var failures []error
	if hc.Spec.ClusterID != "" && !uuidPattern.MatchString(hc.Spec.ClusterID) {
		failures = append(failures, fmt.Errorf("spec.clusterID %q is not a UUID: leave it out to have one made", hc.Spec.ClusterID))
	}
	if reference.Name(hc.Spec.ServiceAccountSigningKey) != "" && hc.Spec.IssuerURL == "" {
		failures = append(failures, errors.New("spec.serviceAccountSigningKey needs spec.issuerURL: set the issuer that the key signs for"))
	}
	return errors.Join(failures...)
}

// validateServices checks that the management cluster can publish the services as requested.
func (r *Reconciler) validateServices(hc *hyperv1.HostedCluster) error {
	var failures []error
	hostnames := map[string]hyperv1.ServiceType{}
	routes := cluster.Serves(r.Client, "route.openshift.io", "Route")
	for _, service := range hc.Spec.Services {
		strategy := service.ServicePublishingStrategy
		if strategy.Type == hyperv1.Route && !routes {
			failures = append(failures, fmt.Errorf(
				"spec.services: %s is published by Route, which this management cluster does not have: use NodePort or LoadBalancer", service.Service))
		}
		name := publishedHostname(strategy)
		if name == "" {
			continue
		}
		if other, taken := hostnames[name]; taken {
			failures = append(failures, fmt.Errorf("spec.services: %s and %s have the same hostname %s: give each its own", other, service.Service, name))
		}
		hostnames[name] = service.Service
	}
	return errors.Join(failures...)
}

// validateAllowedBlocks rejects allowed CIDR blocks that cannot be enforced. A node port admits every client, and the
// source address that it sees may be another node's.
func validateAllowedBlocks(hc *hyperv1.HostedCluster) error {
	api := hc.Spec.Networking.APIServer
	if api == nil || len(api.AllowedCIDRBlocks) == 0 {
		return nil
	}
	for _, service := range hc.Spec.Services {
		if service.Service == hyperv1.APIServer && service.ServicePublishingStrategy.Type == hyperv1.NodePort {
			return errors.New("spec.networking.apiServer.allowedCIDRBlocks cannot be enforced while the APIServer is published by NodePort, " +
				"which admits every client; publish it by LoadBalancer, or remove the blocks and filter in front of the nodes")
		}
	}
	return nil
}

func publishedHostname(strategy hyperv1.ServicePublishingStrategy) string {
	if strategy.Route != nil {
		return strategy.Route.Hostname
	}
	if strategy.LoadBalancer != nil {
		return strategy.LoadBalancer.Hostname
	}
	return ""
}

// validateNetworks rejects overlapping networks, and addresses inside a network that must not contain them.
func validateNetworks(hc *hyperv1.HostedCluster) error {
	networks, err := parseNetworks(hc)
	if err != nil {
		return err
	}
	failures := overlaps(networks)
	failures = append(failures, advertiseAddressOutside(hc, networks))
	for _, service := range hc.Spec.Services {
		if service.ServicePublishingStrategy.NodePort == nil {
			continue
		}
		failures = append(failures, outside(fmt.Sprintf("spec.services: the address %s of %s", service.ServicePublishingStrategy.NodePort.Address, service.Service),
			service.ServicePublishingStrategy.NodePort.Address, networks, "service"))
	}
	return errors.Join(failures...)
}

type network struct {
	kind   string
	prefix netip.Prefix
}

func parseNetworks(hc *hyperv1.HostedCluster) ([]network, error) {
	var networks []network
	var failures []error
	add := func(kind, cidr string) {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			failures = append(failures, fmt.Errorf("spec.networking: the %s network %q is not a CIDR", kind, cidr))
			return
		}
		networks = append(networks, network{kind, prefix.Masked()})
	}
	for _, n := range hc.Spec.Networking.ClusterNetwork {
		add("cluster", n.CIDR.String())
	}
	for _, n := range hc.Spec.Networking.ServiceNetwork {
		add("service", n.CIDR.String())
	}
	for _, n := range hc.Spec.Networking.MachineNetwork {
		add("machine", n.CIDR.String())
	}
	return networks, errors.Join(failures...)
}

func overlaps(networks []network) []error {
	var failures []error
	for i, a := range networks {
		for _, b := range networks[i+1:] {
			if a.prefix.Overlaps(b.prefix) {
				failures = append(failures, fmt.Errorf(
					"spec.networking: the %s network %s and the %s network %s overlap: choose ranges that do not", a.kind, a.prefix, b.kind, b.prefix))
			}
		}
	}
	return failures
}

// defaultAdvertiseAddress is the loopback address at which nodes reach the API server.
const defaultAdvertiseAddress = "172.20.0.1"

func advertiseAddressOutside(hc *hyperv1.HostedCluster, networks []network) error {
	address := defaultAdvertiseAddress
	if api := hc.Spec.Networking.APIServer; api != nil && api.AdvertiseAddress != nil {
		address = *api.AdvertiseAddress
	}
	return errors.Join(
		outside("spec.networking.apiServer.advertiseAddress "+address, address, networks, "cluster"),
		outside("spec.networking.apiServer.advertiseAddress "+address, address, networks, "service"),
	)
}

func outside(what, address string, networks []network, kind string) error {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return nil //nolint:nilerr // A name cannot be validated here.
	}
	for _, n := range networks {
		if n.kind == kind && n.prefix.Contains(ip) {
			return fmt.Errorf("%s lies inside the %s network %s: choose another address or network", what, kind, n.prefix)
		}
	}
	return nil
}
