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

// Where a live system looks, by coreos-installer's and Ignition's documentation.
const (
	// liveConfig is the Ignition config of the live system, in its initramfs.
	liveConfig = "config.ign"
	// liveNetwork holds NetworkManager's keyfiles, in its initramfs.
	liveNetwork = "etc/coreos-firstboot-network"
	// installerConfig has the live system run coreos-installer by itself, and restart when that is through.
	installerConfig = "/etc/coreos/installer.d/0000-takeover.yaml"
	// installedConfig is where the live system has the Ignition config of the installed one; installer.d holds nothing but its configs.
	installedConfig = "/etc/hypershift/takeover.ign"

	// alignment is where the kernel looks for the next archive of an initramfs (initramfs buffer format).
	alignment = 4
)

// Installation is what a live system is to do.
type Installation struct {
	// Disk is the path of the disk that is written, below /dev/disk/by-id.
	Disk string
	// Ignition is the config of the installed system. It holds a token.
	Ignition []byte
	// Keyfiles are NetworkManager's, by file name, for the live and the installed system; none means DHCP. They may hold secrets.
	Keyfiles map[string][]byte
	// KernelArguments are those of every start of the installed system, beside its own.
	KernelArguments []string
}

// validate refuses what a live system would stumble over when nobody can reach it any more.
func (i Installation) validate() error {
	if _, report, err := config.Parse(i.Ignition); err != nil {
		return fmt.Errorf("Ignition would not take the config: %w: %s", err, strings.TrimSpace(report.String()))
	}
	if name, ok := strings.CutPrefix(i.Disk, byID+"/"); !ok || name == "" || path.Base(name) != name {
		return fmt.Errorf("the disk %q is not named by a path below %s: its name may be another disk's under another kernel", i.Disk, byID)
	}
	for name := range i.Keyfiles {
		if path.Base(name) != name || !strings.HasSuffix(name, ".nmconnection") {
			return fmt.Errorf("%q is no name of a NetworkManager keyfile: it ends with .nmconnection", name)
		}
	}
	for _, argument := range i.KernelArguments {
		if argument == "" || strings.ContainsAny(argument, " \t\n") {
			return fmt.Errorf("%q is not one kernel argument", argument)
		}
	}
	return nil
}

// Archive is what follows the live system's initramfs: a cpio archive that makes it an unattended installation, as `coreos-installer pxe
// customize` would. The same installation makes the same bytes.
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

// liveConfig has the live system find its orders. All of it is inline: nothing is fetched before the disk is written.
func (i Installation) liveConfig() ([]byte, error) {
	// coreos-installer's config: its long options without the dashes.
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

// pack writes files of root's alone, in the order of their names, each behind the folders that lead to it: the kernel makes none by itself.
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
