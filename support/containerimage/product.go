// SPDX-License-Identifier: Apache-2.0

package containerimage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ProductPrograms lists the programs in the product's image.
var ProductPrograms = []string{
	"hypershift", "hcp", "hypershift-operator", "control-plane-operator", "ignition-server", "cluster-api-provider-maas", NodeNetwork,
	Tunnel,
}

// NodeAgentArchitectures lists the architectures of machines. The image of each architecture has node-agent for all of
// them, because a control plane and its nodes may have different architectures.
var NodeAgentArchitectures = []string{"amd64", "arm64"}

// Programs in the product's image that nodes run.
const (
	NodeNetwork = "node-network"
	// Tunnel also runs beside API servers.
	Tunnel = "tunnel"
)

// NodeNetworkLayers is the label with the number of the product image's lowest layers that have everything that nodes
// run. The build of a release payload creates an image from these layers, so that nodes do not pull the operators.
const NodeNetworkLayers = "io.hypershift.node-network.layers"

const nodeAgentDir = "/usr/share/hypershift/node-agent"

// CNIPlugins lists the CNI plugins that node-network installs on nodes.
var CNIPlugins = []string{"bridge", "host-local", "loopback", "portmap", "ptp"}

// ProductFiles lists the Go programs in the product's image, as paths in the folder bin.
func ProductFiles() []string {
	files := slices.Clone(ProductPrograms)
	for _, plugin := range CNIPlugins {
		files = append(files, filepath.Join("cni", plugin))
	}
	for _, arch := range NodeAgentArchitectures {
		files = append(files, filepath.Join("node-agent", arch))
	}
	return files
}

// Product describes the product's image. The programs are in the folder bin, and the CNI plugins in bin/cni. The image
// has node-agent for the architectures in bin/node-agent. base is the rest of the file system. The lowest layer has
// everything that nodes run, see NodeNetworkLayers.
func Product(bin string, base []File) Image {
	image := Image{
		Name: "hypershift", User: NonRoot, Entrypoint: []string{"/usr/bin/hypershift"}, Labels: map[string]string{NodeNetworkLayers: "1"}, Below: slices.Clone(base),
	}
	for _, program := range ProductPrograms {
		file := File{Path: "/usr/bin/" + program, Source: filepath.Join(bin, program)}
		if program == NodeNetwork || program == Tunnel {
			image.Below = append(image.Below, file)
		} else {
			image.Files = append(image.Files, file)
		}
	}
	for _, plugin := range CNIPlugins {
		image.Below = append(image.Below, File{Path: "/opt/cni/bin/" + plugin, Source: filepath.Join(bin, "cni", plugin)})
	}
	for _, arch := range NodeAgentArchitectures {
		source := filepath.Join(bin, "node-agent", arch)
		if _, err := os.Stat(source); err == nil {
			image.Files = append(image.Files, File{Path: nodeAgentDir + "/" + arch, Source: source})
		}
	}
	// Deployments of the upstream provider run /manager.
	image.Files = append(image.Files, File{Path: "/manager", Link: "/usr/bin/cluster-api-provider-maas"})
	return image
}

// Base returns the files that programs need besides themselves: accounts, /tmp, and the CA certificates that this
// machine trusts.
func Base() ([]File, error) {
	certificates, err := systemCertificates()
	if err != nil {
		return nil, err
	}
	return []File{
		{Path: "/etc/passwd", Data: []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n")},
		{Path: "/etc/group", Data: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{Path: "/etc/nsswitch.conf", Data: []byte("hosts: files dns\n")},
		{Path: "/tmp", Mode: fs.ModeSticky | 0o777},
		certificates,
	}, nil
}

// certificateBundles lists where Linux distributions store the CA certificates that their hosts trust.
var certificateBundles = []string{
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
}

func systemCertificates() (File, error) {
	for _, bundle := range certificateBundles {
		data, err := os.ReadFile(bundle)
		if err == nil {
			return File{Path: "/etc/ssl/certs/ca-certificates.crt", Data: data}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return File{}, fmt.Errorf("reading the CA certificates of this machine: %w", err)
		}
	}
	return File{}, fmt.Errorf("no CA certificates in any of %s: install the package ca-certificates", strings.Join(certificateBundles, ", "))
}
