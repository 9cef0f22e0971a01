// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"maps"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/releaseinfo"
)

func TestControlPlaneIsWritten(t *testing.T) {
	g, d := NewWithT(t), newDesk()
	s := withScope(func(s *scope) {
		s.images = images{release: "release:1", releaseSource: "tag:1"}
		s.HC.Labels = map[string]string{"api.openshift.com/team": "a"}
		s.HC.Annotations = map[string]string{hyperv1.DisableProfilingAnnotation: "kas"}
	})
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: fixture.ClusterName}}
	_, err := d.reconcileControlPlane(t.Context(), s)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(d.Has(t, hcp)).To(BeTrue())
	g.Expect(s.HCP).To(Equal(hcp), "later phases see it in the same pass")
	g.Expect(hcp.Labels).To(Equal(map[string]string{"api.openshift.com/team": "a"}))
	g.Expect(hcp.Annotations).To(And(
		HaveKeyWithValue(hyperv1.HostedClusterAnnotation, "clusters/demo"), HaveKeyWithValue(hyperv1.DisableProfilingAnnotation, "kas"),
		HaveKeyWithValue(hyperv1.DisableClusterAutoscalerAnnotation, "true"), HaveKeyWithValue(hyperv1.ReleaseImageSourceAnnotation, "tag:1")))
	g.Expect(hcp.Spec.ReleaseImage).To(Equal("release:1"))
	g.Expect(hcp.Spec.PullSecret.Name).To(Equal(naming.PullSecret))
	g.Expect(hcp.Spec.SSHKey.Name).To(Equal(naming.SSHKey))
	g.Expect(hcp.Spec.AdditionalTrustBundle.Name).To(Equal(naming.TrustBundle))
	g.Expect(hcp.Spec.Platform).To(Equal(hyperv1.PlatformSpec{Type: hyperv1.NonePlatform}), "who makes machines is not its business")

	t.Run("When a NodePool uses the autoscaler, the cluster autoscaler should run", func(t *testing.T) {
		g := NewWithT(t)
		s.Pools = []hyperv1.NodePool{{}, {Spec: hyperv1.NodePoolSpec{AutoScaling: &hyperv1.NodePoolAutoScaling{Max: 3}}}}
		_, err := d.reconcileControlPlane(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.Has(t, hcp)).To(BeTrue())
		g.Expect(hcp.Annotations).NotTo(HaveKey(hyperv1.DisableClusterAutoscalerAnnotation))
	})
	t.Run("When the cluster no longer sets a key, a bundle or a release, the control plane should have none", func(t *testing.T) {
		g := NewWithT(t)
		s.images = images{release: "release:2", controlPlane: "release:3", controlPlaneSource: "tag:3"}
		_, err := d.reconcileControlPlane(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.Has(t, hcp)).To(BeTrue())
		g.Expect(hcp.Spec.ControlPlaneReleaseImage).To(Equal(ptr.To("release:3")))
		g.Expect(hcp.Annotations).To(HaveKeyWithValue(hyperv1.ControlPlaneReleaseImageSourceAnnotation, "tag:3"))
		s.HC.Spec.SSHKey.Name, s.HC.Spec.AdditionalTrustBundle, s.images.controlPlane = "", nil, ""
		_, err = d.reconcileControlPlane(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		again := &hyperv1.HostedControlPlane{ObjectMeta: hcp.ObjectMeta}
		g.Expect(d.Has(t, again)).To(BeTrue())
		g.Expect(again.Spec.SSHKey.Name).To(BeEmpty())
		g.Expect(again.Spec.AdditionalTrustBundle).To(BeNil())
		g.Expect(again.Spec.ControlPlaneReleaseImage).To(BeNil())
		g.Expect(again.Annotations).NotTo(HaveKey(hyperv1.ControlPlaneReleaseImageSourceAnnotation))
		g.Expect(again.Spec.ReleaseImage).To(Equal("release:2"))
	})
}

func TestControlPlaneIsNotWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		mutate func(*scope)
		refuse string
		want   string
	}{
		"When the API server rejects the create, it should return an error":     {func(*scope) {}, "create", errNotNow.Error()},
		"When the platform is unknown, it should return an error that names it": {func(s *scope) { s.HC.Spec.Platform.Type = "Nowhere" }, "", "Nowhere"},
		"When the payload does not support the KMS plugin, it should return an error that names the field": {func(s *scope) {
			released(releaseinfo.OpenShift)(s)
			s.HC.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{Provider: hyperv1.KMSPlugin, Plugin: &hyperv1.KMSPluginSpec{}}}
		}, "", "spec.secretEncryption.kms.provider"},
	} {
		t.Run(name, func(t *testing.T) {
			g, d, s := NewWithT(t), newDesk(), withScope(tc.mutate)
			d.Refuse = tc.refuse
			_, err := d.reconcileControlPlane(t.Context(), s)
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			g.Expect(s.HCP).To(BeNil(), "nothing may rely on one that is not there")
			g.Expect(d.Wrote).To(BeEmpty())
		})
	}
}

// TestControlPlaneOfAMachineCloud checks that a control plane that uses its platform's cloud gets the platform's
// settings.
func TestControlPlaneOfAMachineCloud(t *testing.T) {
	g, s, hcp := NewWithT(t), withScope(), &hyperv1.HostedControlPlane{}
	s.HC.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{Region: "here"}}
	g.Expect(s.shapeControlPlane(hcp)).To(Succeed())
	g.Expect(hcp.Spec.Platform).To(Equal(s.HC.Spec.Platform))
	hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC}
	g.Expect(s.shapeControlPlane(hcp)).To(Succeed())
	g.Expect(hcp.Spec.SecretEncryption).NotTo(BeNil(), "what is encrypted could not be read without its keys")
}

// TestAddressIsOnlyKeptFor checks that only releases that cannot change their addresses keep them.
func TestAddressIsOnlyKeptFor(t *testing.T) {
	named := func(service hyperv1.ServiceType, host string) hyperv1.ServicePublishingStrategyMapping {
		return hyperv1.ServicePublishingStrategyMapping{Service: service, ServicePublishingStrategy: byLoadBalancer(host)}
	}
	list := func(services ...hyperv1.ServicePublishingStrategyMapping) []hyperv1.ServicePublishingStrategyMapping {
		return services
	}
	for name, tc := range map[string]struct {
		release      func(*scope)
		wanted, last []hyperv1.ServicePublishingStrategyMapping
		keeps, said  string
	}{
		"When no service was published before, it should use the new addresses":      {released(releaseinfo.OpenShift), list(named("A", "a")), nil, "", ""},
		"When the release is not known, it should use the new addresses":             {func(*scope) {}, list(named("A", "b")), list(named("A", "a")), "", ""},
		"When a service is added, it should use the new addresses":                   {released(releaseinfo.OpenShift), list(named("A", "a"), named("B", "b")), list(named("A", "a")), "", "cleared"},
		"When one of several services moves, it should keep all addresses":           {released(releaseinfo.OpenShift), list(named("A", "a"), named("B", "x")), list(named("A", "a"), named("B", "b")), "last", "for B (LoadBalancer b)"},
		"When all services move, it should keep all addresses and name all services": {released(releaseinfo.OpenShift), list(named("A", "x"), named("B", "y")), list(named("A", "a"), named("B", "b")), "last", "A (LoadBalancer a), B (LoadBalancer b)"},
		"When the release is Kubernetes, it should use the new addresses":            {released(releaseinfo.Kubernetes), list(named("A", "x")), list(named("A", "a")), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), withScope(tc.release)
			want := tc.wanted
			if tc.keeps != "" {
				want = tc.last
			}
			g.Expect(s.publishable(tc.wanted, tc.last)).To(Equal(want))
			kind := string(hyperv1.PublishedAddressUpToDate)
			g.Expect(s.Cleared).To(HaveLen(map[string]int{"cleared": 1}[tc.said]))
			if tc.keeps == "" {
				g.Expect(s.Conditions).To(BeEmpty())
				return
			}
			g.Expect(string(s.Conditions[kind].Status) + "/" + s.Conditions[kind].Reason).To(Equal("False/NotSupported"))
			g.Expect(s.Conditions[kind].Message).To(HaveSuffix(tc.said))
		})
	}
}

func TestRestartIsHandedOnOnce(t *testing.T) {
	g, hc, hcp := NewWithT(t), &hyperv1.HostedCluster{}, &hyperv1.HostedControlPlane{}
	had := map[string]string{hyperv1.RestartDateAnnotation: "by another", hyperv1.PreviousRestartDateAnnotation: "before"}
	hcp.Annotations = maps.Clone(had)
	mirrorRestart(hc, hcp)
	g.Expect(hcp.Annotations).To(Equal(had), "a request that is taken back asks for nothing")
}

func TestRefusedPlugins(t *testing.T) {
	payloads := fixture.Payloads()
	for name, test := range map[string]struct {
		edit    func(*hyperv1.HostedCluster)
		image   string
		refused bool
	}{
		"When the release is OpenShift, it should reject the plugin":  {clustertest.EncryptedByPlugin(nil), fixture.OCPImage, true},
		"When the release is Kubernetes, it should accept the plugin": {clustertest.EncryptedByPlugin(nil), fixture.ReleaseImage, false},
		"When the release is not known, it should accept the plugin":  {clustertest.EncryptedByPlugin(nil), "", false},
		"When there is no plugin, it should accept the release":       {func(*hyperv1.HostedCluster) {}, fixture.OCPImage, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := withScope(func(s *scope) { test.edit(s.HC); s.wantedControlPlane = payloads[test.image] })
			err := s.refusePlugin()
			NewWithT(t).Expect(err != nil).To(Equal(test.refused))
			c, set := s.Conditions["ValidConfiguration"]
			NewWithT(t).Expect(set).To(Equal(test.refused))
			if test.refused {
				NewWithT(t).Expect(c).To(Equal(is("ValidConfiguration", "False", "InvalidConfiguration", err.Error())))
			}
		})
	}
}
