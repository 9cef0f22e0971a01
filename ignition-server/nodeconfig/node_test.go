// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"slices"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_4/types"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/openshift/hypershift/support/nodeplan"
)

// TestOwned compares the files that Ignition writes with those of node-agent. A machine that migrates in place from
// Ignition to node-agent must lose no file.
func TestOwned(t *testing.T) {
	g := NewWithT(t)
	in := fullInput()
	in.ConfigHash = "0a1b2c3d"
	rendered, err := Render(in)
	g.Expect(err).NotTo(HaveOccurred())
	files := parse(t, rendered).Storage.Files
	raw, err := contentOf(files[slices.IndexFunc(files, func(f types.File) bool { return f.Path == nodeplan.Path })].Contents)
	g.Expect(err).NotTo(HaveOccurred())
	rest, err := nodeplan.Parse(raw)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rest.ConfigHash).To(Equal("0a1b2c3d"))
	whole := planned(t, in)
	g.Expect(whole.ConfigHash).To(Equal("0a1b2c3d"))
	g.Expect(rest.Paths()).To(ConsistOf(whole.Paths()), "with both ways a machine has the same files")
	g.Expect(rest.Paths()).To(ContainElements("/etc/systemd/system/kubelet.service", "/etc/systemd/system/kubelet.service.d/10-hypershift-proxy.conf"))
	g.Expect(rest.Paths()).NotTo(ContainElement(nodeplan.Program))
}

// TestOursReplace checks images that contain files of the same names. Neither Ignition nor node-agent may fail because
// of them. For the user's own files, the user's overwrite setting applies.
func TestOursReplace(t *testing.T) {
	g := NewWithT(t)
	in := fullInput()
	in.Config += "---\n" + machineConfig("mine", "/etc/mine", "x")
	rendered, err := Render(in)
	g.Expect(err).NotTo(HaveOccurred())
	kept := map[string]bool{}
	for _, f := range parse(t, rendered).Storage.Files {
		kept[f.Path] = !ptr.Deref(f.Overwrite, false)
	}
	for _, f := range planned(t, in).Files {
		g.Expect(f.Keep).To(Equal(kept[f.Path]), f.Path)
	}
	delete(kept, nodeplan.Program) // Its source is set when a machine requests it.
	var theirs []string
	for path, keep := range kept {
		if keep {
			theirs = append(theirs, path)
		}
	}
	g.Expect(theirs).To(ConsistOf("/etc/motd"), "the other one says overwrite")
	g.Expect(kept).To(HaveKey("/etc/mine"))
}

func TestForNode(t *testing.T) {
	g := NewWithT(t)
	rendered, err := RenderPlan(fullInput())
	g.Expect(err).NotTo(HaveOccurred())
	served, err := ForNode(rendered, Server{Host: "10.0.0.1:30443", CA: []byte("CA\n")})
	g.Expect(err).NotTo(HaveOccurred())
	plan, err := nodeplan.Parse(served)
	g.Expect(err).NotTo(HaveOccurred())
	before := planned(t, fullInput()).Paths()
	want := append(slices.DeleteFunc(before, func(path string) bool { return path == nodeplan.BootstrapKubeconfig }), nodeplan.ServerCA, nodeplan.ServerEndpoint)
	g.Expect(plan.Paths()).To(ConsistOf(want))
	_, err = ForNode([]byte(`{"ignition":{}}`), Server{})
	g.Expect(err).To(MatchError(ContainSubstring("not a node plan")))
}
