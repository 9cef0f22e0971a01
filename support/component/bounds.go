// SPDX-License-Identifier: Apache-2.0

package component

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// The default sizes of scratch volumes. The kubelet evicts a pod whose volume exceeds its size, so a program that
// writes without limit does not exhaust its node's disk or memory for others.
var (
	scratchSize       = resource.MustParse("1Gi")
	scratchMemorySize = resource.MustParse("16Mi")
)

// leastRequests are the default requests of containers. The scheduler does not count a container without requests.
var leastRequests = corev1.ResourceList{
	corev1.ResourceCPU:    resource.MustParse("10m"),
	corev1.ResourceMemory: resource.MustParse("32Mi"),
}

// defaultLimits are the default limits of containers. They are far above what a program needs. They only keep a
// program that serves a tenant's cluster from using all resources of a node. The manifests of the API server and etcd
// have higher limits, because their memory grows with the data that users store.
var defaultLimits = corev1.ResourceList{
	corev1.ResourceCPU:    resource.MustParse("16"),
	corev1.ResourceMemory: resource.MustParse("16Gi"),
}

// Bound limits the resources of a pod's containers. Each emptyDir gets a size, and each container gets requests and
// limits, unless its manifest sets them. A limit is at least twice the request.
func Bound(pod *corev1.PodSpec) {
	for i := range pod.Volumes {
		volume := pod.Volumes[i].EmptyDir
		if volume == nil || volume.SizeLimit != nil {
			continue
		}
		size := scratchSize
		if volume.Medium == corev1.StorageMediumMemory {
			size = scratchMemorySize
		}
		volume.SizeLimit = ptr.To(size)
	}
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			bindRequests(&containers[i])
			bindLimits(&containers[i].Resources)
		}
	}
}

func bindRequests(container *corev1.Container) {
	for name, least := range leastRequests {
		_, requested := container.Resources.Requests[name]
		_, limited := container.Resources.Limits[name] // The API server sets the request to the limit.
		if requested || limited {
			continue
		}
		if container.Resources.Requests == nil {
			container.Resources.Requests = corev1.ResourceList{}
		}
		container.Resources.Requests[name] = least
	}
}

func bindLimits(resources *corev1.ResourceRequirements) {
	if resources.Limits == nil {
		resources.Limits = corev1.ResourceList{}
	}
	for name, limit := range defaultLimits {
		if set, ok := resources.Limits[name]; ok {
			limit = set
		}
		resources.Limits[name] = raised(limit, resources.Requests[name])
	}
}

// raised returns a limit, or twice the request if that is more.
func raised(limit, request resource.Quantity) resource.Quantity {
	twice := request.DeepCopy()
	twice.Add(request)
	if twice.Cmp(limit) > 0 {
		return twice
	}
	return limit
}

// NamespaceLimits returns the default limits of a hosted namespace. They apply to containers that a payload's operator
// or a third-party provider runs without limits, and have room for the requests that annotations set.
func NamespaceLimits(annotations map[string]string) corev1.ResourceList {
	limits := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("64Gi"),
	}
	for key, value := range annotations {
		if !strings.HasPrefix(key, requestOverridePrefix) {
			continue
		}
		requests, err := parseRequests(value)
		if err != nil {
			continue // The component that the annotation names reports it.
		}
		for name := range limits {
			limits[name] = raised(limits[name], requests[name])
		}
	}
	return limits
}
