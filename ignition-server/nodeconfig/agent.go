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

// addAgent adds node-agent to the configuration of a machine that Ignition configures, and runs it at each boot. The
// plan contains the remaining steps. Ignition fetches the program itself; WithProgram sets its address.
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

// Program describes node-agent for the download by a machine.
type Program struct {
	// URL is the program's address. The server uses the same certificate as for the configuration.
	URL string
	// Authorization is the required header.
	Authorization string
	// Content is the content of the program, for its checksum.
	Content []byte
	// Server is the server of later configurations.
	Server Server
}

// WithProgram makes Ignition fetch node-agent, which is far too large for the configuration, and verify its checksum.
// It returns a node plan unchanged and does not call program, since a machine with a plan already has node-agent.
func WithProgram(config []byte, program func() (Program, error)) ([]byte, error) {
	// Plans and Ignition configs have fields of the same names, such as kernelArguments, with different meanings. Only an
	// Ignition config has the version of Ignition.
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
