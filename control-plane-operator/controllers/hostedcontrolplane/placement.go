// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
)

const (
	// placing is how long a pod may wait for a node before it is reported. Usually the next attempt of the scheduler
	// finds a node.
	placing = 30 * time.Second
	// placeless is the maximum number of pods that are reported by name.
	placeless = 5
)

// unplaced returns the pods of the hosted namespace that the scheduler finds no node for, sorted by name. young
// reports that some pods have no node, but have not waited long enough to be reported.
func (r *Reconciler) unplaced(ctx context.Context, namespace string, now time.Time) (waiting []corev1.Pod, young bool, err error) {
	pods := &corev1.PodList{}
	if err := r.Client.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		return nil, false, fmt.Errorf("listing Pods: %w", err)
	}
	for i := range pods.Items {
		c := unscheduled(&pods.Items[i])
		switch {
		case c == nil:
		case now.Sub(c.LastTransitionTime.Time) < placing:
			young = true
		default:
			waiting = append(waiting, pods.Items[i])
		}
	}
	slices.SortFunc(waiting, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return waiting, young, nil
}

// unscheduled returns the scheduler's condition of a pod without a node; nil if it has one, or is being deleted.
func unscheduled(pod *corev1.Pod) *corev1.PodCondition {
	for i, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable && pod.DeletionTimestamp.IsZero() {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// podsScheduled reports the pods without a node, and the rules that keep them from one. There is no condition until a
// pod had to be reported once.
func podsScheduled(waiting []corev1.Pod, before []metav1.Condition) (metav1.Condition, bool) {
	t := string(hyperv1.ControlPlanePodsScheduled)
	if len(waiting) == 0 {
		return condition.True(t, hyperv1.AsExpectedReason, ""), meta.FindStatusCondition(before, t) != nil
	}
	var all []string
	for i := range waiting[:min(len(waiting), placeless)] {
		all = append(all, waiting[i].Name+": "+whyNoNode(unscheduled(&waiting[i]).Message))
	}
	if more := len(waiting) - placeless; more > 0 {
		all = append(all, fmt.Sprintf("and %d more pods", more))
	}
	return condition.False(t, hyperv1.UnschedulableReason, strings.Join(all, ". ")), true
}

var (
	// unschedulable matches the scheduler's summary of the nodes that it considered.
	unschedulable = regexp.MustCompile(`^0/(\d+) nodes are available: (.*?)\.?( (?:preemption:|no new claims).*)?$`)
	// countPattern matches the beginning of each reason in the summary. A reason may contain commas.
	countPattern = regexp.MustCompile(`(?:^|, )(\d+) `)
)

// whyNoNode shortens the scheduler's message: it lists how many nodes each rule excludes. It returns any other message
// unchanged.
func whyNoNode(message string) string {
	found := unschedulable.FindStringSubmatch(message)
	if found == nil {
		return "no node: " + condition.Shorten(message, 300)
	}
	counts := countPattern.FindAllStringSubmatchIndex(found[2], -1)
	if len(counts) == 0 {
		return "no node: " + condition.Shorten(found[2], 300)
	}
	var rules []string
	for i, at := range counts {
		end := len(found[2])
		if i+1 < len(counts) {
			end = counts[i+1][0]
		}
		rules = append(rules, fmt.Sprintf("%s of %s nodes: %s", found[2][at[2]:at[3]], found[1], ruleOf(found[2][at[1]:end])))
	}
	return "no node fits (" + strings.Join(rules, "; ") + ")"
}

// rules maps texts of the scheduler's messages to the placement rules of a hosted cluster.
var rules = []struct{ says, means string }{
	{"pod anti-affinity", "the node runs a pod that it must not share a host with"},
	{"topology spread", "replicas are spread over hosts, and this host already has its share"},
	{"node affinity/selector", "it does not match spec.nodeSelector of the HostedCluster, or is not set aside for it"},
	{"volume node affinity", "the pod's volume is on another node or in another zone"},
	{"untolerated taint", "a taint that spec.tolerations of the HostedCluster do not tolerate"},
	{"were unschedulable", "cordoned"},
}

func ruleOf(reason string) string {
	reason = strings.TrimPrefix(strings.TrimSpace(reason), "node(s) ")
	for _, rule := range rules {
		if strings.Contains(reason, rule.says) {
			return fmt.Sprintf("%s (%s)", rule.means, reason)
		}
	}
	return reason
}
