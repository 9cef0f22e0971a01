// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	ignition "github.com/coreos/ignition/v2/config/v3_2"
	"github.com/coreos/ignition/v2/config/v3_2/types"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/releaseversion"
)

// allKinds contains one document of each kind that spec.config accepts with an OpenShift release, as a user writes it.
const allKinds = `apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: motd}
---
apiVersion: machineconfiguration.openshift.io/v1
kind: KubeletConfig
metadata: {name: pods}
spec: {kubeletConfig: {maxPods: 100}}
---
apiVersion: machineconfiguration.openshift.io/v1
kind: ContainerRuntimeConfig
metadata: {name: logs}
spec: {containerRuntimeConfig: {logLevel: debug}}
---
apiVersion: operator.openshift.io/v1alpha1
kind: ImageContentSourcePolicy
metadata: {name: sources}
---
apiVersion: config.openshift.io/v1
kind: ImageDigestMirrorSet
metadata: {name: digests}
---
apiVersion: config.openshift.io/v1
kind: ImageTagMirrorSet
metadata: {name: tags}
---
apiVersion: config.openshift.io/v1alpha1
kind: ClusterImagePolicy
metadata: {name: signed}
`

// handedOn contains the same documents in the form in which the ignition-server of any payload version gets them.
const handedOn = `apiVersion: config.openshift.io/v1
kind: ClusterImagePolicy
metadata:
  name: signed

---
apiVersion: config.openshift.io/v1
kind: ImageDigestMirrorSet
metadata:
  name: digests

---
apiVersion: config.openshift.io/v1
kind: ImageTagMirrorSet
metadata:
  name: tags

---
apiVersion: machineconfiguration.openshift.io/v1
kind: ContainerRuntimeConfig
metadata:
  name: logs
spec:
  containerRuntimeConfig:
    logLevel: debug
  machineConfigPoolSelector:
    matchLabels:
      machineconfiguration.openshift.io/mco-built-in: ""

---
apiVersion: machineconfiguration.openshift.io/v1
kind: KubeletConfig
metadata:
  name: pods
spec:
  kubeletConfig:
    maxPods: 100
  machineConfigPoolSelector:
    matchLabels:
      machineconfiguration.openshift.io/mco-built-in: ""

---
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  labels:
    machineconfiguration.openshift.io/role: worker
  name: motd

---
apiVersion: operator.openshift.io/v1alpha1
kind: ImageContentSourcePolicy
metadata:
  name: sources
`

// TestTokenOfEveryLine pins the content of a token Secret for the ignition-server of each payload line. The source is
// openshift/hypershift ignition-server, tokensecret_controller.go of release-4.14 to main of August 2026. Keys and
// annotations are the same except for os-stream.
func TestTokenOfEveryLine(t *testing.T) {
	for _, minor := range slices.Backward(distributions.Of(releaseinfo.OpenShift).Minors) {
		t.Run("When the payload has version "+minor+", the token Secret should contain exactly what its ignition-server reads", func(t *testing.T) {
			g, r, s := NewWithT(t), on(nil), tokenScope(t, minor+".1")
			_, err := r.reconcileToken(t.Context(), s)
			g.Expect(err).NotTo(HaveOccurred())
			token := read(t, r, &corev1.Secret{}, "token-demo-"+s.config.Hash)
			text := (&world{GomegaWithT: g, t: t}).config(token)
			g.Expect(cmp.Diff(handedOn, text)).To(BeEmpty())
			g.Expect(token.Data["token"]).To(HaveLen(36))
			delete(token.Data, "token")
			delete(token.Data, "config")
			want := map[string]string{
				"release": "registry.example/ocp-release:" + minor, "release-version": minor + ".1",
				"pull-secret-hash": "217e580d", "additional-trust-bundle-hash": "f70119c9", "hc-configuration-hash": "77074ba4",
			}
			if releaseversion.AtLeast(minor+".1", "5.0.0") {
				want["os-stream"] = "rhel-9"
			}
			got := map[string]string{}
			for key, value := range token.Data {
				got[key] = string(value)
			}
			g.Expect(cmp.Diff(want, got)).To(BeEmpty())
			g.Expect(cmp.Diff(map[string]string{
				"hypershift.openshift.io/nodePool": "clusters/demo", "hypershift.openshift.io/ignition-config": "true",
				"hypershift.openshift.io/node-pool-upgrade-type": "Replace", "hypershift.openshift.io/last-token-generation-time": "2026-11-20T12:00:00Z",
			}, maps.Clone(token.Annotations))).To(BeEmpty())
			g.Expect(token.Type).To(Equal(corev1.SecretTypeOpaque))
		})
	}
}

// tokenScope returns a scope of a pool of an OpenShift release with one configuration of each kind.
func tokenScope(t *testing.T, version string) *reconciliation {
	t.Helper()
	g := NewWithT(t)
	image := "registry.example/ocp-release:" + version[:strings.LastIndex(version, ".")]
	return configured(func(s *reconciliation) {
		s.Now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		s.Release = releaseinfo.New(image, releaseinfo.Payload{Version: version, Distribution: releaseinfo.OpenShift})
		s.pullSecret = []byte(`{"auths":{}}`)
		read, err := nodeinput.Read(allKinds, releaseinfo.OpenShift)
		g.Expect(err).NotTo(HaveOccurred())
		slices.Sort(read.Documents)
		s.config.Raw, s.config.TrustBundle, s.config.Format = strings.Join(read.Documents, documentSeparator), "PEM", hyperv1.UserDataIgnition
		s.Stream, err = s.chooseStream(read.Documents)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.hashConfig()).To(Succeed())
	})
}

// TestUserDataOfPayload checks the user-data of machines of an OpenShift payload.
func TestUserDataOfPayload(t *testing.T) {
	c := fixture.Start(t)
	const endpoint = "ignition.apps.example"
	p := booting(t, c, "payload-user-data", func(hc *hyperv1.HostedCluster) {
		hc.Spec.Configuration = &hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{
			HTTPProxy: "http://proxy.example:3128", HTTPSProxy: "http://proxy.example:3129", NoProxy: "a.example"}}
	})
	p.cluster(func(hc *hyperv1.HostedCluster) { hc.Status.IgnitionEndpoint = endpoint })
	p.mustPass()
	name := *p.deployment().Spec.Template.Spec.Bootstrap.DataSecretName
	token := p.tokenOf(name)
	config, report, err := ignition.Parse(p.userData())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(report.IsFatal()).To(BeFalse(), report.String())

	t.Run("When a machine boots, its user-data should name the payload's server, token, CA and proxy", func(t *testing.T) {
		header := func(name, value string) types.HTTPHeader { return types.HTTPHeader{Name: name, Value: &value} }
		want := types.Ignition{
			Version: "3.2.0",
			Security: types.Security{TLS: types.TLS{CertificateAuthorities: []types.Resource{
				{Source: ptr.To("data:text/plain;base64," + base64.StdEncoding.EncodeToString([]byte("CA")))}}}},
			Config: types.IgnitionConfig{Merge: []types.Resource{{
				Source: ptr.To("https://ignition.apps.example/ignition"),
				HTTPHeaders: types.HTTPHeaders{
					header("Authorization", "Bearer "+base64.StdEncoding.EncodeToString(token.Data["token"])),
					header("NodePool", "payload-user-data/demo"),
					header("TargetConfigVersionHash", strings.TrimPrefix(name, "user-data-demo-")),
				},
			}}},
			Proxy: types.Proxy{
				HTTPProxy: ptr.To("http://proxy.example:3128"), HTTPSProxy: ptr.To("http://proxy.example:3129"),
				NoProxy: []types.NoProxyItem{
					".cluster.local", ".hypershift.local", ".svc", "10.132.0.0/14", "127.0.0.1", "172.31.0.0/16", "a.example", "localhost"},
			},
		}
		NewWithT(t).Expect(cmp.Diff(want, config.Ignition)).To(BeEmpty())
	})
	t.Run("When Ignition merges the fetched config, the result should wipe the helper partition and keep fetched units", func(t *testing.T) {
		fetched := types.Config{Ignition: types.Ignition{Version: "3.2.0"}, Systemd: types.Systemd{Units: []types.Unit{{Name: "kubelet.service", Enabled: ptr.To(true)}}}}
		units := map[string]string{}
		for _, unit := range ignition.Merge(config, fetched).Systemd.Units {
			NewWithT(t).Expect(unit.Enabled).To(HaveValue(BeTrue()))
			units[unit.Name] = ptr.Deref(unit.Contents, "")
		}
		NewWithT(t).Expect(units).To(And(HaveLen(2), HaveKey("kubelet.service"),
			HaveKeyWithValue("hypershift-disk-wipe.service", ContainSubstring("sgdisk --delete=5 /dev/sda"))))
	})
	t.Run("When the token is created, it should contain the hash of the cluster configuration that sets the proxy", func(t *testing.T) {
		hc := &hyperv1.HostedCluster{}
		g := NewWithT(t)
		g.Expect(c.Get(t.Context(), ctrlKey("payload-user-data", fixture.ClusterName), hc)).To(Succeed())
		want, err := nodeinput.ConfigurationHash(hc.Spec.Configuration)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(token.Data["hc-configuration-hash"])).To(Equal(want))
	})
}
