// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
)

const (
	// staleAfter is three times the duration of a kubelet's Lease (40 s).
	staleAfter = 2 * time.Minute
	// maxNamed is the maximum number of nodes in a message.
	maxNamed = 3
)

// renewals records when the Lease of each node was last seen to change. The times in Leases come from the nodes' own
// clocks, which may be wrong. A new resource version is reliable, since the API server set it.
type renewals struct {
	since    time.Time
	versions map[string]string
	seen     map[string]time.Time
}

func (r *renewals) observe(leases []coordinationv1.Lease, now time.Time) {
	if r.since.IsZero() {
		r.since, r.seen = now, map[string]time.Time{}
	}
	versions := make(map[string]string, len(leases))
	for i := range leases {
		name, version := leases[i].Name, leases[i].ResourceVersion
		if before, known := r.versions[name]; r.versions != nil && (!known || before != version) {
			r.seen[name] = now
		}
		versions[name] = version
	}
	for name := range r.seen {
		if _, still := versions[name]; !still {
			delete(r.seen, name)
		}
	}
	r.versions = versions
}

// controlPlane reports whether nodes reach the API server at its published address, as their Leases show. The result
// is unknown until the Leases were observed for a while.
func controlPlane(nodes []corev1.Node, r *renewals, now time.Time) (c metav1.Condition, known bool) {
	t := string(hyperv1.ControlPlaneConnectionAvailable)
	if len(nodes) == 0 {
		return condition.Unknown(t, hyperv1.NoWorkerNodesAvailableReason, "There is no node yet"), true
	}
	var silent []string
	for i := range nodes {
		if seen, ever := r.seen[nodes[i].Name]; !ever || now.Sub(seen) >= staleAfter {
			silent = append(silent, nodes[i].Name)
		}
	}
	slices.Sort(silent)
	names := strings.Join(silent[:min(len(silent), maxNamed)], ", ")
	settled := now.Sub(r.since) >= staleAfter
	switch {
	case len(silent) == len(nodes) && !settled:
		return c, false
	case len(silent) == len(nodes):
		return condition.False(t, hyperv1.ConnectionCheckStaleReason, fmt.Sprintf("No node has renewed its lease for %s: "+
			"do machines reach the address in status.controlPlaneEndpoint? Nodes: %s", staleAfter, names)), true
	case len(silent) > 0 && settled:
		return condition.True(t, hyperv1.AsExpectedReason, fmt.Sprintf("%d of %d nodes have not renewed their leases for %s: %s",
			len(silent), len(nodes), staleAfter, names)), true
	default:
		return condition.True(t, hyperv1.AsExpectedReason, "Nodes reach the API server"), true
	}
}
