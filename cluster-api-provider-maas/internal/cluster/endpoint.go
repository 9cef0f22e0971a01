// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	defaultPort = 6443
	// dnsTTL is in seconds. It is short, since control plane machines are replaced.
	dnsTTL = 10
)

// Reasons of LoadBalancerReady.
const (
	reasonReady           = infrav1.LoadBalancerReadyReason
	reasonFailed          = infrav1.LoadBalancerFailedReason
	reasonWaitForEndpoint = infrav1.WaitForEndpointReason
	reasonWaitForDNSName  = infrav1.WaitForDNSNameReason
)

// given reports whether another component provides the endpoint, which must not be overwritten.
func (s *scope) given() bool {
	if _, custom := s.infra.Annotations[infrav1.CustomDNSAnnotation]; custom || annotations.IsExternallyManaged(s.infra) {
		return true
	}
	if s.owner != nil && s.owner.Spec.ControlPlaneEndpoint.Host != "" && s.owner.Spec.ControlPlaneEndpoint.Host != s.infra.Status.Network.DNSName {
		return true
	}
	host := s.infra.Spec.ControlPlaneEndpoint.Host
	return host != "" && host != s.infra.Status.Network.DNSName && host != s.dnsName()
}

// dnsName returns a name with a suffix of the UID. The name is not random, so a reconcile after a crash computes the
// same name.
func (s *scope) dnsName() string {
	if s.infra.Status.Network.DNSName != "" {
		return s.infra.Status.Network.DNSName
	}
	uid := strings.ReplaceAll(machine.ClusterUID(s.infra), "-", "")
	return fmt.Sprintf("%s-%s.%s", s.infra.Name, uid[max(0, len(uid)-6):], s.infra.Spec.DNSDomain)
}

// ensureEndpoint sets the endpoint of the MaasCluster. It creates a name in the DNS of MAAS only if no other component
// provides an endpoint.
func (r *Reconciler) ensureEndpoint(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.given() {
		return ctrl.Result{}, r.adoptEndpoint(ctx, s)
	}
	if s.problem != nil {
		s.endpoint = &machine.Problem{Reason: reasonWaitForDNSName, Message: s.problem.Message}
		return phase.Done()
	}
	if err := r.ensureDNS(ctx, s); err != nil {
		if ctx.Err() != nil {
			return ctrl.Result{}, err
		}
		s.endpoint = &machine.Problem{Reason: reasonFailed, Message: machine.ProblemOf(err).Message}
		return phase.After(problemEvery)
	}
	return ctrl.Result{}, r.setEndpoint(ctx, s, s.dnsName(), 0)
}

// adoptEndpoint copies the endpoint of the Cluster if the MaasCluster has none.
func (r *Reconciler) adoptEndpoint(ctx context.Context, s *scope) error {
	if s.infra.Spec.ControlPlaneEndpoint.Host != "" {
		return nil
	}
	endpoint := s.owner.Spec.ControlPlaneEndpoint
	if endpoint.Host == "" {
		s.endpoint = &machine.Problem{Reason: reasonWaitForEndpoint, Message: "spec.controlPlaneEndpoint is empty; waiting for the Cluster to set it"}
		return nil
	}
	return r.setEndpoint(ctx, s, endpoint.Host, int(endpoint.Port))
}

func (r *Reconciler) setEndpoint(ctx context.Context, s *scope, host string, port int) error {
	port = cmp.Or(port, s.infra.Spec.ControlPlaneEndpoint.Port, int(s.owner.Spec.ClusterNetwork.APIServerPort), defaultPort)
	return upsert.Patch(ctx, r.Client, s.infra, func() {
		s.infra.Spec.ControlPlaneEndpoint = infrav1.APIEndpoint{Host: host, Port: port}
	})
}

// ensureDNS creates the DNS resource and updates its addresses to those of the control plane machines.
func (r *Reconciler) ensureDNS(ctx context.Context, s *scope) error {
	name := s.dnsName()
	machines, err := r.machines(ctx, s, r.Client)
	if err != nil {
		return err
	}
	subnets, err := r.preferredSubnets(ctx, s)
	if err != nil {
		return err
	}
	wanted, keep := controlPlaneIPs(machines, subnets)
	resource, err := s.findDNS(ctx, name)
	if err != nil {
		return err
	}
	if resource == nil {
		if _, err := s.identity.Client.CreateDNSResource(ctx, name, dnsTTL, wanted); err != nil {
			return err
		}
	} else if have := resource.IPs(); keep {
		wanted = have
	} else if !sameSet(have, wanted) {
		if _, err := s.identity.Client.SetDNSResourceIPs(ctx, resource.ID, wanted); err != nil {
			return err
		}
	}
	s.dns = name
	return r.markAttached(ctx, name, machines, wanted)
}

// markAttached records in the status of each control plane machine whether one of its addresses is in DNS.
func (r *Reconciler) markAttached(ctx context.Context, name string, machines []infrav1.MaasMachine, ips []string) error {
	for i := range machines {
		m := &machines[i]
		if _, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]; !controlPlane {
			continue
		}
		attached := slices.ContainsFunc(m.Status.Addresses, func(a infrav1.MachineAddress) bool { return slices.Contains(ips, a.Address) })
		found := attachedCondition(m, name, attached)
		found.LastTransitionTime = metav1.NewTime(r.Clock.Now())
		err := upsert.StatusLatest(ctx, r.Client, m, func() {
			m.Status.DNSAttached = attached
			m.Status.Conditions = condition.Merge(m.Status.Conditions, m.Generation, found)
		})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// attachedCondition reports whether a control plane machine is in the DNS name of its cluster.
func attachedCondition(m *infrav1.MaasMachine, name string, attached bool) metav1.Condition {
	deleted := !m.DeletionTimestamp.IsZero()
	switch {
	case attached && deleted:
		return condition.False(infrav1.DNSAttachedCondition, infrav1.DNSDetachPendingReason,
			fmt.Sprintf("%s keeps the last known addresses while no control plane machine is ready", name))
	case attached:
		return condition.True(infrav1.DNSAttachedCondition, infrav1.DNSAttachedReason, fmt.Sprintf("%s has an address of the machine", name))
	case deleted:
		return condition.False(infrav1.DNSAttachedCondition, infrav1.DNSDetachedReason, fmt.Sprintf("%s has no address of the machine any more", name))
	case m.Status.Ready:
		return condition.False(infrav1.DNSAttachedCondition, infrav1.DNSAttachPendingReason, fmt.Sprintf(
			"%s has no address of the machine: it has none in spec.preferredSubnets of the MaasCluster", name))
	default:
		return condition.False(infrav1.DNSAttachedCondition, infrav1.DNSAttachPendingReason, fmt.Sprintf("%s gets the addresses of the machine when it is ready", name))
	}
}

func (s *scope) findDNS(ctx context.Context, name string) (*maas.DNSResource, error) {
	list, err := s.identity.Client.ListDNSResources(ctx, name)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].FQDN == name && list[i].ID >= 0 {
			return &list[i], nil
		}
	}
	return nil, nil
}

// controlPlaneIPs returns the addresses of the running control plane machines. If there are machines but none is
// running, keep is true and the DNS entries stay. A short power failure must not make the cluster unreachable.
func controlPlaneIPs(machines []infrav1.MaasMachine, subnets []string) (ips []string, keep bool) {
	living := 0
	for i := range machines {
		m := &machines[i]
		if _, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]; !controlPlane || !m.DeletionTimestamp.IsZero() {
			continue
		}
		living++
		if m.Status.Ready {
			ips = append(ips, preferred(m.Status.Addresses, subnets)...)
		}
	}
	return ips, living > 0 && len(ips) == 0
}

// preferred returns the addresses of a machine in the first preferred subnet that contains any of them. Without
// preferred subnets, it returns all addresses.
func preferred(addresses []infrav1.MachineAddress, subnets []string) []string {
	var all []string
	for _, a := range addresses {
		if a.Type == infrav1.MachineExternalIP {
			all = append(all, a.Address)
		}
	}
	if len(subnets) == 0 {
		return all
	}
	for _, subnet := range subnets {
		prefix, err := netip.ParsePrefix(subnet)
		if err != nil {
			continue // Validation rejects such a subnet.
		}
		in := slices.DeleteFunc(slices.Clone(all), func(ip string) bool {
			address, err := netip.ParseAddr(ip)
			return err != nil || !prefix.Contains(address)
		})
		if len(in) > 0 {
			return in
		}
	}
	return nil
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Compact(slices.Sorted(slices.Values(a))), slices.Compact(slices.Sorted(slices.Values(b))))
}

// removeDNS deletes the DNS name that was created for the cluster. It does not touch names that others created.
func (r *Reconciler) removeDNS(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.infra.Status.Network.DNSName == "" && (s.given() || s.problem != nil) {
		return phase.Done()
	}
	if s.problem != nil {
		s.endpoint = &machine.Problem{Reason: reasonFailed, Message: fmt.Sprintf("DNS name %s can't be removed from MAAS: %s", s.dnsName(), s.problem.Message)}
		return phase.Done()
	}
	resource, err := s.findDNS(ctx, s.dnsName())
	if err == nil && resource != nil {
		err = s.identity.Client.DeleteDNSResource(ctx, resource.ID)
	}
	if err != nil && !maas.IsNotFound(err) {
		s.endpoint = &machine.Problem{Reason: reasonFailed, Message: machine.ProblemOf(err).Message}
		return phase.After(problemEvery)
	}
	return phase.Done()
}
