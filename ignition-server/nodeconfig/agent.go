// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coreos/ignition/v2/config/v3_4/types"
	"k8s.io/utils/ptr"

	"github.com/openshift/hypershift/support/nodeplan"
)

const agentUnitName = "hypershift-node-agent.service"

//go:embed files/hypershift-node-agent.service
var agentUnit string

// addAgent has a machine that Ignition configures run node-agent at each boot, with what is left to do in its plan. The program itself is
// fetched by Ignition: WithProgram says from where.
func addAgent(base *types.Config, rest *nodeplan.Plan) error {
	plan, err := json.Marshal(rest)
	if err != nil {
		return err
	}
	base.Storage.Files = append(base.Storage.Files,
		file(nodeplan.Path, 0o600, plan),
		types.File{Node: types.Node{Path: nodeplan.Program}, FileEmbedded1: types.FileEmbedded1{Mode: ptr.To(0o755)}})
	base.Systemd.Units = append(base.Systemd.Units, types.Unit{Name: agentUnitName, Enabled: ptr.To(true), Contents: ptr.To(agentUnit)})
	return nil
}

// Program is node-agent as a machine fetches it.
type Program struct {
	// URL is where it is served, with the same certificate as the configuration.
	URL string
	// Authorization is the header that the server wants.
	Authorization string
	// Content is what its checksum is made of.
	Content []byte
	// Server is where the machine asks for later configurations.
	Server Server
}

// WithProgram has Ignition fetch node-agent, which is far too large to stand in the configuration, and check it. A node plan is left as it
// is: its machine has the program already, and what is not needed is not asked for.
func WithProgram(config []byte, program func() (Program, error)) ([]byte, error) {
	// A plan has fields of the same names, such as kernelArguments, that mean something else: it is told by having no version of Ignition.
	var kind struct{ Ignition types.Ignition }
	if err := json.Unmarshal(config, &kind); err != nil {
		return nil, fmt.Errorf("read the node configuration: %w", err)
	}
	if kind.Ignition.Version == "" {
		return config, nil
	}
	var rendered types.Config
	if err := json.Unmarshal(config, &rendered); err != nil {
		return nil, fmt.Errorf("read the node configuration: %w", err)
	}
	files := rendered.Storage.Files
	at := slices.IndexFunc(files, func(f types.File) bool { return f.Path == nodeplan.Program && f.Contents.Source == nil })
	if at < 0 {
		return config, nil
	}
	p, err := program()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(p.Content)
	files[at].Overwrite = ptr.To(true)
	files[at].Contents = types.Resource{
		Source:       ptr.To(p.URL),
		HTTPHeaders:  types.HTTPHeaders{{Name: "Authorization", Value: ptr.To(p.Authorization)}},
		Verification: types.Verification{Hash: ptr.To("sha256-" + hex.EncodeToString(sum[:]))},
	}
	addServer(&rendered, p.Server)
	return json.Marshal(rendered)
}
