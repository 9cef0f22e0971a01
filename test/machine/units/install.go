// SPDX-License-Identifier: Apache-2.0

package units

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Enable creates the links in dir that start the unit at boot, as specified in the [Install] section of its file. It
// reports whether that section specifies any. dirs contain the unit files.
func Enable(name, dir string, dirs []string) (installable bool, err error) {
	file, err := findFile(name, dirs)
	if err != nil {
		return false, err
	}
	unit, err := Load(name, dirs)
	if err != nil {
		return false, err
	}
	links := installLinks(unit, dir)
	for _, link := range links {
		if err := replaceLink(file, link); err != nil {
			return false, fmt.Errorf("enabling %s: %w", name, err)
		}
	}
	return len(links) > 0, nil
}

// installLinks returns the links that enabling a unit creates.
func installLinks(u *Unit, dir string) []string {
	var links []string
	for key, kind := range map[string]string{"Install.WantedBy": "wants", "Install.RequiredBy": "requires"} {
		for _, by := range u.words(key) {
			links = append(links, filepath.Join(dir, by+"."+kind, u.Name))
		}
	}
	for _, alias := range u.words("Install.Alias") {
		links = append(links, filepath.Join(dir, alias))
	}
	return links
}

// findFile returns the path of a unit's file, or of its template.
func findFile(name string, dirs []string) (string, error) {
	for _, candidate := range candidates(name) {
		for _, dir := range dirs {
			file := filepath.Join(dir, candidate)
			if _, err := os.Stat(file); err == nil {
				return file, nil
			}
		}
	}
	return "", fmt.Errorf("%s: %w", name, ErrNotFound)
}

// Disable removes every link in dir that starts the unit at boot.
func Disable(name, dir string) error {
	links, err := enablement(name, dir)
	if err != nil {
		return fmt.Errorf("disabling %s: %w", name, err)
	}
	for _, link := range links {
		if err := os.Remove(link); err != nil {
			return fmt.Errorf("disabling %s: %w", name, err)
		}
	}
	return nil
}

// enablement returns the links in dir that start the unit at boot.
func enablement(name, dir string) ([]string, error) {
	var found []string
	for _, kind := range []string{"wants", "requires"} {
		links, err := filepath.Glob(filepath.Join(dir, "*."+kind, name))
		if err != nil {
			return nil, err
		}
		found = append(found, links...)
	}
	return found, nil
}

// Mask prevents the unit from being started at all; Unmask reverts that.
func Mask(name, dir string) error { return replaceLink(os.DevNull, filepath.Join(dir, name)) }

// Unmask reverts Mask. It does nothing for a unit that is not masked.
func Unmask(name, dir string) error {
	file := filepath.Join(dir, name)
	if target, err := os.Readlink(file); err != nil || target != os.DevNull {
		return nil //nolint:nilerr // No link: not masked.
	}
	return os.Remove(file)
}

// replaceLink creates or replaces a link. It returns an error if link is a regular file.
func replaceLink(target, link string) error {
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return err
	}
	if info, err := os.Lstat(link); err == nil && info.Mode().Type() != fs.ModeSymlink {
		return fmt.Errorf("%s is a file", link)
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(target, link)
}

// FileState returns the state of a unit's file, as systemctl is-enabled prints it.
func FileState(name, dir string, dirs []string) (string, error) {
	unit, err := Load(name, dirs)
	if errors.Is(err, ErrMasked) {
		return "masked", nil
	}
	if err != nil {
		return "", err
	}
	links, err := enablement(name, dir)
	if err != nil {
		return "", err
	}
	switch {
	case len(links) > 0:
		return "enabled", nil
	case len(installLinks(unit, dir)) == 0:
		return "static", nil
	}
	return "disabled", nil
}
