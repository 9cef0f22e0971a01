// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_4/types"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/openshift/hypershift/support/nodeplan"
)

func TestWithProgram(t *testing.T) {
	program := Program{URL: "https://10.0.0.1:30443/node-agent/arm64", Authorization: "Bearer abc", Content: []byte("a program"), Server: Server{Host: "10.0.0.1:30443", CA: []byte("CA\n")}}
	got := func(p Program, err error) func() (Program, error) {
		return func() (Program, error) { return p, err }
	}
	get, never := got(program, nil), got(Program{}, errors.New("there is none"))
	rendered, err := Render(fullInput())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	t.Run("When the server renders for Ignition, it should set the URL, token and checksum of node-agent", func(t *testing.T) {
		g := NewWithT(t)
		with, err := WithProgram(rendered, get)
		g.Expect(err).NotTo(HaveOccurred())
		before, after := parse(t, rendered).Storage.Files, parse(t, with).Storage.Files
		is := func(f types.File) bool { return f.Path == nodeplan.Program }
		f := after[slices.IndexFunc(after, is)]
		g.Expect(f.Mode).To(HaveValue(Equal(0o755)))
		g.Expect(f.Contents).To(Equal(types.Resource{
			Source:       ptr.To(program.URL),
			HTTPHeaders:  types.HTTPHeaders{{Name: "Authorization", Value: ptr.To("Bearer abc")}},
			Verification: types.Verification{Hash: ptr.To(fmt.Sprintf("sha256-%x", sha256.Sum256(program.Content)))},
		}))
		want := append(slices.DeleteFunc(before, is), file(nodeplan.ServerCA, 0o644, []byte("CA\n")), file(nodeplan.ServerEndpoint, 0o644, []byte("10.0.0.1:30443\n")))
		g.Expect(slices.DeleteFunc(after, is)).To(Equal(want), "it knows the server afterwards, and all else stays")
	})
	t.Run("When the CA of the server is unknown, it should not write the server's address to the machine", func(t *testing.T) {
		g := NewWithT(t)
		without := program
		without.Server = Server{Host: "10.0.0.1:30443"}
		with, err := WithProgram(rendered, got(without, nil))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(with)).NotTo(ContainSubstring(nodeplan.ServerEndpoint))
	})
	t.Run("When there is no program for the machine, it should return an error", func(t *testing.T) {
		with, err := WithProgram(rendered, never)
		g := NewWithT(t)
		g.Expect(err).To(MatchError("there is none"))
		g.Expect(with).To(BeEmpty())
	})
	t.Run("When the payload is a node plan, it should not change the plan", func(t *testing.T) {
		g := NewWithT(t)
		in := fullInput()
		in.Config += "\n---\nkind: MachineConfig\nmetadata: {name: pages}\nspec: {kernelArguments: [hugepages=4]}\n"
		plan, err := RenderPlan(in)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(plan)).To(ContainSubstring("hugepages=4"))
		g.Expect(WithProgram(plan, never)).To(Equal(plan))
	})
	t.Run("When the program is the only file, it should set the program's URL", func(t *testing.T) {
		g := NewWithT(t)
		only := types.Config{Ignition: types.Ignition{Version: types.MaxVersion.String()}, Storage: types.Storage{Files: []types.File{{Node: types.Node{Path: nodeplan.Program}}}}}
		raw, err := json.Marshal(only)
		g.Expect(err).NotTo(HaveOccurred())
		with, err := WithProgram(raw, get)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(parse(t, with).Storage.Files[0].Contents.Source).To(HaveValue(Equal(program.URL)))
	})
	t.Run("When a MachineConfig has its own program, it should keep that program", func(t *testing.T) {
		g := NewWithT(t)
		in := minimalInput()
		in.Config = machineConfig("own", nodeplan.Program, "mine")
		own, err := Render(in)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(WithProgram(own, never)).To(Equal(own))
	})
	t.Run("When the configuration is corrupt, it should return an error", func(t *testing.T) {
		_, err := WithProgram([]byte("{"), get)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("read the node configuration")))
	})
}
