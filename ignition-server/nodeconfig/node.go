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

// Server identifies the ignition-server for the later requests of a Node.
type Server struct {
	// Host is the host[:port] that the machine called.
	Host string
	// CA is the CA of the server's certificate (PEM). If it is empty because it is unknown, machines keep their current
	// files.
	CA []byte
}

// files returns the files from which node-agent reads the server's address and CA.
func (s Server) files() map[string][]byte {
	if len(s.CA) == 0 {
		return nil
	}
	return map[string][]byte{nodeplan.ServerCA: s.CA, nodeplan.ServerEndpoint: []byte(s.Host + "\n")}
}

// ForNode returns the node plan for a machine that already is a Node. The Node has a certificate, so the plan has no
// bootstrap credentials. The plan updates the server's CA on the machine.
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

// addServer adds the server's address and CA to the configuration of a machine that Ignition configures. Files that a
// MachineConfig sets at these paths stay.
func addServer(config *types.Config, server Server) {
	for _, path := range []string{nodeplan.ServerCA, nodeplan.ServerEndpoint} {
		content, known := server.files()[path]
		if known && !slices.ContainsFunc(config.Storage.Files, func(f types.File) bool { return f.Path == path }) {
			config.Storage.Files = append(config.Storage.Files, file(path, 0o644, content))
		}
	}
}

// owned returns the files and links of a configuration that Ignition applies, including its units.
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
