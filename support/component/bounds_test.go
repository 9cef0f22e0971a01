// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/openshift/hypershift/support/component"
)

func TestBound(t *testing.T) {
	scratch := func(volume corev1.EmptyDirVolumeSource) corev1.Volume {
		return corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &volume}}
	}
	few := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("8Mi")}
	pod := &corev1.PodSpec{
		Volumes: []corev1.Volume{
			scratch(corev1.EmptyDirVolumeSource{}), scratch(corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}),
			scratch(corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse("20Gi"))}), {Name: "other"},
		},
		InitContainers: []corev1.Container{{Name: "silent"}},
		Containers: []corev1.Container{
			{Name: "asks", Resources: corev1.ResourceRequirements{Requests: few.DeepCopy()}},
			{Name: "limited", Resources: corev1.ResourceRequirements{Limits: few.DeepCopy()}},
		},
	}
	component.Bound(pod)
	t.Run("sets a size limit on each emptyDir", func(t *testing.T) {
		g := NewWithT(t)
		var sizes []string
		for _, volume := range pod.Volumes[:3] {
			sizes = append(sizes, volume.EmptyDir.SizeLimit.String())
		}
		g.Expect(sizes).To(Equal([]string{"1Gi", "16Mi", "20Gi"}))
		g.Expect(pod.Volumes[3].EmptyDir).To(BeNil())
	})
	t.Run("sets requests on each container", func(t *testing.T) {
		g := NewWithT(t)
		memory := func(c corev1.Container) string { return c.Resources.Requests.Memory().String() }
		g.Expect(memory(pod.InitContainers[0])).To(Equal("32Mi"))
		g.Expect(memory(pod.Containers[0])).To(Equal("8Mi"))
		g.Expect(pod.Containers[1].Resources.Requests).NotTo(HaveKey(corev1.ResourceMemory), "the API server takes the limit")
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			g.Expect(c.Resources.Requests.Cpu().String()).To(Equal("10m"), c.Name)
			g.Expect(c.Resources.Limits).NotTo(HaveKey(corev1.ResourceCPU), c.Name)
		}
	})
}
