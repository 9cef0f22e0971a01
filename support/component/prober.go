// SPDX-License-Identifier: Apache-2.0

package component

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

const (
	proberTag    = "availability-prober"
	proberTarget = "https://kube-apiserver:6443/readyz"
)

// APIServerReady is the WaitsFor of components that need the hosted API server.
func APIServerReady(*hyperv1.HostedControlPlane) string {
	return proberTarget
}

// injectProber adds the init container that waits for WaitsFor.
func (c *Component) injectProber(hcp *hyperv1.HostedControlPlane, pod *corev1.PodSpec) {
	if c.WaitsFor == nil {
		return
	}
	target := c.WaitsFor(hcp)
	if target == "" {
		return
	}
	container := corev1.Container{
		Name:    proberTag,
		Image:   proberTag,
		Command: []string{"/usr/bin/control-plane-operator", "availability-prober"},
		Args:    []string{"--target=" + target},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("5Mi"),
		}},
	}
	setContainer(&container)
	pod.InitContainers = append([]corev1.Container{container}, pod.InitContainers...)
}
