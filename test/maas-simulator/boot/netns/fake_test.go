// SPDX-License-Identifier: Apache-2.0

package netns_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
	"github.com/openshift/hypershift/test/maas-simulator/boot/netns"
	"github.com/openshift/hypershift/test/machine/network/networktest"
)

// fakeMAAS is a fake of MAAS's metadata endpoint and of the server of Ignition configs, in the network of the machines.
type fakeMAAS struct {
	url      string
	mu       sync.Mutex
	requests []string
	// refusals is the number of requests for the Ignition config that get status 511 before it is served.
	refusals int
	userData string
	config   string
}

func (f *fakeMAAS) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.requests...)
}

func (f *fakeMAAS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain")
	f.requests = append(f.requests, r.Method+" "+r.URL.RequestURI())
	if strings.HasPrefix(r.URL.Path, "/metadata/") && !strings.Contains(r.Header.Get("Authorization"), `oauth_signature="%26secret"`) {
		http.Error(w, "no OAuth", http.StatusUnauthorized)
		return
	}
	switch r.URL.Path {
	case "/metadata/2012-03-01/meta-data/local-hostname":
		fmt.Fprint(w, "swift-otter.maas")
	case "/metadata/2012-03-01/user-data":
		fmt.Fprint(w, f.userData)
	case "/config":
		if r.TLS == nil || r.Header.Get("Authorization") != "Bearer the-token" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if f.refusals > 0 {
			f.refusals--
			w.WriteHeader(http.StatusNetworkAuthenticationRequired)
			return
		}
		fmt.Fprint(w, f.config)
	}
}

// startMAAS starts the servers in their own network namespace, which contains the bridge of the machines. It serves the
// config over HTTPS, with a CA that only the user-data contains.
func startMAAS(t *testing.T, config map[string]any) *fakeMAAS {
	t.Helper()
	g := NewWithT(t)
	bridge.Make(t)
	fake := &fakeMAAS{refusals: 1}
	fake.url = bridge.Serve(t, fake, (*httptest.Server).Start).URL
	secure := bridge.Serve(t, fake, (*httptest.Server).StartTLS)
	data, err := json.Marshal(config)
	g.Expect(err).NotTo(HaveOccurred())
	fake.config = string(data)
	ca := networktest.PEM(secure.Certificate().Raw)
	stub, err := json.Marshal(map[string]any{"ignition": map[string]any{
		"version": "3.4.0",
		"config": map[string]any{"merge": []any{map[string]any{
			"source": secure.URL + "/config", "httpHeaders": []any{map[string]any{"name": "Authorization", "value": "Bearer the-token"}},
		}}},
		"security": map[string]any{"tls": map[string]any{"certificateAuthorities": []any{
			map[string]any{"source": "data:;base64," + base64.StdEncoding.EncodeToString(ca)},
		}}},
	}})
	g.Expect(err).NotTo(HaveOccurred())
	fake.userData = string(stub)
	return fake
}

func newBackend(t *testing.T) *netns.Backend {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("machines made of namespaces need root")
	}
	bin, err := filepath.Abs("../../../../bin")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	backend := &netns.Backend{
		Dir: t.TempDir(), OS: filepath.Join(bin, "os"), Ignition: filepath.Join(bin, "ignition"),
		// The names differ from the names of a demo that may run on the host.
		Bridge: networktest.Name, BridgeNamespace: bridge.Namespace, Prefix: "mt-", CgroupParent: "machine-test",
	}
	for path, target := range map[string]string{backend.Ignition: "ignition-binary", filepath.Join(backend.OS, "usr/bin/containerd"): "os-binaries"} {
		if _, err := os.Stat(path); err != nil {
			t.Skipf("%s is missing: run make %s", path, target)
		}
	}
	return backend
}

func newSpec(fake *fakeMAAS) boot.Spec {
	return boot.Spec{
		SystemID: "tst001", Hostname: "swift-otter", Domain: "maas", MAC: "52:54:00:12:34:56",
		Addresses: []netip.Prefix{netip.MustParsePrefix("172.31.98.11/24")}, Gateway: netip.MustParseAddr(bridge.Address),
		Nameservers: []netip.Addr{netip.MustParseAddr(bridge.Address)},
		MetadataURL: fake.url + "/metadata/", ConsumerKey: "consumer", TokenKey: "token", TokenSecret: "secret",
		OSystem: "custom", Series: "kubernetes-node", Disks: []boot.Disk{{Name: "sda", Bytes: 8 << 30}, {Name: "sdb", Bytes: 1 << 30}},
	}
}

// nodeConfig returns a config with a file, a unit and the removal of the helper partition.
func nodeConfig() map[string]any {
	unit := "[Unit]\nAfter=containerd.service\nRequires=containerd.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\n" +
		"ExecStart=/bin/sh -c 'ctr version && cat /etc/greeting >> /var/greeted'\n[Install]\nWantedBy=multi-user.target\n"
	return map[string]any{
		"ignition": map[string]any{"version": "3.4.0"},
		"storage": map[string]any{
			"files": []any{map[string]any{"path": "/etc/greeting", "mode": 0o644, "contents": map[string]any{"source": "data:,hello%0A"}}},
			"disks": []any{map[string]any{"device": "/dev/sda", "partitions": []any{
				map[string]any{"number": 5, "shouldExist": false, "wipePartitionEntry": true},
			}}},
		},
		"passwd":  map[string]any{"users": []any{map[string]any{"name": "core", "sshAuthorizedKeys": []any{"ssh-ed25519 AAAA me"}}}},
		"systemd": map[string]any{"units": []any{map[string]any{"name": "greet.service", "enabled": true, "contents": unit}}},
	}
}
