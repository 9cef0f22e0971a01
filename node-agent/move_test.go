// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/cluster"
	"github.com/openshift/hypershift/support/nodeplan"
)

const restart = "systemctl restart kubelet.service"

// otherServer starts a second server for the guest's API and returns its URL.
func (m *machine) otherServer() string {
	m.t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(m.api))
	m.t.Cleanup(server.CloseClientConnections)
	m.t.Cleanup(server.Close)
	return server.URL
}

// otherAddress returns a second address at which both servers answer. It replaces the current host of the
// ignition-server with a name that has no server.
func (m *machine) otherAddress() string {
	m.t.Helper()
	endpoint := strings.TrimSpace(m.read(nodeplan.ServerEndpoint))
	m.put(nodeplan.ServerEndpoint, withHost(endpoint, "former.example.com")+"\n")
	return m.otherServer() + " " + hostOf(endpoint)
}

// moveTo acts as the config operator: it requests an address.
func (m *machine) moveTo(text string) {
	m.guest.mu.Lock()
	defer m.guest.mu.Unlock()
	m.guest.annotations[desiredAddress] = text
}

// addressed returns the address and the message in the annotations of the Node.
func (m *machine) addressed() (current, message string) {
	m.guest.mu.Lock()
	defer m.guest.mu.Unlock()
	return m.guest.annotations[currentAddress], m.guest.annotations[addressMessage]
}

func (m *machine) restarts() int {
	return strings.Count(strings.Join(m.commands, "\n")+"\n", restart+"\n")
}

func TestMove(t *testing.T) {
	t.Run("When no address is desired, it should report the current address in the first patch", func(t *testing.T) {
		m, f := newNode(t)
		at, err := goesBy(m.host)
		m.Expect(err).NotTo(HaveOccurred())
		m.Expect(m.applyAnnotations(f)).To(Succeed())
		current, _ := m.addressed()
		m.Expect(current).To(Equal(at.String()))
		m.Expect(m.guest.patches).To(HaveLen(1))
		m.Expect(m.restarts()).To(BeZero())
	})
	t.Run("When another address is desired, it should move both servers there and restart the kubelet once", func(t *testing.T) {
		m, f := newNode(t)
		endpoint, before := m.read(nodeplan.ServerEndpoint), m.read(cluster.Kubeconfig)
		to := m.otherAddress()
		m.moveTo(to)
		m.Expect(m.applyAnnotations(f)).To(Succeed())
		current, message := m.addressed()
		m.Expect(current).To(Equal(to))
		m.Expect(message).To(BeEmpty())
		m.Expect(m.restarts()).To(Equal(1))
		server, err := cluster.Server(m.host)
		m.Expect(err).NotTo(HaveOccurred())
		m.Expect(to).To(HavePrefix(server + " "))
		m.Expect(m.read(cluster.Kubeconfig)).To(ContainSubstring("client-certificate: "), "what else the kubelet has there stays")
		m.Expect(m.read(cluster.Kubeconfig)).NotTo(Equal(before))
		m.Expect(m.read(nodeplan.ServerEndpoint)).To(Equal(endpoint), "with the port that it had")
		writes := len(m.guest.patches)
		m.Expect(m.applyAnnotations(f)).To(Succeed())
		m.Expect(m.guest.patches).To(HaveLen(writes), "a settled machine writes nothing")
		m.Expect(m.restarts()).To(Equal(1))
	})
	t.Run("When only the ignition-server moves, it should not restart the kubelet", func(t *testing.T) {
		m, f := newNode(t)
		_, ignition, _ := strings.Cut(m.otherAddress(), " ")
		at, err := goesBy(m.host)
		m.Expect(err).NotTo(HaveOccurred())
		m.moveTo(at.api + " " + ignition)
		m.Expect(m.applyAnnotations(f)).To(Succeed())
		current, _ := m.addressed()
		m.Expect(current).To(Equal(at.api + " " + ignition))
		m.Expect(m.restarts()).To(BeZero())
	})
	for name, harm := range map[string]func(m *machine) string{
		"When no server responds at the address":                  func(*machine) string { return "https://127.0.0.1:1" },
		"When no ignition-server responds there":                  func(m *machine) string { return m.otherServer() + " nobody.invalid" },
		"When the server's certificate does not contain the host": func(m *machine) string { return strings.Replace(m.otherServer(), "127.0.0.1", "127.0.0.2", 1) },
		"When the server belongs to another cluster":              func(m *machine) string { return m.stranger() },
	} {
		t.Run(name+", it should keep the address, report why, and still apply configurations", func(t *testing.T) {
			m, f := newNode(t)
			m.Expect(m.applyAnnotations(f)).To(Succeed())
			at, _ := m.addressed()
			before := m.state()
			m.moveTo(harm(m))
			m.Expect(m.applyAnnotations(f)).To(MatchError(ContainSubstring("nothing was changed")))
			m.Expect(m.state()).To(Equal(before))
			m.Expect(m.restarts()).To(BeZero())
			current, message := m.addressed()
			m.Expect(current).To(Equal(at))
			m.Expect(message).To(ContainSubstring("is not reachable"))
			m.want("new")
			m.Expect(m.applyAnnotations(f)).To(HaveOccurred())
			m.isNew()
			m.moveTo(at)
			m.Expect(m.applyAnnotations(f)).To(Succeed())
			_, message = m.addressed()
			m.Expect(message).To(BeEmpty(), "what is no longer wanted is no longer said")
		})
	}
	for _, changed := range []string{nodeplan.ServerEndpoint, cluster.Kubeconfig} {
		t.Run("When the machine stops right after the change of "+changed+", it should restart the kubelet before it reports the address", func(t *testing.T) {
			m, f := newNode(t)
			to := m.otherAddress()
			m.moveTo(to)
			stopped := errors.New("the machine loses its power")
			m.host.Changed = func(path string) {
				if path == changed {
					panic(stopped)
				}
			}
			m.Expect(func() { _ = m.applyAnnotations(f) }).To(PanicWith(stopped))
			m.host.Changed = nil
			current, _ := m.addressed()
			m.Expect(current).NotTo(BeElementOf("", to), "it is known what the kubelet that runs goes by")
			m.Expect(m.applyAnnotations(m.follower())).To(Succeed())
			current, _ = m.addressed()
			m.Expect(current).To(Equal(to))
			m.Expect(m.restarts()).To(Equal(1))
		})
	}
	t.Run("When restarting the kubelet fails, it should not report the new address until a restart succeeds", func(t *testing.T) {
		m, f := newNode(t)
		to := m.otherAddress()
		m.moveTo(to)
		m.commands, m.failAt = nil, 1
		m.Expect(m.applyAnnotations(f)).To(MatchError(ContainSubstring("the kubelet cannot be restarted")))
		current, _ := m.addressed()
		m.Expect(current).NotTo(Equal(to))
		m.Expect(m.applyAnnotations(f)).To(Succeed())
		current, _ = m.addressed()
		m.Expect(current).To(Equal(to))
	})
	t.Run("When the machine has a proxy, it should exclude the new API server from the proxy, also after a reboot", func(t *testing.T) {
		m, f := newNode(t)
		const environment = "HTTPS_PROXY=\"http://proxy.example:3128\"\nNO_PROXY=\".svc,127.0.0.1\"\n"
		m.put(nodeplan.ProxyEnvironment, environment)
		to := strings.Replace(m.otherServer(), "127.0.0.1", "example.com", 1)
		at, err := goesBy(m.host)
		m.Expect(err).NotTo(HaveOccurred())
		m.Expect(f.direct(at)).To(BeTrue())
		m.Expect(f.direct(address{api: to})).To(BeFalse())
		m.Expect(f.goBy(t.Context(), at, address{api: to, ignition: at.ignition})).To(Succeed())
		m.Expect(m.read(nodeplan.ProxyEnvironment)).To(Equal(strings.Replace(environment, `NO_PROXY="`, `NO_PROXY="example.com,`, 1)))
		m.put(nodeplan.ProxyEnvironment, environment)
		m.Expect(f.goBy(t.Context(), address{api: to}, address{api: to, ignition: at.ignition})).To(Succeed())
		m.Expect(m.restarts()).To(Equal(2))
	})
}

// stranger starts an API server of another cluster, which rejects this Node, and returns its URL.
func (m *machine) stranger() string {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who is this", http.StatusUnauthorized) }))
	m.t.Cleanup(server.Close)
	return server.URL
}

func TestHostOf(t *testing.T) {
	for text, want := range map[string]string{
		"https://10.0.0.5:31443": "10.0.0.5", "https://[fd00::5]:31443": "fd00::5", "api.example.com:31443": "api.example.com", "api.example.com": "api.example.com", "": "",
	} {
		if got := hostOf(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := filepath.Join(withHost("10.0.0.1:32000", "fd00::5"), withHost("ignition.example.com", "other.example.com")); got != "[fd00::5]:32000/other.example.com" {
		t.Error(got)
	}
}
