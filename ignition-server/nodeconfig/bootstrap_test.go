// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestWithBootstrap(t *testing.T) {
	in := minimalInput()
	in.BootstrapKubeconfig = []byte("kind: Config # of all\n")
	rendered, err := Render(in)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for form, render := range map[string]func(Input) ([]byte, error){"Ignition config": Render, "node plan": RenderPlan} {
		t.Run("When a machine's kubeconfig is written to the "+form+", it should change nothing else", func(t *testing.T) {
			g := NewWithT(t)
			common, err := render(in)
			g.Expect(err).NotTo(HaveOccurred())
			own, err := WithBootstrap(common, func(kubeconfig []byte) ([]byte, error) {
				return []byte(strings.Replace(string(kubeconfig), "of all", "of one", 1)), nil
			})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(own)).NotTo(MatchJSON(common))
			mine := in
			mine.BootstrapKubeconfig = []byte("kind: Config # of one\n")
			want, err := render(mine)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(own)).To(MatchJSON(want))
		})
	}
	keep := func(kubeconfig []byte) ([]byte, error) { return kubeconfig, nil }
	for name, tt := range map[string]struct {
		config, says string
		change       func([]byte) ([]byte, error)
	}{
		"it has no kubeconfig":                    {`{"ignition":{"version":"3.4.0"}}`, "has no file /etc/kubernetes/bootstrap-kubeconfig", keep},
		"it is a plan without a kubeconfig":       {`{"version":1}`, "has no file /etc/kubernetes/bootstrap-kubeconfig", keep},
		"it is not JSON":                          {`{`, "read the node configuration", keep},
		"its kubeconfig is not inline":            {`{"storage":{"files":[{"path":"/etc/kubernetes/bootstrap-kubeconfig","contents":{"source":"https://x"}}]}}`, "read the file", keep},
		"creating the machine's kubeconfig fails": {string(rendered), "no luck", func([]byte) ([]byte, error) { return nil, errors.New("no luck") }},
	} {
		t.Run("When a configuration cannot be changed because "+name+", it should return an error", func(t *testing.T) {
			g := NewWithT(t)
			own, err := WithBootstrap([]byte(tt.config), tt.change)
			g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
			g.Expect(own).To(BeEmpty())
		})
	}
}
