// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// oldImages are the images of a payload of version 0.1.0, which has no tunnel.
type oldImages struct{ anyImage }

func (o oldImages) ComponentImage(tag string) (string, bool) {
	if tag == TunnelImage {
		return "", false
	}
	return o.anyImage.ComponentImage(tag)
}

func TestTunnelOfThePayload(t *testing.T) {
	flag := func(pod corev1.PodSpec) bool {
		return strings.Contains(strings.Join(pod.Containers[0].Args, " "), "--egress-selector-config-file=")
	}
	t.Run("starts before the API server and ends after it", func(t *testing.T) {
		g := NewWithT(t)
		pod := rendered(t, scopeOf(clusterWith())).Spec.Template.Spec
		g.Expect(flag(pod)).To(BeTrue())
		g.Expect(pod.InitContainers).To(ContainElement(And(HaveField("Name", "tunnel"),
			HaveField("RestartPolicy", ptr.To(corev1.ContainerRestartPolicyAlways)))))
	})
	t.Run("is not demanded of a payload of version 0.1.0", func(t *testing.T) {
		g := NewWithT(t)
		scope := scopeOf(clusterWith())
		scope.Images = oldImages{}
		pod := rendered(t, scope).Spec.Template.Spec
		g.Expect(flag(pod)).To(BeFalse())
		g.Expect(pod.InitContainers).NotTo(ContainElement(HaveField("Name", "tunnel")))
		g.Expect(pod.Volumes).NotTo(ContainElement(HaveField("Name", ContainSubstring("tunnel"))))
	})
}
