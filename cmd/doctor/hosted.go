// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/guest"
	"github.com/openshift/hypershift/cmd/kube"
)

const (
	hostedClusterKind = "HostedCluster"
	componentKind     = "ControlPlaneComponent"
	podKind           = "Pod"
	nodePoolKind      = "NodePool"
	machineKind       = "Machine"

	// mostFindings limits the findings of one kind.
	mostFindings = 5
	readRemedy   = "docs/reference/conditions.md lists the remedy of each reason"
)

// walk goes from a HostedCluster down to the first cause of its problems.
type walk struct {
	client client.Client
	key    client.ObjectKey

	// cluster is nil if it cannot be read.
	cluster *hyperv1.HostedCluster
	pools   []hyperv1.NodePool
	results []Result
	// unmet is the first condition of the HostedCluster that is not as it should be; nil if there is none.
	unmet *metav1.Condition
	// foreign means that the hosted namespace belongs to another cluster.
	foreign bool
}

// walkDown reads a HostedCluster and what it consists of, from the top down.
func walkDown(ctx context.Context, c client.Client, key client.ObjectKey) *walk {
	w := &walk{client: c, key: key}
	for _, level := range []func(context.Context){w.top, w.components, w.pods, w.nodePools, w.machines} {
		w.limited(ctx, level)
		if w.cluster == nil {
			break // There is nothing to go down to.
		}
	}
	return w
}

// limited runs one level with the time limit of a check. A defect becomes a finding.
func (w *walk) limited(ctx context.Context, level func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, defaultLimit)
	defer cancel()
	defer func() {
		if defect := recover(); defect != nil {
			w.add("doctor", w.key.String(), failed("report this defect of the command", "the check itself failed: %v", defect))
		}
	}()
	level(ctx)
}

func (w *walk) add(part, name string, outcome Outcome) {
	w.results = append(w.results, outcome.result(part, name))
}

// top reads the HostedCluster and its conditions.
func (w *walk) top(ctx context.Context) {
	hc := &hyperv1.HostedCluster{}
	err := w.client.Get(ctx, w.key, hc)
	name := w.key.String()
	switch {
	case apierrors.IsNotFound(err):
		w.add(hostedClusterKind, name, failed("choose one of: kubectl get hostedclusters -A",
			"there is no HostedCluster %s", name))
		return
	case meta.IsNoMatchError(err):
		w.add(hostedClusterKind, name, failed(installRemedy, "HyperShift is not installed on this management cluster"))
		return
	case err != nil:
		outcome := unreadable(err, "HostedCluster "+name)
		outcome.Status = Failed // Nothing else can be said.
		w.add(hostedClusterKind, name, outcome)
		return
	}
	w.cluster = hc
	w.unmet = firstUnmet(hc.Status.Conditions, ReadyConditions)
	available := meta.FindStatusCondition(hc.Status.Conditions, string(hyperv1.HostedClusterAvailable))
	switch {
	case !hc.DeletionTimestamp.IsZero():
		message := "the operator has not said yet what it waits for"
		if available != nil {
			message = available.Message
		}
		w.add(hostedClusterKind, name, warn("docs/troubleshooting.md#something-does-not-go-away",
			"it is being deleted since %s: %s", hc.DeletionTimestamp.UTC().Format(time.RFC3339), message))
		return
	case w.unmet != nil:
		w.add(hostedClusterKind, name, failed(readRemedy, "%s", describe(w.unmet)))
	case available == nil:
		w.add(hostedClusterKind, name, failed("check that the operator runs: hypershift doctor",
			"the operator has not reported on it yet"))
	default:
		w.add(hostedClusterKind, name, ok("its control plane is available"))
	}
	if until := ptr.Deref(hc.Spec.PausedUntil, ""); until != "" {
		w.add(hostedClusterKind, name, warn("remove spec.pausedUntil",
			"spec.pausedUntil is %s: while the cluster is paused, changes have no effect", until))
	}
	for _, c := range further(hc.Status.Conditions) {
		w.add(hostedClusterKind, name, warn(readRemedy, "%s", describe(&c)))
	}
}

func (w *walk) hostedNamespace() string { return kube.HostedNamespace(w.key.Namespace, w.key.Name) }

// deleting reports whether the cluster is being deleted. Its control plane then stops on purpose.
func (w *walk) deleting() bool { return !w.cluster.DeletionTimestamp.IsZero() }

// components reads the ControlPlaneComponents that are not available.
func (w *walk) components(ctx context.Context) {
	if w.deleting() {
		return
	}
	if err := guest.CheckNamespace(ctx, w.client, w.key); err != nil && !apierrors.IsForbidden(err) {
		w.foreign = true
		w.add(hostedClusterKind, w.key.String(), failed("", "%v", err))
		return
	}
	var list hyperv1.ControlPlaneComponentList
	if err := w.client.List(ctx, &list, client.InNamespace(w.hostedNamespace())); err != nil {
		w.add(componentKind, w.hostedNamespace(), unreadable(err, "ControlPlaneComponents"))
		return
	}
	slices.SortFunc(list.Items, func(a, b hyperv1.ControlPlaneComponent) int {
		return cmp.Or(cmp.Compare(rank(a.Name), rank(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	var found []Result
	for i := range list.Items {
		c := meta.FindStatusCondition(list.Items[i].Status.Conditions, string(hyperv1.ControlPlaneComponentAvailable))
		if c == nil || c.Status != metav1.ConditionFalse {
			continue
		}
		found = append(found, failed("", "%s", describe(c)).result(componentKind,
			client.ObjectKeyFromObject(&list.Items[i]).String()))
	}
	w.addFirst(found)
}

// rank orders components: others wait for etcd, and then for the API server.
func rank(component string) int {
	switch component {
	case "etcd":
		return 0
	case "kube-apiserver":
		return 1
	}
	return 2
}

// podRank orders pods like their components. Other pods whose containers exit come last: these may only miss the API.
func podRank(pod *corev1.Pod) int {
	order := 2 * rank(pod.Labels[hyperv1.ControlPlaneComponentLabel])
	for _, status := range pod.Status.ContainerStatuses {
		if status.RestartCount > 0 || status.State.Waiting != nil && status.State.Waiting.Reason == "CrashLoopBackOff" {
			return order + 1
		}
	}
	return order
}

// addFirst adds some of the findings of one kind.
func (w *walk) addFirst(found []Result) {
	for i, r := range found {
		if i == mostFindings {
			w.add(r.Part, fmt.Sprintf("%d more", len(found)-i), Outcome{Status: r.Status,
				Message: "the first ones are listed above"})
			return
		}
		w.results = append(w.results, r)
	}
}

// pods reads the pods of the control plane that do not run.
func (w *walk) pods(ctx context.Context) {
	if w.deleting() || w.foreign {
		return
	}
	var list corev1.PodList
	if err := w.client.List(ctx, &list, client.InNamespace(w.hostedNamespace())); err != nil {
		w.add(podKind, w.hostedNamespace(), unreadable(err, "Pods"))
		return
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(podRank(&a), podRank(&b)), cmp.Compare(a.Name, b.Name))
	})
	var found []Result
	for i := range list.Items {
		pod := &list.Items[i]
		if text := podTrouble(pod); text != "" {
			remedy := fmt.Sprintf("kubectl describe pod -n %s %s", pod.Namespace, pod.Name)
			found = append(found, failed(remedy, "%s", text).result(podKind, client.ObjectKeyFromObject(pod).String()))
		}
	}
	w.addFirst(found)
}

// cause returns the deepest finding below the first problem; empty if there is no problem.
func (w *walk) cause() string {
	if w.cluster != nil && (w.unmet == nil || !slices.Contains(ownCauses, w.unmet.Type)) {
		kinds := []string{podKind, componentKind, hostedClusterKind}
		if w.unmet == nil || w.deleting() {
			kinds = w.nodeKinds()
		}
		for _, kind := range kinds {
			if text := w.first(kind, Failed); text != "" {
				return text
			}
		}
	}
	return cmp.Or(w.first("", Failed), w.first("", Warning))
}

// first returns the first finding of a kind, or of any kind if it is empty.
func (w *walk) first(kind string, status Status) string {
	for _, r := range w.results {
		if r.Status == status && (kind == "" || r.Part == kind) {
			return fmt.Sprintf("%s %s: %s", r.Part, r.Check, r.Message)
		}
	}
	return ""
}
