// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/openshift/hypershift/cmd/terminal"
)

// index is the file of the dump that lists what is not in it.
const index = "not-collected.txt"

// errFull reports that a cluster sent as much as is kept of one.
var errFull = errors.New("the dump of this cluster is full")

// folder is where the files of one cluster go. No name leads out of it: os.Root follows no path and no link to
// elsewhere.
type folder struct {
	root *os.Root
	// left is how many bytes may be written yet.
	left int64
}

// openFolder makes a folder, and opens it.
func openFolder(name string) (*os.Root, error) {
	if err := os.MkdirAll(name, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the dump: %w", err)
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("open the folder of the dump: %w", err)
	}
	return root, nil
}

// write makes the file <parts...>. Each part is one element of the path: one that is not a plain name is refused.
func (f *folder) write(text []byte, parts ...string) error {
	for _, part := range parts {
		if err := checkName(part); err != nil {
			return err
		}
	}
	if f.left -= int64(len(text)); f.left < 0 {
		return errFull
	}
	name := path.Join(parts...)
	if err := f.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	return f.root.WriteFile(name, text, 0o600)
}

// plain is what the API allows in names of namespaces, pods, containers, API groups and resources, as DNS subdomains.
// Longer ones fit no file system.
var plain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

const maxName = 253

// checkName refuses names that the API of Kubernetes would not have accepted. They come from a cluster that cannot be
// trusted.
func checkName(name string) error {
	if len(name) > maxName || !plain.MatchString(name) || strings.Contains(name, "..") {
		return fmt.Errorf("refuse the name '%s': it is no DNS name", terminal.Line(name[:min(len(name), maxName)]))
	}
	return nil
}
