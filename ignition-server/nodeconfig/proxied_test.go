// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
	"github.com/openshift/hypershift/support/syntax/systemd"
)

// fetchVariable makes this test binary fetch a URL and exit, like a program of a node with the same environment.
const fetchVariable = "NODECONFIG_TEST_FETCH"

func TestMain(m *testing.M) {
	if url := os.Getenv(fetchVariable); url != "" {
		if err := fetch(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// fetch uses proxies as Go programs do by default. It does not verify certificates, which this test does not cover.
func fetch(url string) error {
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// Only the proxy can resolve the registry's name. The password contains all characters that quoting could break.
const (
	hiddenRegistry = "registry.corp.example"
	proxyPassword  = "p$a\"s`s\\w'ord 1"
)

// office is a network that can be left only through a proxy.
type office struct {
	t        *testing.T
	registry *releasetest.Registry
	proxy    *httptest.Server
	tunnels  atomic.Int64
}

func newOffice(t *testing.T) *office {
	o := &office{t: t, registry: releasetest.StartOn(t, outsideAddress(t))}
	o.proxy = httptest.NewServer(http.HandlerFunc(o.connect))
	t.Cleanup(o.proxy.Close)
	return o
}

// connect opens a tunnel to the registry, and to no other host.
func (o *office) connect(w http.ResponseWriter, r *http.Request) {
	r.Header.Set("Authorization", r.Header.Get("Proxy-Authorization"))
	if user, password, _ := r.BasicAuth(); user != "node" || password != proxyPassword {
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	if r.Method != http.MethodConnect || r.Host != hiddenRegistry+":443" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	outside, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", o.registry.Host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer outside.Close()
	o.tunnels.Add(1)
	// The response is written directly to the connection, because the server's own response could follow the first bytes
	// of the tunnel.
	inside, first, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer inside.Close()
	fmt.Fprint(inside, "HTTP/1.1 200 Connection established\r\n\r\n")
	go func() { _, _ = io.Copy(outside, first) }()
	_, _ = io.Copy(inside, outside)
}

// input returns the input of a node in the office, as rendered from the cluster's configuration.
func (o *office) input() Input {
	in := minimalInput()
	url := strings.Replace(o.proxy.URL, "http://", "http://node:p%24a%22s%60s%5Cw%27ord%201@", 1)
	in.Proxy = nodeinput.ReadProxy(&configv1.ProxySpec{HTTPProxy: url, HTTPSProxy: url, NoProxy: "direct.example"}, hyperv1.ClusterNetworking{}, outsideAddress(o.t))
	in.Image = &configv1.ImageSpec{RegistrySources: configv1.RegistrySources{InsecureRegistries: []string{hiddenRegistry}}}
	return in
}

// push pushes an image with files and returns the name that nodes use for it.
func (o *office) push(repository string, files map[string]string) string {
	pushed := o.registry.Push(o.t, o.registry.Host+"/"+repository+":1", imageOf(o.t, files))
	return strings.Replace(pushed, o.registry.Host, hiddenRegistry, 1)
}

// environmentOf returns the environment that systemd gives to a unit's programs: the EnvironmentFiles of the unit's
// file and drop-ins.
func environmentOf(t *testing.T, raw []byte, unit string) []string {
	t.Helper()
	var env []string
	for _, u := range parse(t, raw).Systemd.Units {
		if u.Name != unit {
			continue
		}
		var text strings.Builder
		if u.Contents != nil {
			text.WriteString(*u.Contents + "\n")
		}
		for _, d := range u.Dropins {
			text.WriteString(*d.Contents + "\n")
		}
		section := ""
		for line := range strings.Lines(text.String()) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "[") {
				section = line
			}
			if path, ok := strings.CutPrefix(line, "EnvironmentFile="); ok && section == "[Service]" {
				env = append(env, environmentFile(string(fileAt(t, raw, path)))...)
			}
		}
	}
	return env
}

// environmentFile reads lines of NAME="value". Within double quotes, a backslash escapes the characters that are
// special to a shell, and nothing is expanded (systemd.exec(5)).
func environmentFile(text string) []string {
	var env []string
	for line := range strings.Lines(text) {
		name, quoted, _ := strings.Cut(strings.TrimSpace(line), "=")
		quoted = strings.TrimSuffix(strings.TrimPrefix(quoted, `"`), `"`)
		var value strings.Builder
		for i := 0; i < len(quoted); i++ {
			if quoted[i] == '\\' && i+1 < len(quoted) && strings.IndexByte("\"\\`$", quoted[i+1]) >= 0 {
				i++
			}
			value.WriteByte(quoted[i])
		}
		env = append(env, name+"="+value.String())
	}
	return env
}

func TestSystemdQuote(t *testing.T) {
	for _, value := range []string{"plain", `two\\slashes`, `a"quote`, "a`tick", `$HOME`, `\$`, `\"`, ""} {
		t.Run("When a variable has the value "+value+", programs should get it unchanged", func(t *testing.T) {
			text, err := systemd.EnvironmentFile(systemd.Variable{Name: "NO_PROXY", Value: value})
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(environmentFile(strings.TrimSuffix(string(text), "\n"))).To(Equal([]string{"NO_PROXY=" + value}))
		})
	}
}

func TestUnitsUseTheProxy(t *testing.T) {
	o := newOffice(t)
	raw, err := Render(o.input())
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	fetchWith := func(env []string, url string) error {
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Env = append(env, fetchVariable+"="+url)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	for _, unit := range []string{"hypershift-containerd.service", "kubelet.service"} {
		t.Run("When "+unit+" fetches a URL, it should use the proxy unless the host is in NO_PROXY", func(t *testing.T) {
			g, before := NewWithT(t), o.tunnels.Load()
			env := environmentOf(t, raw, unit)
			g.Expect(fetchWith(env, "https://"+hiddenRegistry+"/v2/")).To(Succeed())
			g.Expect(o.tunnels.Load()).To(Equal(before + 1))
			g.Expect(fetchWith(env, "https://"+o.registry.Host+"/v2/")).To(Succeed(), "the host of the API server")
			g.Expect(o.tunnels.Load()).To(Equal(before + 1))
			g.Expect(fetchWith(nil, "https://"+hiddenRegistry+"/v2/")).NotTo(Succeed(), "there must be no other way")
		})
	}
}

// TestContainerdPullsThroughTheProxy pulls images through the proxy with a real containerd, called as the kubelet
// calls it.
func TestContainerdPullsThroughTheProxy(t *testing.T) {
	needContainerd(t)
	g, o := NewWithT(t), newOffice(t)
	web := o.push("web", map[string]string{"web": "web"})
	raw, err := Render(o.input())
	g.Expect(err).NotTo(HaveOccurred())
	n := newNode(t, raw)
	n.daemonEnv = append([]string{"PATH=" + os.Getenv("PATH")}, environmentOf(t, raw, runtimeUnitName)...)
	n.startContainerd()
	g.Eventually(n.pull).WithArguments(web).WithTimeout(3*time.Minute).Should(Succeed(), "containerd has just been started")
	g.Expect(o.tunnels.Load()).To(BeNumerically(">", 0))
}

// pull requests an image from containerd as the kubelet does: by PullImage of the CRI. It makes the gRPC call without
// the gRPC library.
func (n *node) pull(image string) error {
	field := func(message []byte) []byte {
		return append(binary.AppendUvarint([]byte{0x0a}, uint64(len(message))), message...)
	}
	message := field(field([]byte(image))) // PullImageRequest{image: ImageSpec{image: ...}}
	frame := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	transport := &http.Transport{Protocols: &http.Protocols{}, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", n.address)
	}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(n.t.Context(), http.MethodPost, "http://containerd/runtime.v1.ImageService/PullImage", bytes.NewReader(frame))
	if err != nil {
		return err
	}
	request.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	// A response without a body has its trailers in the header.
	if status := response.Trailer.Get("Grpc-Status") + response.Header.Get("Grpc-Status"); status != "0" {
		return fmt.Errorf("PullImage %s: status %s: %s%s", image, status, response.Trailer.Get("Grpc-Message"), response.Header.Get("Grpc-Message"))
	}
	return nil
}

// TestMirrorSourcePolicy requests an image that the mirror lacks and the source has, from a real containerd.
func TestMirrorSourcePolicy(t *testing.T) {
	needContainerd(t)
	for policy, contacted := range map[string]bool{"AllowContactingSource": true, "NeverContactSource": false} {
		t.Run("When the policy is "+policy+" containerd should honor it", func(t *testing.T) {
			g := NewWithT(t)
			source, mirror := releasetest.StartOn(t, outsideAddress(t)), releasetest.StartOn(t, outsideAddress(t))
			both, missing := imageOf(t, map[string]string{"web": "both"}), imageOf(t, map[string]string{"web": "missing"})
			mirror.Push(t, mirror.Host+"/web:1", both)
			mirrored := source.Push(t, source.Host+"/web:1", both)
			unmirrored := source.Push(t, source.Host+"/other:1", missing)
			in := minimalInput()
			in.TrustBundle = append(source.CA, mirror.CA...)
			in.Config = fmt.Sprintf("kind: ImageDigestMirrorSet\nmetadata: {name: m}\nspec: {imageDigestMirrors: [{source: %q, mirrors: [%q], mirrorSourcePolicy: %s}]}\n",
				source.Host, mirror.Host, policy)
			raw, err := Render(in)
			g.Expect(err).NotTo(HaveOccurred())
			n := newNode(t, raw)
			n.startContainerd()
			before := source.Requests()
			g.Eventually(n.pull).WithArguments(mirrored).WithTimeout(3*time.Minute).Should(Succeed(), "containerd has just been started")
			g.Expect(source.Requests()).To(Equal(before), "the mirror has it")
			g.Expect(n.pull(unmirrored) == nil).To(Equal(contacted))
			g.Expect(source.Requests() > before).To(Equal(contacted))
		})
	}
}
