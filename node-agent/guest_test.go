// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/cluster"
)

// guest simulates a kubelet and the API server that it connects to.
type guest struct {
	mu sync.Mutex
	// annotations holds the annotations of the Node, version its resource version, and patches the changes in order.
	annotations map[string]string
	version     int
	patches     []string
	// kubelet is the version of the running kubelet; empty if none runs. ends is how often it has exited; for a broken
	// kubelet it increases with each query. stale is the value of the previous kubelet, which systemd reports until the
	// restart is complete.
	kubelet     string
	broken      bool
	ends, stale int
	// away makes the API server fail all requests.
	away bool
	// news wakes the watches.
	news chan struct{}
}

// join makes the machine a node of a guest.
func (m *machine) join() {
	m.t.Helper()
	m.guest.annotations, m.guest.news = map[string]string{}, make(chan struct{}, 100)
	server := httptest.NewTLSServer(http.HandlerFunc(m.api))
	m.t.Cleanup(server.CloseClientConnections)
	m.t.Cleanup(server.Close)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	m.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "system:node:worker-1"}, NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	m.Expect(err).NotTo(HaveOccurred())
	der, err := x509.MarshalECPrivateKey(key)
	m.Expect(err).NotTo(HaveOccurred())
	pair := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})...)
	const pki = "/var/lib/kubelet/pki/kubelet-client-current.pem"
	m.put(pki, string(pair))
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	m.put(cluster.Kubeconfig, fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: default
clusters: [{name: default, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: default, user: {client-certificate: %s, client-key: %s}}]
`, server.URL, base64.StdEncoding.EncodeToString(ca), pki, pki))
}

// startKubelet simulates a restart of the units: a kubelet with an invalid configuration exits repeatedly.
func (m *machine) startKubelet() {
	m.guest.mu.Lock()
	defer m.guest.mu.Unlock()
	m.guest.stale = m.guest.ends
	m.guest.kubelet, m.guest.ends, m.guest.broken = m.read("/opt/hypershift/node/current/usr/bin/kubelet"), 0, false
	config, err := m.host.Read("/etc/kubernetes/kubelet.yaml")
	if err == nil && strings.Contains(string(config), "broken") {
		m.guest.kubelet, m.guest.broken = "", true
	}
}

// endings returns the number of exits of the kubelet, as systemd reports it. Right after a restart, it is still the
// previous value.
func (g *guest) endings() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stale > 0 {
		said := g.stale
		g.stale = 0
		return said
	}
	if g.broken {
		g.ends++
	}
	return g.ends
}

// forNode handles the requests of Nodes to the ignition-server.
func (m *machine) forNode(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/healthz":
	case m.status != http.StatusOK:
		http.Error(w, "there is no configuration of NodePool clusters/demo (yet)", m.status)
	case r.URL.Path == "/node-config/"+m.next.ConfigHash:
		_ = json.NewEncoder(w).Encode(m.next)
	case r.URL.Path == "/node-agent/"+runtime.GOARCH:
		sum := sha256.Sum256([]byte(strings.TrimPrefix(m.program, "damaged ")))
		w.Header().Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
		_, _ = w.Write([]byte(m.program))
	default:
		http.NotFound(w, r)
	}
}

// api is the handler of the guest's API server.
func (m *machine) api(w http.ResponseWriter, r *http.Request) {
	g := &m.guest
	g.mu.Lock()
	defer g.mu.Unlock()
	node := func() map[string]any {
		return map[string]any{"metadata": map[string]any{"annotations": maps.Clone(g.annotations), "resourceVersion": fmt.Sprint(g.version)}}
	}
	switch {
	case g.away:
		http.Error(w, "away", http.StatusServiceUnavailable)
	case r.Method == http.MethodPatch:
		g.patch(r)
	case strings.Contains(r.URL.Path, "/leases/"):
		renewed := time.Now().Add(-time.Minute)
		if g.kubelet != "" {
			renewed = time.Now().Add(time.Minute)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"spec": map[string]any{"renewTime": renewed.Format(time.RFC3339Nano)}})
	case r.URL.Query().Get("watch") == "true":
		g.mu.Unlock()
		select {
		case <-g.news:
		case <-r.Context().Done():
		}
		g.mu.Lock()
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": node()})
	case r.URL.Query().Get("fieldSelector") == "metadata.name=worker-1":
		_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{"resourceVersion": fmt.Sprint(g.version)}, "items": []any{node()}})
	default:
		n := node()
		n["status"] = map[string]any{
			"nodeInfo": map[string]any{"kubeletVersion": g.kubelet}, "conditions": []any{map[string]any{"type": "Ready", "status": "True", "message": "as before"}},
		}
		_ = json.NewEncoder(w).Encode(n)
	}
}

func (g *guest) patch(r *http.Request) {
	var patch struct {
		Metadata struct {
			Annotations map[string]*string `json:"annotations"`
		} `json:"metadata"`
	}
	_ = json.NewDecoder(r.Body).Decode(&patch)
	for key, value := range patch.Metadata.Annotations {
		delete(g.annotations, key)
		if value != nil {
			g.annotations[key] = *value
		}
	}
	g.version++
	g.patches = append(g.patches, g.annotations[stateAnnotation]+" "+g.annotations[currentAnnotation])
	g.news <- struct{}{}
}

// want acts as the config operator: it requests a configuration.
func (m *machine) want(hash string) {
	m.guest.mu.Lock()
	defer m.guest.mu.Unlock()
	m.guest.annotations[desiredAnnotation] = hash
	m.guest.version++
	m.guest.news <- struct{}{}
}

// says returns the configuration, the state and the message in the annotations of the Node.
func (m *machine) says() (current, state, message string) {
	m.guest.mu.Lock()
	defer m.guest.mu.Unlock()
	a := m.guest.annotations
	return a[currentAnnotation], a[stateAnnotation], a[messageAnnotation]
}

// follower returns the follower of the machine. It polls without a delay, with timeouts that suit a busy computer.
func (m *machine) follower() *follower {
	m.put("/opt/hypershift/bin/node-agent", "this program")
	m.program = "this program"
	return &follower{
		host: m.host, node: &cluster.Node{Host: m.host, Name: "worker-1"}, arch: runtime.GOARCH, ready: time.Minute, poll: time.Millisecond,
		retryFirst: time.Millisecond, retryMax: 10 * time.Millisecond, watchMax: 10 * time.Millisecond, become: func() error { return nil },
	}
}

// applyAnnotations lets the follower process the annotations of its Node once.
func (m *machine) applyAnnotations(f *follower) error {
	m.guest.mu.Lock()
	now := maps.Clone(m.guest.annotations)
	m.guest.mu.Unlock()
	return f.applyAnnotations(m.t.Context(), now)
}
