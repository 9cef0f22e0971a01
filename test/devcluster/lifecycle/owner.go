// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/openshift/hypershift/test/machine"
)

// marker is the file that identifies a folder as the environment's own: only such a folder is ever deleted.
const marker = ".hypershift-dev"

// ownerFile contains the folder of the environment that uses this host's namespaces: their names are the same for all
// environments. Like the namespaces, it does not survive a reboot.
var ownerFile = "/run/hypershift-maas.dir"

// claim creates the environment's folder, or recognizes it, and reserves the host's namespaces for it. It does not
// change a folder that has other content.
func (e *Environment) claim() error {
	if !e.claimed() {
		entries, err := os.ReadDir(e.Dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if len(entries) > 0 {
			return fmt.Errorf("%s holds files that are not the environment's: empty it or name another folder with --dir", e.Dir)
		}
		if err := os.MkdirAll(e.Dir, 0o755); err != nil {
			return err
		}
		note := []byte("The embedded environment of HyperShift for MAAS. `devcluster down` deletes this folder.\n")
		if err := os.WriteFile(filepath.Join(e.Dir, marker), note, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(ownerFile, []byte(e.Dir+"\n"), 0o644)
}

func (e *Environment) claimed() bool {
	_, err := os.Stat(filepath.Join(e.Dir, marker))
	return err == nil
}

// ours reports whether the folder is the environment's. It also recognizes one whose marker was deleted while the
// environment ran.
func (e *Environment) ours() bool { return e.claimed() || owner() == e.Dir }

// owner returns the folder of the environment that uses the host's namespaces; empty if none is known.
func owner() string {
	data, err := os.ReadFile(ownerFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// checkOwner returns an error if the host's namespaces belong to a running environment in another folder.
func (e *Environment) checkOwner() error {
	owner := owner()
	if owner == "" || owner == e.Dir {
		return nil
	}
	management, err := machine.Lookup(filepath.Join(owner, filepath.Base(e.Management())))
	if err != nil || !management.Running() {
		return nil //nolint:nilerr // The file is left over: its environment has no machine any more.
	}
	return fmt.Errorf("the environment of this host is in %s: work on that one with --dir %s, or remove it first with devcluster down --dir %s", owner, owner, owner)
}

func disown() error {
	if err := os.Remove(ownerFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
