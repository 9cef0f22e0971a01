// SPDX-License-Identifier: Apache-2.0

package cloudconfig

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"sigs.k8s.io/yaml"
)

// agent is a fake node-agent that prints how it was started.
const agent = "#!/bin/sh\necho \"started with $*\"\n"

// firstBoot is a machine on which cloud-init has written the files of the user-data.
type firstBoot struct {
	*GomegaWithT
	t    *testing.T
	root string
	// answer is the ignition-server's handler; asked counts its requests.
	answer atomic.Pointer[http.HandlerFunc]
	asked  atomic.Int32
}

func newFirstBoot(t *testing.T) *firstBoot {
	b := &firstBoot{GomegaWithT: NewWithT(t), t: t, root: t.TempDir()}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.asked.Add(1); (*b.answer.Load())(w, r) }))
	t.Cleanup(server.Close)
	in := input()
	in.Endpoint = strings.TrimPrefix(server.URL, "https://")
	in.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	b.answers(func(w http.ResponseWriter, r *http.Request) {
		b.Expect(r.URL.Path).To(Equal("/node-agent/" + runtime.GOARCH))
		b.Expect(r.Header.Get("Authorization")).To(Equal("Bearer " + base64.StdEncoding.EncodeToString(in.Token)))
		serve(w, agent)
	})
	rendered, err := Render(in)
	b.Expect(err).NotTo(HaveOccurred())
	read := config{}
	b.Expect(yaml.Unmarshal(rendered, &read)).To(Succeed())
	for _, f := range read.WriteFiles {
		path := filepath.Join(b.root, f.Path)
		b.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		b.Expect(os.WriteFile(path, []byte(f.Content), 0o755)).To(Succeed())
	}
	return b
}

// serve responds with a program and its checksum.
func serve(w http.ResponseWriter, program string) {
	sum := sha256.Sum256([]byte(program))
	w.Header().Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
	_, _ = w.Write([]byte(program))
}

// run runs the first stage as its unit does, and returns its journal output.
func (b *firstBoot) run() string {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), filepath.Join(b.root, "opt/hypershift/bin/first-stage"), "run")
	cmd.Env = append(os.Environ(), "FIRST_STAGE_ROOT="+b.root, "FIRST_STAGE_RETRY_SECONDS=0.01", "HTTPS_PROXY=http://127.0.0.1:1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	b.Expect(cmd.Run()).To(Succeed(), out.String)
	b.Expect(out.String()).NotTo(ContainSubstring("NWYwYzZk"), "the token stays out of the journal")
	return out.String()
}

// afterFailures makes the server use a different handler for the first requests.
func (b *firstBoot) afterFailures(times int32, otherwise http.HandlerFunc) {
	good := *b.answer.Load()
	b.answers(func(w http.ResponseWriter, r *http.Request) {
		if b.asked.Load() <= times {
			otherwise(w, r)
			return
		}
		good(w, r)
	})
}

func (b *firstBoot) answers(how http.HandlerFunc) { b.answer.Store(&how) }

// strangersCA returns a CA certificate that did not sign the server's certificate.
func strangersCA(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestFirstStage(t *testing.T) {
	t.Run("When the server has node-agent, the first stage should download it once and start it", func(t *testing.T) {
		b := newFirstBoot(t)
		b.Expect(b.run()).To(HaveSuffix("started with run\n"))
		b.Expect(b.run()).To(HaveSuffix("started with run\n"))
		b.Expect(b.asked.Load()).To(BeEquivalentTo(1))
	})
	for name, otherwise := range map[string]http.HandlerFunc{
		"does not know the token yet": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNetworkAuthenticationRequired) },
		"is about to be replaced":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"sends a part of the program": func(w http.ResponseWriter, _ *http.Request) {
			sum := sha256.Sum256([]byte(agent))
			w.Header().Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
			_, _ = w.Write([]byte(agent[:10]))
		},
		"sends no checksum":     func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(agent)) },
		"closes the connection": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run("When the server "+name+", it should retry until the download succeeds", func(t *testing.T) {
			b := newFirstBoot(t)
			b.afterFailures(3, otherwise)
			out := b.run()
			b.Expect(out).To(HaveSuffix("started with run\n"))
			b.Expect(strings.Count(out, "cannot fetch node-agent, trying again")).To(Equal(3))
		})
	}
	t.Run("When another server responds, it should not run the program from that server", func(t *testing.T) {
		b := newFirstBoot(t)
		ca := filepath.Join(b.root, serverDir, "ca.crt")
		good, err := os.ReadFile(ca)
		b.Expect(err).NotTo(HaveOccurred())
		b.Expect(os.WriteFile(ca, strangersCA(t), 0o644)).To(Succeed())
		cmd := exec.CommandContext(t.Context(), filepath.Join(b.root, "opt/hypershift/bin/first-stage"), "run")
		cmd.Env = append(os.Environ(), "FIRST_STAGE_ROOT="+b.root, "FIRST_STAGE_RETRY_SECONDS=0.01")
		out, err := cmd.StdoutPipe()
		b.Expect(err).NotTo(HaveOccurred())
		b.Expect(cmd.Start()).To(Succeed())
		line, err := bufio.NewReader(out).ReadString('\n')
		b.Expect(err).NotTo(HaveOccurred())
		b.Expect(line).To(ContainSubstring("CERTIFICATE_VERIFY_FAILED"))
		b.Expect(cmd.Process.Kill()).To(Succeed())
		_ = cmd.Wait()
		b.Expect(b.asked.Load()).To(BeZero(), "the token was not sent")
		b.Expect(os.WriteFile(ca, good, 0o644)).To(Succeed())
		b.Expect(b.run()).To(HaveSuffix("started with run\n"))
	})
}
