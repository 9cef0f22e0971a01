// SPDX-License-Identifier: Apache-2.0

// Package record stores records about MAAS machines on a MaasCluster, where they outlive MaasMachines and processes.
// Each machine has its own annotation, so that writers for different machines never conflict.
package record

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
)

// Kind is one kind of record.
type Kind[R any] struct {
	// Prefix is the prefix of the annotation key; the system ID of the machine follows.
	Prefix string
	// Broken returns the record for an invalid annotation; nil means that an invalid annotation is ignored.
	Broken func(cause error) R
}

// Of returns the records of a MaasCluster by system id; a nil MaasCluster has none.
func (k Kind[R]) Of(infra *infrav1.MaasCluster) map[string]R {
	records := map[string]R{}
	if infra == nil {
		return records
	}
	for key, text := range infra.Annotations {
		id, ours := strings.CutPrefix(key, k.Prefix)
		if !ours {
			continue
		}
		var r R
		switch err := json.Unmarshal([]byte(text), &r); {
		case err == nil:
			records[id] = r
		case k.Broken != nil:
			records[id] = k.Broken(err)
		}
	}
	return records
}

// IDs returns the sorted system IDs of the records.
func IDs[R any](records map[string]R) []string { return slices.Sorted(maps.Keys(records)) }

// Set sets a record on a MaasCluster in memory; the caller writes the MaasCluster.
func (k Kind[R]) Set(infra *infrav1.MaasCluster, systemID string, r R) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding annotation %s of MaasCluster %s/%s: %w", k.Key(systemID), infra.Namespace, infra.Name, err)
	}
	if infra.Annotations == nil {
		infra.Annotations = map[string]string{}
	}
	infra.Annotations[k.Key(systemID)] = string(text)
	return nil
}

// Remove removes a record from a MaasCluster in memory; the caller writes the MaasCluster.
func (k Kind[R]) Remove(infra *infrav1.MaasCluster, systemID string) {
	delete(infra.Annotations, k.Key(systemID))
}

// Key returns the annotation key for a machine.
func (k Kind[R]) Key(systemID string) string { return k.Prefix + systemID }

// Forget returns the command that removes a record manually.
func (k Kind[R]) Forget(infra *infrav1.MaasCluster, systemID string) string {
	return fmt.Sprintf("kubectl annotate maascluster -n %s %s %s-", infra.Namespace, infra.Name, k.Key(systemID))
}
