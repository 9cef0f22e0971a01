// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/openshift/hypershift/support/containerimage"
)

const inTotoMediaType types.MediaType = "application/vnd.in-toto+json"

// buildType identifies the build process. It is a name and not an address.
const buildType = "tag:hypershift-maas,2026:make-image/v1"

// These types form an in-toto statement, version 1, with a SLSA provenance predicate, version 1: what the image was
// built from, and how.
type (
	statement struct {
		Type          string     `json:"_type"`
		Subject       []resource `json:"subject"`
		PredicateType string     `json:"predicateType"`
		Predicate     predicate  `json:"predicate"`
	}
	resource struct {
		Name   string            `json:"name,omitempty"`
		URI    string            `json:"uri,omitempty"`
		Digest map[string]string `json:"digest"`
	}
	predicate struct {
		Definition definition `json:"buildDefinition"`
		Run        run        `json:"runDetails"`
	}
	definition struct {
		Type         string         `json:"buildType"`
		External     map[string]any `json:"externalParameters"`
		Internal     map[string]any `json:"internalParameters"`
		Dependencies []resource     `json:"resolvedDependencies"`
	}
	run struct {
		Builder builder `json:"builder"`
	}
	builder struct {
		ID string `json:"id"`
	}
)

// provenance describes the origin of the image: the commit, the toolchain, and the files of the build machine that it
// contains.
func provenance(index v1.ImageIndex, o options, base []containerimage.File) (v1.Image, error) {
	digest, err := index.Digest()
	if err != nil {
		return nil, err
	}
	sources := []resource{}
	if o.revision != "" {
		sources = append(sources, resource{Name: "sources", Digest: map[string]string{"gitCommit": o.revision}})
	}
	for _, file := range base {
		if len(file.Data) > 0 {
			sum := sha256.Sum256(file.Data)
			sources = append(sources, resource{URI: "file://" + file.Path, Digest: map[string]string{"sha256": hex.EncodeToString(sum[:])}})
		}
	}
	raw, err := json.Marshal(statement{
		Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1",
		Subject: []resource{{Name: "hypershift", Digest: map[string]string{"sha256": digest.Hex}}},
		Predicate: predicate{
			Definition: definition{
				Type: buildType, Dependencies: sources,
				External: map[string]any{"version": o.version, "architectures": o.architectures},
				Internal: map[string]any{"go": runtime.Version()},
			},
			Run: run{Builder: builder{ID: buildType}},
		},
	})
	if err != nil {
		return nil, err
	}
	return attach(index, inTotoMediaType, raw)
}
