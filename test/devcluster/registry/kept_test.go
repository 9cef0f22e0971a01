// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// TestSortForPutting checks that images come before the index that lists them, regardless of the times that the file
// system reports.
func TestSortForPutting(t *testing.T) {
	at := func(name string, seconds int64, kind types.MediaType) keptManifest {
		return keptManifest{manifest: manifest{ContentType: string(kind), Path: name}, written: time.Unix(seconds, 0)}
	}
	kept := []keptManifest{
		at("index of before", 1, types.OCIImageIndex), at("newest", 9, types.OCIManifestSchema1), at("list", 3, types.DockerManifestList), at("one", 5, types.DockerManifestSchema2),
		at("two of the same time", 5, types.OCIManifestSchema1), at("oldest", 2, types.OCIManifestSchema1),
	}
	sortForPutting(kept)
	var names []string
	for _, k := range kept {
		names = append(names, k.Path)
	}
	want := []string{"oldest", "one", "two of the same time", "newest", "index of before", "list"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}
}
