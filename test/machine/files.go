// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// skeleton lists the folders of an empty root file system.
var skeleton = []string{
	"dev", "etc/systemd/system", "home", "mnt", "opt", "proc", "root", "run", "srv", "sys", "usr",
	"var/cache", "var/lib", "var/log/units", "var/spool", "var/usrlocal/bin", "var/usrlocal/sbin",
}

// hostFiles are copied from the host if they exist there: programs of its /usr need them.
var hostFiles = []string{
	"etc/alternatives", "etc/ethertypes", "etc/ld.so.cache", "etc/ld.so.conf", "etc/ld.so.conf.d", "etc/login.defs",
	"etc/os-release", "etc/protocols", "etc/services", "etc/ssl/certs/ca-certificates.crt", "etc/pki/tls/certs/ca-bundle.crt",
}

// coreUser is the ID of user and group core.
const coreUser = 1000

// populate prepares the machine's root file system for the boot. It does not change files that exist.
func populate(config Config) error {
	for _, dir := range skeleton {
		if err := os.MkdirAll(config.Path(dir), 0o755); err != nil {
			return err
		}
	}
	if err := makeCoreHome(config); err != nil {
		return err
	}
	for _, link := range [][2]string{{"../run", "var/run"}, {"../run/lock", "var/lock"}, {"../proc/self/mounts", "etc/mtab"}} {
		if err := os.Symlink(link[0], config.Path(link[1])); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	for _, dir := range []string{"tmp", "var/tmp"} {
		if err := os.MkdirAll(config.Path(dir), 0o777); err != nil {
			return err
		}
		if err := os.Chmod(config.Path(dir), 0o777|fs.ModeSticky); err != nil {
			return err
		}
	}
	for path, content := range etcFiles(config) {
		if err := writeMissing(config.Path(path), content); err != nil {
			return err
		}
	}
	if config.System == "" {
		for _, path := range hostFiles {
			if err := copyMissing("/"+path, config.Path(path)); err != nil {
				return fmt.Errorf("copying the host's /%s: %w", path, err)
			}
		}
	}
	return systemLinks(config)
}

// makeCoreHome creates the home of the user core, unless the machine has its own operating system, which lacks that
// user.
func makeCoreHome(config Config) error {
	if config.System != "" {
		return nil
	}
	home := config.Path("home/core")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	return os.Chown(home, coreUser, coreUser)
}

// etcFiles returns the files that common programs require. The user core is the user of CoreOS node configurations.
func etcFiles(config Config) map[string]string {
	return map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/bash\ncore:x:1000:1000:core:/home/core:/bin/bash\n" +
			"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"etc/group":         "root:x:0:\ntty:x:5:\ndisk:x:6:\ncore:x:1000:\nnogroup:x:65534:\n",
		"etc/shadow":        "root:*:19000:0:99999:7:::\ncore:*:19000:0:99999:7:::\nnobody:*:19000:0:99999:7:::\n",
		"etc/gshadow":       "root:*::\ntty:*::\ndisk:*::\ncore:*::\nnogroup:*::\n",
		"etc/shells":        "/bin/sh\n/bin/bash\n",
		"etc/hostname":      config.Hostname + "\n",
		"etc/hosts":         "127.0.0.1 localhost\n::1 localhost\n127.0.1.1 " + config.Hostname + "\n",
		"etc/nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nprotocols: files\nservices: files\n",
		"etc/resolv.conf":   "# no name server is configured\n",
		"etc/machine-id":    machineID() + "\n",
		"etc/fstab":         "",
	}
}

// machineID returns a new machine ID for a root file system.
func machineID() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

// writeMissing writes a file atomically, so that an existing file is complete.
func writeMissing(path, content string) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if err := os.WriteFile(path+".new", []byte(content), fileMode(path)); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func fileMode(path string) fs.FileMode {
	if strings.HasSuffix(path, "shadow") {
		return 0o600
	}
	return 0o644
}

// copyMissing copies a file, or a folder of files and symbolic links, without overwriting existing files.
func copyMissing(from, to string) error {
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if !info.IsDir() {
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return writeMissing(to, string(data))
	}
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	return os.CopyFS(to, os.DirFS(from))
}

// systemLinks creates /bin, /lib and similar folders: symbolic links into /usr if the system has links, otherwise mount
// points.
func systemLinks(config Config) error {
	names, err := systemFolders(config.system())
	if err != nil {
		return err
	}
	for _, name := range names {
		target, err := os.Readlink(filepath.Join(config.system(), name))
		if err != nil {
			err = os.MkdirAll(config.Path(name), 0o755)
		} else {
			err = os.Symlink(target, config.Path(name))
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// systemFolders returns the folders of a system with programs and libraries, besides /usr.
func systemFolders(system string) ([]string, error) {
	var names []string
	for _, pattern := range []string{"bin", "sbin", "lib*"} {
		matches, err := filepath.Glob(filepath.Join(system, pattern))
		if err != nil {
			return nil, err
		}
		for _, match := range matches {
			names = append(names, filepath.Base(match))
		}
	}
	return names, nil
}
