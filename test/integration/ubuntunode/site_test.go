// SPDX-License-Identifier: Apache-2.0

// Package ubuntunode deploys stock cloud images with the MAAS simulator, most with Debian's real cloud-init and one
// with the real Ignition. It follows a machine until its kubelet requests a certificate. User-data, first stage,
// node-agent, container runtime and kubelet are real.
package ubuntunode

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/containerimage"
	"github.com/openshift/hypershift/test/maas-simulator/boot/netns"
	"github.com/openshift/hypershift/test/maas-simulator/lifecycle"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/status"
	"github.com/openshift/hypershift/test/machine"
	"github.com/openshift/hypershift/test/machine/network/networktest"
)

// bridge is the network that the machine is connected to.
var bridge = networktest.Bridge{Namespace: "ut-switch", Address: "172.31.99.1"}

const (
	systemID = "ubt001"

	// timeout is long enough for a first boot with a restart, on a busy machine.
	timeout = 8 * time.Minute

	seed = `{
 "subnets": [{"id": 1, "name": "net", "cidr": "172.31.99.0/24", "gateway_ip": "172.31.99.1", "dns_servers": ["172.31.99.1"]}],
 "boot_resources": [{"id": 1, "type": "Synced", "name": "ubuntu/noble", "architecture": "amd64/ga-24.04"},
   {"id": 2, "type": "Uploaded", "name": "kubernetes-node", "architecture": "amd64/generic", "filetype": "tgz"}],
 "machines": [{"system_id": "ubt001", "hostname": "Calm-Heron", "cpu_count": 2, "memory": 4096, "power_type": "ipmi",
   "interface_set": [{"name": "eth0", "mac_address": "52:54:00:12:34:58", "links": [{"mode": "auto", "subnet": 1}]}],
   "physicalblockdevice_set": [{"name": "sda", "size": 8000000000}]}]}`
)

func TestMain(m *testing.M) {
	machine.Init(netns.Boots)
	os.Exit(m.Run())
}

// site is a fixture with one machine, a MAAS and a registry.
type site struct {
	*GomegaWithT
	*simulator.Simulator
	t       *testing.T
	bin     string
	backend *netns.Backend
	// registry is the registry's address for the machine, and pushTo its address for this test.
	registry, pushTo string
}

func newSite(t *testing.T) *site {
	s := &site{GomegaWithT: NewWithT(t), t: t}
	if os.Getuid() != 0 {
		t.Skip("machines made of namespaces need root")
	}
	var err error
	s.bin, err = filepath.Abs("../../../bin")
	s.Expect(err).NotTo(HaveOccurred())
	s.backend = &netns.Backend{
		Dir: t.TempDir(), OS: filepath.Join(s.bin, "os"), CloudOS: filepath.Join(s.bin, "cloud-os"), Ignition: filepath.Join(s.bin, "ignition"),
		Bridge: networktest.Name, BridgeNamespace: bridge.Namespace, Prefix: "ut-", CgroupParent: "ubuntunode-test",
	}
	for path, target := range map[string]string{"cloud-os/usr/bin/cloud-init": "cloud-os", "os/usr/bin/containerd": "os-binaries", "kube/kubelet": "kube-binaries", "images/pause": "images"} {
		if _, err := os.Stat(filepath.Join(s.bin, path)); err != nil {
			t.Skipf("bin/%s is missing: run make %s", path, target)
		}
	}
	bridge.Make(t)

	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	local := httptest.NewServer(images)
	t.Cleanup(local.Close)
	s.pushTo = strings.TrimPrefix(local.URL, "http://")
	s.registry = strings.TrimPrefix(bridge.Serve(t, images, (*httptest.Server).Start).URL, "http://")
	s.startMAAS()
	return s
}

func (s *site) startMAAS() {
	metadata := bridge.Serve(s.t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.Simulator.ServeHTTP(w, r) }), (*httptest.Server).Start)
	var err error
	s.Simulator, err = simulator.New(simulator.Options{
		Seed: []byte(seed), Backend: s.backend, MetadataURL: metadata.URL + "/MAAS/metadata/", Log: s.t.Logf, RandomSeed: 7,
	})
	s.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	s.t.Cleanup(func() {
		cancel()
		<-ended
		s.Expect(s.backend.Erase(context.Background(), systemID)).To(Succeed())
	})
}

// push builds and pushes an image of programs in bin, by their paths in it, and returns its name for the machine.
func (s *site) push(image string, programs map[string]string) string {
	s.t.Helper()
	var files []containerimage.File
	for path, source := range programs {
		files = append(files, containerimage.File{Path: path, Source: filepath.Join(s.bin, source)})
	}
	tar := filepath.Join(s.t.TempDir(), "layer.tar")
	s.Expect(containerimage.WriteLayer(tar, files)).To(Succeed())
	layer, err := tarball.LayerFromFile(tar)
	s.Expect(err).NotTo(HaveOccurred())
	built, err := containerimage.Assemble(containerimage.Image{Name: image, Files: files}, runtime.GOARCH, layer)
	s.Expect(err).NotTo(HaveOccurred())
	ref, err := name.ParseReference(s.pushTo + "/" + image + ":1")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(remote.Write(ref, built)).To(Succeed())
	return s.registry + "/" + image + ":1"
}

// nodeAgent builds node-agent for the ignition-server to serve, and returns its folder.
func (s *site) nodeAgent() string {
	s.t.Helper()
	dir := s.t.TempDir()
	cmd := exec.CommandContext(s.t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, runtime.GOARCH), "github.com/openshift/hypershift/node-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	s.Expect(err).NotTo(HaveOccurred(), string(out))
	return dir
}

// deploy makes MAAS deploy an image with the user-data.
func (s *site) deploy(osystem, series string, userData []byte) {
	s.t.Helper()
	s.Expect(s.DB.Update(func() error {
		m := s.DB.Machines.Edit(systemID)
		if err := s.Life.Deploy(m, lifecycle.Deployment{User: "alice", OSystem: osystem, Series: series, UserData: userData}); err != nil {
			return err
		}
		return s.Life.Start(m)
	})).To(Succeed())
	s.Life.Wake()
}

func (s *site) status() status.Status { return s.Machine(systemID).Status }

// read returns the content of a file of the machine; empty if it does not exist.
func (s *site) read(path string) string {
	m, err := machine.Lookup(filepath.Join(s.backend.Dir, systemID))
	if err != nil || m == nil {
		return ""
	}
	content, err := os.ReadFile(m.Path(path))
	if err != nil {
		return ""
	}
	return string(content)
}

func journal(unit string) string { return "/var/log/units/" + unit + ".service.log" }

// explain returns the logs that help to diagnose a failure.
func (s *site) explain() string {
	return s.read("../console.log") + s.read("/var/log/cloud-init-output.log") + s.read(journal("hypershift-node-agent")) +
		s.read(journal("hypershift-containerd")) + s.read(journal("kubelet"))
}
