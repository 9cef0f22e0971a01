// SPDX-License-Identifier: Apache-2.0

// Package clusterautoscaler is the component that adds machines to a NodePool when pods cannot be scheduled. It runs if
// the release payload contains its image.
package clusterautoscaler

import (
	"context"
	"embed"
	"io/fs"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
)

// Name is the component's name, and its tag in the payload.
const Name = "cluster-autoscaler"

const (
	disableMachines   = hyperv1.DisableMachineManagement
	disableAutoscaler = hyperv1.DisableClusterAutoscalerAnnotation
)

//go:embed manifests
var manifests embed.FS

// New returns the component.
func New() *component.Component {
	files, _ := fs.Sub(manifests, "manifests")
	return &component.Component{
		Name:      Name,
		Manifests: files,
		Enabled:   enabled,
		Adapters:  map[string]component.Adapter{"deployment.yaml": component.Adapt(adapt)},
		Options:   component.Options{ManagementAccess: true, Singleton: true, WaitsFor: component.APIServerReady, WaitsInPod: true},
	}
}

func enabled(_ context.Context, scope *component.Scope) (bool, error) {
	_, inPayload := scope.Images.ComponentImage(Name)
	_, disabled := scope.HCP.Annotations[disableMachines]
	return inPayload && !disabled, nil
}

func adapt(_ context.Context, scope *component.Scope, deployment *appsv1.Deployment) error {
	if scope.HCP.Annotations[disableAutoscaler] == "true" {
		deployment.Spec.Replicas = ptr.To[int32](0)
	}
	pod := &deployment.Spec.Template.Spec
	pod.Containers[0].Args = args(scope)
	return nil
}

func args(scope *component.Scope) component.Flags {
	var f component.Flags
	f.Set("cloud-provider", "clusterapi")
	f.Set("node-group-auto-discovery", "clusterapi:namespace=$(MY_NAMESPACE)")
	f.Set("kubeconfig", "/mnt/kubeconfig/target-kubeconfig")
	f.Set("clusterapi-cloud-config-authoritative", "true")
	f.Set("skip-nodes-with-local-storage", "false")
	f.Set("balance-similar-node-groups", "true")
	f.Set("leader-elect-lease-duration", "137s")
	f.Set("leader-elect-renew-deadline", "107s")
	f.Set("leader-elect-retry-period", "26s")
	setLimits(&f, scope.HCP.Spec.Autoscaling)
	setChoice(&f, scope.HCP.Spec.Autoscaling)
	setScaleDown(&f, scope.HCP.Spec.Autoscaling)
	f.Set("v", "4")
	return f
}
