// SPDX-License-Identifier: Apache-2.0

// Package record remembers things about machines of MAAS on a MaasCluster, where they outlive MaasMachines and processes: an annotation a
// machine, so that two writers of different machines never meet.
package record

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
)

// Kind is what one sort of annotation tells of a machine.
type Kind[R any] struct {
	// Prefix starts the annotation's key; the system id of the machine follows.
	Prefix string
	// Broken makes the record of an annotation that a person broke; nil means that such a machine has none.
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

// IDs are the system ids of the machines in records, sorted.
func IDs[R any](records map[string]R) []string { return slices.Sorted(maps.Keys(records)) }

// Set puts a record onto a MaasCluster, which the caller writes.
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

// Remove takes a record off a MaasCluster, which the caller writes.
func (k Kind[R]) Remove(infra *infrav1.MaasCluster, systemID string) {
	delete(infra.Annotations, k.Key(systemID))
}

// Key is that of the annotation about a machine.
func (k Kind[R]) Key(systemID string) string { return k.Prefix + systemID }

// Forget is the command with which a person takes a record away.
func (k Kind[R]) Forget(infra *infrav1.MaasCluster, systemID string) string {
	return fmt.Sprintf("kubectl annotate maascluster -n %s %s %s-", infra.Namespace, infra.Name, k.Key(systemID))
}
