// SPDX-License-Identifier: Apache-2.0

package component

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// Sizes of scratch volumes whose manifest names none. The kubelet evicts a pod whose volume is larger, so that a
// program that writes without end takes the disk or the memory of its node from no other.
var (
	scratchSize       = resource.MustParse("1Gi")
	scratchMemorySize = resource.MustParse("16Mi")
)

// leastRequests are those of containers whose manifest names none. The scheduler counts a container without requests as
// nothing.
var leastRequests = corev1.ResourceList{
	corev1.ResourceCPU:    resource.MustParse("10m"),
	corev1.ResourceMemory: resource.MustParse("32Mi"),
}

// Bound limits what the containers of a pod use. Each emptyDir has a size and each container requests. Processor time
// has no limit: with requests a busy node shares it out, and a limit would only slow down what runs. Memory has one
// where the manifest knows the most that its program needs; a hosted API server or etcd grows with what its users
// store.
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
		_, limited := container.Resources.Limits[name] // The API server takes the limit for the request.
		if requested || limited {
			continue
		}
		if container.Resources.Requests == nil {
			container.Resources.Requests = corev1.ResourceList{}
		}
		container.Resources.Requests[name] = least
	}
}
