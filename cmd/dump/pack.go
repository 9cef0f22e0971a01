// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/openshift/hypershift/cmd/objects"
)

// pack writes the files of a folder into a gzipped tar archive.
func pack(folder fs.FS, archive string) error {
	err := objects.WriteFile(archive, func(file io.Writer) error {
		compressed := gzip.NewWriter(file)
		w := tar.NewWriter(compressed)
		return errors.Join(w.AddFS(folder), w.Close(), compressed.Close())
	})
	if err != nil {
		return fmt.Errorf("make the archive: %w", err)
	}
	return nil
}
