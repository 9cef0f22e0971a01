// SPDX-License-Identifier: Apache-2.0

package podnetwork_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/machine/network"
)

const (
	router  = "flannel-test-router"
	podCIDR = "10.132.0.0/14"
	// attachDetach is an annotation that every kubelet sets.
	attachDetach = "volumes.kubernetes.io/controller-managed-attach-detach"
	// asContainer runs a program with the CNI plugins where its image has them, in its own mount namespace.
	asContainer = `mount -t tmpfs none /opt && mkdir -p /opt/cni/bin &&
		mount --bind "$1" /opt/cni/bin && shift && exec "$@"`
	netConf = `{"Network": "` + podCIDR + `", "EnableIPv4": true,
		"Backend": {"Type": "vxlan", "DirectRouting": true, "Port": 8472}}`
)

// flannelFixture is a router with a bridge for each subnet, and an API server that the nodes reach at the router.
type flannelFixture struct {
	t      *testing.T
	bin    string
	config *rest.Config
	api    string
}

// flannelNode is a network namespace with the programs of a node.
type flannelNode struct {
	*flannelFixture
	name, namespace, address string
	pods                     netip.Prefix
	root                     string
	running                  []*exec.Cmd
}

func newFlannelFixture(t *testing.T) *flannelFixture {
	t.Helper()
	bin, err := filepath.Abs("../../bin")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, file := range []string{"node-network", "images/flanneld", "cni/ptp", "cni/host-local"} {
		if _, err := os.Stat(filepath.Join(bin, file)); err != nil {
			t.Skipf("needs bin/%s: run make environment", file)
		}
	}
	newNamespaces(t, router)
	g := NewWithT(t)
	g.Expect(network.Ensure(router, network.Config{Bridges: []network.Bridge{
		{Name: "br96", Address: "172.31.96.1/24"}, {Name: "br97", Address: "172.31.97.1/24"},
	}})).To(Succeed())
	forwards(g, router)
	f := &flannelFixture{t: t, bin: bin, config: testenv.Start(t)}
	f.api = f.proxy()
	return f
}

func forwards(g *WithT, namespace string) {
	g.Expect(network.Do(namespace, func() error {
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600)
	})).To(Succeed())
}

// proxy serves the API server to the nodes, and returns its URL.
func (f *flannelFixture) proxy() string {
	g := NewWithT(f.t)
	server, err := url.Parse(f.config.Host)
	g.Expect(err).NotTo(HaveOccurred())
	var listener net.Listener
	g.Expect(network.Do(router, func() (err error) {
		listener, err = new(net.ListenConfig).Listen(f.t.Context(), "tcp", "172.31.96.1:0")
		return err
	})).To(Succeed())
	f.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := new(net.Dialer).DialContext(f.t.Context(), "tcp", server.Host)
			if err != nil {
				_ = from.Close()
				return
			}
			go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
			go func() { _, _ = io.Copy(from, to); _ = from.Close() }()
		}
	}()
	return "https://" + listener.Addr().String()
}

// node creates a node and its Node object.
func (f *flannelFixture) node(name, address, pods string) *flannelNode {
	f.t.Helper()
	g := NewWithT(f.t)
	n := &flannelNode{
		flannelFixture: f, name: name, namespace: "flannel-test-" + name, address: address,
		pods: netip.MustParsePrefix(pods), root: f.t.TempDir(),
	}
	newNamespaces(f.t, n.namespace)
	subnet := strings.Split(address, ".")[2]
	g.Expect(network.Ensure(n.namespace, network.Config{Links: []network.Link{{
		Inside:  network.End{Name: "eth0", Address: address + "/24", Gateway: "172.31." + subnet + ".1"},
		Outside: network.End{Namespace: router, Name: "to-" + name, Bridge: "br" + subnet},
	}}})).To(Succeed())
	forwards(g, n.namespace)
	client, err := kubernetes.NewForConfig(f.config)
	g.Expect(err).NotTo(HaveOccurred())
	node := &corev1.Node{
		// Flannel fails on a Node without any annotation.
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{attachDetach: "true"}},
		Spec:       corev1.NodeSpec{PodCIDR: pods, PodCIDRs: []string{pods}},
	}
	node, err = client.CoreV1().Nodes().Create(f.t.Context(), node, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	_, err = client.CoreV1().Nodes().UpdateStatus(f.t.Context(), node, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	f.t.Cleanup(n.stop)
	n.write("kubeconfig", n.kubeconfig())
	n.write("net-conf.json", []byte(netConf))
	return n
}

func (n *flannelNode) kubeconfig() []byte {
	raw, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {
			Server: n.api, TLSServerName: "localhost", CertificateAuthorityData: n.config.CAData,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {
			ClientCertificateData: n.config.CertData, ClientKeyData: n.config.KeyData,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "c",
	})
	NewWithT(n.t).Expect(err).NotTo(HaveOccurred())
	return raw
}

func (n *flannelNode) write(name string, content []byte) {
	NewWithT(n.t).Expect(os.WriteFile(filepath.Join(n.root, name), content, 0o600)).To(Succeed())
}

// run starts a program of the node.
func (n *flannelNode) run(program string, args ...string) {
	n.t.Helper()
	g := NewWithT(n.t)
	var argv []string
	switch program {
	case "flanneld":
		argv = []string{filepath.Join(n.bin, "images/flanneld"), "--kube-subnet-mgr", "--iface=" + n.address,
			"--kubeconfig-file=" + filepath.Join(n.root, "kubeconfig"),
			"--net-config-path=" + filepath.Join(n.root, "net-conf.json"),
			"--subnet-file=" + filepath.Join(n.root, "subnet.env")}
	default:
		argv = []string{"unshare", "-m", "sh", "-ec", asContainer, "sh",
			filepath.Join(n.bin, "cni"), filepath.Join(n.bin, program), "--kubeconfig=" + filepath.Join(n.root, "kubeconfig"), "--host-root=" + n.root, "--cluster-network=" + podCIDR}
	}
	log, err := os.OpenFile(filepath.Join(n.root, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	g.Expect(err).NotTo(HaveOccurred())
	defer log.Close()
	command := exec.CommandContext(n.t.Context(), argv[0], append(argv[1:], args...)...)
	command.Env = append(os.Environ(), "NODE_NAME="+n.name)
	command.Stdout, command.Stderr = log, log
	g.Expect(network.Do(n.namespace, command.Start)).To(Succeed())
	n.running = append(n.running, command)
}

// changeToFlannel replaces the agent, as the DaemonSet of a release with Flannel does.
func (n *flannelNode) changeToFlannel() {
	n.stop()
	n.run("flanneld")
	n.run("node-network", "--flannel")
}

func (n *flannelNode) stop() {
	for _, command := range n.running {
		_ = command.Process.Kill()
		_ = command.Wait()
	}
	n.running = nil
}

func (n *flannelNode) logs() string {
	raw, _ := os.ReadFile(filepath.Join(n.root, "log"))
	return string(raw)
}

// command runs a command in the node's namespace, and returns its output.
func (n *flannelNode) command(argv ...string) string {
	n.t.Helper()
	var out []byte
	err := network.Do(n.namespace, func() (err error) {
		out, err = exec.CommandContext(n.t.Context(), argv[0], argv[1:]...).CombinedOutput()
		return err
	})
	NewWithT(n.t).Expect(err).NotTo(HaveOccurred(), string(out))
	return string(out)
}

func (n *flannelNode) conflist() string {
	raw, _ := os.ReadFile(filepath.Join(n.root, "etc/cni/net.d/10-hypershift.conflist"))
	return string(raw)
}

func (n *flannelNode) waitForConfig(mtu string) {
	n.t.Helper()
	NewWithT(n.t).Eventually(n.conflist).WithTimeout(settle).WithPolling(100*time.Millisecond).
		Should(ContainSubstring(`"mtu": `+mtu), n.logs)
}

// flannelPod is a pod's network namespace and address.
type flannelPod struct {
	namespace string
	address   netip.Addr
}

// pod creates a pod with the node's CNI configuration.
func (n *flannelNode) pod() flannelPod {
	n.t.Helper()
	g := NewWithT(n.t)
	p := flannelPod{namespace: n.namespace + "-pod"}
	newNamespaces(n.t, p.namespace)
	var list struct {
		CNIVersion, Name string
		Plugins          []map[string]any
	}
	g.Expect(json.Unmarshal([]byte(n.conflist()), &list)).To(Succeed())
	plugin := list.Plugins[0]
	plugin["cniVersion"], plugin["name"] = list.CNIVersion, list.Name
	plugin["ipam"].(map[string]any)["dataDir"] = filepath.Join(n.root, "ipam")
	config, err := json.Marshal(plugin)
	g.Expect(err).NotTo(HaveOccurred())
	command := exec.CommandContext(n.t.Context(), filepath.Join(n.bin, "cni/ptp"))
	command.Stdin = bytes.NewReader(config)
	command.Env = []string{"CNI_COMMAND=ADD", "CNI_CONTAINERID=" + n.name, "CNI_NETNS=/run/netns/" + p.namespace,
		"CNI_IFNAME=eth0", "CNI_PATH=" + filepath.Join(n.bin, "cni")}
	var out []byte
	err = network.Do(n.namespace, func() (err error) { out, err = command.CombinedOutput(); return err })
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	var result struct{ IPs []struct{ Address string } }
	g.Expect(json.Unmarshal(out, &result)).To(Succeed())
	p.address = netip.MustParsePrefix(result.IPs[0].Address).Addr()
	return p
}

// newNamespaces creates network namespaces that are removed when the test ends.
func newNamespaces(t *testing.T, names ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	for _, name := range names {
		g := NewWithT(t)
		g.Expect(network.RemoveNamespace(name)).To(Succeed())
		g.Expect(network.EnsureNamespace(name)).To(Succeed())
		t.Cleanup(func() { g.Expect(network.RemoveNamespace(name)).To(Succeed()) })
	}
}
