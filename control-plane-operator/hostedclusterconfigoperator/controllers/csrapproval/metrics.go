// SPDX-License-Identifier: Apache-2.0

package csrapproval

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var refusals = prometheus.NewCounter(prometheus.CounterOpts{
	Name: "hypershift_node_identity_refusals_total",
	Help: "Requests for an identity that another node has, or with another machine's credentials. A value above zero means an attack, or a machine that lost its disk.",
})

// IdentityRefused is the reason of events about a node that requests or uses the identity of another Machine.
const IdentityRefused = "NodeIdentityRefused"

// CountRefusal counts one refused identity.
func CountRefusal() { refusals.Inc() }

func init() { metrics.Registry.MustRegister(Collectors()...) }

// Collectors returns the metrics of CSR approval.
func Collectors() []prometheus.Collector { return []prometheus.Collector{refusals} }
