// SPDX-License-Identifier: Apache-2.0

package kubeapiserver_test

import (
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
)

func TestValidateLists(t *testing.T) {
	gates := func(names ...configv1.FeatureGateName) *hyperv1.ClusterConfiguration {
		return &hyperv1.ClusterConfiguration{FeatureGate: &configv1.FeatureGateSpec{
			FeatureGateSelection: configv1.FeatureGateSelection{
				CustomNoUpgrade: &configv1.CustomFeatureGates{Enabled: names}}}}
	}
	server := func(spec configv1.APIServerSpec) *hyperv1.ClusterConfiguration {
		return &hyperv1.ClusterConfiguration{APIServer: &spec}
	}
	named := func(names ...string) *hyperv1.ClusterConfiguration {
		return server(configv1.APIServerSpec{ServingCerts: configv1.APIServerServingCerts{
			NamedCertificates: []configv1.APIServerNamedServingCert{{Names: names}}}})
	}
	for name, tc := range map[string]struct {
		config *hyperv1.ClusterConfiguration
		says   string
	}{
		"accepts no configuration":    {nil, ""},
		"accepts a feature gate":      {gates("InPlacePodVerticalScaling"), ""},
		"refuses a gate with a comma": {gates("A=true,B"), "configuration.featureGate.customNoUpgrade"},
		"accepts a regular expression": {
			server(configv1.APIServerSpec{AdditionalCORSAllowedOrigins: []string{`//console\.example\.com(:|\z)`}}), ""},
		"refuses an origin with a comma": {
			server(configv1.APIServerSpec{AdditionalCORSAllowedOrigins: []string{"a,.*"}}), "additionalCORSAllowedOrigins"},
		"refuses an origin with a quote": {
			server(configv1.APIServerSpec{AdditionalCORSAllowedOrigins: []string{`"a`}}), "additionalCORSAllowedOrigins"},
		"accepts host names of a certificate": {named("api.example.com", "*.Example.com"), ""},
		"refuses a host name with a comma":    {named("api.example.com,kubernetes.default.svc"), "namedCertificates"},
		"refuses a host name with a colon":    {named("a:b"), "namedCertificates"},
	} {
		t.Run(name, func(t *testing.T) {
			hcp := &hyperv1.HostedControlPlane{Spec: hyperv1.HostedControlPlaneSpec{Configuration: tc.config}}
			err := kubeapiserver.ValidateLists(hcp)
			if tc.says == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.says)))
		})
	}
}
