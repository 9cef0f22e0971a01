// SPDX-License-Identifier: Apache-2.0

package nodeinput

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Hash returns the FNV-1a hash of a text as 8 hex digits. Hash, HashValue and ConfigurationHash are a wire format. An
// ignition-server computes them from the control plane's data to check whether a token Secret was written for that
// data.
func Hash(text string) string {
	h := fnv.New32a()
	h.Write([]byte(text)) // never fails
	return fmt.Sprintf("%08x", h.Sum32())
}

// HashValue returns the Hash of a value's default text form. Bytes print as a list of decimal numbers.
func HashValue(value any) string {
	return Hash(fmt.Sprintf("%v", value))
}

// ConfigurationHash returns the Hash of the JSON of a cluster's spec.configuration.
func ConfigurationHash(configuration *hyperv1.ClusterConfiguration) (string, error) {
	raw, err := json.Marshal(configuration)
	if err != nil {
		return "", fmt.Errorf("encoding spec.configuration: %w", err)
	}
	return Hash(string(WithoutEmptyImportMode(raw))), nil
}

// WithoutEmptyImportMode removes imageStreamImportMode from the JSON if it is empty. Older operators do not know the
// field, so it must not change the hash.
func WithoutEmptyImportMode(raw []byte) []byte {
	for _, text := range []string{`,"imageStreamImportMode":""`, `"imageStreamImportMode":"",`, `"imageStreamImportMode":""`} {
		raw = bytes.ReplaceAll(raw, []byte(text), nil)
	}
	return raw
}
