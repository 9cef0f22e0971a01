// SPDX-License-Identifier: Apache-2.0

package nodeimage

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// packed returns an archive of these entries.
func packed(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for i := range headers {
		content := program("amd64", headers[i].Name)
		if headers[i].Typeflag == tar.TypeReg {
			headers[i].Size = int64(len(content))
		}
		if err := w.WriteHeader(&headers[i]); err != nil {
			t.Fatal(err)
		}
		if headers[i].Typeflag == tar.TypeReg {
			if _, err := w.Write(content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestUnpackHostile checks that unpack extracts only the files that the image needs, and writes to no other path.
func TestUnpackHostile(t *testing.T) {
	file := func(name string, mode int64) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: mode}
	}
	link := func(name, to string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to, Mode: 0o777}
	}
	whole := packed(t, file("bin/kubelet", 0o755))
	for name, tt := range map[string]struct {
		source  string
		content []byte
		paths   []string
		says    string
	}{
		"an entry has a path outside the folder": {"cni-plugins", packed(t, file("../../escaped", 0o755), file("/etc/loopback", 0o755), file("./portmap", 0o755)),
			[]string{"/opt/cni/bin/escaped", "/opt/cni/bin/loopback", "/opt/cni/bin/portmap"}, ""},
		"the program is a symlink":                     {"kubelet", packed(t, link("bin/kubelet", "/etc/passwd")), nil, "has no program kubelet"},
		"the program is a directory":                   {"kubelet", packed(t, tar.Header{Name: "bin/kubelet/", Typeflag: tar.TypeDir, Mode: 0o755}), nil, "has no program kubelet"},
		"the archive has more files than needed":       {"kubelet", packed(t, file("bin/kubelet", 0o644), file("bin/kubectl", 0o755)), []string{"/usr/bin/kubelet"}, ""},
		"a file is not executable":                     {"cni-plugins", packed(t, file("loopback", 0o755), file("portmap", 0o755), file("LICENSE", 0o644)), []string{"/opt/cni/bin/loopback", "/opt/cni/bin/portmap"}, ""},
		"a plugin is missing":                          {"cni-plugins", packed(t, file("loopback", 0o755)), nil, "has no program portmap"},
		"a program is named like the parent directory": {"cni-plugins", packed(t, file("..", 0o755)), nil, "unpacking"},
		"it was cut": {"kubelet", whole[:len(whole)/2], nil, "unpacking"},
		"the file has only the gzip magic number": {"kubelet", []byte{0x1f, 0x8b, 0}, nil, "unpacking"},
		"the file is empty":                       {"kubelet", nil, nil, "reading"},
		"the file has one byte":                   {"kubelet", []byte{0x1f}, nil, "reading"},
		"the file is a text file":                 {"kubelet", []byte("<html>not found</html>"), nil, "kubelet is not a Linux program"},
		"the program ends within its header":      {"kubelet", program("amd64", "")[:19], nil, "kubelet is not a Linux program"},
		"the program is for another architecture": {"kubelet", program("arm64", "x"), nil, "kubelet is for another architecture than amd64"},
		"the file is the program itself":          {"kubelet", program("amd64", ""), []string{"/usr/bin/kubelet"}, ""},
	} {
		t.Run("When "+name+" it should be judged so", func(t *testing.T) {
			g, world := NewWithT(t), t.TempDir()
			dir := filepath.Join(world, "deep", "dir")
			g.Expect(os.MkdirAll(dir, 0o750)).To(Succeed())
			from := filepath.Join(world, "download")
			g.Expect(os.WriteFile(from, tt.content, 0o600)).To(Succeed())
			files, err := unpack(Source{Name: tt.source, Place: "https://example/file"}, "amd64", from, dir)
			left, _ := os.ReadDir(world)
			g.Expect(left).To(HaveLen(2), "nothing is written beside its folder")
			inner, _ := os.ReadDir(filepath.Join(world, "deep"))
			g.Expect(inner).To(HaveLen(1))
			if tt.says != "" {
				g.Expect(err).To(MatchError(And(ContainSubstring(tt.says), ContainSubstring("https://example/file"))))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			var paths []string
			for _, f := range files {
				paths = append(paths, f.Path)
				g.Expect(f.Mode).To(BeEquivalentTo(0o755), "nodes run it, whatever its archive says")
			}
			g.Expect(paths).To(Equal(tt.paths))
			g.Expect(slices.IsSorted(paths)).To(BeTrue())
		})
	}
}

func TestFindChecksum(t *testing.T) {
	one, two := strings.Repeat("a", 64), strings.Repeat("B", 64)
	for name, tt := range map[string]struct {
		content, want string
	}{
		"there is a lone one":                         {one + "\n", one},
		"there is a lone one without an end":          {one, one},
		"the checksum is in upper case":               {two, strings.ToLower(two)},
		"the file has several checksums":              {one + "  other\n" + two + "  kubelet\n", strings.ToLower(two)},
		"the checksum has the binary mode marker":     {two + " *kubelet\n" + one + " *other\n", strings.ToLower(two)},
		"the file name has a path":                    {one + "  ./bin/kubelet\n", one},
		"the file also has a checksum without a name": {two + "\n" + one + "  kubelet\n", one},
		"all checksums are of other files":            {one + "  other\n", ""},
		"another's name ends like it":                 {one + "  my-kubelet\n", ""},
		"the checksum is too short":                   {one[1:] + "  kubelet\n", ""},
		"the checksum is too long":                    {one + "a  kubelet\n", ""},
		"the checksum is not hexadecimal":             {strings.Repeat("g", 64) + "  kubelet\n", ""},
		"the server returns an HTML page":             {"<html>not found</html>", ""},
		"there is nothing":                            {"", ""},
	} {
		t.Run("When "+name+" it should be read so", func(t *testing.T) {
			g := NewWithT(t)
			got, err := findChecksum(tt.content, "kubelet", "https://example/sums")
			if tt.want == "" {
				g.Expect(err).To(MatchError("https://example/sums has no SHA-256 of kubelet"))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tt.want))
		})
	}
}
