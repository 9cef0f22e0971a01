// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

var updateFrozen = flag.Bool("update", false, "write the golden file anew")

// frozenFile contains the endpoints of nodes. `make verify-frozen` compares it with the last release.
const frozenFile = "testdata/frozen.yaml"

// TestFrozen compares Services and Routes with the golden file: nodes reach their control plane through them.
func TestFrozen(t *testing.T) {
	g := NewWithT(t)
	got := map[string]string{}
	for name, api := range map[string]hyperv1.ServicePublishingStrategy{
		"node-port": nodePort("192.0.2.10", 30443), "load-balancer": loadBalancer("api.example.com"),
		"route": route("api.example.com"),
	} {
		ignition := nodePort("192.0.2.10", 0)
		if name == "route" {
			ignition = route("ignition.example.com")
		}
		hcp := controlPlane(api, ignition)
		konnectivity := nodePort("192.0.2.10", 30091)
		if name == "route" {
			konnectivity = route("tunnel.example.com")
		}
		hcp.Spec.Services = append(hcp.Spec.Services, hyperv1.ServicePublishingStrategyMapping{
			Service: hyperv1.Konnectivity, ServicePublishingStrategy: konnectivity,
		})
		r := world(hcp)
		_, err := r.Reconcile(t.Context(), hcp)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = r.Tunnel(t.Context(), hcp)
		g.Expect(err).NotTo(HaveOccurred())
		services, routes := &corev1.ServiceList{}, &routev1.RouteList{}
		g.Expect(r.Client.List(t.Context(), services)).To(Succeed())
		g.Expect(r.Client.List(t.Context(), routes)).To(Succeed())
		for _, s := range services.Items {
			got[name+"/Service/"+s.Name] = encoded(t, s.Spec)
		}
		for _, s := range routes.Items {
			got[name+"/Route/"+s.Name] = encoded(t, s.Spec)
		}
	}
	var text strings.Builder
	text.WriteString("# Services and Routes: TestFrozen writes it with -update.\n")
	for _, key := range slices.Sorted(maps.Keys(got)) {
		fmt.Fprintf(&text, "%s: %q\n", key, got[key])
	}
	if *updateFrozen {
		g.Expect(os.MkdirAll("testdata", 0o755)).To(Succeed())
		g.Expect(os.WriteFile(frozenFile, []byte(text.String()), 0o644)).To(Succeed())
	}
	want, err := os.ReadFile(frozenFile)
	g.Expect(err).NotTo(HaveOccurred())
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("nodes would lose their control plane (-want +got):\n%s", diff)
	}
}

func encoded(t *testing.T, spec any) string {
	t.Helper()
	raw, err := json.Marshal(spec)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(raw)
}
