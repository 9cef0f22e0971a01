// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/nodepool"
)

// machineConditions of a NodePool summarize its machines and nodes, which name the cause.
var machineConditions = []string{
	hyperv1.NodePoolAllMachinesReadyConditionType, hyperv1.NodePoolReachedIgnitionEndpoint,
	hyperv1.NodePoolAllNodesHealthyConditionType, hyperv1.NodePoolReadyConditionType,
}

// nodePools reads the NodePools of the cluster.
func (w *walk) nodePools(ctx context.Context) {
	var list hyperv1.NodePoolList
	if err := w.client.List(ctx, &list, client.InNamespace(w.key.Namespace)); err != nil {
		w.add(nodePoolKind, w.key.Namespace, unreadable(err, "NodePools"))
		return
	}
	slices.SortFunc(list.Items, func(a, b hyperv1.NodePool) int { return cmp.Compare(a.Name, b.Name) })
	for i := range list.Items {
		if pool := &list.Items[i]; pool.Spec.ClusterName == w.key.Name {
			w.pools = append(w.pools, *pool)
			w.add(nodePoolKind, client.ObjectKeyFromObject(pool).String(), w.nodePool(pool))
		}
	}
	if len(w.pools) == 0 {
		w.add(nodePoolKind, w.key.Namespace, warn("hypershift create nodepool",
			"the cluster has no NodePool, and so no nodes"))
	}
}

func (w *walk) nodePool(pool *hyperv1.NodePool) Outcome {
	desired := ptr.Deref(pool.Spec.Replicas, pool.Status.Replicas)
	counts := fmt.Sprintf("%d of %d nodes", pool.Status.Replicas, desired)
	unmet := firstUnmet(nodepool.Conditions(pool), nodepool.ReadyConditions)
	switch {
	case !pool.DeletionTimestamp.IsZero():
		return warn("docs/troubleshooting.md#something-does-not-go-away", "it is being deleted since %s",
			pool.DeletionTimestamp.UTC().Format(time.RFC3339))
	case unmet != nil && slices.Contains(machineConditions, unmet.Type) && desired == 0:
		return ok("it is scaled to 0 nodes")
	case unmet != nil && progresses(unmet.Reason):
		return warn("wait", "%s; %s", counts, describe(unmet))
	case unmet != nil:
		return failed(readRemedy, "%s; %s", counts, describe(unmet))
	case pool.Status.Replicas < desired:
		return warn("", "%s; the operator has not said yet what they wait for", counts)
	case ptr.Deref(pool.Spec.PausedUntil, "") != "":
		return warn("remove spec.pausedUntil", "%s; while the NodePool is paused, changes have no effect", counts)
	}
	return ok("%s", counts)
}

// machines reads the Machines of the cluster that are not ready, and what they are made of.
func (w *walk) machines(ctx context.Context) {
	if w.foreign {
		return
	}
	var list clusterv1.MachineList
	if err := w.client.List(ctx, &list, client.InNamespace(w.hostedNamespace())); err != nil {
		if !meta.IsNoMatchError(err) {
			w.add(machineKind, w.hostedNamespace(), unreadable(err, "Machines"))
		}
		return
	}
	slices.SortFunc(list.Items, func(a, b clusterv1.Machine) int { return cmp.Compare(a.Name, b.Name) })
	var found, below []Result
	for i := range list.Items {
		machine := &list.Items[i]
		outcome := machineOutcome(machine)
		if outcome.Status == OK {
			continue
		}
		if len(found) < mostFindings {
			if r := w.infrastructure(ctx, machine); r != nil {
				below = append(below, *r)
				if r.Status == Warning {
					outcome.Status = Warning // The machine is being prepared.
				}
			}
		}
		found = append(found, outcome.result(machineKind, client.ObjectKeyFromObject(machine).String()))
	}
	w.addFirst(found)
	w.addFirst(below)
}

// machineProblems lists the conditions of a Machine that name a problem, the deepest first.
var machineProblems = []string{
	clusterv1.InfrastructureReadyCondition, clusterv1.BootstrapConfigReadyCondition, clusterv1.MachineNodeReadyCondition,
	clusterv1.MachineNodeHealthyCondition, clusterv1.ReadyCondition,
}

func machineOutcome(machine *clusterv1.Machine) Outcome {
	remedy := fmt.Sprintf("kubectl describe machine.cluster.x-k8s.io -n %s %s", machine.Namespace, machine.Name)
	gone := meta.FindStatusCondition(machine.Status.Conditions, hyperv1.MachineFailedCondition)
	unmet := firstUnmet(machine.Status.Conditions, machineProblems)
	switch {
	case !machine.DeletionTimestamp.IsZero():
		message := fmt.Sprintf("it is being deleted since %s", machine.DeletionTimestamp.UTC().Format(time.RFC3339))
		if c := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.DeletingCondition); c != nil &&
			c.Message != "" {
			message += ": " + c.Message
		}
		return warn("", "%s", message)
	case gone != nil && gone.Status == metav1.ConditionTrue:
		return failed(fmt.Sprintf("kubectl delete machine.cluster.x-k8s.io -n %s %s", machine.Namespace, machine.Name),
			"the provider gave up (%s): %s", gone.Reason, gone.Message)
	case unmet != nil:
		return failed(remedy, "%s", describe(unmet))
	case !machine.Status.NodeRef.IsDefined():
		return failed(remedy, "it has no Node yet")
	}
	return Outcome{Status: OK}
}

// infrastructure describes the problem of the object of the infrastructure provider; nil if there is none.
func (w *walk) infrastructure(ctx context.Context, machine *clusterv1.Machine) *Result {
	ref := machine.Spec.InfrastructureRef
	name := machine.Namespace + "/" + ref.Name
	mapping, err := w.client.RESTMapper().RESTMapping(schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind})
	if err != nil || ref.Name == "" {
		return nil // The message of the Machine has to suffice.
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(mapping.GroupVersionKind)
	err = w.client.Get(ctx, client.ObjectKey{Namespace: machine.Namespace, Name: ref.Name}, obj)
	if apierrors.IsNotFound(err) {
		return ptr.To(failed("delete the Machine: its NodePool creates another one",
			"it was deleted while its Machine still exists").result(ref.Kind, name))
	}
	if err != nil {
		return ptr.To(unreadable(err, ref.Kind+" "+name).result(ref.Kind, name))
	}
	remedy := fmt.Sprintf("kubectl describe %s -n %s %s", mapping.Resource.Resource, machine.Namespace, ref.Name)
	if text, _, _ := unstructured.NestedString(obj.Object, "status", "failureMessage"); text != "" {
		return ptr.To(failed(remedy, "%s", text).result(ref.Kind, name))
	}
	switch reason, text := ownProblem(obj); {
	case text == "":
		return nil
	case progresses(reason):
		return ptr.To(warn("wait", "%s", text).result(ref.Kind, name))
	default:
		return ptr.To(failed(remedy, "%s", text).result(ref.Kind, name))
	}
}

// ownProblem describes the condition Ready if it is False, because it summarizes the others. Otherwise it describes the
// first condition that is False.
func ownProblem(obj *unstructured.Unstructured) (reason, text string) {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		if c["status"] != string(corev1.ConditionFalse) {
			continue
		}
		ready := c["type"] == clusterv1.ReadyCondition
		if text == "" || ready {
			reason, _ = c["reason"].(string)
			text = fmt.Sprintf("%v is False (%s): %v", c["type"], reason, c["message"])
		}
		if ready {
			break
		}
	}
	return reason, text
}

// preparing are the provider's reasons while a machine is being prepared: there is nothing to do but wait.
var preparing = []string{"Allocating", "MachineAllocated", "MachineDeploying", "VMCommissioning"}

// progresses reports whether a reason says only that machines are being prepared. A NodePool joins several reasons with
// commas.
func progresses(reasons string) bool {
	for reason := range strings.SplitSeq(reasons, ",") {
		if !slices.Contains(preparing, strings.TrimSpace(reason)) {
			return false
		}
	}
	return true
}

// nodeKinds lists the kinds of findings about nodes, the deepest first.
func (w *walk) nodeKinds() []string {
	for i := range w.pools {
		unmet := firstUnmet(nodepool.Conditions(&w.pools[i]), nodepool.ReadyConditions)
		if unmet != nil && !slices.Contains(machineConditions, unmet.Type) {
			return []string{nodePoolKind}
		}
	}
	var kinds []string
	for _, r := range w.results {
		switch r.Part {
		case hostedClusterKind, componentKind, podKind, nodePoolKind, machineKind:
		default:
			kinds = append(kinds, r.Part)
		}
	}
	return append(kinds, machineKind, nodePoolKind)
}
