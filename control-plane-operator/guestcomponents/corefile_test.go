// SPDX-License-Identifier: Apache-2.0

package guestcomponents

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/manifest"
	"github.com/openshift/hypershift/support/testenv"
)

// TestCorefile runs the payload's CoreDNS with the guest's Corefile and name servers of a user.
func TestCorefile(t *testing.T) {
	program := findProgram(t)
	g := NewWithT(t)
	cm, err := manifest.LoadAs[*corev1.ConfigMap](fixture.Scheme(), manifests, "manifests/coredns/40-config.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(corefile(cm.Data["Corefile"], hyperv1.DNSAddon{})).To(Equal(cm.Data["Corefile"]))
	dir := t.TempDir()
	port, ready := strconv.Itoa(testenv.FreePort(t)), strconv.Itoa(testenv.FreePort(t))
	text := strings.NewReplacer(
		".:53 {", ".:"+port+" {\n    bind 127.0.0.1", "        ready\n", "        ready 127.0.0.1:"+ready+"\n",
		"prometheus :9153", "prometheus "+testenv.FreeAddress(t),
	).Replace(corefile(cm.Data["Corefile"], hyperv1.DNSAddon{
		Upstreams:   []hyperv1.DNSServer{"192.0.2.53", "192.0.2.54:5353"},
		StubDomains: []hyperv1.StubDomain{{Domain: "corp.example", Servers: []hyperv1.DNSServer{"[2001:db8::53]:53"}}},
	}))
	g.Expect(text).NotTo(ContainSubstring("resolv.conf"))
	text = strings.Replace(text, "corp.example:53 {", "corp.example:"+port+" {", 1)
	// The kubernetes plugin has no API server here, and health needs a free port.
	text = regexp.MustCompile(`(?s)\n +kubernetes .*?ttl 30\n +}`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`(?s)\n +health {.*?}`).ReplaceAllString(text, "")
	text = strings.Replace(text, "\n    bind 127.0.0.1", "", 1)
	file := filepath.Join(dir, "Corefile")
	g.Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cmd := exec.CommandContext(ctx, program, "-conf", file)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	g.Expect(cmd.Start()).To(Succeed())
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	g.Eventually(func() error {
		select {
		case <-exited:
			return StopTrying("CoreDNS ended: " + output.String()).Wrap(errors.New("see its output"))
		default:
		}
		connection, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second)
		if err == nil {
			err = connection.Close()
		}
		return err
	}).WithTimeout(2 * time.Minute).Should(Succeed())
	stop()
	<-exited
}

func findProgram(t *testing.T) string {
	t.Helper()
	for dir, _ := os.Getwd(); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		program := filepath.Join(dir, "bin", "images", "coredns")
		if _, err := os.Stat(program); err == nil {
			return program
		}
	}
	t.Skip("this test needs the payload's CoreDNS: run `make images`")
	return ""
}
