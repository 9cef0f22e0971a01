// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
)

// pack writes the files of a folder into a gzipped tar archive.
func pack(folder, archive string) error {
	f, err := os.OpenFile(archive, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("make the archive: %w", err)
	}
	compressed := gzip.NewWriter(f)
	w := tar.NewWriter(compressed)
	if err := errors.Join(w.AddFS(os.DirFS(folder)), w.Close(), compressed.Close(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", archive, err)
	}
	return nil
}
