// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
)

const (
	// Namespace is the namespace of the scenario's hosted clusters.
	Namespace = "clusters"
	// OperatorNamespace is the namespace of the hypershift-operator.
	OperatorNamespace = "hypershift"
)

// HostedNamespace returns the namespace of a cluster's control plane.
func HostedNamespace(cluster string) string { return Namespace + "-" + cluster }

// Scheme returns a scheme with every kind that the scenario reads.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, hyperv1.AddToScheme, infrav1.AddToScheme, clusterv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

// Management returns a client of the management cluster.
func (w *Walker) Management() (client.Client, error) { return connect(w.Path("kubeconfig")) }

// GuestClient returns a client of a hosted cluster. SaveKubeconfig must have written its kubeconfig.
func (w *Walker) GuestClient(cluster string) (client.Client, error) {
	return connect(w.Path(cluster + ".kubeconfig"))
}

func connect(kubeconfig string) (client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", kubeconfig, err)
	}
	// This is longer than an API server waits for an unresponsive webhook.
	config.Timeout = 30 * time.Second
	config.QPS, config.Burst = 50, 100
	return client.New(config, client.Options{Scheme: Scheme()})
}

// OperatorReady checks that the hypershift-operator is available.
func OperatorReady(c client.Client) Check {
	return func(ctx context.Context) (bool, string, error) {
		operator := &appsv1.Deployment{}
		err := c.Get(ctx, client.ObjectKey{Namespace: OperatorNamespace, Name: "operator"}, operator)
		ready := operator.Status.AvailableReplicas
		return ready > 0 && ready == *operator.Spec.Replicas, fmt.Sprintf("%d pods available", ready), err
	}
}

// ClusterAvailable checks that a hosted cluster's API serves.
func ClusterAvailable(c client.Client, cluster string) Check {
	return func(ctx context.Context) (bool, string, error) {
		hc := &hyperv1.HostedCluster{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: cluster}, hc); err != nil {
			return false, "", err
		}
		available := meta.FindStatusCondition(hc.Status.Conditions, string(hyperv1.HostedClusterAvailable))
		if available == nil {
			return false, "not reported yet", nil
		}
		return available.Status == "True", available.Reason + ": " + available.Message, nil
	}
}

// Machines lists the MaasMachines of a cluster; pool "" means all pools.
func Machines(ctx context.Context, c client.Client, cluster, pool string) ([]infrav1.MaasMachine, error) {
	list := &infrav1.MaasMachineList{}
	if err := c.List(ctx, list, client.InNamespace(HostedNamespace(cluster))); err != nil {
		return nil, err
	}
	if pool == "" {
		return list.Items, nil
	}
	var mine []infrav1.MaasMachine
	for _, m := range list.Items {
		if strings.HasPrefix(m.Name, pool+"-") {
			mine = append(mine, m)
		}
	}
	return mine, nil
}

// MachinesAllocated checks that count MAAS machines are allocated to the cluster.
func MachinesAllocated(c client.Client, cluster, pool string, count int) Check {
	return machines(c, cluster, pool, count, func(m infrav1.MaasMachine) bool { return m.Spec.SystemID != nil })
}

// MachinesDeploying checks that MAAS deploys, or has deployed, count machines.
func MachinesDeploying(c client.Client, cluster, pool string, count int) Check {
	return machines(c, cluster, pool, count, func(m infrav1.MaasMachine) bool {
		return state(m) == "Deploying" || state(m) == "Deployed"
	})
}

// MachinesDeployed checks that MAAS has deployed count machines.
func MachinesDeployed(c client.Client, cluster, pool string, count int) Check {
	return machines(c, cluster, pool, count, func(m infrav1.MaasMachine) bool { return state(m) == "Deployed" })
}

func machines(c client.Client, cluster, pool string, count int, good func(infrav1.MaasMachine) bool) Check {
	return func(ctx context.Context) (bool, string, error) {
		all, err := Machines(ctx, c, cluster, pool)
		if err != nil {
			return false, "", err
		}
		reached, words := 0, []string{}
		for _, m := range all {
			if m.DeletionTimestamp == nil && good(m) {
				reached++
			}
			words = append(words, describeMachine(m))
		}
		return reached == count && len(all) == count, fmt.Sprintf("%d of %d; %s", reached, count, strings.Join(words, ", ")), nil
	}
}

func state(m infrav1.MaasMachine) string {
	if m.Status.MachineState == nil {
		return ""
	}
	return *m.Status.MachineState
}

func describeMachine(m infrav1.MaasMachine) string {
	name := m.Name
	if m.Status.Hostname != nil {
		name = *m.Status.Hostname
	}
	words := state(m)
	if ready := meta.FindStatusCondition(m.Status.Conditions, "Ready"); ready != nil && ready.Status != "True" && words == "" {
		words = ready.Reason
	}
	if m.DeletionTimestamp != nil {
		words += " (going)"
	}
	return strings.TrimSpace(name + " " + words)
}

// NodesReady checks that exactly count nodes of the hosted cluster exist and are Ready.
func (w *Walker) NodesReady(cluster string, count int) Check { return w.nodesReady(cluster, count) }

// PoolNodesReady checks that exactly count nodes of one pool exist and are Ready; it ignores other pools.
func (w *Walker) PoolNodesReady(cluster, pool string, count int) Check {
	return w.nodesReady(cluster, count, client.MatchingLabels{hyperv1.NodePoolLabel: pool})
}

func (w *Walker) nodesReady(cluster string, count int, of ...client.ListOption) Check {
	return func(ctx context.Context) (bool, string, error) {
		guest, err := w.GuestClient(cluster)
		if err != nil {
			return false, "", err
		}
		nodes := &corev1.NodeList{}
		if err := guest.List(ctx, nodes, of...); err != nil {
			return false, "", err
		}
		ready := 0
		for _, n := range nodes.Items {
			if nodeReady(n) {
				ready++
			}
		}
		return ready == count && len(nodes.Items) == count, fmt.Sprintf("%d of %d nodes, %d Ready", len(nodes.Items), count, ready), nil
	}
}

func nodeReady(n corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Gone checks that an object does not exist any more.
func Gone(c client.Client, obj client.Object) Check {
	return func(ctx context.Context) (bool, string, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if client.IgnoreNotFound(err) != nil {
			return false, "", err
		}
		return err != nil, fmt.Sprintf("%s is still there", obj.GetName()), nil
	}
}

// PoolReplicas checks that a NodePool reports count available nodes.
func PoolReplicas(c client.Client, pool string, count int32) Check {
	return func(ctx context.Context) (bool, string, error) {
		np := &hyperv1.NodePool{}
		err := c.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: pool}, np)
		return np.Status.Replicas == count, fmt.Sprintf("%d of %d nodes", np.Status.Replicas, count), err
	}
}

// PoolVersion checks that a NodePool reports a version of its nodes, such as "1.36.3".
func PoolVersion(c client.Client, pool, version string) Check {
	return func(ctx context.Context) (bool, string, error) {
		np := &hyperv1.NodePool{}
		err := c.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: pool}, np)
		return np.Status.Version == version, "the pool says " + np.Status.Version, err
	}
}

// PoolCondition checks that a condition of a NodePool has the status, one of the reasons and a message.
func PoolCondition(c client.Client, pool, conditionType, status string, reasons ...string) Check {
	return func(ctx context.Context) (bool, string, error) {
		np := &hyperv1.NodePool{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: pool}, np); err != nil {
			return false, "", err
		}
		for _, found := range np.Status.Conditions {
			if found.Type != conditionType {
				continue
			}
			return string(found.Status) == status && oneOf(found.Reason, reasons) && found.Message != "",
				fmt.Sprintf("%s=%s %s: %s", found.Type, found.Status, found.Reason, found.Message), nil
		}
		return false, conditionType + " is not reported yet", nil
	}
}

// ClusterCondition is like PoolCondition, but for a HostedCluster.
func ClusterCondition(c client.Client, cluster, conditionType, status string, reasons ...string) Check {
	return func(ctx context.Context) (bool, string, error) {
		hc := &hyperv1.HostedCluster{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: cluster}, hc); err != nil {
			return false, "", err
		}
		found := meta.FindStatusCondition(hc.Status.Conditions, conditionType)
		if found == nil {
			return false, conditionType + " is not reported yet", nil
		}
		return string(found.Status) == status && oneOf(found.Reason, reasons) && found.Message != "",
			fmt.Sprintf("%s=%s %s: %s", found.Type, found.Status, found.Reason, found.Message), nil
	}
}

// oneOf reports whether reason contains one of the expected reasons; an empty list matches any reason.
func oneOf(reason string, wanted []string) bool {
	for _, want := range wanted {
		if strings.Contains(reason, want) {
			return true
		}
	}
	return len(wanted) == 0
}
