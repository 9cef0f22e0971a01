// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
)

const sandboxName = "registry.k8s.io/pause:3.6"

// node is a folder that stands for a machine's root, with the programs that the scripts call.
type node struct {
	t       *testing.T
	root    string
	path    string
	address string
	// env is the environment of the installation, and daemonEnv all that containerd has, beside what the test itself has.
	env, daemonEnv []string
}

func newNode(t *testing.T, raw []byte) *node {
	t.Helper()
	// The test's own folder has a name that is too long for a socket in it.
	root, err := os.MkdirTemp("", "node")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	n := &node{t: t, root: root, path: t.TempDir()}
	cfg := parse(t, raw)
	for _, d := range cfg.Storage.Directories {
		n.must(os.MkdirAll(filepath.Join(n.root, d.Path), 0o755))
	}
	for _, f := range cfg.Storage.Files {
		path := filepath.Join(n.root, f.Path)
		n.must(os.MkdirAll(filepath.Dir(path), 0o755))
		// Paths inside files are of the machine's root, which is a folder here.
		text := strings.ReplaceAll(string(content(t, f)), `"/etc/containerd`, `"`+n.root+`/etc/containerd`)
		n.must(os.WriteFile(path, []byte(text), os.FileMode(*f.Mode)))
	}
	n.program("modprobe", "exit 1")
	n.program("sysctl", "exit 0")
	return n
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) program(name, script string) {
	n.t.Helper()
	n.must(os.WriteFile(filepath.Join(n.path, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
}

func (n *node) command(name string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(n.t.Context(), 30*time.Second)
	n.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	// The script's children hold its output open, so they must end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Env = append(os.Environ(),
		"PATH="+n.path+":"+os.Getenv("PATH"), "NODE_INSTALL_ROOT="+n.root, "NODE_INSTALL_RETRY_SECONDS=0.1",
		"CONTAINERD_ADDRESS="+n.address)
	cmd.Env = append(cmd.Env, n.env...)
	return cmd
}

func (n *node) install(args ...string) (string, error) {
	out, err := n.command(filepath.Join(n.root, "opt/kubernetes/bin/hypershift-node-install"), args...).CombinedOutput()
	return string(out), err
}

func TestInstallScriptAgainstContainerd(t *testing.T) {
	needContainerd(t)
	g := NewWithT(t)
	registry := releasetest.StartOn(t, outsideAddress(t))
	in := minimalInput()
	in.TrustBundle = registry.CA
	in.NodeImage = registry.Push(t, registry.Host+"/node:1", imageOf(t, map[string]string{"usr/bin/kubelet": "-> kube", "usr/bin/kube": "the kubelet"}))
	in.PodImage = registry.Push(t, registry.Host+"/pod:1", imageOf(t, map[string]string{"pause": "pause"}))
	raw, err := Render(in)
	g.Expect(err).NotTo(HaveOccurred())
	n := newNode(t, raw)
	n.startContainerd()

	out, err := n.install()
	g.Expect(err).NotTo(HaveOccurred(), out)
	kubelet, err := os.ReadFile(filepath.Join(n.root, "opt/kubernetes/bin/kubelet"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(kubelet)).To(Equal("the kubelet"))
	images, err := n.command("ctr", "-n", "k8s.io", "images", "ls", "-q").Output()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(images)).To(ContainSubstring(sandboxName))
	mounts, err := os.ReadFile("/proc/self/mounts")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(mounts)).NotTo(ContainSubstring(n.root), "the node image must not stay mounted")

	requests := registry.Requests()
	out, err = n.install()
	g.Expect(err).NotTo(HaveOccurred(), out)
	g.Expect(registry.Requests()).To(Equal(requests), "a second boot must not need the registry")
}

// needContainerd has tests find the programs of the embedded environment's machines, or be left out.
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

// outsideAddress is an address of this machine that is not on the loopback: containerd speaks plain HTTP to that.
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

// startContainerd runs a containerd of its own, below the node's root, until the test ends.
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
sandbox_image = %q
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".registry]
config_path = %q
`, n.root+"/var/containerd", n.root+"/run/containerd", n.address, sandboxName, n.root+"/etc/containerd/certs.d"), 0o644))
	real, err := exec.LookPath("containerd")
	n.must(err)
	n.program("containerd", "exec "+real+" --config "+config+` "$@"`)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, real, "--config", config)
	cmd.Env = n.daemonEnv
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	n.must(cmd.Start())
	n.t.Cleanup(func() { cancel(); _ = cmd.Wait() })
}

// imageOf makes an image of files; a content that starts with "-> " makes a symbolic link.
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

func TestInstallScriptErrors(t *testing.T) {
	raw, err := Render(minimalInput())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, ctr, containerd, says string
	}{
		{"When containerd does not answer it should say so", "exit 1", "exit 0", "does not answer yet"},
		{"When the pull fails it should show why", `case "$*" in version) ;; *pull*) echo no such host >&2; exit 1 ;; esac`, "exit 0", "no such host"},
		{"When no sandbox image is configured it should say so", `case "$*" in *mount*/run*) mkdir -p "$6/usr/bin"; echo x >"$6/usr/bin/kubelet" ;; esac`, "exit 0", "names no sandbox image"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			n := newNode(t, raw)
			n.program("ctr", tt.ctr)
			n.program("containerd", tt.containerd)
			out, err := n.install("once")
			g.Expect(err).To(HaveOccurred())
			g.Expect(out).To(ContainSubstring(tt.says))
		})
	}
}

// A password in an argument can be read by all who are on the machine, pods in its namespace of processes among them.
func TestInstallScriptKeepsThePassword(t *testing.T) {
	needContainerd(t)
	g := NewWithT(t)
	const password = "s3same: with 'marks' $HOME"
	registry := releasetest.StartOn(t, outsideAddress(t))
	in := minimalInput()
	in.TrustBundle = registry.CA
	in.NodeImage = registry.Push(t, registry.Host+"/node:1", imageOf(t, map[string]string{"usr/bin/kubelet": "the kubelet"}))
	in.PodImage = registry.Push(t, registry.Host+"/pod:1", imageOf(t, map[string]string{"pause": "pause"}))
	in.PullSecret = fmt.Appendf(nil, `{"auths":{%q:{"username":"reader","password":%q}}}`, registry.Host, password)
	var wrong, arguments atomic.Int32
	registry.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
		if inArguments(password) {
			arguments.Add(1)
		}
		if user, given, ok := req.BasicAuth(); ok && user == "reader" && given == password {
			return false
		} else if ok {
			wrong.Add(1)
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	raw, err := Render(in)
	g.Expect(err).NotTo(HaveOccurred())
	n := newNode(t, raw)
	n.startContainerd()
	out, err := n.install()
	g.Expect(err).NotTo(HaveOccurred(), out)
	g.Expect(out).NotTo(ContainSubstring("s3same"))
	g.Expect(wrong.Load()).To(BeZero(), "another password than that of the pull secret was sent")
	g.Expect(arguments.Load()).To(BeZero(), "the password was an argument of a process")
}

// inArguments tells whether a process of this machine has a text among its arguments.
func inArguments(text string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	return slices.ContainsFunc(files, func(file string) bool {
		arguments, err := os.ReadFile(file)
		return err == nil && bytes.Contains(arguments, []byte(text))
	})
}

func TestInstallScriptTriesAgain(t *testing.T) {
	g := NewWithT(t)
	in := minimalInput()
	in.PullSecret = []byte(`{"auths":{"registry.example":{"username":"reader","password":"sesame"}}}`)
	raw, err := Render(in)
	g.Expect(err).NotTo(HaveOccurred())
	n := newNode(t, raw)
	log := filepath.Join(n.root, "log")
	n.program("containerd", `echo 'sandbox = "`+sandboxName+`"'`)
	// The first call fails; later ones write down what they were asked and lay out a node image.
	n.program("ctr", `[ -e "`+log+`" ] || { : >"`+log+`"; exit 1; }
echo "$*" >>"`+log+`"
case "$*" in *--user*) read -r password; echo "typed $password" >>"`+log+`" ;; esac
case "$*" in "-n k8s.io images mount "*) mkdir -p "$6/usr/bin"; echo kubelet >"$6/usr/bin/kubelet" ;; esac`)
	out, err := n.install()
	g.Expect(err).NotTo(HaveOccurred(), out)
	g.Expect(out).To(ContainSubstring("trying again"))
	calls, err := os.ReadFile(log)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(calls)).To(ContainSubstring("--user reader registry.example/node:1.36.3\ntyped sesame"), "the password is typed")
	g.Expect(out).NotTo(ContainSubstring("sesame"))
	g.Expect(string(calls)).To(ContainSubstring("images tag --force registry.example/pod:1 " + sandboxName))
}

func TestKubeletRun(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	script := strings.NewReplacer("/etc/hostname", dir+"/hostname", "/opt/kubernetes/bin", dir).Replace(kubeletScript)
	g.Expect(os.WriteFile(dir+"/run", []byte(script), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(dir+"/kubelet", []byte("#!/bin/sh\necho \"$*\"\n"), 0o755)).To(Succeed())
	run := func() string {
		out, err := exec.CommandContext(t.Context(), dir+"/run", "--config=x").CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
		return strings.TrimSpace(string(out))
	}
	hostname, err := os.Hostname()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(run()).To(Equal("--hostname-override=" + strings.ToLower(hostname) + " --config=x"))
	g.Expect(os.WriteFile(dir+"/hostname", []byte("Node-A.Maas\n"), 0o644)).To(Succeed())
	g.Expect(run()).To(Equal("--hostname-override=node-a.maas --config=x"))
}

func TestOneLine(t *testing.T) {
	t.Run("When a password is a key of several lines it should be the same key in one", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(oneLine("{\n  \"private_key\": \"a\\nb\"\n}\n")).To(Equal(`{"private_key":"a\nb"}`))
		g.Expect(oneLine("s3 same")).To(Equal("s3 same"))
	})
}
