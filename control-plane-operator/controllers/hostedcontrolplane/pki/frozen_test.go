// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
)

var updateFrozen = flag.Bool("update", false, "write the golden file anew")

// frozenFile holds the subjects of certificates. `make verify-frozen` compares it with the last release.
const frozenFile = "testdata/frozen.yaml"

// TestFrozen compares certificates with the golden file: nodes and clients identify them by their signers and subjects.
func TestFrozen(t *testing.T) {
	got := map[string]string{}
	for _, a := range authorities {
		got["authority/"+a.secret] = fmt.Sprintf("CN=%s on nodes=%t", a.commonName, a.onNodes)
	}
	for _, b := range bundles {
		got["bundle/"+b.configMap] = strings.Join(b.signers, " ")
	}
	for name, c := range listed(t, func(*hyperv1.HostedControlPlane, *component.Infra) {}) {
		hosts := slices.Clone(c.leaf.Hosts)
		slices.Sort(hosts)
		got["certificate/"+name] = fmt.Sprintf("CN=%s O=%s signer=%s server=%t client=%t keys=%s,%s hosts=%s",
			c.leaf.CommonName,
			strings.Join(c.leaf.Organizations, ","), c.signer, c.leaf.Server, c.leaf.Client, c.keys.Cert, c.keys.Key,
			strings.Join(hosts, ","))
	}
	var text strings.Builder
	text.WriteString("# Certificates: TestFrozen writes it with -update.\n")
	for _, key := range slices.Sorted(maps.Keys(got)) {
		fmt.Fprintf(&text, "%s: %q\n", key, got[key])
	}
	g := NewWithT(t)
	if *updateFrozen {
		g.Expect(os.MkdirAll("testdata", 0o755)).To(Succeed())
		g.Expect(os.WriteFile(frozenFile, []byte(text.String()), 0o644)).To(Succeed())
	}
	want, err := os.ReadFile(frozenFile)
	g.Expect(err).NotTo(HaveOccurred())
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("nodes and clients know these certificates (-want +got):\n%s", diff)
	}
}
