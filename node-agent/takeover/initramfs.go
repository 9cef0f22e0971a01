// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/cavaliergopher/cpio"
	"github.com/coreos/ignition/v2/config"
	"github.com/coreos/ignition/v2/config/v3_2/types"
	"github.com/vincent-petithory/dataurl"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// Paths that a live system reads, according to the documentation of coreos-installer and Ignition.
const (
	// liveConfig is the Ignition config of the live system, in its initramfs.
	liveConfig = "config.ign"
	// liveNetwork is the folder of the NetworkManager keyfiles, in its initramfs.
	liveNetwork = "etc/coreos-firstboot-network"
	// installerConfig makes the live system run coreos-installer automatically, and reboot afterwards.
	installerConfig = "/etc/coreos/installer.d/0000-takeover.yaml"
	// installedConfig is the path, in the live system, of the Ignition config of the installed system. It is not in
	// installer.d, which may contain only configs of coreos-installer.
	installedConfig = "/etc/hypershift/takeover.ign"

	// alignment is the alignment of the archives in an initramfs, in bytes (initramfs buffer format).
	alignment = 4
)

// Installation describes what a live system installs.
type Installation struct {
	// Disk is the path of the disk that is overwritten, below /dev/disk/by-id.
	Disk string
	// Ignition is the config of the installed system. It contains a token.
	Ignition []byte
	// Keyfiles holds NetworkManager keyfiles by file name, for the live and the installed system. Empty means DHCP. They
	// may contain secrets.
	Keyfiles map[string][]byte
	// KernelArguments holds additional kernel arguments for every boot of the installed system.
	KernelArguments []string
}

// validate rejects input that would make the live system fail. By then, the machine is no longer reachable.
func (i Installation) validate() error {
	if _, report, err := config.Parse(i.Ignition); err != nil {
		return fmt.Errorf("Ignition would not take the config: %w: %s", err, strings.TrimSpace(report.String()))
	}
	if name, ok := strings.CutPrefix(i.Disk, byID+"/"); !ok || name == "" || path.Base(name) != name {
		return fmt.Errorf("the disk %q is not named by a path below %s: its name may be another disk's under another kernel", i.Disk, byID)
	}
	for name := range i.Keyfiles {
		if path.Base(name) != name || !strings.HasSuffix(name, ".nmconnection") {
			return fmt.Errorf("%q is not the name of a NetworkManager keyfile, which ends with .nmconnection", name)
		}
	}
	for _, argument := range i.KernelArguments {
		if argument == "" || strings.ContainsAny(argument, " \t\n") {
			return fmt.Errorf("%q is not one kernel argument", argument)
		}
	}
	return nil
}

// Archive returns a cpio archive to append to the initramfs of the live system. It makes the system an unattended
// installation, as `coreos-installer pxe customize` does. The output is deterministic.
func (i Installation) Archive() ([]byte, error) {
	if err := i.validate(); err != nil {
		return nil, err
	}
	config, err := i.liveConfig()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{liveConfig: config}
	for name, content := range i.Keyfiles {
		files[path.Join(liveNetwork, name)] = content
	}
	return pack(files)
}

// liveConfig returns the Ignition config of the live system. All content is inline, so Ignition fetches nothing before
// the disk is overwritten.
func (i Installation) liveConfig() ([]byte, error) {
	// The keys are the long options of coreos-installer without the dashes.
	orders := map[string]any{"dest-device": i.Disk, "ignition-file": installedConfig, "offline": true}
	if len(i.Keyfiles) > 0 {
		orders["copy-network"] = true
	}
	if len(i.KernelArguments) > 0 {
		orders["append-karg"] = i.KernelArguments
	}
	text, err := yaml.Marshal(orders)
	if err != nil {
		return nil, err
	}
	file := func(path string, content []byte) types.File {
		return types.File{Node: types.Node{Path: path}, FileEmbedded1: types.FileEmbedded1{
			Mode: ptr.To(0o600), Contents: types.Resource{Source: ptr.To(dataurl.EncodeBytes(content))},
		}}
	}
	return json.Marshal(types.Config{
		Ignition: types.Ignition{Version: types.MaxVersion.String()},
		Storage:  types.Storage{Files: []types.File{file(installerConfig, text), file(installedConfig, i.Ignition)}},
	})
}

// pack writes files that only root can read, sorted by name. It writes the parent folders before each file, since the
// kernel does not create them.
func pack(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	archive := cpio.NewWriter(&out)
	made := map[string]bool{".": true}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := makeFolders(archive, made, path.Dir(name)); err != nil {
			return nil, err
		}
		if err := archive.WriteHeader(&cpio.Header{Name: name, Mode: cpio.TypeReg | 0o600, Size: int64(len(files[name]))}); err != nil {
			return nil, fmt.Errorf("archiving %s: %w", name, err)
		}
		if _, err := archive.Write(files[name]); err != nil {
			return nil, fmt.Errorf("archiving %s: %w", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if out.Len()%alignment != 0 {
		return nil, errors.New("the archive does not end at a boundary of four bytes")
	}
	return out.Bytes(), nil
}

func makeFolders(archive *cpio.Writer, made map[string]bool, folder string) error {
	if made[folder] {
		return nil
	}
	if err := makeFolders(archive, made, path.Dir(folder)); err != nil {
		return err
	}
	made[folder] = true
	if err := archive.WriteHeader(&cpio.Header{Name: folder, Mode: cpio.TypeDir | 0o755, Links: 2}); err != nil {
		return fmt.Errorf("archiving %s: %w", folder, err)
	}
	return nil
}
