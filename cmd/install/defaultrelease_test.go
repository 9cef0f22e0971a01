// SPDX-License-Identifier: Apache-2.0

package install

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestDefaultRelease checks where the default release of clusters is recorded, and which one is refused.
func TestDefaultRelease(t *testing.T) {
	const name = "supported-versions"
	g := NewWithT(t)
	recorded := the[*corev1.ConfigMap](t, installation(t, "--default-release-image=quay.io/okd/scos-release:4.20", "--namespace=other"), name)
	g.Expect(recorded.Namespace).To(Equal("other"))
	g.Expect(recorded.Data).To(Equal(map[string]string{"default-release-image": "quay.io/okd/scos-release:4.20"}))
	g.Expect(recorded.Labels).To(HaveKeyWithValue("hypershift.openshift.io/supported-versions", "true"))
	g.Expect(slices.ContainsFunc(installation(t).resources(), func(obj client.Object) bool { return obj.GetName() == name })).
		To(BeFalse(), "without the flag, the ConfigMap is the operator's alone")

	for image, says := range map[string]string{
		"registry.elsewhere/release:1": "--default-release-image: registry.elsewhere/release:1 is in none of --allowed-registries",
		"Not An Image":                 `--default-release-image "Not An Image" is not an image reference: `,
	} {
		_, err := completed(t, "--default-release-image="+image)
		g.Expect(err).To(MatchError(ContainSubstring(says)))
	}
	installation(t, "--default-release-image=registry.elsewhere/release:1", "--allowed-registries=*")
}
