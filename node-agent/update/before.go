// SPDX-License-Identifier: Apache-2.0

package update

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/openshift/hypershift/node-agent/host"
)

const (
	indexName = "/index.json"
	// partial is the suffix of a folder that is incomplete.
	partial = ".partial"
)

// entry describes a path before the update.
type entry struct {
	Path string `json:"path"`
	// Kind is empty if the path did not exist.
	Kind string `json:"kind,omitempty"`
	Mode uint32 `json:"mode,omitempty"`
	UID  int    `json:"uid,omitempty"`
	GID  int    `json:"gid,omitempty"`
	// Target is the target of a link. Content is the name of the file, next to the index, that holds the content of a
	// file.
	Target  string `json:"target,omitempty"`
	Content string `json:"content,omitempty"`
}

const (
	aFile = "file"
	aLink = "link"
)

// keep backs up the given paths for restore. It backs up either all of them or none.
func keep(h *host.Host, paths []string) error {
	if err := os.RemoveAll(h.Path(beforeDir)); err != nil {
		return err
	}
	if err := os.RemoveAll(h.Path(beforeDir + partial)); err != nil {
		return err
	}
	if err := os.MkdirAll(h.Path(beforeDir+partial), 0o700); err != nil {
		return err
	}
	paths = slices.Clone(paths)
	slices.Sort(paths)
	var index []entry
	for i, path := range slices.Compact(paths) {
		e, err := keepOne(h, path, strconv.Itoa(i))
		if err != nil {
			return fmt.Errorf("saving %s for a rollback: %w", path, err)
		}
		index = append(index, e)
	}
	raw, err := json.Marshal(index)
	if err != nil {
		return err
	}
	if _, err := h.Write(beforeDir+partial+indexName, raw, 0o600); err != nil {
		return fmt.Errorf("saving the list of files for a rollback: %w", err)
	}
	return os.Rename(h.Path(beforeDir+partial), h.Path(beforeDir))
}

func keepOne(h *host.Host, path, name string) (entry, error) {
	e := entry{Path: path}
	info, err := os.Lstat(h.Path(path))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return e, nil
	}
	if err != nil {
		return e, err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		e.UID, e.GID = int(stat.Uid), int(stat.Gid)
	}
	switch {
	case info.Mode().IsRegular():
		e.Kind, e.Mode, e.Content = aFile, uint32(info.Mode()), name
		content, err := os.ReadFile(h.Path(path))
		if err != nil {
			return e, err
		}
		_, err = h.Write(beforeDir+partial+"/"+name, content, 0o600)
		return e, err
	case info.Mode()&fs.ModeSymlink != 0:
		e.Kind = aLink
		e.Target, err = os.Readlink(h.Path(path))
		return e, err
	}
	return e, errors.New("the configuration has a file there, but the path on the machine is neither a file nor a link")
}

func readIndex(h *host.Host) ([]entry, error) {
	raw, err := h.Read(beforeDir + indexName)
	if err != nil {
		return nil, err
	}
	var index []entry
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, fmt.Errorf("reading the files saved for a rollback: %w", err)
	}
	return index, nil
}

// restore restores the backup. It is idempotent.
func restore(h *host.Host, index []entry) error {
	for _, e := range index {
		if err := e.restore(h); err != nil {
			return fmt.Errorf("restoring %s: %w", e.Path, err)
		}
	}
	return nil
}

func (e entry) restore(h *host.Host) error {
	target := h.Path(e.Path)
	switch e.Kind {
	case aLink:
		if err := h.Link(e.Path, e.Target); err != nil {
			return err
		}
		return os.Lchown(target, e.UID, e.GID)
	case aFile:
		content, err := os.ReadFile(h.Path(beforeDir + "/" + e.Content))
		if err != nil {
			return err
		}
		// Only root can read the file until its owner and mode are set.
		if _, err := h.Write(e.Path, content, 0o600); err != nil {
			return err
		}
		return errors.Join(os.Lchown(target, e.UID, e.GID), os.Chmod(target, fs.FileMode(e.Mode)))
	}
	return h.Remove(e.Path)
}

// enabledBy returns the links through which systemd starts a unit at boot.
func enabledBy(h *host.Host, unit string) []string {
	var links []string
	for _, kind := range []string{"*.wants", "*.requires"} {
		found, err := filepath.Glob(h.Path(unitDir + kind + "/" + unit))
		if err != nil {
			continue // Unit names contain no pattern, so Glob returns no error.
		}
		for _, path := range found {
			links = append(links, "/"+strings.TrimPrefix(strings.TrimPrefix(path, h.Path("/")), "/"))
		}
	}
	return links
}
