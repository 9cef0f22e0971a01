// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/hypershift/node-agent/host"
	"github.com/openshift/hypershift/support/nodeplan"
)

func directories(_ context.Context, h *host.Host, plan *nodeplan.Plan) error {
	for _, d := range plan.Directories {
		target := h.Path(d.Path)
		err := os.MkdirAll(target, 0o755) //nolint:gosec // Ignition uses the same mode.
		if err == nil {
			err = os.Chmod(target, fileMode(d.Mode))
		}
		if err == nil {
			err = own(h, d.Path, d.Owner)
		}
		if err != nil {
			return fmt.Errorf("folder %s: %w", d.Path, err)
		}
	}
	return nil
}

func files(_ context.Context, h *host.Host, plan *nodeplan.Plan) error {
	for _, f := range plan.Files {
		if err := writeFile(h, f); err != nil {
			return fmt.Errorf("file %s: %w", f.Path, err)
		}
	}
	return nil
}

func writeFile(h *host.Host, f nodeplan.File) error {
	present, err := h.Read(f.Path)
	if err != nil {
		return err
	}
	content := slices.Concat(f.Content, bytes.Join(f.Append, nil))
	if f.Content == nil {
		content = appended(present, f.Append)
	}
	if f.Keep && present != nil && !bytes.Equal(present, content) {
		return errors.New("the image has it with another content: set overwrite in the MachineConfig to replace it")
	}
	// Only root can read the file until its owner and mode are set.
	if _, err := h.Write(f.Path, content, 0o600); err != nil {
		return err
	}
	if err := own(h, f.Path, f.Owner); err != nil {
		return err
	}
	return os.Chmod(h.Path(f.Path), fileMode(f.Mode))
}

// appended appends the pieces that the content does not end with yet. After a power loss, it does not append pieces
// twice. The same holds if an earlier plan already appended the first of them.
func appended(present []byte, pieces [][]byte) []byte {
	has := len(pieces)
	for !bytes.HasSuffix(present, bytes.Join(pieces[:has], nil)) {
		has--
	}
	return slices.Concat(present, bytes.Join(pieces[has:], nil))
}

func links(_ context.Context, h *host.Host, plan *nodeplan.Plan) error {
	for _, l := range plan.Links {
		if err := makeLink(h, l); err != nil {
			return fmt.Errorf("link %s: %w", l.Path, err)
		}
	}
	return nil
}

func makeLink(h *host.Host, l nodeplan.Link) error {
	if !l.Hard {
		if err := h.Link(l.Path, l.Target); err != nil {
			return err
		}
		return own(h, l.Path, l.Owner)
	}
	target, link := h.Path(l.Target), h.Path(l.Path)
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil { //nolint:gosec // Ignition uses the same mode.
		return err
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Link(target, link)
}

// fileMode converts a Unix mode to a Go file mode.
func fileMode(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if mode&bit != 0 {
			m |= flag
		}
	}
	return m
}

// own sets the owner of a file.
func own(h *host.Host, path string, o nodeplan.Owner) error {
	if o == (nodeplan.Owner{}) {
		return nil
	}
	uid, err := number(h, "/etc/passwd", o.User)
	if err != nil {
		return err
	}
	gid, err := number(h, "/etc/group", o.Group)
	if err != nil {
		return err
	}
	return os.Lchown(h.Path(path), uid, gid)
}

// number returns the ID (third field) of a name in /etc/passwd or /etc/group. It returns a numeric name unchanged; an
// empty name means root.
func number(h *host.Host, database, name string) (int, error) {
	if name == "" {
		return 0, nil
	}
	if n, err := strconv.Atoi(name); err == nil {
		return n, nil
	}
	fields, err := entry(h, database, name)
	if err != nil {
		return 0, err
	}
	if len(fields) < 3 {
		return 0, fmt.Errorf("there is no %q in %s", name, database)
	}
	return strconv.Atoi(fields[2])
}

// entry returns the line of a name in /etc/passwd or /etc/group; nil if there is none.
func entry(h *host.Host, database, name string) ([]string, error) {
	text, err := h.Read(database)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Split(strings.TrimSpace(line), ":"); fields[0] == name {
			return fields, nil
		}
	}
	return nil, nil
}
