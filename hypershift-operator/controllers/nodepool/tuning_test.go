// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/releaseinfo"
)

const (
	profileDocument = "apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\nmetadata: {name: fast}\nspec: {cpu: {isolated: 2-7, reserved: 0-1}}\n"
	kubeletDocument = "apiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig\nmetadata: {name: pods}\nspec: {kubeletConfig: {maxPods: 100}}\n"
)

// configMap creates a ConfigMap in the pool's namespace.
func (s *world) configMap(name, key, text string) corev1.LocalObjectReference {
	s.t.Helper()
	fixture.Create(s.t, s.client, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Data: map[string]string{key: text}})
	return corev1.LocalObjectReference{Name: name}
}

// handedTo returns the ConfigMaps with the given label, which the node tuning operator reads.
func (s *world) handedTo(label string) []corev1.ConfigMap {
	s.t.Helper()
	list := &corev1.ConfigMapList{}
	s.Expect(s.client.List(s.t.Context(), list, client.InNamespace(s.hosted()), client.MatchingLabels{label: "true", "hypershift.openshift.io/nodePool": fixture.PoolName})).To(Succeed())
	return list.Items
}

func TestTuning(t *testing.T) {
	c := fixture.Start(t)
	s := newWorld(t, c, "tuning")
	s.openShift(hyperv1.UpgradeTypeReplace)
	s.coreConfigs()
	refs := []corev1.LocalObjectReference{
		s.configMap("b", "tuning", "apiVersion: tuned.openshift.io/v1\nkind: Tuned\nmetadata: {name: b}\n"),
		s.configMap("a", "tuning", "apiVersion: tuned.openshift.io/v1\nkind: Tuned\nmetadata: {name: a}\n"),
		s.configMap("fast", "tuning", profileDocument),
	}
	t.Run("When a pool has tuning, it should create all ConfigMaps for the payload's node tuning operator", func(t *testing.T) {
		g := NewWithT(t)
		s.change(func(p *hyperv1.NodePool) {
			p.Spec.TuningConfig = refs
			p.Spec.Config = []corev1.LocalObjectReference{s.configMap("kubelet", "config", kubeletDocument)}
		})
		s.mustPass()
		g.Expect(s.condition("ValidTuningConfig").Status).To(Equal(corev1.ConditionTrue))
		tuned := s.handedTo(tunedLabel)
		g.Expect(tuned).To(HaveLen(1))
		g.Expect(tuned[0].Name).To(Equal("tuned-" + fixture.PoolName))
		g.Expect(tuned[0].Data["tuning"]).To(MatchRegexp(`(?s)name: a\n.*\n---\n.*name: b\n`))
		g.Expect(tuned[0].Annotations).To(HaveKeyWithValue("hypershift.openshift.io/nodePool", s.key().String()))
		profile := s.handedTo(performanceProfileLabel)
		g.Expect(profile).To(HaveLen(1))
		g.Expect(profile[0].Name).To(Equal("fast-" + fixture.PoolName))
		g.Expect(profile[0].Data["tuning"]).To(ContainSubstring("isolated: 2-7"))
		mirrored := s.handedTo(mirroredLabel)
		g.Expect(mirrored).To(HaveLen(1))
		g.Expect(mirrored[0].Labels).To(HaveKeyWithValue(kubeletConfigLabel, "true"))
		g.Expect(mirrored[0].Data).To(Equal(map[string]string{"config": kubeletDocument}))
	})
	t.Run("When nothing changes, it should write nothing", func(t *testing.T) {
		counted := fixture.NewFaulty(c)
		was := s.Reconciler.Client
		s.Reconciler.Client = counted
		s.mustPass()
		s.Reconciler.Client = was
		NewWithT(t).Expect(counted.Log).To(BeEmpty())
	})
	t.Run("When the operator reports conditions of the profile, the pool should copy them", func(t *testing.T) {
		fixture.Create(t, c, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: "status", Labels: map[string]string{performanceStatusLabel: "true", "hypershift.openshift.io/nodePool": fixture.PoolName}},
			Data:       map[string]string{"status": "conditions:\n- {type: Degraded, status: \"True\", reason: GettingTunedStatusFailed, message: no profile}\n- {type: Other, status: \"True\"}\n"},
		})
		s.mustPass()
		g, got := NewWithT(t), s.condition("performance.operator.openshift.io/Degraded")
		g.Expect(got.Status).To(Equal(corev1.ConditionTrue))
		g.Expect(got.Message).To(Equal("no profile"))
	})
	t.Run("When a profile generates a second KubeletConfig, it should report that a pool takes only one", func(t *testing.T) {
		generated := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: "kc-fast", Labels: map[string]string{tunedGeneratedLabel: "true", kubeletConfigLabel: "true", "hypershift.openshift.io/nodePool": fixture.PoolName}},
			Data:       map[string]string{"config": kubeletDocument},
		}
		fixture.Create(t, c, generated)
		s.mustPass()
		NewWithT(t).Expect(s.condition("ValidMachineConfig").Message).To(ContainSubstring("more than one KubeletConfig, in the ConfigMaps kubelet, kc-fast: keep one"))
		s.Expect(c.Delete(t.Context(), generated)).To(Succeed())
	})
	t.Run("When two profiles are set, it should report that a pool takes only one and keep the ConfigMaps", func(t *testing.T) {
		second := s.configMap("second", "tuning", profileDocument)
		s.change(func(p *hyperv1.NodePool) { p.Spec.TuningConfig = append(p.Spec.TuningConfig, second) })
		s.mustPass()
		g := NewWithT(t)
		g.Expect(s.condition("ValidTuningConfig").Reason).To(Equal("ValidationFailed"))
		g.Expect(s.condition("ValidTuningConfig").Message).To(ContainSubstring("the ConfigMap second holds a PerformanceProfile, and a NodePool takes one only"))
		g.Expect(s.handedTo(tunedLabel)).To(HaveLen(1))
	})
	t.Run("When a ConfigMap in tuningConfig does not exist, it should report it", func(t *testing.T) {
		s.change(func(p *hyperv1.NodePool) { p.Spec.TuningConfig = []corev1.LocalObjectReference{{Name: "nowhere"}} })
		s.mustPass()
		NewWithT(t).Expect(s.condition("ValidTuningConfig").Message).To(Equal("spec.tuningConfig: there is no ConfigMap tuning/nowhere: create it"))
	})
	t.Run("When tuning is removed, it should delete the operator's ConfigMaps and the conditions", func(t *testing.T) {
		s.change(func(p *hyperv1.NodePool) { p.Spec.TuningConfig, p.Spec.Config = nil, nil })
		s.mustPass()
		g := NewWithT(t)
		for _, label := range []string{tunedLabel, performanceProfileLabel, mirroredLabel} {
			g.Expect(s.handedTo(label)).To(BeEmpty())
		}
		g.Expect(scope.Find(s.pool().Status.Conditions, "performance.operator.openshift.io/Degraded")).To(BeNil())
	})
}

func TestStream(t *testing.T) {
	const runc = "apiVersion: machineconfiguration.openshift.io/v1\nkind: ContainerRuntimeConfig\nspec: {containerRuntimeConfig: {defaultRuntime: runc}}\n"
	for name, tc := range map[string]struct{ version, wanted, document, want, fails string }{
		"When the release has only one stream, it should set no stream, so that no node is replaced": {version: "4.22.1"},
		"When RHEL 9 is set and the release has only one stream, it should accept it":                {version: "4.22.1", wanted: "rhel-9"},
		"When RHEL 10 is set and the release has only one stream, it should reject it":               {version: "4.22.1", wanted: "rhel-10", fails: "needs OpenShift 5.0.0 or newer, and the release is 4.22.1"},
		"When a new pool's release has both streams, it should use RHEL 9":                           {version: "5.0.0", want: "rhel-9"},
		"When RHEL 9 is set and the release has both streams, it should use RHEL 9":                  {version: "5.1.0", wanted: "rhel-9", want: "rhel-9"},
		"When the pool uses runc, it should use RHEL 9":                                              {version: "5.1.0", document: runc, want: "rhel-9"},
		"When the pool uses runc and sets RHEL 10, it should reject it":                              {version: "5.1.0", document: runc, wanted: "rhel-10", fails: "has no runc"},
	} {
		t.Run(name, func(t *testing.T) {
			g, pool := NewWithT(t), fixture.NodePool("clusters")
			if tc.wanted != "" {
				pool.Spec.OSImageStream = &hyperv1.OSImageStreamReference{Name: tc.wanted}
			}
			s := &reconciliation{Scope: &scope.Scope{Pool: pool, HC: fixture.HostedCluster("clusters"), Release: releaseinfo.New("r",
				releaseinfo.Payload{Version: tc.version, Distribution: releaseinfo.OpenShift})}}
			got, err := s.chooseStream([]string{tc.document})
			if tc.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.fails)))
				g.Expect(got).To(BeEmpty())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
			s.Stream = got
			data, err := (&Reconciler{}).secrets(s).Data()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(data["os-stream"])).To(Equal(tc.want))
		})
	}
}

func TestStreamOfNodes(t *testing.T) {
	machine := func(image string) *clusterv1.Machine {
		return &clusterv1.Machine{Status: clusterv1.MachineStatus{NodeInfo: &corev1.NodeSystemInfo{OSImage: image}}}
	}
	const nine, ten = "Red Hat Enterprise Linux CoreOS 9.6.20260101-0", "Red Hat Enterprise Linux CoreOS 10.1.20260101-0 (Plow)"
	g := NewWithT(t)
	g.Expect(osStream([]*clusterv1.Machine{machine(nine), machine(ten), machine(ten)}).Name).To(Equal("rhel-10"))
	g.Expect(osStream([]*clusterv1.Machine{machine("Red Hat Enterprise Linux CoreOS 418.94.202501010000-0")}).Name).To(Equal("rhel-9"))
	g.Expect(osStream([]*clusterv1.Machine{machine("Ubuntu 24.04"), {}})).To(BeNil())
}
