// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

func TestReadDNS(t *testing.T) {
	reader := fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithIndex(&corev1.Service{}, "spec.clusterIP",
		func(client.Object) []string { return nil }).Build()
	file := filepath.Join(t.TempDir(), "resolv.conf")
	NewWithT(t).Expect(os.WriteFile(file, []byte("nameserver 169.254.25.10\n"), 0o600)).To(Succeed())
	private, further := netip.MustParsePrefix("169.254.25.10/32"), netip.MustParsePrefix("192.0.2.53/32")
	for name, tc := range map[string]struct {
		flag, file string
		want       []netip.Prefix
		fails      string
	}{
		"the servers of the operator's pod":                    {file: file, want: []netip.Prefix{private}},
		"those and the servers of the flag":                    {"192.0.2.53/32", file, []netip.Prefix{private, further}, ""},
		"an operator outside of a pod has those of the flag":   {"192.0.2.53/32", file + "-none", []netip.Prefix{further}, ""},
		"an invalid range is refused with the flag's name":     {flag: "dns.example", file: file, fails: "--hcp-egress-dns-cidrs: "},
		"a file that cannot be read is an error with its name": {file: t.TempDir(), fails: "reading the DNS servers"},
	} {
		t.Run(name, func(t *testing.T) {
			g, f := NewWithT(t), &runFlags{dnsServers: tc.flag}
			err := f.readDNS(t.Context(), reader, tc.file)
			if tc.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.fails)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(f.dns.Servers).To(Equal(tc.want))
		})
	}
}
