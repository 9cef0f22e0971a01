// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/types"
)

// keptManifest is a stored manifest, with the time of its storage.
type keptManifest struct {
	manifest
	written time.Time
}

func readManifest(file string) (keptManifest, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return keptManifest{}, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return keptManifest{}, err
	}
	kept := keptManifest{written: info.ModTime()}
	if err := json.Unmarshal(data, &kept.manifest); err != nil {
		return keptManifest{}, fmt.Errorf("reading %s: %w", file, err)
	}
	return kept, nil
}

// sortForPutting sorts images before the indexes that may list them, and otherwise older manifests before newer ones.
// Age alone is not sufficient: file systems give files that are written within milliseconds the same time.
func sortForPutting(kept []keptManifest) {
	slices.SortStableFunc(kept, func(a, b keptManifest) int {
		if order := boolCompare(a.isIndex(), b.isIndex()); order != 0 {
			return order
		}
		return a.written.Compare(b.written)
	})
}

func (k keptManifest) isIndex() bool { return types.MediaType(k.manifest.ContentType).IsIndex() }

// boolCompare sorts false before true.
func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}
