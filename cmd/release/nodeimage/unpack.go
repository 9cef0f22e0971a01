// SPDX-License-Identifier: Apache-2.0

package nodeimage

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openshift/hypershift/support/containerimage"
)

const (
	programFolder = "/usr/bin/"
	pluginFolder  = "/opt/cni/bin/"
	cniPlugins    = "cni-plugins"
	// maxProgram limits the unpacked size of one file of an archive, in bytes; the largest has about 150 MB.
	maxProgram = 1 << 30
)

// programs lists the files that the image needs from each source. From the CNI plugins it takes all files.
var programs = map[string][]string{
	"kubelet":    {"kubelet"},
	"containerd": {"containerd", "containerd-shim-runc-v2", "ctr"},
	"runc":       {"runc"},
	"crictl":     {"crictl"},
	cniPlugins:   {"loopback", "portmap"},
}

// machines maps architectures to e_machine in the header of an ELF file (System V ABI).
var machines = map[string]uint16{"amd64": 62, "arm64": 183}

// unpack writes the files of a source that the image needs into dir, and returns them.
func unpack(s Source, arch, from, dir string) ([]containerimage.File, error) {
	in, err := os.Open(from)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	start := make([]byte, 2)
	if _, err := io.ReadFull(in, start); err != nil {
		return nil, fmt.Errorf("reading %s: %w", s.Place, err)
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	files := map[string]string{s.Name: from}
	if bytes.Equal(start, []byte{0x1f, 0x8b}) {
		if files, err = untar(s, in, dir); err != nil {
			return nil, fmt.Errorf("unpacking %s: %w", s.Place, err)
		}
	}
	return imageFiles(s, arch, files)
}

// untar extracts the regular files that the image needs into dir, by their base names.
func untar(s Source, in io.Reader, dir string) (map[string]string, error) {
	unzipped, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		name := path.Base(header.Name)
		plugin := s.Name == cniPlugins && header.Mode&0o111 != 0
		if header.Typeflag != tar.TypeReg || !plugin && !slices.Contains(programs[s.Name], name) {
			continue
		}
		files[name] = filepath.Join(dir, name)
		if err := writeFile(files[name], archive); err != nil {
			return nil, fmt.Errorf("%s: %w", header.Name, err)
		}
	}
}

func writeFile(target string, from io.Reader) error {
	out, err := os.Create(target)
	if err != nil {
		return err
	}
	written, err := io.Copy(out, io.LimitReader(from, maxProgram))
	if err == nil && written == maxProgram {
		err = errors.New("it is larger than any program")
	}
	return errors.Join(err, out.Close())
}

func imageFiles(s Source, arch string, files map[string]string) ([]containerimage.File, error) {
	for _, name := range programs[s.Name] {
		if files[name] == "" {
			return nil, fmt.Errorf("%s has no program %s", s.Place, name)
		}
	}
	folder := programFolder
	if s.Name == cniPlugins {
		folder = pluginFolder
	}
	var all []containerimage.File
	for name, file := range files {
		if err := checkArchitecture(file, arch); err != nil {
			return nil, fmt.Errorf("%s: %s %w", s.Place, name, err)
		}
		all = append(all, containerimage.File{Path: folder + name, Source: file, Mode: 0o755})
	}
	slices.SortFunc(all, func(a, b containerimage.File) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// checkArchitecture verifies the header of an ELF file: the magic number first, e_machine in bytes 18 and 19.
func checkArchitecture(file, arch string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	header := make([]byte, 20)
	if _, err := io.ReadFull(in, header); err != nil || !bytes.HasPrefix(header, []byte("\x7fELF")) {
		return errors.New("is not a Linux program")
	}
	if machine := binary.LittleEndian.Uint16(header[18:]); machine != machines[arch] {
		return fmt.Errorf("is for another architecture than %s", arch)
	}
	return nil
}
