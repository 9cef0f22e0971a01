// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/infra"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/hosted"
	supportpki "github.com/openshift/hypershift/support/pki"
)

// Reasons of PublishedAddressUpToDate.
const (
	reasonAddressWaiting   = "WaitingForAddress"
	reasonAddressUnnamed   = "CertificateInProgress"
	reasonAddressUnreached = "AddressNotReached"
	reasonNodesMoving      = "NodesMoving"
	reasonFormerServed     = "FormerAddressServed"
)

// goOver keeps the published address in use while the spec requests a different one. The progress comes only from the
// status, so that a reconcile after a restart continues where the last one ended.
func (r *Reconciler) goOver(s *scope) {
	s.served = r.Infra.Served(s.valid)
	if s.infraErr != nil || len(s.served) == 0 {
		return
	}
	published := s.hcp.Status.ControlPlaneEndpoint
	if s.infra != nil {
		wanted := infra.Wanted(s.valid, s.infra)
		s.wanted = &wanted
		s.infra = infra.During(published, s.served, wanted)
		return
	}
	// The desired load balancer has no address yet. The endpoints stay as published, unless the served address belongs
	// to a load balancer, which may be gone.
	if s.served[0].Type != hyperv1.LoadBalancer {
		s.infra = infra.During(published, s.served)
	}
}

// askAddresses checks whether the next step can be taken: all API servers have a certificate for the desired address,
// and the address is reachable.
func (r *Reconciler) askAddresses(ctx context.Context, s *scope) (unnamed, unreached, err error) {
	if s.wanted == nil {
		return nil, nil, nil
	}
	moved := !infra.Same(s.served[0], *s.wanted)
	if !moved && published(s.hcp.Status.ControlPlaneEndpoint, s.served[0]) {
		return nil, nil, nil
	}
	bundle := &corev1.ConfigMap{}
	found, err := r.find(ctx, s.hcp.Namespace, pki.RootBundle, bundle)
	if err == nil {
		err = hosted.Trusted(bundle)
	}
	if err != nil || !found {
		return errors.New("the CA of the API servers is not known yet"), nil, err
	}
	trust := []byte(bundle.Data[supportpki.CACertKey])
	if moved {
		unnamed, err = r.namedByAll(ctx, s, trust)
		return unnamed, nil, err
	}
	address := net.JoinHostPort(s.served[0].Host, strconv.Itoa(int(s.served[0].Port)))
	return nil, r.Shows(ctx, address, s.served[0].Host, trust), nil
}

// namedByAll checks that every running API server has a certificate for the desired address. API servers that start
// later load the current certificate.
func (r *Reconciler) namedByAll(ctx context.Context, s *scope, trust []byte) (unnamed, err error) {
	pods := &corev1.PodList{}
	if err := r.Client.List(ctx, pods, client.InNamespace(s.hcp.Namespace), client.MatchingLabels{"app": kubeapiserver.Name}); err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", kubeapiserver.Name, err)
	}
	asked := 0
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "" || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		asked++
		if err := r.Shows(ctx, net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(infra.APIPort)), s.wanted.Host, trust); err != nil {
			return fmt.Errorf("pod %s: %w", pod.Name, err), nil
		}
	}
	if asked == 0 {
		return errors.New("no API server runs"), nil
	}
	return nil, nil
}

func published(endpoint hyperv1.APIEndpoint, a hyperv1.ServedAddress) bool {
	return endpoint.Host == a.Host && endpoint.Port == a.Port
}

// nextAddresses takes at most one step. Each step is in the status before anything depends on it. Nodes get an address
// first, when the certificates of all API servers name it. Kubeconfigs and the guest get it when it is known to work.
// A previous address is dropped when no client uses it.
func nextAddresses(s *scope, o observed, now time.Time) ([]hyperv1.ServedAddress, hyperv1.APIEndpoint) {
	endpoint := hyperv1.APIEndpoint{Host: s.infra.API.Host, Port: s.infra.API.Port}
	served := slices.Clone(s.served)
	switch {
	case len(served) == 0:
		first := infra.Wanted(s.applied(), s.infra)
		first.Since = metav1.NewTime(now.Truncate(time.Second))
		served = append(served, first)
	case s.wanted == nil:
	case !infra.Same(served[0], *s.wanted):
		if o.unnamed == nil && len(served) < infra.MaxServed {
			served = prefer(served, *s.wanted, now)
		}
	case !published(endpoint, served[0]):
		if o.unreached == nil || arrived(s.hcp, served[0]) {
			endpoint = hyperv1.APIEndpoint{Host: served[0].Host, Port: served[0].Port}
			// The guest's own workloads learn the address only now, so the check whether all clients use it must start again.
			served[0].Since = metav1.NewTime(now.Truncate(time.Second))
		}
	case len(served) > 1 && unused(s.hcp, served[0]) && !now.Before(droppedAt(s.hcp, served[0])):
		served = served[:1]
	}
	return served, endpoint
}

// prefer puts an address first, and removes its other occurrence.
func prefer(served []hyperv1.ServedAddress, wanted hyperv1.ServedAddress, now time.Time) []hyperv1.ServedAddress {
	wanted.Since = metav1.NewTime(now.Truncate(time.Second))
	former := slices.DeleteFunc(slices.Clone(served), func(a hyperv1.ServedAddress) bool { return infra.Same(a, wanted) })
	return append([]hyperv1.ServedAddress{wanted}, former...)
}

// use returns the observation about an address; nil if the observation predates the change of address.
func use(hcp *hyperv1.HostedControlPlane, a hyperv1.ServedAddress) *hyperv1.AddressUse {
	if seen := hcp.Status.AddressUse; seen != nil && seen.Since.Equal(&a.Since) {
		return seen
	}
	return nil
}

func arrived(hcp *hyperv1.HostedControlPlane, a hyperv1.ServedAddress) bool {
	seen := use(hcp, a)
	return seen != nil && seen.Arrived > 0
}

// unused reports whether all clients use an address, so that no other address is needed.
func unused(hcp *hyperv1.HostedControlPlane, a hyperv1.ServedAddress) bool {
	seen := use(hcp, a)
	return seen != nil && seen.Remaining == 0
}

// droppedAt returns when the addresses that an address replaces are dropped.
func droppedAt(hcp *hyperv1.HostedControlPlane, a hyperv1.ServedAddress) time.Time {
	overlap, _ := infra.Overlap(hcp) // An invalid value is reported in the condition, and the default applies.
	return a.Since.Add(overlap)
}

// addressUpToDate reports the progress of the migration to the address in the spec. There is no condition before an
// address is published.
func addressUpToDate(s *scope, o observed, next hyperv1.HostedControlPlaneStatus) (c metav1.Condition, known bool) {
	t := string(hyperv1.PublishedAddressUpToDate)
	if s.infra == nil || len(next.ServedAddresses) == 0 {
		return c, false
	}
	first, last := next.ServedAddresses[0], text(next.ControlPlaneEndpoint.Host, next.ControlPlaneEndpoint.Port)
	switch {
	case s.waiting != "":
		return condition.False(t, reasonAddressWaiting, fmt.Sprintf("%s; until then %s is still served", s.waiting, last)), true
	case s.wanted != nil && !infra.Same(first, *s.wanted):
		return unpreferred(t, s, o, len(next.ServedAddresses), last), true
	case !published(next.ControlPlaneEndpoint, first) && o.unreached == nil:
		return condition.False(t, reasonNodesMoving, fmt.Sprintf("Nodes are migrating to %s; %s is still served", text(first.Host, first.Port), last)), true
	case !published(next.ControlPlaneEndpoint, first):
		return condition.False(t, reasonAddressUnreached, fmt.Sprintf("No node has reached %s yet, and the control plane does not reach it either: %v. Kubeconfigs and new machines "+
			"keep %s; make sure that the new address leads to the nodes of the management cluster, or set another one in spec.services",
			text(first.Host, first.Port), o.unreached, last)), true
	case len(next.ServedAddresses) == 1:
		return condition.True(t, hyperv1.AsExpectedReason, ""), true
	}
	return formerServed(t, &hyperv1.HostedControlPlane{ObjectMeta: s.hcp.ObjectMeta, Status: next}), true
}

// unpreferred reports why the desired address is not announced yet.
func unpreferred(t string, s *scope, o observed, served int, last string) metav1.Condition {
	if served >= infra.MaxServed {
		return condition.False(t, reasonAddressWaiting, fmt.Sprintf("%d addresses are served already; migration to %s waits until no node uses a previous address",
			served, text(s.wanted.Host, s.wanted.Port)))
	}
	return condition.False(t, reasonAddressUnnamed, fmt.Sprintf("Waiting until all API servers have a certificate for %s; until then %s is still served: %v", s.wanted.Host, last, o.unnamed))
}

// formerServed reports what still uses previous addresses, so that they cannot be dropped.
func formerServed(t string, hcp *hyperv1.HostedControlPlane) metav1.Condition {
	first := hcp.Status.ServedAddresses[0]
	to, former := text(first.Host, first.Port), formerOf(hcp.Status.ServedAddresses)
	seen := use(hcp, first)
	switch {
	case seen == nil:
		return condition.False(t, reasonNodesMoving, fmt.Sprintf("Nodes are migrating to %s; %s still served", to, former))
	case seen.Remaining > 0:
		return condition.False(t, reasonNodesMoving, fmt.Sprintf("Not migrated to %s yet: %s; %s still served", to, seen.Message, former))
	}
	message := fmt.Sprintf("All nodes use %s; %s still served until %s for kubeconfigs that were issued before", to, former, droppedAt(hcp, first).UTC().Format(time.RFC3339))
	if _, err := infra.Overlap(hcp); err != nil {
		message += "; " + err.Error()
	}
	return condition.True(t, reasonFormerServed, message)
}

// formerOf lists all addresses but the first.
func formerOf(served []hyperv1.ServedAddress) string {
	var former []string
	for _, a := range served[1:] {
		former = append(former, text(a.Host, a.Port))
	}
	if len(former) == 1 {
		return former[0] + " is"
	}
	return strings.Join(former, ", ") + " are"
}

func text(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }
