// SPDX-License-Identifier: Apache-2.0

// Package cloudconfig renders the first-boot configuration of machines that run cloud-init. It contains what they need
// to fetch their configuration from the cluster's ignition-server. The token is its only secret.
package cloudconfig

import (
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// UnitName is the systemd unit that turns a machine into a node. It runs at every boot.
const UnitName = "hypershift-node-agent.service"

// maxSize is below the limit of MAAS and its databases. It is also the limit of user-data in any cloud (16 KiB).
const maxSize = 16 << 10

const serverDir = "/etc/hypershift/ignition-server/"

var (
	//go:embed files/first-stage
	firstStage string
	//go:embed files/hypershift-node-agent.service
	unit string
)

// Input holds the inputs of a machine's first-boot configuration.
type Input struct {
	// Endpoint is host[:port] of the ignition-server.
	Endpoint string
	// CA is the CA certificate of the ignition-server in PEM.
	CA []byte
	// Token is sent to the ignition-server.
	Token []byte
	// NodePool is the pool as <namespace>/<name>, and ConfigHash identifies its configuration. Both are for the server's
	// log.
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

// Render returns the cloud-config. cloud-init writes the files and starts the unit without waiting for it. So the
// machine is reported as installed even if the ignition-server does not answer.
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
