// SPDX-License-Identifier: Apache-2.0

package component

import (
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

// Bound limits the resources of a pod's containers. Each emptyDir gets a size, and each container gets requests. CPU
// has no limit: a busy node divides CPU time according to the requests, and a limit would only slow down programs.
// Memory has a limit only if the manifest sets the maximum that its program needs. The memory of a hosted API server or
// etcd grows with the data that its users store.
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
