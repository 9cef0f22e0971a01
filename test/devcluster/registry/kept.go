package registry

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// keptManifest is a manifest that was written down, and when.
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

func sortByAge(kept []keptManifest) {
	slices.SortFunc(kept, func(a, b keptManifest) int { return a.written.Compare(b.written) })
}
