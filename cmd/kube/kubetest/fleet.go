// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cmd/kube"
)

// FleetAge is how long all objects of Fleet exist, and their conditions have their status.
const FleetAge = 5 * 24 * time.Hour

// Fleet returns clusters as the operators report them.
//
//   - Cluster clusters/demo is available and runs 1.35.4. Its NodePool workers has one of two nodes: the machine
//     workers-b has no host that fits. Its NodePool elastic is autoscaled and has no nodes.
//   - Cluster team/young waits for credentials.
func Fleet() []client.Object {
	demo, young := fleetCluster("clusters", "demo"), fleetCluster("team", "young")
	demo.Status.Version = &hyperv1.ClusterVersionStatus{
		Desired: configv1.Release{Version: "1.35.4"},
		History: []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "1.35.4"}},
	}
	demo.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "10.0.0.9", Port: 6443}
	demo.Status.Conditions = []metav1.Condition{
		fleetCondition(string(hyperv1.ValidReleaseImage), "True", "AsExpected", ""), fleetCondition("Available", "True", "AsExpected", ""),
		fleetCondition("Progressing", "False", "AsExpected", ""), fleetCondition("Degraded", "False", "AsExpected", ""),
	}
	young.Status.Conditions = []metav1.Condition{
		fleetCondition("Available", "False", "PlatformCredentialsNotFound", "waiting"),
		fleetCondition(string(hyperv1.PlatformCredentialsFound), "False", "PlatformCredentialsNotFound", "Secret \x1b[31mmaas\x1b[0m does not exist\ncreate it"),
	}
	workers, elastic := fleetPool("workers", 2), fleetPool("elastic", 0)
	workers.Status = hyperv1.NodePoolStatus{Replicas: 1, Version: "1.35.4", Conditions: []hyperv1.NodePoolCondition{
		{Type: "Ready", Status: "False", Reason: "NoCapacity", Message: "1 of 2 machines", LastTransitionTime: fleetTime()},
		{Type: hyperv1.NodePoolAllMachinesReadyConditionType, Status: "False", Reason: "NoCapacity", Message: "no machine has 64 cores", LastTransitionTime: fleetTime()},
		{Type: hyperv1.NodePoolUpdatingVersionConditionType, Status: "False", Reason: "AsExpected", LastTransitionTime: fleetTime()},
	}}
	elastic.Spec.Replicas, elastic.Spec.AutoScaling = nil, &hyperv1.NodePoolAutoScaling{Min: ptr.To[int32](0), Max: 5}
	elastic.Status = hyperv1.NodePoolStatus{Version: "1.35.4", Conditions: []hyperv1.NodePoolCondition{
		{Type: "Ready", Status: "True", Reason: "AsExpected", LastTransitionTime: fleetTime()},
	}}
	objects := []client.Object{demo, young, workers, elastic}
	objects = append(objects, fleetMachine("workers-a", "Running", "True", "calm-ant")...)
	return append(objects, fleetMachine("workers-b", "Provisioning", "False", "")...)
}

func fleetTime() metav1.Time { return metav1.NewTime(time.Now().Add(-FleetAge)) }

func fleetCondition(t, status, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: t, Status: metav1.ConditionStatus(status), Reason: reason, Message: message, LastTransitionTime: fleetTime(),
	}
}

func fleetCluster(namespace, name string) *hyperv1.HostedCluster {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: fleetTime()}}
	hc.Spec.Platform.Type = hyperv1.MAASPlatform
	hc.Spec.Release.Image = "registry.example/release:1.35.4"
	hc.Spec.PullSecret = corev1.LocalObjectReference{Name: "pull-secret"}
	return hc
}

func fleetPool(name string, replicas int32) *hyperv1.NodePool {
	pool := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name, CreationTimestamp: fleetTime()}}
	pool.Spec.ClusterName, pool.Spec.Replicas = "demo", ptr.To(replicas)
	pool.Spec.Release.Image = "registry.example/release:1.35.4"
	pool.Spec.Management.UpgradeType = hyperv1.UpgradeTypeReplace
	return pool
}

// fleetMachine returns a Machine of the NodePool workers, and its MaasMachine.
func fleetMachine(name, phase, ready, host string) []client.Object {
	meta := metav1.ObjectMeta{Namespace: kube.HostedNamespace("clusters", "demo"), Name: name, CreationTimestamp: fleetTime()}
	machine, maas := &clusterv1.Machine{ObjectMeta: meta}, &infrav1.MaasMachine{ObjectMeta: meta}
	machine.Annotations = map[string]string{hyperv1.NodePoolAnnotation: "clusters/workers"}
	machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: "MaasMachine", Name: name}
	machine.Status.Phase = phase
	machine.Status.Conditions = []metav1.Condition{fleetCondition(clusterv1.InfrastructureReadyCondition, ready, "NoCapacity", "waiting")}
	maas.Status.Conditions = []metav1.Condition{fleetCondition("Ready", ready, "NoCapacity", "no machine has 64 cores")}
	if host != "" {
		machine.Status.NodeRef.Name = host
		machine.Spec.ProviderID = "maas:///az1/wq4h8c"
		maas.Spec.SystemID, maas.Spec.ProviderID = ptr.To("wq4h8c"), ptr.To("maas:///az1/wq4h8c")
		maas.Status.Hostname, maas.Status.Zone, maas.Status.MachineState = ptr.To(host), "az1", ptr.To("Deployed")
	}
	return []client.Object{machine, maas}
}
