// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"crypto/sha256"
	"encoding/base64"
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

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

var updateFrozen = flag.Bool("update", false, "write the golden file again")

// frozenFile contains everything whose change replaces a pool's machines. `make verify-frozen` compares it with the
// last release.
const frozenFile = "testdata/frozen.yaml"

// frozenPools are the pools whose inputs and hashes are in the golden file.
var frozenPools = map[string]func(*world){
	"kubernetes-ignition": func(s *world) {
		s.begin(func(p *hyperv1.NodePool) { p.Spec.Platform.MAAS.Image = "custom/kubernetes-node" })
	},
	"kubernetes-cloud-init": func(s *world) {
		s.begin(func(p *hyperv1.NodePool) {
			maas := p.Spec.Platform.MAAS
			maas.Image, maas.Tags, maas.Zone, maas.ResourcePool = "ubuntu/noble", []hyperv1.MAASTag{"ssd"}, "rack-1", "gold"
		})
	},
	"kubernetes-configured": func(s *world) {
		s.ready(func(hc *hyperv1.HostedCluster) {
			proxy := &configv1.ProxySpec{HTTPSProxy: "http://proxy.example:3129"}
			hc.Spec.Configuration = &hyperv1.ClusterConfiguration{Proxy: proxy}
			hc.Spec.ImageContentSources = []hyperv1.ImageContentSource{{Source: "quay.io",
				Mirrors: []string{"mirror.example/quay"}}}
		})
		pool := fixture.NodePool(s.namespace)
		pool.Spec.Platform.MAAS.Image = "custom/kubernetes-node"
		pool.Spec.Config = append(pool.Spec.Config, s.configMap("pods", "config", kubeletDocument))
		fixture.Create(s.t, s.client, pool)
	},
	"openshift": func(s *world) {
		s.openShift(hyperv1.UpgradeTypeReplace)
		s.coreConfigs()
	},
}

// TestFrozen compares everything whose change replaces machines with the golden file. A replacement takes half an hour
// for each machine.
func TestFrozen(t *testing.T) {
	got := map[string]string{}
	for name, begin := range frozenPools {
		s := inMemory(t)
		begin(s)
		s.mustPass()
		for key, value := range s.frozen() {
			got[name+"/"+key] = value
		}
	}
	var text strings.Builder
	text.WriteString("# What rolls a NodePool: TestFrozen writes it with -update.\n")
	for _, key := range slices.Sorted(maps.Keys(got)) {
		fmt.Fprintf(&text, "%s: %q\n", key, got[key])
	}
	g := NewWithT(t)
	if *updateFrozen {
		g.Expect(os.WriteFile(frozenFile, []byte(text.String()), 0o644)).To(Succeed())
	}
	want, err := os.ReadFile(frozenFile)
	g.Expect(err).NotTo(HaveOccurred())
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("running pools would roll (-want +got):\n%s", diff)
	}
}

// frozen returns everything that the pool's machines are created from, except for the random token.
func (s *world) frozen() map[string]string {
	s.t.Helper()
	template := s.deployment().Spec.Template
	userData := *template.Spec.Bootstrap.DataSecretName
	token := s.tokenOf(userData)
	bearer := base64.StdEncoding.EncodeToString(token.Data["token"])
	firstBoot := strings.ReplaceAll(string(s.secret(userData).Data["value"]), bearer, "TOKEN")
	pool := s.pool()
	out := map[string]string{
		"user-data-name":     userData,
		"user-data":          digest([]byte(firstBoot)),
		"token-name":         token.Name,
		"template-name":      template.Spec.InfrastructureRef.Name,
		"machine-template":   s.encoded(template.Spec),
		"machine-labels":     s.encoded(template.Labels),
		"infrastructure":     s.encoded(s.templates()[0].Spec),
		"configuration":      s.config(token),
		"configuration-hash": pool.Annotations["hypershift.openshift.io/nodePoolCurrentConfig"],
		"version-hash":       pool.Annotations["hypershift.openshift.io/nodePoolCurrentConfigVersion"],
	}
	for key, value := range token.Data {
		if key != "token" && key != "payload" && key != "reason" && key != "message" {
			out["token-"+key] = digest(value)
		}
	}
	for _, name := range []string{"user-data-format", "node-architecture", "node-pool-upgrade-type"} {
		out["token-annotation-"+name] = token.Annotations["hypershift.openshift.io/"+name]
	}
	return out
}

// encoded returns the JSON of an object, from which hashes are computed.
func (s *world) encoded(object any) string {
	s.t.Helper()
	raw, err := json.Marshal(object)
	s.Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

func digest(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }
