// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"fmt"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/distributions"
)

// reasonAddressFixed is a reason of the condition PublishedAddressUpToDate.
const reasonAddressFixed = "NotSupported"

// publishable returns the publishing strategies of the services: as desired, except that a payload with its own
// operators keeps its addresses. Its nodes have the addresses in configuration that only an installation changes. Its
// control-plane-operator would also remove the previous address from the certificates immediately.
func (s *scope) publishable(wanted, last []hyperv1.ServicePublishingStrategyMapping) []hyperv1.ServicePublishingStrategyMapping {
	if len(last) == 0 || s.wantedControlPlane == nil || !distributions.Of(s.wantedControlPlane.Distribution()).OwnOperators {
		return wanted
	}
	var changed []string
	for _, w := range wanted {
		was, is := publishedAt(strategyOf(last, w.Service)), publishedAt(w.ServicePublishingStrategy)
		if was != "" && was != is {
			changed = append(changed, fmt.Sprintf("%s (%s)", w.Service, was))
		}
	}
	if len(changed) == 0 {
		s.Clear(hyperv1.PublishedAddressUpToDate)
		return wanted
	}
	s.Reject(hyperv1.PublishedAddressUpToDate, reasonAddressFixed, "Nodes of an OpenShift release cannot migrate to another "+
		"control plane address; the previous address is kept. Set spec.services back for "+strings.Join(changed, ", "))
	return last
}

// publishedAt returns the strategy and address by which machines and users reach a service, without the port; empty if
// it is not published.
func publishedAt(strategy hyperv1.ServicePublishingStrategy) string {
	name := ""
	switch {
	case strategy.NodePort != nil:
		name = strategy.NodePort.Address
	case strategy.LoadBalancer != nil:
		name = strategy.LoadBalancer.Hostname
	case strategy.Route != nil:
		name = strategy.Route.Hostname
	}
	return strings.TrimSpace(string(strategy.Type) + " " + name)
}
