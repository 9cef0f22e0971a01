// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/openshift/hypershift/support/containerimage"
)

const spdxMediaType types.MediaType = "application/spdx+json"

// These types are the parts of an SPDX 2.3 document that list the modules of each program.
type (
	document struct {
		Version       string         `json:"spdxVersion"`
		License       string         `json:"dataLicense"`
		ID            string         `json:"SPDXID"`
		Name          string         `json:"name"`
		Namespace     string         `json:"documentNamespace"`
		Creation      creation       `json:"creationInfo"`
		Packages      []pkg          `json:"packages"`
		Relationships []relationship `json:"relationships"`
	}
	creation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	pkg struct {
		ID            string        `json:"SPDXID"`
		Name          string        `json:"name"`
		Version       string        `json:"versionInfo,omitempty"`
		Download      string        `json:"downloadLocation"`
		FilesAnalyzed bool          `json:"filesAnalyzed"`
		Purpose       string        `json:"primaryPackagePurpose,omitempty"`
		Checksums     []checksum    `json:"checksums,omitempty"`
		References    []externalRef `json:"externalRefs,omitempty"`
	}
	checksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	externalRef struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	relationship struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

const (
	documentID = "SPDXRef-DOCUMENT"
	imageID    = "SPDXRef-image"
	// unknown is SPDX's value for information that was not determined.
	unknown = "NOASSERTION"
)

// billOfMaterials returns the SPDX document of an image: its programs with their checksums, and the modules that Go
// linked into each.
func billOfMaterials(image v1.Image, arch, programs string, o options) (v1.Image, error) {
	digest, err := image.Digest()
	if err != nil {
		return nil, err
	}
	d := document{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: documentID, Name: fmt.Sprintf("hypershift %s linux/%s", o.version, arch),
		Namespace: "urn:hypershift-maas:spdx:" + digest.String(),
		Creation:  creation{Created: o.time().Format("2006-01-02T15:04:05Z"), Creators: []string{"Tool: hack/image"}},
		Packages: []pkg{{
			ID: imageID, Name: "hypershift", Version: o.version, Download: unknown, Purpose: "CONTAINER",
			Checksums: []checksum{{Algorithm: "SHA256", Value: digest.Hex}},
		}},
		Relationships: []relationship{{From: documentID, Type: "DESCRIBES", To: imageID}},
	}
	modules := map[string]pkg{}
	for _, name := range containerimage.ProductFiles() {
		if err := d.add(filepath.Join(programs, name), modules); err != nil {
			return nil, err
		}
	}
	d.Packages = append(d.Packages, sorted(modules)...)
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	return attach(image, spdxMediaType, raw)
}

// add describes a program and the modules that it is linked from.
func (d *document) add(program string, modules map[string]pkg) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("reading which modules %s was built from: %w", program, err)
	}
	sum, err := sha256Of(program)
	if err != nil {
		return err
	}
	name := filepath.Base(program)
	id := elementID("program", name)
	d.Packages = append(d.Packages, pkg{
		ID: id, Name: name, Version: info.Main.Version, Download: unknown, Purpose: "APPLICATION",
		Checksums: []checksum{{Algorithm: "SHA256", Value: sum}},
	})
	d.Relationships = append(d.Relationships, relationship{From: imageID, Type: "CONTAINS", To: id})
	link := func(path, version string) {
		p := module(path, version)
		modules[p.ID] = p
		d.Relationships = append(d.Relationships, relationship{From: id, Type: "STATIC_LINK", To: p.ID})
	}
	link("stdlib", strings.TrimPrefix(info.GoVersion, "go"))
	for _, dep := range info.Deps {
		if dep.Replace != nil && dep.Replace.Version == "" {
			continue // The module is in this repository.
		}
		if dep.Replace != nil {
			dep = dep.Replace
		}
		link(dep.Path, dep.Version)
	}
	return nil
}

// module describes a Go module. Vulnerability databases find it by its package URL.
func module(path, version string) pkg {
	return pkg{
		ID: elementID("module", path+"-"+version), Name: path, Version: version, Download: unknown, Purpose: "LIBRARY",
		References: []externalRef{{Category: "PACKAGE-MANAGER", Type: "purl", Locator: "pkg:golang/" + path + "@" + version}},
	}
}

var notInID = regexp.MustCompile(`[^a-zA-Z0-9.-]+`)

// elementID returns an ID with only the characters that SPDX allows.
func elementID(kind, name string) string {
	return "SPDXRef-" + kind + "-" + notInID.ReplaceAllString(name, "-")
}

func sorted(modules map[string]pkg) []pkg {
	var all []pkg
	for _, p := range modules {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b pkg) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

func sha256Of(path string) (string, error) {
	in, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, in); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
