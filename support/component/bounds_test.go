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
			{Name: "large", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("40Gi"),
			}}},
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
		for _, c := range append(pod.InitContainers, pod.Containers[:2]...) {
			g.Expect(c.Resources.Requests.Cpu().String()).To(Equal("10m"), c.Name)
		}
		g.Expect(pod.Containers[2].Resources.Requests.Cpu().String()).To(Equal("1"), "a request of the manifest stays")
	})
	t.Run("sets limits on each container, with room for its requests", func(t *testing.T) {
		g := NewWithT(t)
		limits := map[string][2]string{}
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			limits[c.Name] = [2]string{c.Resources.Limits.Cpu().String(), c.Resources.Limits.Memory().String()}
		}
		g.Expect(limits).To(Equal(map[string][2]string{
			"silent": {"16", "16Gi"}, "asks": {"16", "16Gi"}, "limited": {"16", "8Mi"}, "large": {"16", "80Gi"},
		}))
	})
}

func TestNamespaceLimits(t *testing.T) {
	g := NewWithT(t)
	usual := component.NamespaceLimits(map[string]string{"other": "memory=1Ti"})
	g.Expect(usual.Memory().String()).To(Equal("64Gi"))
	raised := component.NamespaceLimits(map[string]string{
		"resource-request-override.hypershift.openshift.io/kube-apiserver.kube-apiserver": "memory=100Gi",
		"resource-request-override.hypershift.openshift.io/etcd.etcd":                     "memory=much",
	})
	g.Expect(raised.Memory().String()).To(Equal("200Gi"))
	g.Expect(raised.Cpu().String()).To(Equal("32"))
}
