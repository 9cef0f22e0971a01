// SPDX-License-Identifier: Apache-2.0

package containerimage

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// File is one entry of an image's file system. At most one of Source, Data, Link and HardLink is set and gives its
// content; a File with none of them is a folder.
type File struct {
	// Path is the absolute path in the container.
	Path string
	// Source is the path of a file on the build machine.
	Source string
	// Data is the content.
	Data []byte
	// Link is the target of a symbolic link.
	Link string
	// HardLink is the Path of an earlier File, which gets a second name.
	HardLink string
	// Mode defaults to 0755 for a Source and for folders, and to 0644 for Data.
	Mode fs.FileMode
	// BindsLowPorts gives the file the capability cap_net_bind_service=+ep. In a container that is not allowed to have
	// the capability, the kernel does not start the program.
	BindsLowPorts bool
}

// netBindService is the extended attribute of capabilities(7): revision 2, effective, with bit 10 of the permitted set.
const netBindService = "\x01\x00\x00\x02\x00\x04\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// WriteLayer writes the files into a tar file at target. The same files produce the same bytes: entries are sorted,
// owned by root and dated 1970.
func WriteLayer(target string, files []File) error {
	out, err := os.Create(target)
	if err != nil {
		return err
	}
	if err := errors.Join(writeTar(out, withParents(files)), out.Close()); err != nil {
		return fmt.Errorf("writing layer %s: %w", target, err)
	}
	return nil
}

// withParents sorts the files, hard links last, and adds their parent folders.
func withParents(files []File) []File {
	byPath := map[string]File{}
	for _, file := range files {
		for dir := path.Dir(file.Path); dir != "/"; dir = path.Dir(dir) {
			if _, ok := byPath[dir]; !ok {
				byPath[dir] = File{Path: dir}
			}
		}
	}
	for _, file := range files {
		byPath[file.Path] = file
	}
	all := make([]File, 0, len(byPath))
	for _, file := range byPath {
		all = append(all, file)
	}
	slices.SortFunc(all, func(a, b File) int {
		if (a.HardLink == "") != (b.HardLink == "") {
			return strings.Compare(a.HardLink, b.HardLink)
		}
		return strings.Compare(a.Path, b.Path)
	})
	return all
}

func writeTar(out io.Writer, files []File) error {
	archive := tar.NewWriter(out)
	for _, file := range files {
		if err := writeEntry(archive, file); err != nil {
			return fmt.Errorf("adding %s: %w", file.Path, err)
		}
	}
	return archive.Close()
}

func writeEntry(archive *tar.Writer, file File) error {
	header := &tar.Header{
		Name:    strings.TrimPrefix(file.Path, "/"),
		Mode:    int64(file.mode()),
		ModTime: time.Unix(0, 0),
		Format:  tar.FormatPAX,
	}
	if file.BindsLowPorts {
		header.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": netBindService}
	}
	switch {
	case file.Source != "":
		return writeSource(archive, header, file.Source)
	case file.Data != nil:
		header.Typeflag, header.Size = tar.TypeReg, int64(len(file.Data))
	case file.Link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, file.Link
	case file.HardLink != "":
		header.Typeflag, header.Linkname = tar.TypeLink, strings.TrimPrefix(file.HardLink, "/")
	default:
		header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := archive.Write(file.Data)
	return err
}

func writeSource(archive *tar.Writer, header *tar.Header, source string) error {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	header.Typeflag, header.Size = tar.TypeReg, info.Size()
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(archive, in)
	return err
}

// mode returns the mode for the tar header. Go and Unix use different bits for the sticky bit.
func (f File) mode() fs.FileMode {
	mode := f.Mode.Perm()
	if mode == 0 {
		mode = 0o755
		if f.Data != nil {
			mode = 0o644
		}
	}
	if f.Mode&fs.ModeSticky != 0 {
		mode |= 0o1000
	}
	return mode
}
