// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"encoding/json"
	"slices"

	igncfg "github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_4/types"
	"k8s.io/utils/ptr"

	"github.com/openshift/hypershift/support/nodeplan"
)

// Server is what a machine asks again by, when it is a Node.
type Server struct {
	// Host is the host[:port] under which it was asked.
	Host string
	// CA is what its certificate is from (PEM); empty when it is not known, and then machines keep what they have.
	CA []byte
}

// files are those by which node-agent knows the server.
func (s Server) files() map[string][]byte {
	if len(s.CA) == 0 {
		return nil
	}
	return map[string][]byte{nodeplan.ServerCA: s.CA, nodeplan.ServerEndpoint: []byte(s.Host + "\n")}
}

// ForNode is a node plan for a machine that is a Node: it has its identity, so nothing to join with is in it. A server whose CA is another
// today is known by that from then on.
func ForNode(rendered []byte, server Server) ([]byte, error) {
	plan, err := nodeplan.Parse(rendered)
	if err != nil {
		return nil, err
	}
	plan.Files = slices.DeleteFunc(plan.Files, func(f nodeplan.File) bool { return f.Path == bootstrapKubeconfigPath })
	for _, path := range []string{nodeplan.ServerCA, nodeplan.ServerEndpoint} {
		if content, known := server.files()[path]; known {
			plan.Files = append(plan.Files, nodeplan.File{Path: path, Mode: 0o644, Content: content})
		}
	}
	return json.Marshal(plan)
}

// addServer tells a machine that Ignition configures where it is to ask again. What a MachineConfig brings there stays.
func addServer(config *types.Config, server Server) {
	for _, path := range []string{nodeplan.ServerCA, nodeplan.ServerEndpoint} {
		content, known := server.files()[path]
		if known && !slices.ContainsFunc(config.Storage.Files, func(f types.File) bool { return f.Path == path }) {
			config.Storage.Files = append(config.Storage.Files, file(path, 0o644, content))
		}
	}
}

// owned are the files and links of a configuration that Ignition applies, units among them.
func owned(model types.Config, user []types.Config) []string {
	for _, cfg := range user {
		model = igncfg.Merge(model, cfg)
	}
	plan := &nodeplan.Plan{}
	for _, f := range model.Storage.Files {
		plan.Files = append(plan.Files, nodeplan.File{Path: f.Path})
	}
	for _, l := range model.Storage.Links {
		plan.Links = append(plan.Links, nodeplan.Link{Path: l.Path, Target: ptr.Deref(l.Target, "")})
	}
	for _, u := range model.Systemd.Units {
		plan.Units = append(plan.Units, planUnit(u))
	}
	paths := slices.DeleteFunc(plan.Paths(), func(path string) bool { return path == nodeplan.Program })
	slices.Sort(paths)
	return slices.Compact(paths)
}
