// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// TestStreamOfMostNodes checks that a pool reports the stream of most nodes during an update from one stream to the
// other.
func TestStreamOfMostNodes(t *testing.T) {
	const nine, ten = "Red Hat Enterprise Linux CoreOS 9.6.20260101-0", "Red Hat Enterprise Linux CoreOS 10.1.20260101-0"
	const older, strange = "Red Hat Enterprise Linux CoreOS 418.94.202501010000-0", "Red Hat Enterprise Linux CoreOS 8.4.2021"
	for name, tc := range map[string]struct {
		images []string
		want   string
	}{
		"When there are no nodes, it should return no stream":                             {nil, ""},
		"When no node reports its OS image, it should return no stream":                   {[]string{"", ""}, ""},
		"When nodes run another OS, it should return no stream":                           {[]string{"Ubuntu 24.04", strange}, ""},
		"When all nodes run RHEL 9, it should return RHEL 9":                              {[]string{nine, older}, "rhel-9"},
		"When one node runs RHEL 10 and the others another OS, it should return RHEL 10":  {[]string{"", "Ubuntu 24.04", ten}, "rhel-10"},
		"When most nodes run RHEL 10, it should return RHEL 10":                           {[]string{ten, nine, ten}, "rhel-10"},
		"When equally many nodes run each stream, it should return the older one":         {[]string{ten, nine}, "rhel-9"},
		"When most nodes run RHEL 9 in two image naming schemes, it should return RHEL 9": {[]string{ten, older, nine}, "rhel-9"},
	} {
		t.Run(name, func(t *testing.T) {
			var machines []*clusterv1.Machine
			for _, image := range tc.images {
				machine := &clusterv1.Machine{}
				if image != "" {
					machine.Status.NodeInfo = &corev1.NodeSystemInfo{OSImage: image}
				}
				machines = append(machines, machine)
			}
			got := osStream(machines)
			if tc.want == "" {
				NewWithT(t).Expect(got).To(BeNil())
				return
			}
			NewWithT(t).Expect(got).To(Equal(&hyperv1.OSImageStreamReference{Name: tc.want}))
		})
	}
}

// TestFirstStream checks the stream of pools of release 5.0.
func TestFirstStream(t *testing.T) {
	const nine, ten = "Red Hat Enterprise Linux CoreOS 9.6.20260101-0", "Red Hat Enterprise Linux CoreOS 10.1.20260101-0"
	const runc = "apiVersion: machineconfiguration.openshift.io/v1\nkind: ContainerRuntimeConfig\n" +
		"spec: {containerRuntimeConfig: {defaultRuntime: runc}}\n"
	runs := func(images ...string) func(*reconciliation) {
		return func(s *reconciliation) {
			for _, image := range images {
				info := &corev1.NodeSystemInfo{OSImage: image}
				s.Machines = append(s.Machines, &clusterv1.Machine{Status: clusterv1.MachineStatus{NodeInfo: info}})
			}
		}
	}
	gates := func(set configv1.FeatureSet, enabled ...configv1.FeatureGateName) func(*reconciliation) {
		return func(s *reconciliation) {
			gate := &configv1.FeatureGateSpec{FeatureGateSelection: configv1.FeatureGateSelection{FeatureSet: set}}
			if len(enabled) > 0 {
				gate.CustomNoUpgrade = &configv1.CustomFeatureGates{Enabled: enabled}
			}
			s.HC.Spec.Configuration = &hyperv1.ClusterConfiguration{FeatureGate: gate}
		}
	}
	kept := func(stream string) func(*reconciliation) {
		return func(s *reconciliation) { scope.Annotate(s.Pool, hyperv1.NodePoolOSImageStreamAnnotation, stream) }
	}
	asks := func(stream string) func(*reconciliation) {
		return func(s *reconciliation) { s.Pool.Spec.OSImageStream = &hyperv1.OSImageStreamReference{Name: stream} }
	}
	type preps []func(*reconciliation)
	preview := gates(configv1.TechPreviewNoUpgrade)
	ran := func(s *reconciliation) { s.Pool.Status.OSImageStream = &hyperv1.OSImageStreamReference{Name: "rhel-9"} }
	older := func(s *reconciliation) { s.Pool.Status.Version = "4.22.9" }
	inPlace := func(s *reconciliation) { s.Pool.Spec.Management.UpgradeType = hyperv1.UpgradeTypeInPlace }
	for name, tc := range map[string]struct {
		documents string
		with      preps
		want      string
		fails     string
	}{
		"a new pool gets RHEL 9":                           {want: "rhel-9"},
		"a new pool gets RHEL 10 in a TechPreview cluster": {with: preps{preview}, want: "rhel-10"},
		"a custom OSStreams feature gate selects RHEL 10": {
			with: preps{gates(configv1.CustomNoUpgrade, "OSStreams")}, want: "rhel-10",
		},
		"another custom feature gate does not select RHEL 10": {
			with: preps{gates(configv1.CustomNoUpgrade, "Other")}, want: "rhel-9",
		},
		"a new pool with runc gets RHEL 9":                    {documents: runc, with: preps{preview}, want: "rhel-9"},
		"a pool whose nodes run RHEL 9 keeps it":              {with: preps{preview, runs(nine, nine)}, want: "rhel-9"},
		"a pool whose nodes run RHEL 10 keeps it":             {with: preps{runs(ten, ten)}, want: "rhel-10"},
		"a rollout to RHEL 10 in progress continues":          {with: preps{runs(nine, nine, ten)}, want: "rhel-10"},
		"a pool without nodes keeps the stream of its status": {with: preps{preview, ran}, want: "rhel-9"},
		"an existing pool without nodes keeps RHEL 9":         {with: preps{preview, older}, want: "rhel-9"},
		"a recorded stream stays, whatever nodes run":         {with: preps{runs(ten), kept("rhel-9")}, want: "rhel-9"},
		"spec.osImageStream takes precedence": {
			with: preps{runs(nine), kept("rhel-9"), asks("rhel-10")}, want: "rhel-10",
		},
		"an unknown stream in the annotation is ignored": {with: preps{kept("rhel-8")}, want: "rhel-9"},
		"runc on RHEL 10 is refused": {
			documents: runc, with: preps{kept("rhel-10")}, fails: "remove that",
		},
		"machines that are replaced go back to RHEL 9": {
			with: preps{runs(ten), kept("rhel-10"), asks("rhel-9")}, want: "rhel-9",
		},
		"machines that are updated in place cannot go back to RHEL 9": {
			with: preps{runs(ten), kept("rhel-10"), asks("rhel-9"), inPlace}, fails: "an in-place update cannot return to the older stream"},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), pass()
			s.Pool.Spec.Management.UpgradeType, s.Pool.Status.Version = hyperv1.UpgradeTypeReplace, ""
			s.Release = releaseinfo.New("r", releaseinfo.Payload{Version: "5.0.1", Distribution: releaseinfo.OpenShift})
			for _, with := range tc.with {
				with(s)
			}
			stream, err := s.chooseStream([]string{tc.documents})
			if tc.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.fails)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(stream).To(Equal(tc.want))
		})
	}
}

// TestStreamOfEarlierOperator checks that pools that 0.1.0 configured for RHEL 10 keep their hash. RHEL 10 was the
// default of 0.1.0 from release 5.0 on.
func TestStreamOfEarlierOperator(t *testing.T) {
	configured := func() *reconciliation {
		s := pass()
		s.Release = releaseinfo.New("r", releaseinfo.Payload{Version: "5.0.1", Distribution: releaseinfo.OpenShift})
		return s
	}
	before := configured()
	before.Stream = "rhel-10"
	NewWithT(t).Expect(before.hashConfig()).To(Succeed())
	for name, had := range map[string]func(*reconciliation){
		"the pool has the old operator's configuration": func(s *reconciliation) {
			scope.Annotate(s.Pool, hyperv1.NodePoolCurrentConfigVersionAnnotation, before.config.Hash)
		},
		"a machine is being installed with the old operator's configuration": func(s *reconciliation) {
			s.Machines = []*clusterv1.Machine{{Spec: clusterv1.MachineSpec{Bootstrap: clusterv1.Bootstrap{
				DataSecretName: ptr.To(scope.UserDataPrefix + "-" + s.Pool.Name + "-" + before.config.Hash)}}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), configured()
			had(s)
			var err error
			s.Stream, err = s.chooseStream(nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.hashConfig()).To(Succeed())
			g.Expect(s.config.Hash).To(Equal(before.config.Hash))
		})
	}
}

// TestUpgradeKeepsStream updates a pool with nodes of RHEL 9 from 4.20 to 5.0, sets the field, and removes it again.
func TestUpgradeKeepsStream(t *testing.T) {
	const image = "registry.example/ocp-release:5.0.1"
	c := fixture.Start(t)
	s := newWorld(t, c, "keeps-stream")
	payloads := fixture.Payloads()
	haproxy, _ := payloads[fixture.OCPImage].ComponentImage("haproxy-router")
	payloads[image] = releaseinfo.New(image, releaseinfo.Payload{
		Version: "5.0.1", Distribution: releaseinfo.OpenShift, Components: map[string]string{"haproxy-router": haproxy},
	})
	s.Releases = payloads
	s.openShift(hyperv1.UpgradeTypeReplace)
	s.coreConfigs()
	s.mustPass()
	machine := s.birth("one")
	s.serve(machine)
	const nine = "Red Hat Enterprise Linux CoreOS 9.6.20260101-0"
	look(s, machine, "one").Status.NodeInfo = &corev1.NodeSystemInfo{OSImage: nine, KubeletVersion: "v1.31.0"}
	s.Expect(c.Status().Update(t.Context(), machine)).To(Succeed())
	s.mustPass()
	s.Expect(s.pool().Annotations).NotTo(HaveKey(hyperv1.NodePoolOSImageStreamAnnotation))
	stream := func() string {
		token := s.tokenOf(*s.deployment().Spec.Template.Spec.Bootstrap.DataSecretName)
		return string(token.Data[hyperv1.TokenSecretOSStreamKey])
	}
	s.Expect(stream()).To(BeEmpty())

	hc := &hyperv1.HostedCluster{}
	s.Expect(c.Get(t.Context(), ctrlKey(s.namespace, fixture.ClusterName), hc)).To(Succeed())
	hc.Spec.Release.Image = image
	hc.Spec.Configuration = &hyperv1.ClusterConfiguration{FeatureGate: &configv1.FeatureGateSpec{
		FeatureGateSelection: configv1.FeatureGateSelection{FeatureSet: configv1.TechPreviewNoUpgrade}}}
	s.Expect(c.Update(t.Context(), hc)).To(Succeed())
	s.change(func(p *hyperv1.NodePool) { p.Spec.Release.Image = image })
	s.mustPass()
	s.Expect(stream()).To(Equal("rhel-9"), "an upgrade keeps the stream, though new pools would have another one")
	s.Expect(s.pool().Annotations).To(HaveKeyWithValue(hyperv1.NodePoolOSImageStreamAnnotation, "rhel-9"))

	before := s.deployment().Spec.Template
	s.change(func(p *hyperv1.NodePool) { p.Spec.OSImageStream = &hyperv1.OSImageStreamReference{Name: "rhel-9"} })
	s.mustPass()
	s.Expect(s.deployment().Spec.Template).To(Equal(before), "the field with the stream of the nodes rolls nothing")
	s.change(func(p *hyperv1.NodePool) { p.Spec.OSImageStream.Name = "rhel-10" })
	s.mustPass()
	s.Expect(stream()).To(Equal("rhel-10"))
	after := s.deployment().Spec.Template
	s.Expect(after).NotTo(Equal(before))
	s.change(func(p *hyperv1.NodePool) { p.Spec.OSImageStream = nil })
	s.mustPass()
	s.Expect(s.deployment().Spec.Template).To(Equal(after), "the removal of the field rolls nothing")
	s.Expect(stream()).To(Equal("rhel-10"))
}

// TestNoStreams checks that a Kubernetes release has no streams, whatever the field is. Another condition reports that
// the field has no effect.
func TestNoStreams(t *testing.T) {
	for _, wanted := range []string{"", "rhel-9", "rhel-10"} {
		t.Run("When the stream of a Kubernetes pool is set to "+wanted+", it should choose no stream", func(t *testing.T) {
			g, s := NewWithT(t), pass()
			if wanted != "" {
				s.Pool.Spec.OSImageStream = &hyperv1.OSImageStreamReference{Name: wanted}
			}
			stream, err := s.chooseStream(nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(stream).To(BeEmpty())
		})
	}
}
