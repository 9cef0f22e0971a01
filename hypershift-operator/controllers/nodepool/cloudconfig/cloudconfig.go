// SPDX-License-Identifier: Apache-2.0

// Package cloudconfig renders the first-boot configuration of machines that run cloud-init: what it takes to fetch the
// real one from the cluster's ignition-server, and no secret but the token.
package cloudconfig

import (
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// UnitName is the unit that makes a machine a node, at its first boot and each one after that.
const UnitName = "hypershift-node-agent.service"

// maxSize is less than what MAAS and its databases take, and than the user-data of any cloud may have (16 KiB).
const maxSize = 16 << 10

const serverDir = "/etc/hypershift/ignition-server/"

var (
	//go:embed files/first-stage
	firstStage string
	//go:embed files/hypershift-node-agent.service
	unit string
)

// Input is what the first-boot configuration of a machine depends on.
type Input struct {
	// Endpoint is host[:port] of the ignition-server.
	Endpoint string
	// CA is what the ignition-server has its certificate from (PEM).
	CA []byte
	// Token is sent to the ignition-server.
	Token []byte
	// NodePool is <namespace>/<name> of the pool, and ConfigHash names its configuration; both are for the server's log.
	NodePool, ConfigHash string
}

type config struct {
	WriteFiles []file     `json:"write_files"`
	RunCmd     [][]string `json:"runcmd"`
}

type file struct {
	Path        string `json:"path"`
	Permissions string `json:"permissions"`
	Content     string `json:"content"`
}

// Render returns the cloud-config. cloud-init writes the files and starts the unit, which it does not wait for: the machine is
// told to be installed whether the ignition-server answers or not.
func Render(in Input) ([]byte, error) {
	headers := fmt.Sprintf("Authorization: Bearer %s\nNodePool: %s\nTargetConfigVersionHash: %s\n",
		base64.StdEncoding.EncodeToString(in.Token), in.NodePool, in.ConfigHash)
	text, err := yaml.Marshal(config{
		WriteFiles: []file{
			{Path: serverDir + "ca.crt", Permissions: "0644", Content: strings.TrimSpace(string(in.CA)) + "\n"},
			{Path: serverDir + "endpoint", Permissions: "0644", Content: in.Endpoint + "\n"},
			{Path: serverDir + "headers", Permissions: "0600", Content: headers},
			{Path: "/opt/hypershift/bin/first-stage", Permissions: "0755", Content: firstStage},
			{Path: "/etc/systemd/system/" + UnitName, Permissions: "0644", Content: unit},
		},
		RunCmd: [][]string{
			{"systemctl", "daemon-reload"},
			{"systemctl", "enable", UnitName},
			{"systemctl", "start", "--no-block", UnitName},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the cloud-config: %w", err)
	}
	rendered := append([]byte("#cloud-config\n"), text...)
	if len(rendered) > maxSize {
		return nil, errors.New("the user-data is larger than 16 KiB: the CA of the ignition-server must be one certificate, not a bundle")
	}
	return rendered, nil
}
