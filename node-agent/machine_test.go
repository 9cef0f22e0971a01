// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/host"
	"github.com/openshift/hypershift/support/nodeplan"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
)

// machine is a machine after the first stage. It can reach an ignition-server and a registry.
type machine struct {
	*GomegaWithT
	t        *testing.T
	host     *host.Host
	registry *releasetest.Registry
	log      bytes.Buffer
	plan     nodeplan.Plan

	mu sync.Mutex
	// commands holds the commands that ran. The command with the number failAt fails, counted from 1.
	commands []string
	failAt   int
	// images holds the images of the container runtime.
	images []string
	// requests is the number of requests to the ignition-server, and status is the status code of its answers.
	requests, status int

	// next is the plan of a later configuration. program is the node-agent that the ignition-server serves.
	next    nodeplan.Plan
	program string
	guest   guest
}

const bearer = "Bearer c2VjcmV0LXRva2Vu"

func newMachine(t *testing.T) *machine {
	m := &machine{GomegaWithT: NewWithT(t), t: t, registry: releasetest.Start(t), status: http.StatusOK}
	m.host = &host.Host{Root: t.TempDir(), Run: m.run, Log: &m.log}
	server := httptest.NewUnstartedServer(http.HandlerFunc(m.ignition))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	for path, text := range map[string]string{
		"/proc/1/comm": "systemd\n", "/proc/cmdline": "BOOT_IMAGE=/vmlinuz quiet\n", "/proc/sys/kernel/random/boot_id": "first\n",
		"/proc/swaps":                       "Filename Type Size Used Priority\n/swap.img file 1 0 -2\n",
		"/etc/fstab":                        "/dev/sda2 / ext4 defaults 0 1\n/swap.img none swap sw 0 0\n",
		"/etc/passwd":                       "root:x:0:0::/root:/bin/sh\n",
		"/etc/group":                        "root:x:0:\n",
		"/etc/hostname":                     "Worker-1\n",
		"/sys/fs/cgroup/cgroup.controllers": "cpu\n", "/run/systemd/resolve/resolv.conf": "nameserver 10.0.0.1\n",
		serverDir + "endpoint": strings.TrimPrefix(server.URL, "https://") + "\n",
		serverDir + "headers":  "Authorization: " + bearer + "\nNodePool: clusters/demo\n",
		serverDir + "ca.crt":   string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})),
	} {
		m.put(path, text)
	}
	node, pod := m.push("node", nodeFiles()), m.push("pod", map[string]string{"pause": "pause"})
	ca := "/etc/containerd/certs.d/ca.crt"
	m.plan = nodeplan.Plan{
		Version: nodeplan.Version,
		Node:    nodeplan.Image{Name: node, Sources: []nodeplan.Source{{Image: node, CAs: []string{ca}}}},
		Pod:     nodeplan.Image{Name: pod, Sources: []nodeplan.Source{{Image: pod, CAs: []string{ca}}}},
		Files: []nodeplan.File{
			{Path: ca, Mode: 0o644, Content: m.registry.CA},
			{Path: "/etc/kubernetes/bootstrap-kubeconfig", Mode: 0o600, Content: []byte("kind: Config\n")},
			{Path: "/etc/modules-load.d/90-hypershift-node.conf", Mode: 0o644, Content: []byte("overlay\nbr_netfilter\n")},
			{Path: "/etc/motd", Mode: 0o644, Append: [][]byte{[]byte("a node\n")}},
		},
		Directories: []nodeplan.Directory{{Path: "/etc/kubernetes/manifests", Mode: 0o755}},
		Links:       []nodeplan.Link{{Path: "/etc/link", Target: "../opt/x"}, {Path: "/etc/hard", Target: "/etc/motd", Hard: true}},
		Users:       []nodeplan.User{{Name: "core", SSHKeys: []string{"ssh-ed25519 AAAA me"}}},
		Units: []nodeplan.Unit{
			{Name: "hypershift-containerd.service", Content: "[Service]\n", DropIns: []nodeplan.DropIn{{Name: "1.conf", Content: "x"}}},
			{Name: "kubelet.service", Content: "[Service]\n"}, {Name: "own.service", Content: "[Service]\n", Enabled: new(true)},
			{Name: "apt-daily.timer", Masked: true}, {Name: "snapd.service", Enabled: new(bool)},
		},
	}
	m.put("/etc/motd", "Welcome\n")
	return m
}

func nodeFiles() map[string]string {
	files := map[string]string{"opt/cni/bin/bridge": "bridge", "opt/cni/bin/host-local": "host-local", "usr/bin/crictl": "crictl"}
	for _, program := range []string{"kubelet", "containerd", "containerd-shim-runc-v2", "ctr", "runc"} {
		files["usr/bin/"+program] = program + " of the release"
	}
	return files
}

// push builds an image of these files and pushes it in an index with this machine's architecture.
func (m *machine) push(name string, files map[string]string) string {
	m.t.Helper()
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: imageOf(m.t, files), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}},
	})
	return m.registry.PushIndex(m.t, m.registry.Host+"/"+name+":1", index)
}

func imageOf(t *testing.T, files map[string]string) v1.Image {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		text := files[path]
		header := &tar.Header{Name: path, Mode: 0o755, Size: int64(len(text)), Typeflag: tar.TypeReg}
		if target, isLink := strings.CutPrefix(text, "-> "); isLink {
			header.Typeflag, header.Linkname, header.Size, text = tar.TypeSymlink, target, 0, ""
		}
		if err := errors.Join(w.WriteHeader(header), second(io.WriteString(w, text))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func second(_ int, err error) error { return err }

// ignition is the handler of the ignition-server.
func (m *machine) ignition(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests++
	if len(r.TLS.PeerCertificates) > 0 {
		m.forNode(w, r)
		return
	}
	if r.URL.Path != "/ignition" || r.Header.Get("Authorization") != bearer || r.Header.Get("NodePool") != "clusters/demo" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.WriteHeader(m.status)
	if m.status != http.StatusOK {
		fmt.Fprintln(w, "there is no node configuration for this token (yet)")
		return
	}
	_ = json.NewEncoder(w).Encode(m.plan)
}

// run simulates the programs of the machine.
func (m *machine) run(_ context.Context, stdin io.Reader, program string, args ...string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	line := strings.Join(append([]string{filepath.Base(program)}, args...), " ")
	m.commands = append(m.commands, line)
	if len(m.commands) == m.failAt {
		return nil, errors.New("the machine loses its power")
	}
	switch {
	case strings.HasSuffix(line, "kubelet --version"):
		return []byte("Kubernetes " + m.read("/opt/hypershift/node/current/usr/bin/kubelet") + "\n"), nil
	case strings.Contains(line, "start --no-block hypershift-containerd.service kubelet.service"):
		m.startKubelet()
	case strings.HasPrefix(line, "systemctl show"):
		return []byte(strconv.Itoa(m.guest.endings()) + "\n"), nil
	case strings.HasPrefix(line, "systemctl enable"):
		return nil, m.host.Link("/etc/systemd/system/multi-user.target.wants/"+args[len(args)-1], "../"+args[len(args)-1])
	case strings.HasPrefix(line, "systemctl disable"):
		return nil, m.host.Remove("/etc/systemd/system/multi-user.target.wants/" + args[len(args)-1])
	case program == "useradd":
		m.put("/etc/passwd", m.read("/etc/passwd")+fmt.Sprintf("core:x:%d:%d::/home/core:/bin/bash\n", os.Getuid(), os.Getgid()))
	case strings.Contains(line, "images list"):
		return []byte(strings.Join(m.images, "\n")), nil
	case strings.Contains(line, "images import"):
		archive := tar.NewReader(stdin)
		for {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			if header.Name == "index.json" {
				index, err := v1.ParseIndexManifest(archive)
				if err != nil {
					return nil, err
				}
				m.images = append(m.images, index.Manifests[0].Annotations["io.containerd.image.name"])
			}
		}
	}
	return nil, nil
}

func (m *machine) put(path, text string) {
	m.t.Helper()
	target := m.host.Path(path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), os.WriteFile(target, []byte(text), 0o644)); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) read(path string) string {
	m.t.Helper()
	content, err := os.ReadFile(m.host.Path(path))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(content)
}

func (m *machine) mustRun() {
	m.t.Helper()
	m.Expect(run(m.t.Context(), m.host)).To(Succeed())
}

// state returns the mode and content of every file on the machine, and the target of every link.
func (m *machine) state() map[string]string {
	m.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(m.host.Root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, m.host.Root)
		if info.Mode()&fs.ModeSymlink != 0 {
			all[name], err = os.Readlink(path)
			return err
		}
		content, err := os.ReadFile(path)
		all[name] = fmt.Sprintf("%s %s", info.Mode(), content)
		return err
	})
	m.Expect(err).NotTo(HaveOccurred())
	return all
}
