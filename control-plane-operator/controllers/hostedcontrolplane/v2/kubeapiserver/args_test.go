// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
)

// flagsOf returns the flags of a cluster's API server, by name and in order.
func flagsOf(hcp *hyperv1.HostedControlPlane, replicas int32) map[string][]string {
	flags := map[string][]string{}
	for _, flag := range args(hcp, replicas, nil) {
		name, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		flags[name] = append(flags[name], value)
	}
	return flags
}

func clusterWith(edit ...func(*hyperv1.HostedControlPlane)) *hyperv1.HostedControlPlane {
	hcp := fixture.ControlPlane()
	for _, change := range edit {
		change(hcp)
	}
	return hcp
}

func annotatedWith(key, value string) func(*hyperv1.HostedControlPlane) {
	return func(hcp *hyperv1.HostedControlPlane) { hcp.Annotations = map[string]string{key: value} }
}

func configured(config hyperv1.ClusterConfiguration) func(*hyperv1.HostedControlPlane) {
	return func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.Configuration = &config }
}

func served(spec configv1.APIServerSpec) func(*hyperv1.HostedControlPlane) {
	return configured(hyperv1.ClusterConfiguration{APIServer: &spec})
}

func highlyAvailable(hcp *hyperv1.HostedControlPlane) {
	hcp.Spec.ControllerAvailabilityPolicy = hyperv1.HighlyAvailable
}

// flagCase is the effect of a field of the cluster on one flag; no value means that the flag is not set.
type flagCase struct {
	name     string
	edit     func(*hyperv1.HostedControlPlane)
	replicas int32
	flag     string
	want     []string
}

func checkFlags(t *testing.T, cases []flagCase) {
	t.Helper()
	for _, tc := range cases {
		t.Run("When "+tc.name+" it should have the expected --"+tc.flag, func(t *testing.T) {
			got := flagsOf(clusterWith(tc.edit), max(tc.replicas, 1))[tc.flag]
			NewWithT(t).Expect(strings.Join(got, "; ")).To(Equal(strings.Join(tc.want, "; ")))
		})
	}
}

func TestFlagsOfAnnotations(t *testing.T) {
	const prefix = "hypershift.openshift.io/kube-apiserver-"
	same := func(*hyperv1.HostedControlPlane) {}
	checkFlags(t, []flagCase{
		{"there is one API server", same, 1, "goaway-chance", []string{"0"}},
		{"there are several API servers", same, 3, "goaway-chance", []string{"0.001"}},
		{"an annotation sets the GOAWAY chance", annotatedWith(prefix+"goaway-chance", "0.01"), 3, "goaway-chance", []string{"0.01"}},
		{"an annotation sets the GOAWAY chance of a single API server", annotatedWith(prefix+"goaway-chance", "0.02"), 1, "goaway-chance", []string{"0.02"}},
		{"an annotation limits requests in flight", annotatedWith(prefix+"max-requests-inflight", "70"), 1, "max-requests-inflight", []string{"70"}},
		{"an annotation limits mutating requests in flight", annotatedWith(prefix+"max-mutating-requests-inflight", "7"), 1, "max-mutating-requests-inflight", []string{"7"}},
		{"an annotation limits mutating requests only, the limit of the others", annotatedWith(prefix+"max-mutating-requests-inflight", "7"), 1, "max-requests-inflight", []string{"3000"}},
		{"an annotation is empty", annotatedWith(prefix+"max-requests-inflight", ""), 1, "max-requests-inflight", []string{"3000"}},
		{"an annotation sets the log verbosity", annotatedWith(prefix+"verbosity-level", "6"), 1, "v", []string{"6"}},
		{"an annotation limits the lifetime of tokens", annotatedWith(prefix+"service-account-token-max-expiration", "24h"), 1,
			"service-account-max-token-expiration", []string{"24h"}},
		{"the lifetime of tokens has no limit", same, 1, "service-account-max-token-expiration", nil},
	})
}

func TestFlagsOfTheSpec(t *testing.T) {
	issuer := func(url string) func(*hyperv1.HostedControlPlane) {
		return func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.IssuerURL = url }
	}
	checkFlags(t, []flagCase{
		{"no issuer is set", issuer(""), 1, "service-account-issuer", []string{"https://kubernetes.default.svc"}},
		{"an issuer is set", issuer("https://oidc.example.com/demo"), 1, "service-account-issuer", []string{"https://oidc.example.com/demo"}},
		{"an issuer is set, the API audience", issuer("https://oidc.example.com/demo"), 1, "api-audiences", []string{"https://oidc.example.com/demo"}},
		{"an issuer ends with a slash, the JWKS URI", issuer("https://oidc.example.com/demo/"), 1,
			"service-account-jwks-uri", []string{"https://oidc.example.com/demo/openid/v1/jwks"}},
		{"services have addresses of both families", func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{
				{CIDR: *ipnet.MustParseCIDR("172.31.0.0/16")}, {CIDR: *ipnet.MustParseCIDR("fd00::/108")}}
		}, 1, "service-cluster-ip-range", []string{"172.31.0.0/16,fd00::/108"}},
		{"a cluster has several etcd members", highlyAvailable, 3, "etcd-servers", []string{
			"https://etcd-0.etcd-discovery.clusters-demo.svc:2379,https://etcd-1.etcd-discovery.clusters-demo.svc:2379,https://etcd-2.etcd-discovery.clusters-demo.svc:2379"}},
		{"the user brings an etcd", func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Unmanaged, Unmanaged: &hyperv1.UnmanagedEtcdSpec{Endpoint: "https://a.example:2379"}}
		}, 1, "etcd-servers", []string{"https://a.example:2379"}},
		{"nothing is encrypted", func(*hyperv1.HostedControlPlane) {}, 1, "encryption-provider-config", nil},
		{"Secrets are encrypted", encryptedWith("a-key"), 1, "encryption-provider-config", []string{"/etc/kubernetes/secret-encryption/config.yaml"}},
		{"Secrets are encrypted, the reload of keys is off", encryptedWith("a-key"), 1, "encryption-provider-config-automatic-reload", []string{"false"}},
		{"a single API server stops", func(*hyperv1.HostedControlPlane) {}, 1, "shutdown-delay-duration", []string{"0s"}},
		{"several API servers stop one after the other", highlyAvailable, 3, "shutdown-delay-duration", []string{"70s"}},
	})
}

func encryptedWith(key string) func(*hyperv1.HostedControlPlane) {
	return func(hcp *hyperv1.HostedControlPlane) {
		hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{
			Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: key}},
		}
	}
}

func TestFlagsOfTheConfiguration(t *testing.T) {
	gates := func(spec configv1.FeatureGateSelection) func(*hyperv1.HostedControlPlane) {
		return configured(hyperv1.ClusterConfiguration{FeatureGate: &configv1.FeatureGateSpec{FeatureGateSelection: spec}})
	}
	modern := &configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType, Modern: &configv1.ModernTLSProfile{}}
	of := func(named ...configv1.APIServerNamedServingCert) configv1.APIServerSpec {
		return configv1.APIServerSpec{ServingCerts: configv1.APIServerServingCerts{NamedCertificates: named}}
	}
	const own = "/etc/kubernetes/certs/server-private/tls.crt,/etc/kubernetes/certs/server-private/tls.key"
	checkFlags(t, []flagCase{
		{"gates are turned on and off", gates(configv1.FeatureGateSelection{FeatureSet: configv1.CustomNoUpgrade, CustomNoUpgrade: &configv1.CustomFeatureGates{
			Enabled: []configv1.FeatureGateName{"A", "B"}, Disabled: []configv1.FeatureGateName{"C"},
		}}), 1, "feature-gates", []string{"A=true,B=true,C=false"}},
		{"gates are only turned off", gates(configv1.FeatureGateSelection{FeatureSet: configv1.CustomNoUpgrade, CustomNoUpgrade: &configv1.CustomFeatureGates{
			Disabled: []configv1.FeatureGateName{"C"},
		}}), 1, "feature-gates", []string{"C=false"}},
		{"an OpenShift feature set is selected", gates(configv1.FeatureGateSelection{FeatureSet: configv1.TechPreviewNoUpgrade}), 1, "feature-gates", nil},
		{"a custom feature set names no gate", gates(configv1.FeatureGateSelection{
			FeatureSet: configv1.CustomNoUpgrade, CustomNoUpgrade: &configv1.CustomFeatureGates{}}), 1, "feature-gates", nil},
		{"there is a configuration without gates", configured(hyperv1.ClusterConfiguration{}), 1, "feature-gates", nil},
		{"a node port range is set", configured(hyperv1.ClusterConfiguration{Network: &configv1.NetworkSpec{ServiceNodePortRange: "31000-31100"}}), 1,
			"service-node-port-range", []string{"31000-31100"}},
		{"the network sets no node port range", configured(hyperv1.ClusterConfiguration{Network: &configv1.NetworkSpec{}}), 1,
			"service-node-port-range", []string{"30000-32767"}},
		{"other origins are allowed", served(configv1.APIServerSpec{AdditionalCORSAllowedOrigins: []string{`//a\.example(:|$)`, `//b\.example(:|$)`}}), 1,
			"cors-allowed-origins", []string{`//a\.example(:|$),//b\.example(:|$)`}},
		{"no additional CORS origin is allowed", served(configv1.APIServerSpec{}), 1, "cors-allowed-origins", nil},
		{"TLS is modern", served(configv1.APIServerSpec{TLSSecurityProfile: modern}), 1, "tls-min-version", []string{"VersionTLS13"}},
		{"TLS is modern and allows no choice of suites", served(configv1.APIServerSpec{TLSSecurityProfile: modern}), 1, "tls-cipher-suites", nil},
		{"the user provides no certificate", served(of()), 1, "tls-sni-cert-key", []string{own}},
		{"a named serving certificate has names", served(of(configv1.APIServerNamedServingCert{Names: []string{"a.example", "*.b.example"}})), 1,
			"tls-sni-cert-key", []string{"/etc/kubernetes/certs/named-0/tls.crt,/etc/kubernetes/certs/named-0/tls.key:a.example,*.b.example", own}},
		{"the user's certificates have no configured names", served(of(configv1.APIServerNamedServingCert{}, configv1.APIServerNamedServingCert{})), 1,
			"tls-sni-cert-key", []string{
				"/etc/kubernetes/certs/named-0/tls.crt,/etc/kubernetes/certs/named-0/tls.key", "/etc/kubernetes/certs/named-1/tls.crt,/etc/kubernetes/certs/named-1/tls.key", own}},
		{"the user adds signers of clients", served(configv1.APIServerSpec{ClientCA: configv1.ConfigMapNameReference{Name: "house-ca"}}), 1,
			"client-ca-file", []string{"/etc/kubernetes/client-signers/ca.crt"}},
		{"the user adds signers of clients, but not of kubelets,", served(configv1.APIServerSpec{ClientCA: configv1.ConfigMapNameReference{Name: "house-ca"}}), 1,
			"kubelet-certificate-authority", []string{"/etc/kubernetes/certs/client-ca/ca.crt"}},
		{"the user adds no signers of clients", served(configv1.APIServerSpec{}), 1, "client-ca-file", []string{"/etc/kubernetes/certs/client-ca/ca.crt"}},
	})
}

func TestFlagsOfAuthentication(t *testing.T) {
	file := []string{"/etc/kubernetes/auth/auth.yaml"}
	logins := func(spec configv1.AuthenticationSpec) func(*hyperv1.HostedControlPlane) {
		return configured(hyperv1.ClusterConfiguration{Authentication: &spec})
	}
	provider := []configv1.OIDCProvider{byClaims()}
	checkFlags(t, []flagCase{
		{"an OIDC provider is set", logins(configv1.AuthenticationSpec{Type: configv1.AuthenticationTypeOIDC, OIDCProviders: provider}), 1, "authentication-config", file},
		{"type OIDC has no provider", logins(configv1.AuthenticationSpec{Type: configv1.AuthenticationTypeOIDC}), 1, "authentication-config", nil},
		{"a provider is set with another type", logins(configv1.AuthenticationSpec{Type: configv1.AuthenticationTypeIntegratedOAuth, OIDCProviders: provider}), 1,
			"authentication-config", nil},
		{"the configuration has no authentication", configured(hyperv1.ClusterConfiguration{}), 1, "authentication-config", nil},
	})
}
