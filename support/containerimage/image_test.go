// SPDX-License-Identifier: Apache-2.0

package containerimage

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	. "github.com/onsi/gomega"
)

func source(t *testing.T, text string, mode fs.FileMode) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	if err := errors.Join(os.WriteFile(file, []byte(text), mode), os.Chmod(file, mode)); err != nil {
		t.Fatal(err)
	}
	return file
}

// entry is a file in a layer.
type entry struct {
	Name, Link, Text string
	Type             byte
	Mode             int64
}

func entriesOf(t *testing.T, target string) []entry {
	t.Helper()
	raw, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	var all []entry
	for archive := tar.NewReader(bytes.NewReader(raw)); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid+header.Gid != 0 || header.Uname+header.Gname != "" || header.ModTime.Unix() != 0 {
			t.Errorf("%s tells of the machine that built it: %+v", header.Name, header)
		}
		all = append(all, entry{header.Name, header.Linkname, string(text), header.Typeflag, header.Mode})
	}
}

func TestWriteLayer(t *testing.T) {
	program := source(t, "program", 0o600)
	files := []File{
		{Path: "/usr/bin/zz", HardLink: "/usr/bin/program"}, {Path: "/usr/bin/program", Source: program},
		{Path: "/etc/config", Data: []byte("text")}, {Path: "/etc/empty", Data: []byte{}}, {Path: "/etc/secret", Data: []byte("s"), Mode: 0o600},
		{Path: "/tmp", Mode: fs.ModeSticky | 0o777}, {Path: "/bin", Link: "usr/bin"}, {Path: "/a", HardLink: "/usr/bin/program"},
	}
	want := []entry{
		{Name: "bin", Link: "usr/bin", Type: tar.TypeSymlink, Mode: 0o755},
		{Name: "etc/", Type: tar.TypeDir, Mode: 0o755},
		{Name: "etc/config", Text: "text", Type: tar.TypeReg, Mode: 0o644},
		{Name: "etc/empty", Type: tar.TypeReg, Mode: 0o644},
		{Name: "etc/secret", Text: "s", Type: tar.TypeReg, Mode: 0o600},
		{Name: "tmp/", Type: tar.TypeDir, Mode: 0o1777},
		{Name: "usr/", Type: tar.TypeDir, Mode: 0o755},
		{Name: "usr/bin/", Type: tar.TypeDir, Mode: 0o755},
		{Name: "usr/bin/program", Text: "program", Type: tar.TypeReg, Mode: 0o755},
		// Hard links follow their targets, whatever their names.
		{Name: "a", Link: "usr/bin/program", Type: tar.TypeLink, Mode: 0o755},
		{Name: "usr/bin/zz", Link: "usr/bin/program", Type: tar.TypeLink, Mode: 0o755},
	}
	target := filepath.Join(t.TempDir(), "layer.tar")
	if err := WriteLayer(target, files); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, entriesOf(t, target)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	t.Run("When the same files are in another order and on another machine, it should write the same layer", func(t *testing.T) {
		g, again := NewWithT(t), filepath.Join(t.TempDir(), "again.tar")
		turned := []File{files[7], files[6], files[5], files[4], files[3], files[2], {Path: "/usr/bin/program", Source: source(t, "program", 0o755)}, files[0]}
		g.Expect(WriteLayer(again, turned)).To(Succeed())
		one, err := os.ReadFile(target)
		g.Expect(err).NotTo(HaveOccurred())
		other, err := os.ReadFile(again)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(bytes.Equal(one, other)).To(BeTrue())
	})
	t.Run("When a directory is given, it should keep its mode", func(t *testing.T) {
		g, own := NewWithT(t), filepath.Join(t.TempDir(), "own.tar")
		g.Expect(WriteLayer(own, []File{{Path: "/root/.ssh/keys", Data: []byte("k")}, {Path: "/root", Mode: 0o700}})).To(Succeed())
		g.Expect(entriesOf(t, own)[0]).To(Equal(entry{Name: "root/", Type: tar.TypeDir, Mode: 0o700}))
	})
}

func TestLayersThatCannotBeWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		target string
		source string
		says   string
	}{
		"a program was not built":                 {"layer.tar", "none", "adding /usr/bin/x: "},
		"a program is a directory":                {"layer.tar", ".", "adding /usr/bin/x: "},
		"the folder of the target does not exist": {"none/layer.tar", "", "no such file"},
		"the target is a directory":               {".", "", "is a directory"},
	} {
		t.Run("When "+name+", the error should name the path", func(t *testing.T) {
			dir := t.TempDir()
			file := File{Path: "/usr/bin/x", Data: []byte("x")}
			if tc.source != "" {
				file = File{Path: "/usr/bin/x", Source: filepath.Join(dir, tc.source)}
			}
			NewWithT(t).Expect(WriteLayer(filepath.Join(dir, tc.target), []File{file})).To(MatchError(ContainSubstring(tc.says)))
		})
	}
}

func layersOf(t *testing.T, image Image) []v1.Layer {
	t.Helper()
	var layers []v1.Layer
	for _, files := range image.FilesByLayer() {
		target := filepath.Join(t.TempDir(), "layer.tar")
		if err := WriteLayer(target, files); err != nil {
			t.Fatal(err)
		}
		layer, err := tarball.LayerFromFile(target)
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, layer)
	}
	return layers
}

func TestAssemble(t *testing.T) {
	g := NewWithT(t)
	image := Image{
		Name: "x", Below: []File{{Path: "/a", Data: []byte("a")}}, Files: []File{{Path: "/b", Data: []byte("b")}}, Entrypoint: []string{"/b", "--flag"},
		User: NonRoot, Env: []string{"A=b"}, Labels: map[string]string{"l": "1"},
	}
	built, err := Assemble(image, "arm64", layersOf(t, image)...)
	g.Expect(err).NotTo(HaveOccurred())
	config, err := built.ConfigFile()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.OS + "/" + config.Architecture).To(Equal("linux/arm64"))
	g.Expect(config.Config.Entrypoint).To(Equal(image.Entrypoint))
	g.Expect(config.Config.User).To(Equal(NonRoot))
	g.Expect(config.Config.Labels).To(Equal(image.Labels))
	g.Expect(config.Config.Env).To(ConsistOf(HavePrefix("PATH=/"), "A=b"))
	g.Expect(config.RootFS.DiffIDs).To(HaveLen(2))
	g.Expect(config.History).To(HaveLen(2), "a history that is shorter than the layers is refused by some runtimes")
	g.Expect(config.Created.IsZero()).To(BeTrue(), "the time of building is in no image")
	again, err := Assemble(image, "arm64", layersOf(t, image)...)
	g.Expect(err).NotTo(HaveOccurred())
	one, err := built.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	other, err := again.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(other).To(Equal(one))
	g.Expect(Image{Files: image.Files}.FilesByLayer()).To(HaveLen(1), "an empty layer is none")
}

// TestProduct checks that the lowest layer has everything that nodes run, and no operator: nodes pull only that layer.
func TestProduct(t *testing.T) {
	g, bin := NewWithT(t), t.TempDir()
	for _, name := range ProductFiles() {
		file := filepath.Join(bin, name)
		g.Expect(errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(name), 0o600))).To(Succeed())
	}
	image := Product(bin, []File{{Path: "/etc/passwd", Data: []byte("x")}})
	lowest, rest := map[string]File{}, map[string]File{}
	for _, file := range image.Below {
		lowest[file.Path] = file
	}
	for _, file := range image.Files {
		rest[file.Path] = file
	}
	g.Expect(image.Labels[NodeNetworkLayers]).To(Equal("1"))
	g.Expect(lowest).To(And(HaveKey("/usr/bin/node-network"), HaveKey("/usr/bin/tunnel"), HaveKey("/opt/cni/bin/bridge"), HaveKey("/etc/passwd")))
	g.Expect(rest).To(And(HaveKey("/usr/bin/hypershift-operator"), HaveKey("/usr/share/hypershift/node-agent/arm64")))
	g.Expect(rest["/usr/bin/ignition-server"].Source).To(Equal(filepath.Join(bin, "ignition-server")))
	g.Expect(rest).To(HaveKey(rest["/manager"].Link), "the link leads to a program that is there")
	g.Expect(lowest).To(HaveLen(3 + len(CNIPlugins)))
	for path := range lowest {
		g.Expect(rest).NotTo(HaveKey(path))
	}
	g.Expect(rest).To(HaveKey(image.Entrypoint[0]))
	g.Expect(WriteLayer(filepath.Join(bin, "layer.tar"), append(image.Below, image.Files...))).To(Succeed(), "all that it names is built")

	g.Expect(os.Remove(filepath.Join(bin, "node-agent", "arm64"))).To(Succeed())
	without := Product(bin, nil)
	g.Expect(without.Files).NotTo(ContainElement(HaveField("Path", "/usr/share/hypershift/node-agent/arm64")), "who builds for one architecture has no other")
	g.Expect(without.Files).To(ContainElement(HaveField("Path", "/usr/share/hypershift/node-agent/amd64")))
}
