// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
)

// probeTimeout is less than the timeout of a connection whose packets a firewall drops.
const probeTimeout = 10 * time.Second

// AskKubelet checks the health of kubelets on the path of logs, exec and port-forward: from the API server to port
// 10250 of the node, with the certificates of both.
func AskKubelet(guest kubernetes.Interface) func(ctx context.Context, node string) error {
	return func(ctx context.Context, node string) error {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		return guest.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix("healthz").Do(ctx).Error()
	}
}

// dataPlane queries the kubelets of a few Ready nodes. The connection is only unavailable if none of them answers. If
// some answer, the message names those that do not.
func (r *Reconciler) dataPlane(ctx context.Context, nodes []corev1.Node) metav1.Condition {
	t := string(hyperv1.DataPlaneConnectionAvailable)
	names := readyNodes(nodes)
	if len(names) == 0 {
		return condition.Unknown(t, hyperv1.NoWorkerNodesAvailableReason, "There is no Ready node to ask")
	}
	asked, failures := min(probed, len(names)), []string{}
	for i := range asked {
		name := names[(r.turn+i)%len(names)]
		if err := r.Kubelet(ctx, name); err != nil {
			failures = append(failures, fmt.Sprintf("%s: %v", name, err))
		}
	}
	r.turn += asked
	slices.Sort(failures)
	switch text := strings.Join(failures, "; "); {
	case len(failures) == asked:
		return condition.False(t, hyperv1.LogsAccessFailedReason, "The API server does not reach kubelets, so that logs, exec and port-forward fail; "+
			"let the nodes reach Service konnectivity-server, or pods of the management cluster TCP 10250 of the nodes: "+text)
	case len(failures) > 0:
		return condition.True(t, hyperv1.AsExpectedReason, "Some kubelets do not answer: "+text)
	default:
		return condition.True(t, hyperv1.AsExpectedReason, "The API server reaches kubelets")
	}
}

// readyNodes returns the names of the Ready nodes, sorted.
func readyNodes(nodes []corev1.Node) []string {
	var names []string
	for i := range nodes {
		if slices.ContainsFunc(nodes[i].Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) {
			names = append(names, nodes[i].Name)
		}
	}
	slices.Sort(names)
	return names
}
