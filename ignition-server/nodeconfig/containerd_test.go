// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// node is a node with its own containerd. A folder of the test replaces the root of the machine.
type node struct {
	t       *testing.T
	root    string
	address string
	// daemonEnv is the complete environment of containerd; nil for the environment of the test.
	daemonEnv []string
}

func newNode(t *testing.T, raw []byte) *node {
	t.Helper()
	// The path of t.TempDir is too long for a socket.
	root, err := os.MkdirTemp("", "node")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	n := &node{t: t, root: root}
	for _, f := range parse(t, raw).Storage.Files {
		if f.Contents.Source == nil {
			continue
		}
		path := filepath.Join(n.root, f.Path)
		n.must(os.MkdirAll(filepath.Dir(path), 0o755))
		// Paths in the files are relative to the machine's root, which is a folder here.
		text := strings.ReplaceAll(string(content(t, f)), `"/etc/containerd`, `"`+n.root+`/etc/containerd`)
		n.must(os.WriteFile(path, []byte(text), os.FileMode(*f.Mode)))
	}
	return n
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// needContainerd adds the programs in bin/os to the PATH. It skips the test without root permissions or containerd.
func needContainerd(t *testing.T) {
	t.Helper()
	for dir, _ := os.Getwd(); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		programs := filepath.Join(dir, "bin/os/usr")
		if _, err := os.Stat(programs); err == nil {
			t.Setenv("PATH", os.Getenv("PATH")+":"+programs+"/bin:"+programs+"/sbin")
			break
		}
	}
	if _, err := exec.LookPath("containerd"); err != nil || os.Getuid() != 0 {
		t.Skip("needs root, and containerd: run `make environment`")
	}
}

// outsideAddress returns an address of this machine that is not on the loopback interface: containerd uses plain HTTP
// on loopback.
func outsideAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.To4() != nil && !network.IP.IsLoopback() {
			return network.IP.String()
		}
	}
	t.Skip("this machine has the loopback only")
	return ""
}

// startContainerd runs a containerd below the node's root until the test ends.
func (n *node) startContainerd() {
	n.t.Helper()
	n.address = filepath.Join(n.root, "run/containerd.sock")
	config := filepath.Join(n.root, "containerd.toml")
	n.must(os.WriteFile(config, fmt.Appendf(nil, `version = 2
root = %q
state = %q
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
address = %q
[plugins."io.containerd.grpc.v1.cri"]
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".registry]
config_path = %q
`, n.root+"/var/containerd", n.root+"/run/containerd", n.address, n.root+"/etc/containerd/certs.d"), 0o644))
	real, err := exec.LookPath("containerd")
	n.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, real, "--config", config)
	cmd.Env = n.daemonEnv
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	n.must(cmd.Start())
	n.t.Cleanup(func() { cancel(); _ = cmd.Wait() })
}

// imageOf returns an image with files; a content that starts with "-> " is a symbolic link.
func imageOf(t *testing.T, files map[string]string) v1.Image {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for name, text := range files {
		header := &tar.Header{Name: name, Mode: 0o755, Size: int64(len(text)), Typeflag: tar.TypeReg}
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			header = &tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
			text = ""
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	cfg.OS, cfg.Architecture = "linux", "amd64"
	img, err = mutate.ConfigFile(img, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return img
}
