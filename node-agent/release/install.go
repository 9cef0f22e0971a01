// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/openshift/hypershift/node-agent/host"
	"github.com/openshift/hypershift/support/nodeplan"
)

const (
	nodeDir = "/opt/hypershift/node"
	// current is a link to the installation in use.
	current = nodeDir + "/current"
	// manifestName is written last, before the folder is renamed. A folder with this file is complete.
	manifestName = "installed.json"
	partialName  = ".partial"
	pluginDir    = "/opt/cni/bin"
)

// required lists the programs that a node image must contain.
var required = []string{"kubelet", "containerd", "containerd-shim-runc-v2", "ctr", "runc"}

// manifest describes the source and the files of an installation.
type manifest struct {
	// Image is the name of the image in the plan.
	Image string `json:"image"`
	// Files holds the SHA-256 checksums of the files.
	Files map[string]string `json:"files"`
}

// Program returns the path of a program of the release.
func Program(h *host.Host, program string) string {
	return h.Path(current + "/usr/bin/" + program)
}

// Install atomically makes the files of the node image the current installation, and pulls the image if necessary. It
// verifies the files at each boot: after a power loss, the disk may lack some of what was written.
func Install(ctx context.Context, h *host.Host, plan *nodeplan.Plan) error {
	if wrong := installed(h, current, plan.Node.Name); wrong != "" {
		slot, err := fetch(ctx, h, plan, wrong)
		if err != nil {
			return err
		}
		if err := h.Link(current, slot); err != nil {
			return err
		}
	}
	if err := installPlugins(h); err != nil {
		return fmt.Errorf("installing the CNI plugins: %w", err)
	}
	return nil
}

// Fetch installs the files of the node image next to the current installation.
func Fetch(ctx context.Context, h *host.Host, plan *nodeplan.Plan) error {
	_, err := fetch(ctx, h, plan, "it is to be used next")
	return err
}

// fetch returns the folder with the files of the node image, relative to the folder of the current link.
func fetch(ctx context.Context, h *host.Host, plan *nodeplan.Plan, why string) (slot string, err error) {
	slots, err := filepath.Glob(h.Path(nodeDir + "/sha256-*"))
	if err != nil {
		return "", err
	}
	for _, path := range slots {
		if slot := filepath.Base(path); installed(h, nodeDir+"/"+slot, plan.Node.Name) == "" {
			return slot, nil
		}
	}
	h.Say("installing %s: %s", plan.Node.Name, why)
	err = pull(ctx, h, plan, plan.Node, func(image v1.Image) error { slot, err = install(h, plan.Node.Name, image); return err })
	if err != nil {
		// A partial installation is useless and takes disk space.
		return "", errors.Join(err, os.RemoveAll(h.Path(nodeDir+"/"+partialName)))
	}
	h.Say("installed %s", plan.Node.Name)
	return slot, nil
}

// installed returns the problem with the installation in a folder; empty if there is none.
func installed(h *host.Host, folder, image string) string {
	raw, err := h.Read(folder + "/" + manifestName)
	if err != nil || raw == nil {
		return "nothing is installed yet"
	}
	m := manifest{}
	if err := json.Unmarshal(raw, &m); err != nil {
		return "the list of what is installed cannot be read"
	}
	if m.Image != image {
		return "another one is installed"
	}
	if file := damaged(h.Path(folder), m.Files); file != "" {
		return "the installed " + file + " is damaged"
	}
	return ""
}

func install(h *host.Host, name string, image v1.Image) (slot string, err error) {
	digest, err := image.Digest()
	if err != nil {
		return "", err
	}
	partial := h.Path(nodeDir + "/" + partialName)
	if err := os.RemoveAll(partial); err != nil {
		return "", err
	}
	if err := os.MkdirAll(partial, 0o755); err != nil { //nolint:gosec // Programs are for all to run.
		return "", err
	}
	sums, err := unpack(image, partial)
	if err != nil {
		return "", err
	}
	for _, program := range required {
		if info, err := os.Stat(filepath.Join(partial, "usr/bin", program)); err != nil || info.Mode()&0o111 == 0 {
			return "", fmt.Errorf("the node image has no program /usr/bin/%s: make the payload with `hypershift release build --kubernetes`", program)
		}
	}
	raw, err := json.Marshal(manifest{Image: name, Files: sums})
	if err != nil {
		return "", err
	}
	if _, err := h.Write(nodeDir+"/"+partialName+"/"+manifestName, raw, 0o644); err != nil {
		return "", err
	}
	folder := strings.ReplaceAll(digest.String(), ":", "-")
	target := h.Path(nodeDir + "/" + folder)
	if err := os.RemoveAll(target); err != nil { // Remove a damaged installation.
		return "", err
	}
	if err := os.Rename(partial, target); err != nil {
		return "", err
	}
	return folder, nil
}

// installPlugins copies the CNI plugins to the folder in which container runtimes look for them. Other plugins there
// stay.
func installPlugins(h *host.Host) error {
	plugins, err := filepath.Glob(h.Path(current + pluginDir + "/*"))
	if err != nil {
		return err
	}
	for _, plugin := range plugins {
		content, err := os.ReadFile(plugin)
		if err != nil {
			return err
		}
		if _, err := h.Write(pluginDir+"/"+filepath.Base(plugin), content, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// RemoveOthers removes earlier installations. Running programs keep their files until they exit.
func RemoveOthers(_ context.Context, h *host.Host, _ *nodeplan.Plan) error {
	in, err := os.Readlink(h.Path(current))
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(h.Path(nodeDir))
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		if entry.IsDir() && entry.Name() != in {
			errs = append(errs, os.RemoveAll(h.Path(nodeDir+"/"+entry.Name())))
		}
	}
	return errors.Join(errs...)
}
