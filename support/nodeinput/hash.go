// SPDX-License-Identifier: Apache-2.0

package nodeinput

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Hash is FNV-1a over a text, as 8 hex digits. It and the next two are a wire format: an ignition-server computes them
// from what the control plane has, to tell whether that is what a token Secret was written for.
func Hash(text string) string {
	h := fnv.New32a()
	h.Write([]byte(text)) // never fails
	return fmt.Sprintf("%08x", h.Sum32())
}

// HashValue is Hash over a value's default text form. Bytes print as a list of decimal numbers.
func HashValue(value any) string {
	return Hash(fmt.Sprintf("%v", value))
}

// ConfigurationHash is Hash over the JSON of a cluster's spec.configuration.
func ConfigurationHash(configuration *hyperv1.ClusterConfiguration) (string, error) {
	raw, err := json.Marshal(configuration)
	if err != nil {
		return "", fmt.Errorf("encoding spec.configuration: %w", err)
	}
	return Hash(string(WithoutEmptyImportMode(raw))), nil
}

// WithoutEmptyImportMode drops a field that older operators do not know from JSON that is hashed.
func WithoutEmptyImportMode(raw []byte) []byte {
	for _, text := range []string{`,"imageStreamImportMode":""`, `"imageStreamImportMode":"",`, `"imageStreamImportMode":""`} {
		raw = bytes.ReplaceAll(raw, []byte(text), nil)
	}
	return raw
}
