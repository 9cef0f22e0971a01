package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/progress"
)

// wanted lists conditions in the order in which they come to hold, with the status that they should have. The first one
// that does not hold is what is in the way.
type wanted struct {
	conditionType string
	status        metav1.ConditionStatus
}

func mustBeTrue(types ...hyperv1.ConditionType) []wanted {
	var list []wanted
	for _, t := range types {
		list = append(list, wanted{string(t), metav1.ConditionTrue})
	}
	return list
}

var (
	clusterConditions = mustBeTrue(
		hyperv1.ReconciliationActive, hyperv1.ValidHostedClusterConfiguration, hyperv1.ValidReleaseImage, hyperv1.SupportedHostedCluster,
		hyperv1.PlatformCredentialsFound, hyperv1.ValidHostedControlPlaneConfiguration, hyperv1.ValidReleaseInfo, hyperv1.InfrastructureReady,
		hyperv1.EtcdAvailable, hyperv1.KubeAPIServerAvailable, hyperv1.IgnitionEndpointAvailable, hyperv1.IgnitionServerValidReleaseInfo,
		hyperv1.HostedClusterAvailable,
	)
	poolConditions = mustBeTrue(
		hyperv1.NodePoolReconciliationActiveConditionType, hyperv1.NodePoolValidReleaseImageConditionType,
		hyperv1.NodePoolValidPlatformConfigConditionType, hyperv1.NodePoolValidPlatformImageType, hyperv1.NodePoolValidArchPlatform,
		hyperv1.NodePoolValidMachineConfigConditionType, hyperv1.NodePoolValidTuningConfigConditionType,
		hyperv1.NodePoolValidMachineTemplateConditionType, hyperv1.NodePoolValidGeneratedPayloadConditionType,
		hyperv1.NodePoolAllMachinesReadyConditionType, hyperv1.NodePoolReachedIgnitionEndpoint, hyperv1.NodePoolAllNodesHealthyConditionType,
		hyperv1.NodePoolReadyConditionType,
	)
)

// waitReady waits until the cluster is available and its NodePools have their nodes.
func (c *create) waitReady(ctx context.Context, report *progress.Reporter) error {
	key := client.ObjectKey{Namespace: c.namespace, Name: c.name}
	err := report.Wait(ctx, "HostedCluster "+key.String(), c.timeout, pollInterval, func(ctx context.Context) (progress.State, error) {
		return look(ctx, c.client, key)
	})
	if err != nil {
		return fmt.Errorf("%w; look further with: kubectl describe hostedcluster,nodepool -n %s", err, c.namespace)
	}
	report.Printf("next: hypershift create kubeconfig --namespace %s --name %s", c.namespace, c.name)
	return nil
}

func look(ctx context.Context, c client.Client, key client.ObjectKey) (progress.State, error) {
	hc := &hyperv1.HostedCluster{}
	if err := c.Get(ctx, key, hc); err != nil {
		return progress.State{}, fmt.Errorf("read HostedCluster %s: %w", key, err)
	}
	var pools hyperv1.NodePoolList
	if err := c.List(ctx, &pools, client.InNamespace(key.Namespace)); err != nil {
		return progress.State{}, fmt.Errorf("list the NodePools of namespace %s: %w", key.Namespace, err)
	}
	pools.Items = slices.DeleteFunc(pools.Items, func(p hyperv1.NodePool) bool { return p.Spec.ClusterName != key.Name })
	return stateOf(hc, pools.Items), nil
}

// stateOf tells how far a cluster is.
func stateOf(hc *hyperv1.HostedCluster, pools []hyperv1.NodePool) progress.State {
	if !meta.IsStatusConditionTrue(hc.Status.Conditions, string(hyperv1.HostedClusterAvailable)) {
		blocking := firstUnmet(hc.Status.Conditions, clusterConditions)
		return progress.State{Message: "control plane: " + blocking, Blocking: "HostedCluster: " + blocking}
	}
	var nodes []string
	done, blocking := true, ""
	for i := range pools {
		want := int32(0)
		if pools[i].Spec.Replicas != nil {
			want = *pools[i].Spec.Replicas
		}
		nodes = append(nodes, fmt.Sprintf("%s %d/%d", pools[i].Name, pools[i].Status.Replicas, want))
		if pools[i].Status.Replicas >= want {
			continue
		}
		done = false
		if blocking == "" {
			blocking = fmt.Sprintf("NodePool %s: %s", pools[i].Name, firstUnmet(poolConditionsOf(&pools[i]), poolConditions))
		}
	}
	message := "control plane available, nodes: " + strings.Join(nodes, ", ")
	if blocking != "" {
		message += "; " + blocking
	}
	return progress.State{Done: done, Message: message, Blocking: blocking}
}

// poolConditionsOf gives the conditions of a NodePool the type that all others have.
func poolConditionsOf(pool *hyperv1.NodePool) []metav1.Condition {
	var conditions []metav1.Condition
	for _, c := range pool.Status.Conditions {
		conditions = append(conditions, metav1.Condition{
			Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime,
		})
	}
	return conditions
}

// firstUnmet describes the first condition that is there and does not hold.
func firstUnmet(conditions []metav1.Condition, list []wanted) string {
	for _, want := range list {
		got := meta.FindStatusCondition(conditions, want.conditionType)
		if got == nil || got.Status == want.status {
			continue
		}
		return fmt.Sprintf("%s is %s (%s): %s", got.Type, got.Status, got.Reason, got.Message)
	}
	return "waiting for the operator"
}
