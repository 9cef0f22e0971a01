// SPDX-License-Identifier: Apache-2.0

package component

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	proberTag        = "availability-prober"
	proberTarget     = "https://kube-apiserver:6443/readyz"
	proberKubeconfig = "/var/kubeconfig"
)

// Prober makes pods wait in an init container until the hosted API server is ready.
type Prober struct {
	// KubeconfigVolume is the name of the pod's volume with a kubeconfig for the checks below; empty if there are none.
	KubeconfigVolume string
	// RequiredAPIs are the kinds that the hosted API server must serve.
	RequiredAPIs []schema.GroupVersionKind
	// WaitForInfrastructure waits until the guest cluster's Infrastructure has a name.
	WaitForInfrastructure bool
	// WaitForClusterRoleBinding waits for a ClusterRoleBinding of this name; empty waits for none.
	WaitForClusterRoleBinding string
}

func (c *Component) injectProber(pod *corev1.PodSpec) {
	if c.Prober == nil {
		return
	}
	container := corev1.Container{
		Name:    proberTag,
		Image:   proberTag,
		Command: []string{"/usr/bin/control-plane-operator", "availability-prober"},
		Args:    c.Prober.args(),
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("5Mi"),
		}},
	}
	setContainer(&container)
	if c.Prober.KubeconfigVolume != "" {
		container.VolumeMounts = []corev1.VolumeMount{{Name: c.Prober.KubeconfigVolume, MountPath: proberKubeconfig, ReadOnly: true}}
	}
	pod.InitContainers = append([]corev1.Container{container}, pod.InitContainers...)
}

func (p *Prober) args() []string {
	args := []string{"--target=" + proberTarget}
	if p.KubeconfigVolume != "" {
		args = append(args, "--kubeconfig="+proberKubeconfig+"/kubeconfig")
	}
	for _, gvk := range p.RequiredAPIs {
		args = append(args, "--required-api="+strings.Join([]string{gvk.Group, gvk.Version, gvk.Kind}, ","))
	}
	if p.WaitForInfrastructure {
		args = append(args, "--wait-for-infrastructure-resource")
	}
	if p.WaitForClusterRoleBinding != "" {
		args = append(args, "--wait-for-cluster-rolebinding="+p.WaitForClusterRoleBinding)
	}
	return args
}
