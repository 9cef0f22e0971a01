// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// object holds the fields of any Kubernetes object that a diagnosis reads.
type object struct {
	Kind     string
	Metadata struct {
		Name, Namespace   string
		DeletionTimestamp *string
	}
	Spec struct {
		ClusterName string
	}
	Status struct {
		Phase             string
		Conditions        []conditionView
		ContainerStatuses []containerView
	}
}

type conditionView struct{ Type, Status, Reason, Message string }

type containerView struct {
	Name         string
	Ready        bool
	RestartCount int
}

// wellWhenFalse lists the conditions whose status True means work in progress or a problem.
var wellWhenFalse = map[string]bool{
	string(hyperv1.HostedClusterProgressing): true, string(hyperv1.HostedClusterDegraded): true,
	hyperv1.NodePoolUpdatingVersionConditionType: true, hyperv1.NodePoolUpdatingConfigConditionType: true,
	hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType: true,
	hyperv1.NodePoolAutoscalingEnabledConditionType:              true, hyperv1.NodePoolAutorepairEnabledConditionType: true,
	string(hyperv1.ClusterVersionProgressing): true, string(hyperv1.ClusterVersionFailing): true,
	hyperv1.NodePoolClusterNetworkCIDRConflictType: true,
	// These are conditions of Cluster API.
	"Paused": true, "Deleting": true, "RollingOut": true, "ScalingUp": true, "ScalingDown": true, "Remediating": true, "Updating": true,
	"RemoteConnectionProbe": true,
}

// Well reports whether a condition of this type has its normal status.
func Well(conditionType, status string) bool {
	return (status == "True") != wellWhenFalse[conditionType]
}

// Diagnose prints likely causes of a failure: the conditions with an abnormal status, and the last log lines of the
// containers that are not ready. It omits other clusters.
func (w *Walker) Diagnose(ctx context.Context, cluster string) {
	hosted := HostedNamespace(cluster)
	w.Say("What stands in the way:")
	for _, query := range [][]string{
		{"hostedclusters,nodepools", "-n", Namespace},
		{"hostedcontrolplanes,controlplanecomponents,maasclusters,machinedeployments,machines,maasmachines", "-n", hosted},
	} {
		for _, o := range w.objects(ctx, append([]string{"get"}, query...)...) {
			if o.Metadata.Namespace == Namespace && o.Metadata.Name != cluster && o.Spec.ClusterName != cluster {
				continue
			}
			w.Say("%s", strings.TrimRight(o.complaints(), "\n"))
		}
	}
	for _, namespace := range []string{OperatorNamespace, hosted} {
		w.diagnosePods(ctx, namespace)
	}
}

func (w *Walker) diagnosePods(ctx context.Context, namespace string) {
	for _, pod := range w.objects(ctx, "get", "pods", "-n", namespace) {
		for _, c := range pod.Status.ContainerStatuses {
			if c.Ready {
				continue // The log of a ready container does not explain the failure.
			}
			w.Say("pod %s/%s container %s is not ready, %d restarts; its last lines:", namespace, pod.Metadata.Name, c.Name, c.RestartCount)
			logs, err := w.Read(ctx, "kubectl", "logs", "-n", namespace, pod.Metadata.Name, "-c", c.Name, "--tail=15")
			if err != nil {
				logs = err.Error()
			}
			fmt.Fprint(w.Out, indent(logs))
		}
	}
}

func (w *Walker) objects(ctx context.Context, args ...string) []object {
	out, err := w.Read(ctx, append(append([]string{"kubectl"}, args...), "-o", "json")...)
	if err != nil {
		w.Say("  %v", err)
		return nil
	}
	var list struct{ Items []object }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		w.Say("  reading objects: %v", err)
	}
	return list.Items
}

// complaints lists the conditions of o with an abnormal status, one per line under its name.
func (o object) complaints() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s/%s", o.Kind, o.Metadata.Namespace, o.Metadata.Name)
	if o.Metadata.DeletionTimestamp != nil {
		b.WriteString(" (being deleted)")
	}
	b.WriteString("\n")
	for _, c := range o.Status.Conditions {
		if Well(c.Type, c.Status) {
			continue
		}
		fmt.Fprintf(&b, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	return b.String()
}
