// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// parse returns options from an environment and a command line.
func parse(t *testing.T, environment map[string]string, args ...string) (*options, error) {
	t.Helper()
	o := optionsFromEnvironment(func(name string) string { return environment[name] })
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	o.addFlags(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	return o, o.validate()
}

func TestOptions(t *testing.T) {
	t.Run("When a HyperShift operator of any release starts it, it should accept all flags and variables", func(t *testing.T) {
		g := NewWithT(t)
		o, err := parse(t, map[string]string{
			"CONTROL_PLANE_OPERATOR_IMAGE": "op", "SOCKS5_PROXY_IMAGE": "proxy", "OPERATE_ON_RELEASE_IMAGE": "release",
			"OPENSHIFT_IMG_OVERRIDES": "=", "DEFAULT_SECURITY_CONTEXT_UID": "1042", "CERTIFICATE_VALIDITY": "24h",
			"CERTIFICATE_RENEWAL_PERCENTAGE": "70", "HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": ".svc",
		}, "--namespace", "clusters-demo", "--deployment-name", "control-plane-operator", "--metrics-addr", "0.0.0.0:8080",
			"--enable-ci-debug-output=false", "--registry-overrides==", "--image-overrides=etcd=my/etcd", "--in-cluster=true",
			"--token-minter-image=minter", "--health-probe-addr=0.0.0.0:6060")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(o.staticImages()).To(Equal(map[string]string{
			"controlplane-operator": "op", "hosted-cluster-config-operator": "op", "availability-prober": "op",
			"socks5-proxy": "proxy", "token-minter": "minter", "etcd": "my/etcd",
		}))
		g.Expect(*o.podUID).To(Equal(int64(1042)))
		g.Expect(o.lifetime.Validity).To(Equal(24 * time.Hour))
		g.Expect(o.lifetime.RenewAfter).To(Equal(0.7))
		g.Expect(o.operateOnRelease).To(Equal("release"))
		g.Expect(o.inherited).To(ConsistOf(
			corev1.EnvVar{Name: "HTTPS_PROXY", Value: "http://proxy:3128"},
			corev1.EnvVar{Name: "NO_PROXY", Value: ".svc,kube-apiserver"},
		))
		releases, err := o.releases()
		g.Expect(err).NotTo(HaveOccurred())
		_, err = releases.Lookup(t.Context(), "127.0.0.1:1/release:1", nil)
		g.Expect(err).To(MatchError(ContainSubstring("its address is blocked by the address policy")))
	})

	t.Run("When no images are set, or only empty ones, it should use its own image", func(t *testing.T) {
		g := NewWithT(t)
		o, err := parse(t, map[string]string{"MY_NAMESPACE": "ns", "CONTROL_PLANE_OPERATOR_IMAGE": "op", "TOKEN_MINTER_IMAGE": "minter", "HTTP_PROXY": "http://proxy:3128"},
			"--token-minter-image=", "--hosted-cluster-config-operator-image=", "--socks5-proxy-image=other")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(o.staticImages()).To(Equal(map[string]string{
			"controlplane-operator": "op", "hosted-cluster-config-operator": "op", "availability-prober": "op", "socks5-proxy": "other", "token-minter": "op",
		}))
		g.Expect(o.podUID).To(BeNil())
		g.Expect(o.lifetime).To(BeZero())
		g.Expect(o.inherited).To(ConsistOf(corev1.EnvVar{Name: "HTTP_PROXY", Value: "http://proxy:3128"}), "who goes by no proxy needs no exception")
	})
	t.Run("When the environment names images, it should use them", func(t *testing.T) {
		g := NewWithT(t)
		o, err := parse(t, map[string]string{
			"MY_NAMESPACE": "ns", "CONTROL_PLANE_OPERATOR_IMAGE": "op", "HOSTED_CLUSTER_CONFIG_OPERATOR_IMAGE": "config", "SOCKS5_PROXY_IMAGE": "proxy",
			"AVAILABILITY_PROBER_IMAGE": "prober", "TOKEN_MINTER_IMAGE": "minter", "DEFAULT_INGRESS_DOMAIN": "apps.example", "METRICS_SET": "SRE",
		}, "--image-overrides==nothing")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(o.staticImages()).To(Equal(map[string]string{
			"controlplane-operator": "op", "hosted-cluster-config-operator": "config", "availability-prober": "prober", "socks5-proxy": "proxy", "token-minter": "minter",
		}))
		g.Expect([]string{o.ingressDomain, o.metricsSet}).To(Equal([]string{"apps.example", "SRE"}))
	})

	wrong := []struct {
		name        string
		environment map[string]string
		args        []string
		want        string
	}{
		{"no namespace", map[string]string{"CONTROL_PLANE_OPERATOR_IMAGE": "op"}, nil, "--namespace is missing"},
		{"no image for itself", map[string]string{"MY_NAMESPACE": "ns"}, nil, "CONTROL_PLANE_OPERATOR_IMAGE is missing"},
		{"a user ID that is a name", map[string]string{"DEFAULT_SECURITY_CONTEXT_UID": "root"}, nil, "is not a user ID"},
		{"a user ID with trailing text", map[string]string{"DEFAULT_SECURITY_CONTEXT_UID": "1042 root"}, nil, `"1042 root" is not a user ID`},
		{"a negative user ID", map[string]string{"DEFAULT_SECURITY_CONTEXT_UID": "-1"}, nil, "DEFAULT_SECURITY_CONTEXT_UID"},
		{"a zero validity", map[string]string{"CERTIFICATE_VALIDITY": "0s"}, nil, "CERTIFICATE_VALIDITY"},
		{"a validity in days", map[string]string{"CERTIFICATE_VALIDITY": "365d"}, nil, "CERTIFICATE_VALIDITY"},
		{"a zero renewal percentage", map[string]string{"CERTIFICATE_RENEWAL_PERCENTAGE": "0"}, nil, "CERTIFICATE_RENEWAL_PERCENTAGE"},
	}
	for _, tc := range wrong {
		t.Run("When it is started with "+tc.name+" it should name the missing or invalid setting", func(t *testing.T) {
			_, err := parse(t, tc.environment, tc.args...)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}

	for name, set := range map[string]func(*options){
		"registry overrides": func(o *options) { o.registryOverrides = "a" },
		"mirrors":            func(o *options) { o.imageMirrors = "a" },
	} {
		t.Run("When its "+name+" cannot be read it should not start", func(t *testing.T) {
			g := NewWithT(t)
			o, err := parse(t, map[string]string{"MY_NAMESPACE": "ns", "CONTROL_PLANE_OPERATOR_IMAGE": "op"})
			g.Expect(err).NotTo(HaveOccurred())
			set(o)
			_, err = o.releases()
			g.Expect(err).To(MatchError(ContainSubstring("is not of the form")))
		})
	}
}

// broken is a mapper whose API server does not answer.
type broken struct{ meta.RESTMapper }

func (broken) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errors.New("connection refused")
}

func TestServes(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "route.openshift.io", Version: "v1", Kind: "Route"}
	t.Run("When the management cluster serves the kind, it should use the kind", func(t *testing.T) {
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(kind, meta.RESTScopeNamespace)
		NewWithT(t).Expect(serves(mapper, kind)).To(BeTrue())
	})
	t.Run("When the management cluster serves only another version, it should skip the kind", func(t *testing.T) {
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(schema.GroupVersionKind{Group: kind.Group, Version: "v2", Kind: kind.Kind}, meta.RESTScopeNamespace)
		NewWithT(t).Expect(serves(mapper, kind)).To(BeFalse())
	})
	t.Run("When the management cluster does not answer, it should return an error instead of skipping the kind", func(t *testing.T) {
		_, err := serves(broken{}, kind)
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("kind Route"), ContainSubstring("connection refused"))))
	})
}
