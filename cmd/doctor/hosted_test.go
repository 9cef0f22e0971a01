// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cmd/doctor"
	"github.com/openshift/hypershift/cmd/kube"
)

func condition(name string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: name, Status: status, Reason: reason, Message: message}
}

// hosted returns the HostedCluster clusters/demo with these conditions, and its namespace.
func hosted(change func(hc *hyperv1.HostedCluster), conditions ...metav1.Condition) []client.Object {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}}
	hc.Status.Conditions = conditions
	change(hc)
	return []client.Object{hc, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "clusters-demo", Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo"},
	}}}
}

func unchanged(*hyperv1.HostedCluster) {}

func component(name, message string) client.Object {
	c := &hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name}}
	c.Status.Conditions = []metav1.Condition{condition("Available", "False", "WaitingForAvailable", message)}
	return c
}

func crashing(name, reason, message string) client.Object {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name}, Status: corev1.PodStatus{
		ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}},
	}}
}

func pool(replicas int32, conditions ...hyperv1.NodePoolCondition) client.Object {
	p := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "workers"}}
	p.Spec.ClusterName, p.Spec.Replicas, p.Status.Conditions = "demo", ptr.To(replicas), conditions
	return p
}

// machine returns a Machine without a Node, and its MaasMachine with this status.
func machine(status infrav1.MaasMachineStatus) []client.Object {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "workers-1"}}
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group,
		Kind: "MaasMachine", Name: "workers-a"}
	m.Status.Conditions = []metav1.Condition{condition("InfrastructureReady", "False", "NotReady",
		"MaasMachine is not ready")}
	return []client.Object{m, &infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo",
		Name: "workers-a"}, Status: status}}
}

func TestCauseOfCluster(t *testing.T) {
	available := condition("Available", "True", "AsExpected", "")
	noQuorum := condition("EtcdAvailable", "False", "EtcdWaitingForQuorum", "no quorum")
	down := condition("Available", "False", "EtcdWaitingForQuorum", "no quorum")
	waiting := hyperv1.NodePoolCondition{Type: "AllMachinesReady", Status: "False", Reason: "NoCapacity",
		Message: "1 machine"}
	for name, tt := range map[string]struct {
		objects [][]client.Object
		status  doctor.Status
		cause   string
	}{
		"the cluster does not exist": {nil, doctor.Failed,
			"HostedCluster clusters/demo: there is no HostedCluster clusters/demo"},
		"the operator reports nothing": {[][]client.Object{hosted(unchanged)}, doctor.Failed,
			"HostedCluster clusters/demo: the operator has not reported on it yet"},
		"a condition about the spec precedes what follows from it": {[][]client.Object{
			hosted(unchanged, down, condition("PlatformCredentialsFound", "False", "MAASUnauthorized",
				"MAAS does not know the API key")),
			{crashing("maas-1", "CrashLoopBackOff", ""), component("etcd", "waits")},
		}, doctor.Failed, "HostedCluster clusters/demo: PlatformCredentialsFound is False (MAASUnauthorized): MAAS does not know the API key"},
		"a pod of the control plane is the cause of a component": {[][]client.Object{
			hosted(unchanged, down, noQuorum), {component("etcd", "0 of 1 pods"), component("kube-apiserver", "waits"),
				crashing("etcd-0", "ImagePullBackOff", "not found")},
		}, doctor.Failed, "Pod clusters-demo/etcd-0: container main: ImagePullBackOff: not found"},
		"etcd precedes the components that wait for it": {[][]client.Object{
			hosted(unchanged, down, noQuorum), {component("cluster-api", "waits"), component("etcd", "0 of 1 pods")},
		}, doctor.Failed, "ControlPlaneComponent clusters-demo/etcd: Available is False (WaitingForAvailable): 0 of 1 pods"},
		"the provider says what a pool waits for": {[][]client.Object{
			hosted(unchanged, available), {pool(1, waiting)},
			machine(infrav1.MaasMachineStatus{Conditions: []metav1.Condition{condition("Ready", "False", "NoCapacity",
				"no Ready machine has tag gpu")}}),
		}, doctor.Failed, "MaasMachine clusters-demo/workers-a: Ready is False (NoCapacity): no Ready machine has tag gpu"},
		"the failure message of a machine is the cause": {[][]client.Object{
			hosted(unchanged, available), {pool(1, waiting)},
			machine(infrav1.MaasMachineStatus{FailureMessage: ptr.To("curtin failed on sda")}),
		}, doctor.Failed, "MaasMachine clusters-demo/workers-a: curtin failed on sda"},
		"a machine that is being installed is no failure": {[][]client.Object{
			hosted(unchanged, available), {pool(1, hyperv1.NodePoolCondition{Type: "AllMachinesReady", Status: "False",
				Reason: "MachineDeploying", Message: "installs"})},
			machine(infrav1.MaasMachineStatus{Conditions: []metav1.Condition{condition("Ready", "False", "MachineDeploying", "MAAS installs it")}}),
		}, doctor.Warning, "NodePool clusters/workers: 0 of 1 nodes; AllMachinesReady is False (MachineDeploying): installs"},
		"a wrong pool is the cause, not its machines": {[][]client.Object{
			hosted(unchanged, available), {pool(1, hyperv1.NodePoolCondition{Type: "ValidPlatformConfig", Status: "False",
				Reason: "ValidationFailed", Message: "no image"})},
			machine(infrav1.MaasMachineStatus{FailureMessage: ptr.To("curtin failed on sda")}),
		}, doctor.Failed, "NodePool clusters/workers: 0 of 1 nodes; ValidPlatformConfig is False (ValidationFailed): no image"},
		"a pool of no nodes is no problem": {[][]client.Object{hosted(unchanged, available), {pool(0, waiting)}}, doctor.OK,
			""},
		"a pause is a warning": {[][]client.Object{
			hosted(func(hc *hyperv1.HostedCluster) { hc.Spec.PausedUntil = ptr.To("true") }, available,
				condition("ReconciliationActive", "False", "ReconciliationPaused", "")), {pool(0)},
		}, doctor.Warning, "HostedCluster clusters/demo: spec.pausedUntil is true: while the cluster is paused, changes have no effect"},
		"an address that is not published is its own cause": {[][]client.Object{
			hosted(unchanged, down, condition("InfrastructureReady", "False", "WaitingForAvailable", "no load balancer")),
			{component("kube-apiserver", "waits for the Service")},
		}, doctor.Failed, "HostedCluster clusters/demo: InfrastructureReady is False (WaitingForAvailable): no load balancer"},
		"a pod that restarts because etcd is away is not the cause": {[][]client.Object{
			hosted(unchanged, down, noQuorum), {crashing("a-controller-1", "CrashLoopBackOff", ""), crashing("etcd-0", "ImagePullBackOff", "not found")},
		}, doctor.Failed, "Pod clusters-demo/etcd-0: container main: ImagePullBackOff: not found"},
		"a deletion says what it waits for": {[][]client.Object{
			hosted(func(hc *hyperv1.HostedCluster) {
				hc.DeletionTimestamp, hc.Finalizers = ptr.To(metav1.Unix(1_790_000_000, 0)), []string{"x/y"}
			}, condition("Available", "False", "Deleting", "waiting for 1 Machine")),
			{component("etcd", "stopped"), crashing("etcd-0", "CrashLoopBackOff", ""), pool(0)},
		}, doctor.Warning, "HostedCluster clusters/demo: it is being deleted since 2026-09-21T14:13:20Z: waiting for 1 Machine"},
		"text of a tenant cannot control the terminal": {[][]client.Object{
			hosted(unchanged, down), {crashing("a", "Bad\x1b[2J", "line\nFirst cause: none\u202e")},
		}, doctor.Failed, `Pod clusters-demo/a: container main: Bad\x1b[2J: line First cause: none\u202e`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			builder := fake.NewClientBuilder().WithScheme(kube.Scheme).WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(kube.Scheme))
			for _, objects := range tt.objects {
				builder = builder.WithObjects(objects...)
			}
			report := doctor.Examine(t.Context(), builder.Build(), client.ObjectKey{Namespace: "clusters", Name: "demo"}, nil)
			g.Expect(report.Cause).To(Equal(tt.cause), "%+v", report.Checks)
			g.Expect(report.Status).To(Equal(tt.status), "%+v", report.Checks)
		})
	}
}

// TestForeignNamespace checks that the control plane of another cluster is not taken for this one's.
func TestForeignNamespace(t *testing.T) {
	g := NewWithT(t)
	objects := hosted(unchanged, condition("Available", "False", "WaitingForAvailable", "waits"))
	objects[1].SetAnnotations(map[string]string{hyperv1.HostedClusterAnnotation: "clusters-x/y"})
	objects = append(objects, crashing("etcd-0", "CrashLoopBackOff", "of another tenant"))
	objects = append(objects, machine(infrav1.MaasMachineStatus{FailureMessage: ptr.To("of another tenant")})...)
	c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(objects...).Build()
	report := doctor.Examine(t.Context(), c, client.ObjectKey{Namespace: "clusters", Name: "demo"}, nil)
	for _, r := range report.Checks {
		g.Expect(r.Message).NotTo(ContainSubstring("of another tenant"))
	}
	g.Expect(report.Cause).To(ContainSubstring("Available is False"))
}

// TestManyPods checks that a report stays short.
func TestManyPods(t *testing.T) {
	g := NewWithT(t)
	objects := hosted(unchanged, condition("Available", "False", "WaitingForAvailable", "waits"))
	for i := range 20 {
		objects = append(objects, crashing(fmt.Sprintf("pod-%02d", i), "CrashLoopBackOff", ""))
	}
	c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(objects...).Build()
	report := doctor.Examine(t.Context(), c, client.ObjectKey{Namespace: "clusters", Name: "demo"}, nil)
	g.Expect(report.Checks).To(ContainElement(HaveField("Check", "15 more")))
	g.Expect(len(report.Checks)).To(BeNumerically("<", 12))
}
