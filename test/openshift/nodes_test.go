// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/openshift/hypershift/test/journey"
)

// Annotations of a Node by which the release's config operator and the machine-config-daemon agree on an update.
const (
	currentConfig = "machineconfiguration.openshift.io/currentConfig"
	desiredConfig = "machineconfiguration.openshift.io/desiredConfig"
	daemonState   = "machineconfiguration.openshift.io/state"
	daemonDone    = "Done"
)

// heartbeat is the interval at which kubelets renew their leases.
const heartbeat = 10 * time.Second

// kubelets imitates the kubelet and the machine-config-daemon of RHCOS for each machine that MAAS has deployed. It
// creates a Node, renews its lease, and reports an update in place. It stops when the test ends.
func (s *suite) kubelets(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	t.Cleanup(func() { stop(); <-stopped })
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(heartbeat)
		defer ticker.Stop()
		last := ""
		for {
			if err := s.beat(ctx); err != nil && ctx.Err() == nil && err.Error() != last {
				last = err.Error()
				s.Say("kubelets: %v", err)
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
}

// beat updates the Nodes of all machines.
func (s *suite) beat(ctx context.Context) error {
	if _, err := os.Stat(s.Path(cluster + ".kubeconfig")); errors.Is(err, fs.ErrNotExist) {
		return nil // The hosted cluster has no API server yet.
	}
	machines, err := journey.Machines(ctx, s.c, cluster, "")
	if err != nil {
		return err
	}
	guest, err := s.GuestClient(cluster)
	if err != nil {
		return err
	}
	for _, m := range machines {
		deployed := m.Status.MachineState != nil && *m.Status.MachineState == "Deployed"
		if m.DeletionTimestamp != nil || !deployed || m.Status.Hostname == nil {
			continue
		}
		if err := s.register(ctx, guest, *m.Status.Hostname); err != nil {
			return fmt.Errorf("updating the Node of machine %s: %w", m.Name, err)
		}
	}
	return nil
}

// register creates or updates the Node of a machine.
func (s *suite) register(ctx context.Context, guest client.Client, name string) error {
	now := metav1.Now()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, guest, lease, func() error {
		seconds, renewed := int32(40), metav1.NewMicroTime(now.Time)
		lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &renewed}
		return nil
	}); err != nil {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := controllerutil.CreateOrPatch(ctx, guest, node, func() error {
		if node.Labels == nil {
			node.Labels = map[string]string{}
		}
		node.Labels[corev1.LabelHostname], node.Labels["node-role.kubernetes.io/worker"] = name, ""
		if wanted := node.Annotations[desiredConfig]; wanted != "" {
			node.Annotations[currentConfig], node.Annotations[daemonState] = wanted, daemonDone
		}
		return nil
	}); err != nil {
		return err
	}
	before := node.DeepCopy()
	resources := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourcePods: resource.MustParse("100"),
	}
	node.Status.Capacity, node.Status.Allocatable = resources, resources
	node.Status.NodeInfo = corev1.NodeSystemInfo{
		KubeletVersion: "v" + s.sources.kubernetes, OSImage: "simulated RHCOS",
		OperatingSystem: "linux", Architecture: "amd64",
	}
	node.Status.Conditions = nil
	for kind, status := range map[corev1.NodeConditionType]corev1.ConditionStatus{
		corev1.NodeReady: corev1.ConditionTrue, corev1.NodeMemoryPressure: corev1.ConditionFalse,
		corev1.NodeDiskPressure: corev1.ConditionFalse, corev1.NodePIDPressure: corev1.ConditionFalse,
	} {
		since := now
		for _, c := range before.Status.Conditions {
			if c.Type == kind && c.Status == status {
				since = c.LastTransitionTime
			}
		}
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: kind, Status: status, Reason: "Simulated", Message: "simulated",
			LastHeartbeatTime: now, LastTransitionTime: since,
		})
	}
	return guest.Status().Patch(ctx, node, client.MergeFrom(before))
}

// machineConfig creates a MachineConfig with one file, and returns the name of its ConfigMap.
func (s *suite) machineConfig(t *testing.T, name string) string {
	t.Helper()
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": map[string]any{
			"name": "60-" + name, "labels": map[string]string{"machineconfiguration.openshift.io/role": "worker"},
		},
		"spec": map[string]any{"config": map[string]any{
			"ignition": map[string]any{"version": "3.2.0"},
			"storage": map[string]any{"files": []any{map[string]any{
				"path": "/etc/" + name, "mode": 420, "contents": map[string]any{"source": "data:," + name},
			}}},
		}},
	})
	s.must(t, err)
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: journey.Namespace, Name: name},
		Data:       map[string]string{"config": string(manifest)},
	}
	s.must(t, client.IgnoreAlreadyExists(s.c.Create(t.Context(), config)))
	return name
}
