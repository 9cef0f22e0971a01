// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/naming"
)

func TestProxyIsTrusted(t *testing.T) {
	trusting := func(name string) *hyperv1.ClusterConfiguration {
		return &hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{HTTPProxy: "http://proxy", TrustedCA: configv1.ConfigMapNameReference{Name: name}}}
	}
	bundle := func(name, key, value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name}, Data: map[string]string{key: value}}
	}
	pem := string(clustertest.KeyPair(t).CertPEM)
	d := newDesk(bundle("good", naming.TrustBundleKey, pem), bundle("text", naming.TrustBundleKey, "no certificate"), bundle("elsewhere", "other", pem))
	for name, tc := range map[string]struct {
		configuration *hyperv1.ClusterConfiguration
		status        metav1.ConditionStatus
		says          string
	}{
		"nothing is configured":                  {nil, "", ""},
		"there is no proxy":                      {&hyperv1.ClusterConfiguration{}, "", ""},
		"the proxy names no CA":                  {trusting(""), "", ""},
		"the CA exists":                          {trusting("good"), "True", ""},
		"the CA is not a certificate":            {trusting("text"), "False", "the ConfigMap clusters/text holds no PEM certificate"},
		"the CA has another key":                 {trusting("elsewhere"), "False", "the ConfigMap clusters/elsewhere has no key"},
		"the CA does not exist":                  {trusting("missing"), "False", "there is no ConfigMap clusters/missing"},
		"the ConfigMap of the CA cannot be read": {trusting("refused"), "False", "not now"},
	} {
		t.Run("When "+name+", ValidProxyConfiguration should report it", func(t *testing.T) {
			g, s := NewWithT(t), withScope()
			s.HC.Spec.Configuration = tc.configuration
			d.Refuse = "clusters/refused"
			result, err := d.validateProxy(t.Context(), s)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.IsZero()).To(BeTrue())
			kind := string(hyperv1.ValidProxyConfiguration)
			if tc.status == "" {
				g.Expect(s.Cleared).To(Equal([]string{kind}))
				g.Expect(s.Conditions).To(BeEmpty())
				return
			}
			g.Expect(s.Cleared).To(BeEmpty())
			g.Expect(s.Conditions[kind].Status).To(Equal(tc.status))
			g.Expect(s.Conditions[kind].Message).To(ContainSubstring(tc.says))
			if tc.status == "False" {
				g.Expect(s.Conditions[kind].Reason).To(Equal(hyperv1.ProxyCABundleInvalidReason))
			}
		})
	}
}
