// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/openshift/hypershift/cmd/objects"
)

// pack writes the files of a folder into a gzipped tar archive.
func pack(folder, archive string) error {
	err := objects.WriteFile(archive, func(file io.Writer) error {
		compressed := gzip.NewWriter(file)
		w := tar.NewWriter(compressed)
		return errors.Join(w.AddFS(os.DirFS(folder)), w.Close(), compressed.Close())
	})
	if err != nil {
		return fmt.Errorf("make the archive: %w", err)
	}
	return nil
}
