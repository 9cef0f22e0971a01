// SPDX-License-Identifier: Apache-2.0

package payload_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	igncfg "github.com/coreos/ignition/v2/config/v3_4"
	. "github.com/onsi/gomega"
	"github.com/vincent-petithory/dataurl"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/ignition-server/payload"
	"github.com/openshift/hypershift/support/addressguard"
	"github.com/openshift/hypershift/support/nodeplan"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
)

const hosted = "clusters-demo"

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), hyperv1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: hosted, Name: name} }

// world returns the objects of a complete hosted namespace.
func world(registry *releasetest.Registry) map[string]client.Object {
	return map[string]client.Object{
		"hcp": &hyperv1.HostedControlPlane{ObjectMeta: meta("demo"), Spec: hyperv1.HostedControlPlaneSpec{
			Networking:            hyperv1.ClusterNetworking{ServiceNetwork: []hyperv1.ServiceNetworkEntry{{CIDR: *ipnet.MustParseCIDR("172.31.0.0/16")}}},
			SSHKey:                corev1.LocalObjectReference{Name: "ssh-key"},
			AdditionalTrustBundle: &corev1.LocalObjectReference{Name: "user-ca-bundle"},
			ImageContentSources:   []hyperv1.ImageContentSource{{Source: "a.example/x", Mirrors: []string{"b.example/x"}}},
		}},
		"pull":      &corev1.Secret{ObjectMeta: meta("pull-secret"), Data: map[string][]byte{".dockerconfigjson": []byte(`{"auths":{}}`)}},
		"bootstrap": &corev1.Secret{ObjectMeta: meta("bootstrap-kubeconfig"), Data: map[string][]byte{"kubeconfig": []byte("kind: Config")}},
		"ssh":       &corev1.Secret{ObjectMeta: meta("ssh-key"), Data: map[string][]byte{"id_rsa.pub": []byte("ssh-ed25519 A one\nssh-ed25519 B two\n")}},
		"client-ca": &corev1.ConfigMap{ObjectMeta: meta("kubelet-client-ca"), Data: map[string]string{"ca.crt": "client CA"}},
		"trust":     &corev1.ConfigMap{ObjectMeta: meta("user-ca-bundle"), Data: map[string]string{"ca-bundle.crt": string(registry.CA)}},
	}
}

func configure(configuration *hyperv1.ClusterConfiguration) func(map[string]client.Object) {
	return func(w map[string]client.Object) {
		w["hcp"].(*hyperv1.HostedControlPlane).Spec.Configuration = configuration
	}
}

func kubernetes() releaseinfo.Payload {
	return releaseinfo.Payload{Version: "1.36.3", Distribution: releaseinfo.Kubernetes, Components: map[string]string{
		"node": "registry.example/node:1", "pod": "registry.example/pod:1",
	}}
}

func TestGenerate(t *testing.T) {
	registry := releasetest.Start(t)
	release := registry.PushRelease(t, kubernetes())
	openshift := registry.PushRelease(t, releaseinfo.Payload{Version: "4.19.0", Components: map[string]string{"hypershift": "x"}})
	incomplete := registry.PushRelease(t, releaseinfo.Payload{Version: "1.0.0", Distribution: releaseinfo.Kubernetes, Components: map[string]string{"node": "x"}})
	config, err := payload.Pack([]byte("kind: MachineConfig\nmetadata: {name: bad}\nspec: {kernelType: realtime}\n"))
	if err != nil {
		t.Fatal(err)
	}
	drop := func(name string) func(map[string]client.Object) {
		return func(w map[string]client.Object) { delete(w, name) }
	}
	tests := []struct {
		name    string
		edit    func(map[string]client.Object)
		request payload.Request
		reason  string
		says    string
	}{
		{name: "When all inputs exist, it should render the payload", request: payload.Request{Release: release}},
		{name: "When there is no HostedControlPlane, it should wait", edit: drop("hcp"), reason: payload.ReasonWaiting, says: "HostedControlPlane"},
		{name: "When the pull secret is missing, it should wait", edit: drop("pull"), reason: payload.ReasonWaiting, says: "pull-secret"},
		{name: "When the bootstrap kubeconfig is missing, it should wait", edit: drop("bootstrap"), reason: payload.ReasonWaiting, says: "bootstrap-kubeconfig"},
		{name: "When the client CA is missing, it should wait", edit: drop("client-ca"), reason: payload.ReasonWaiting, says: "kubelet-client-ca"},
		{name: "When the trust bundle is missing, it should wait", edit: drop("trust"), reason: payload.ReasonWaiting, says: "user-ca-bundle"},
		{
			name: "When the trust bundle has an empty name, it should continue without a trust bundle", request: payload.Request{Release: release},
			edit: func(w map[string]client.Object) {
				w["hcp"].(*hyperv1.HostedControlPlane).Spec.AdditionalTrustBundle = &corev1.LocalObjectReference{}
			},
			reason: "ReleaseImageUnreachable", says: "certificate",
		},
		{name: "When the SSH key is missing, it should wait", edit: drop("ssh"), reason: payload.ReasonWaiting, says: "ssh-key"},
		{
			name: "When a Secret is empty, it should wait", reason: payload.ReasonWaiting, says: `key "kubeconfig"`,
			edit: func(w map[string]client.Object) { w["bootstrap"].(*corev1.Secret).Data = nil },
		},
		{
			name: "When the release is OpenShift, it should report an unsupported distribution", request: payload.Request{Release: openshift},
			reason: payload.ReasonUnsupportedDistribution, says: "serves nodes of the Kubernetes distribution only",
		},
		{
			name: "When the release has no pod image, it should report an invalid configuration", request: payload.Request{Release: incomplete},
			reason: payload.ReasonInvalidConfig, says: `no component "pod"`,
		},
		{
			name: "When the release does not exist, it should report that it was not found", request: payload.Request{Release: registry.Host + "/none:1"},
			reason: "ReleaseImageNotFound", says: "check the repository, tag or digest",
		},
		{
			name: "When the trust bundle is not PEM, it should report an invalid configuration", reason: payload.ReasonInvalidConfig, says: "holds no PEM certificate",
			edit: func(w map[string]client.Object) {
				w["trust"].(*corev1.ConfigMap).Data = map[string]string{"ca-bundle.crt": "x"}
			},
		},
		{
			name: "When the control plane's configuration differs from the token's, it should wait", reason: payload.ReasonOutdated, says: "apply the configuration of the HostedCluster",
			request: payload.Request{Release: release, Hashes: payload.Hashes{Configuration: "0badcafe"}},
		},
		{
			name: "When the control plane's pull secret differs from the token's, it should wait", reason: payload.ReasonOutdated, says: "apply the pull secret",
			request: payload.Request{Release: release, Hashes: payload.Hashes{PullSecret: "0badcafe"}},
		},
		{
			name: "When the control plane's trust bundle differs from the token's, it should wait", reason: payload.ReasonOutdated, says: "apply the additional trust bundle",
			request: payload.Request{Release: release, Hashes: payload.Hashes{TrustBundle: "0badcafe"}},
		},
		{
			name: "When the CA of the proxy is missing, it should wait", reason: payload.ReasonWaiting, says: "proxy-ca",
			edit: configure(&hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{TrustedCA: configv1.ConfigMapNameReference{Name: "proxy-ca"}}}),
		},
		{
			name: "When the CA of the proxy is not a certificate, it should name the field", reason: payload.ReasonInvalidConfig, says: "spec.configuration.proxy.trustedCA: the ConfigMap kubelet-client-ca",
			edit: func(w map[string]client.Object) {
				configure(&hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{TrustedCA: configv1.ConfigMapNameReference{Name: "kubelet-client-ca"}}})(w)
				w["client-ca"].(*corev1.ConfigMap).Data["ca-bundle.crt"] = "x"
			},
		},
		{
			name: "When the CA of a registry is not a certificate, it should name the key", reason: payload.ReasonInvalidConfig, says: `the key "ca.crt" holds no PEM certificate`,
			edit: configure(&hyperv1.ClusterConfiguration{Image: &configv1.ImageSpec{AdditionalTrustedCA: configv1.ConfigMapNameReference{Name: "kubelet-client-ca"}}}),
		},
		{
			name: "When the registry of the node image is not allowed, it should report an invalid configuration", reason: payload.ReasonInvalidConfig, says: "allow it",
			edit: configure(&hyperv1.ClusterConfiguration{Image: &configv1.ImageSpec{RegistrySources: configv1.RegistrySources{AllowedRegistries: []string{"quay.io"}}}}),
		},
		{
			name: "When the proxy URL is invalid, it should name the field and not the URL", reason: payload.ReasonInvalidConfig, says: "spec.configuration.proxy.httpProxy is not a proxy URL",
			edit: configure(&hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{HTTPProxy: "user:secret@proxy"}}),
		},
		{
			name: "When the config is not gzip, it should report an invalid configuration", request: payload.Request{Release: release, Config: []byte("kind: MachineConfig")},
			reason: payload.ReasonInvalidConfig, says: "not gzip",
		},
		{
			name: "When the config has an unsupported field, it should name the field", request: payload.Request{Release: release, Config: config},
			reason: payload.ReasonInvalidConfig, says: "spec.kernelType",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			objs := world(registry)
			if tt.edit != nil {
				tt.edit(objs)
			}
			reader := readerOf(t, objs)
			if tt.request.Release == "" {
				tt.request.Release = release
			}
			tt.request.NodePool = "clusters/workers"
			generator := &payload.Generator{Client: reader, Namespace: hosted}

			rendered, err := generator.Generate(t.Context(), tt.request)

			if tt.reason == "" {
				g.Expect(err).NotTo(HaveOccurred())
				cfg, _, err := igncfg.Parse(rendered)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(cfg.Passwd.Users[0].SSHAuthorizedKeys).To(HaveLen(2))
				g.Expect(string(rendered)).To(ContainSubstring("hypershift.openshift.io/nodePool=workers"))
				return
			}
			problem, ok := errors.AsType[*payload.Problem](err)
			g.Expect(ok).To(BeTrue(), "%v", err)
			g.Expect(problem.Reason).To(Equal(tt.reason))
			g.Expect(problem.Message).To(ContainSubstring(tt.says))
			again := []string{payload.ReasonWaiting, payload.ReasonOutdated, "ReleaseImageNotFound", "ReleaseImageUnreachable"}
			g.Expect(problem.RetryAfter > 0).To(Equal(slices.Contains(again, problem.Reason)), "what no watch tells of is tried again")
		})
	}
}

func TestMirrorsAreForThisProcessOnly(t *testing.T) {
	g := NewWithT(t)
	registry := releasetest.Start(t)
	registry.PushRelease(t, kubernetes())
	objs := world(registry)
	reader := readerOf(t, objs)
	generator := &payload.Generator{Client: reader, Namespace: hosted, Mirrors: []releaseinfo.Mirror{{Source: "registry.example", Mirrors: []string{registry.Host}}}}
	request := payload.Request{NodePool: "clusters/workers", Release: "registry.example/release:1.36.3"}

	rendered, err := generator.Generate(t.Context(), request)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(rendered)).NotTo(ContainSubstring(registry.Host))
	requests := registry.Requests()
	_, err = generator.Generate(t.Context(), request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(registry.Requests()).To(Equal(requests), "the release image is read once")
}

// readerOf returns a reader of the hosted namespace with these objects.
func readerOf(t *testing.T, objects map[string]client.Object) client.Reader {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(slices.Collect(maps.Values(objects))...).Build()
}

func TestFormat(t *testing.T) {
	t.Run("When the user data format is CloudConfig, it should render a node plan", func(t *testing.T) {
		g := NewWithT(t)
		registry := releasetest.Start(t)
		release := registry.PushRelease(t, kubernetes())
		reader := readerOf(t, world(registry))
		generator := &payload.Generator{Client: reader, Namespace: hosted}
		rendered, err := generator.Generate(t.Context(), payload.Request{NodePool: "clusters/workers", ConfigHash: "0a1b2c3d", Release: release, Format: hyperv1.UserDataCloudConfig})
		g.Expect(err).NotTo(HaveOccurred())
		plan, err := nodeplan.Parse(rendered)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(plan.Node.Name).To(Equal("registry.example/node:1"))
		g.Expect(plan.PullSecret).NotTo(BeEmpty())
		g.Expect(plan.ConfigHash).To(Equal("0a1b2c3d"), "the machine tells by it what it runs")
	})
}

// TestGuardedRegistry checks that a registry at a blocked address is not called.
func TestGuardedRegistry(t *testing.T) {
	g := NewWithT(t)
	registry := releasetest.Start(t)
	release := registry.PushRelease(t, kubernetes())
	reader := readerOf(t, world(registry))
	guard, err := addressguard.ForRegistries()
	g.Expect(err).NotTo(HaveOccurred())
	before := registry.Requests()
	generator := &payload.Generator{Client: reader, Namespace: hosted, Guard: guard}
	_, err = generator.Generate(t.Context(), payload.Request{NodePool: "clusters/workers", Release: release})
	g.Expect(err).To(MatchError(ContainSubstring("its address is blocked by the address policy")))
	g.Expect(registry.Requests()).To(Equal(before))
}

func TestAPIServerIsReachedDirectly(t *testing.T) {
	g := NewWithT(t)
	registry := releasetest.Start(t)
	release := registry.PushRelease(t, kubernetes())
	objs := world(registry)
	configure(&hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{HTTPSProxy: "http://proxy.example:3128"}})(objs)
	objs["bootstrap"].(*corev1.Secret).Data["kubeconfig"] = []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c",
"clusters":[{"name":"c","cluster":{"server":"https://api.example:31443"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}]}`)
	reader := readerOf(t, objs)
	rendered, err := (&payload.Generator{Client: reader, Namespace: hosted}).Generate(t.Context(), payload.Request{NodePool: "clusters/workers", Release: release})
	g.Expect(err).NotTo(HaveOccurred())
	cfg, _, err := igncfg.Parse(rendered)
	g.Expect(err).NotTo(HaveOccurred())
	for _, file := range cfg.Storage.Files {
		if file.Path == "/etc/kubernetes/proxy.env" {
			data, err := dataurl.DecodeString(*file.Contents.Source)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(data.Data)).To(MatchRegexp(`NO_PROXY=.*\bapi\.example\b`), "a watch over a proxy is cut off when the proxy likes")
			return
		}
	}
	t.Fatal("the node has no proxy")
}

func TestPack(t *testing.T) {
	g := NewWithT(t)
	text := strings.Repeat("kind: MachineConfig\n", 100)
	packed, err := payload.Pack([]byte(text))
	g.Expect(err).NotTo(HaveOccurred())
	unpacked, err := payload.Unpack(packed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(unpacked)).To(Equal(text))
	empty, err := payload.Unpack(nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(empty).To(BeEmpty())
}
