// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

const (
	// maxInstalled limits the total size of an image's files in bytes. Each file counts with its size plus entryCost.
	maxInstalled = 4 << 30
	entryCost    = 4 << 10
)

// unpack writes the files of an image to a folder, and returns their checksums. It never writes outside the folder,
// whatever the image contains. It ignores devices, owners and setuid bits.
func unpack(image v1.Image, dir string) (sums map[string]string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	content := mutate.Extract(image)
	defer content.Close()
	sums = map[string]string{}
	archive, left := tar.NewReader(content), int64(maxInstalled)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			// The archive may end before the stream does. Only reading the stream to its end reports a missing layer or a wrong
			// checksum.
			_, err := io.Copy(io.Discard, content)
			return sums, err
		}
		if err != nil {
			return nil, err
		}
		if left -= header.Size + entryCost; left < 0 {
			return nil, fmt.Errorf("unpacking %s: the image has more than %d bytes of files", header.Name, int64(maxInstalled))
		}
		if err := unpackEntry(root, header, archive, sums); err != nil {
			return nil, fmt.Errorf("unpacking %s: %w", header.Name, err)
		}
	}
}

func unpackEntry(root *os.Root, header *tar.Header, content io.Reader, sums map[string]string) error {
	file := strings.TrimPrefix(path.Clean("/"+header.Name), "/")
	if file == "" {
		return nil
	}
	if header.Typeflag == tar.TypeDir {
		return root.MkdirAll(file, 0o755)
	}
	if err := root.MkdirAll(path.Dir(file), 0o755); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeReg:
		sum, err := writeChecked(root, file, header.FileInfo().Mode().Perm(), content)
		sums[file] = sum
		return err
	case tar.TypeSymlink:
		return root.Symlink(inside(file, header.Linkname), file)
	case tar.TypeLink:
		return root.Link(strings.TrimPrefix(path.Clean("/"+header.Linkname), "/"), file)
	default:
		return nil
	}
}

// inside returns a link target relative to the folder of the link. An absolute target must not lead to the root of the
// machine.
func inside(file, target string) string {
	if !path.IsAbs(target) {
		return target
	}
	relative, err := filepath.Rel("/"+path.Dir(file), target)
	if err != nil {
		return target // Both paths are absolute, so this does not happen.
	}
	return relative
}

func writeChecked(root *os.Root, file string, mode fs.FileMode, content io.Reader) (sum string, err error) {
	out, err := root.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, hash), content)
	if err := errors.Join(err, out.Chmod(mode), out.Sync(), out.Close()); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// damaged returns a file whose content differs from the unpacked one; empty if there is none.
func damaged(dir string, sums map[string]string) string {
	for _, file := range slices.Sorted(maps.Keys(sums)) {
		if sum, err := checksum(filepath.Join(dir, file)); err != nil || sum != sums[file] {
			return file
		}
	}
	return ""
}

func checksum(file string) (string, error) {
	in, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer in.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, in); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
