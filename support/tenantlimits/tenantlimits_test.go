// SPDX-License-Identifier: Apache-2.0

package tenantlimits

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
)

func TestFlags(t *testing.T) {
	for _, tt := range []struct {
		name, operatorImage string
		args                []string
		registries          []string
		says                string
	}{
		{name: "When nothing is said, it should allow where the operator came from and the releases of OpenShift",
			operatorImage: "registry.example:5000/product/hypershift@sha256:1", registries: []string{"registry.example:5000/product", "quay.io/openshift-release-dev", "quay.io/okd"}},
		{name: "When the operator's image names no registry, it should allow none of it", operatorImage: "hypershift-operator:development",
			registries: []string{"quay.io/openshift-release-dev", "quay.io/okd"}},
		{name: "When registries are named, it should allow those alone", args: []string{"--allowed-registries", "a.example,b.example/c"}, registries: []string{"a.example", "b.example/c"}},
		{name: "When an asterisk is in the middle, it should be refused", args: []string{"--allowed-registries", "*.example/x"}, says: "an asterisk may only be at the end"},
		{name: "When an entry could end the text of a rule, it should be refused", args: []string{"--allowed-taints", "x'"}, says: `--allowed-taints "x'"`},
		{name: "When an entry is a digest, it should be refused", args: []string{"--allowed-registries", "a.example/b@sha256:1"}, says: "no scheme, tag or digest"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, l, flags := NewWithT(t), &Limits{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
			l.AddFlags(flags)
			g.Expect(flags.Parse(tt.args)).To(Succeed())
			err := l.Complete(tt.operatorImage)
			if tt.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(l.Registries).To(Equal(tt.registries))

			again, handedOn := &Limits{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
			again.AddFlags(handedOn)
			g.Expect(handedOn.Parse(l.Args())).To(Succeed())
			g.Expect(again.Complete("other.example/hypershift:1")).To(Succeed())
			g.Expect(again.Registries).To(Equal(l.Registries), "what is handed on should mean the same")
			g.Expect(again.Taints).To(Equal(l.Taints))
			g.Expect(again.ImageAnnotations).To(BeEmpty())
		})
	}
}
