// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/openshift/hypershift/support/terminal"
)

// index is the file of the dump that lists what was not collected.
const index = "not-collected.txt"

// errFull reports that the files of a cluster have reached the limit.
var errFull = errors.New("the dump of this cluster is full")

// folder is the folder for the files of one cluster. No name leads out of it: os.Root follows no path and no link to
// other folders.
type folder struct {
	root *os.Root
	// left is the number of bytes that may still be written.
	left int64
}

// openFolder creates a folder and opens it.
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

// write creates the file <parts...>. Each part is one element of the path; a part that is not a plain name is an error.
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

// plain matches the names that the API allows for namespaces, pods, containers, API groups and resources (DNS
// subdomains). File systems do not support longer names.
var plain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

const maxName = 253

// checkName rejects names that the Kubernetes API would not accept. The names come from a cluster that is not trusted.
func checkName(name string) error {
	if len(name) > maxName || !plain.MatchString(name) || strings.Contains(name, "..") {
		return fmt.Errorf("refuse the name '%s': it is not a DNS name", terminal.Line(name[:min(len(name), maxName)]))
	}
	return nil
}
