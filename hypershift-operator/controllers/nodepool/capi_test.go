// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/condition"
)

// TestWrittenDeployment checks the complete MachineDeployment of a pool.
func TestWrittenDeployment(t *testing.T) {
	s := startInMemory(t, func(p *hyperv1.NodePool) {
		p.Spec.NodeDrainTimeout, p.Spec.NodeVolumeDetachTimeout = &metav1.Duration{Duration: 90 * time.Second}, &metav1.Duration{Duration: time.Minute}
	})
	md, template := s.deployment(), s.templates()[0]
	labels := map[string]string{"demo-abcde-demo-demo": "demo-abcde-demo-demo", "cluster.x-k8s.io/cluster-name": "demo-abcde"}
	want := clusterv1.MachineDeploymentSpec{
		ClusterName: "demo-abcde", Replicas: ptr.To[int32](2), Selector: metav1.LabelSelector{MatchLabels: labels},
		Rollout: clusterv1.MachineDeploymentRolloutSpec{Strategy: rolloutStrategy(rolling())},
		Template: clusterv1.MachineTemplateSpec{
			ObjectMeta: clusterv1.ObjectMeta{Labels: labels, Annotations: map[string]string{
				"hypershift.openshift.io/nodePool": "clusters/demo", hyperv1.NodePoolReleaseVersionAnnotation: "1.36.3"}},
			Spec: clusterv1.MachineSpec{
				ClusterName: "demo-abcde", Version: "1.36.3", Bootstrap: clusterv1.Bootstrap{DataSecretName: md.Spec.Template.Spec.Bootstrap.DataSecretName},
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "MaasMachineTemplate", Name: template.Name},
				Deletion:          clusterv1.MachineDeletionSpec{NodeDrainTimeoutSeconds: ptr.To[int32](90), NodeVolumeDetachTimeoutSeconds: ptr.To[int32](60)},
			},
		},
	}
	s.Expect(cmp.Diff(want, md.Spec)).To(BeEmpty(), "-want +got")
	s.Expect(md.Labels).To(Equal(map[string]string{"cluster.x-k8s.io/cluster-name": "demo-abcde"}))
	s.Expect(md.Annotations).To(HaveKeyWithValue("hypershift.openshift.io/nodePool", "clusters/demo"))
	s.Expect(template.Annotations).To(HaveKeyWithValue("hypershift.openshift.io/nodePool", "clusters/demo"))
	s.secret(*md.Spec.Template.Spec.Bootstrap.DataSecretName)
	s.Expect(s.condition("Ready")).To(And(HaveField("Reason", "WaitingForMachines"), HaveField("Message", "0 of 2 machines are available")))
	s.Expect(s.condition("UpdatingPlatformMachineTemplate").Status).To(Equal(corev1.ConditionFalse), "no machine was made after another one")
}

// TestRolledOutInMemory checks what a pool records when all its machines are as desired.
func TestRolledOutInMemory(t *testing.T) {
	s := startInMemory(t, nil)
	s.born("a")
	s.mustPass()
	s.Expect(s.pool().Status.Version).To(BeEmpty(), "one of two is not all")
	s.Expect(s.pool().Annotations).NotTo(HaveKey(hyperv1.NodePoolCurrentConfigAnnotation))
	s.born("b")
	s.mustPass()
	s.Expect(s.pool().Status.Version).To(Equal("1.36.3"))
	_, hash := newReconciliation(s.pool()).ParseSecretName(*s.deployment().Spec.Template.Spec.Bootstrap.DataSecretName)
	s.Expect(s.pool().Annotations).To(And(
		HaveKeyWithValue(hyperv1.NodePoolCurrentConfigVersionAnnotation, hash),
		HaveKeyWithValue(hyperv1.NodePoolPlatformMachineTemplateAnnotation, s.templates()[0].Name),
	))
	for _, conditionType := range []string{"UpdatingConfig", "UpdatingVersion", "UpdatingPlatformMachineTemplate"} {
		s.Expect(s.condition(conditionType).Status).To(Equal(corev1.ConditionFalse), conditionType)
	}
	s.Expect(s.condition("Ready").Status).To(Equal(corev1.ConditionTrue))

	s.change(func(p *hyperv1.NodePool) { p.Spec.Platform.MAAS.Image = "custom/another" })
	s.mustPass()
	s.Expect(s.condition("UpdatingPlatformMachineTemplate").Status).To(Equal(corev1.ConditionTrue))
}

func TestMarkCurrent(t *testing.T) {
	const digest, template = hyperv1.NodePoolCurrentReleaseAnnotation, hyperv1.NodePoolPlatformMachineTemplateAnnotation
	before := map[string]string{digest: "sha256:0", template: "before"}
	for name, test := range map[string]struct{ digest, template, wantDigest, wantTemplate string }{
		"When digest and template are known, it should record both":       {"sha256:1", "now", "sha256:1", "now"},
		"When the digest is unknown, it should keep the recorded digest":  {"", "now", "sha256:0", "now"},
		"When there is no template, it should keep the recorded template": {"sha256:1", "", "sha256:1", "before"},
	} {
		t.Run(name, func(t *testing.T) {
			s := inMemory(t)
			pool := fixture.NodePool("clusters")
			pool.Annotations = map[string]string{digest: before[digest], template: before[template]}
			fixture.Create(t, s.client, pool)
			p := newReconciliation(pool)
			p.Release, p.config.Hash, p.config.HashWithoutVersion = build("r", "1.36.3", test.digest), "whole", "part"
			s.Expect(s.markCurrent(t.Context(), p, test.template)).To(Succeed())
			s.Expect(p.version).To(Equal("1.36.3"))
			s.Expect(p.Conditions).To(HaveLen(3))
			s.Expect(cmp.Diff(map[string]string{
				digest: test.wantDigest, template: test.wantTemplate,
				hyperv1.NodePoolCurrentConfigAnnotation: "part", hyperv1.NodePoolCurrentConfigVersionAnnotation: "whole",
			}, s.pool().Annotations)).To(BeEmpty(), "-want +got")
		})
	}
}

// made is a platform with the template and kinds that a test sets.
type made struct {
	platform.Platform
	template client.Object
}

func (m *made) MachineTemplate(platform.Pool) client.Object { return m.template }

func TestReconcileMachines(t *testing.T) {
	missing := &platform.Kept{Missing: true, Condition: condition.False("ValidPlatformImage", "Copying", "the image is being copied")}
	rendered := condition.True(hyperv1.NodePoolValidGeneratedPayloadConditionType, "AsExpected", "")
	type objects struct{ Deployments, Sets, Templates int }
	for name, test := range map[string]struct {
		change  func(*reconciliation)
		want    objects
		reason  string
		current bool
	}{
		"When the configuration is rendered, it should create a MachineDeployment":               {func(*reconciliation) {}, objects{1, 0, 1}, "WaitingForMachines", false},
		"When nodes are updated in place, it should create a MachineSet":                         {func(s *reconciliation) { s.Pool.Spec.Management.UpgradeType = hyperv1.UpgradeTypeInPlace }, objects{0, 1, 1}, "WaitingForMachines", false},
		"When the boot source of the machines exists, it should create a MachineDeployment":      {func(s *reconciliation) { s.Kept = &platform.Kept{} }, objects{1, 0, 1}, "WaitingForMachines", false},
		"When the boot source of the machines is missing, it should report it and wait":          {func(s *reconciliation) { s.Kept = missing }, objects{}, "Copying", false},
		"When the configuration is not rendered, it should report it and wait":                   {func(s *reconciliation) { s.SetFalse(rendered.Type, "InvalidConfig", "malformed") }, objects{}, "InvalidConfig", false},
		"When the platform creates no machines, it should report the desired version as current": {func(s *reconciliation) { s.Platform = &made{s.Platform, nil} }, objects{}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := inMemory(t)
			pool := fixture.NodePool("clusters")
			pool.Spec.Management.Replace = rolling()
			fixture.Create(t, w.client, pool)
			s := configured(func(*reconciliation) {})
			s.Pool, s.userData = pool, "user-data-demo-1"
			s.SetCondition(rendered)
			test.change(s)
			result, err := w.reconcileMachines(t.Context(), s)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(result.IsZero()).To(BeTrue())
			mds, sets := &clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}
			w.Expect(w.client.List(t.Context(), mds)).To(Succeed())
			w.Expect(w.client.List(t.Context(), sets)).To(Succeed())
			w.Expect(objects{len(mds.Items), len(sets.Items), len(w.templates())}).To(Equal(test.want))
			w.Expect(s.Conditions[hyperv1.NodePoolReadyConditionType].Reason).To(Equal(test.reason))
			w.Expect(s.version == "1.36.3").To(Equal(test.current))
		})
	}
}

// TestApplyTemplate checks that the template's name depends only on the fields that replace machines, and that the
// other fields change in place.
func TestApplyTemplate(t *testing.T) {
	w := inMemory(t)
	s := configured(func(*reconciliation) {})
	template := func(image string, deploy time.Duration) *infrav1.MaasMachineTemplate {
		obj := &infrav1.MaasMachineTemplate{}
		obj.Spec.Template.Spec = infrav1.MaasMachineSpec{Image: image, MinCPU: ptr.To(4)}
		obj.Spec.Template.Spec.Timeouts.Deploy = &metav1.Duration{Duration: deploy}
		return obj
	}
	apply := func(obj *infrav1.MaasMachineTemplate) string {
		ref, err := w.applyTemplate(t.Context(), s, obj)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(ref).To(And(HaveField("APIGroup", infrav1.GroupVersion.Group), HaveField("Kind", "MaasMachineTemplate")))
		return ref.Name
	}
	first := apply(template("a", time.Hour))
	hash, err := templateHash(s.Platform.RollingTemplate(template("a", time.Hour)))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(first).To(Equal(naming.Join("demo", hash, 253)))

	w.Expect(apply(template("a", 2*time.Hour))).To(Equal(first))
	w.Expect(w.templates()).To(ConsistOf(And(
		HaveField("Spec.Template.Spec.Timeouts.Deploy.Duration", 2*time.Hour), HaveField("Spec.Template.Spec.Image", "a"),
		HaveField("Annotations", HaveKeyWithValue(hyperv1.NodePoolAnnotation, "clusters/demo")))))

	w.Expect(apply(template("b", time.Hour))).NotTo(Equal(first))
	w.Expect(w.templates()).To(HaveLen(2))

	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build()}
	_, err = r.applyTemplate(t.Context(), s, template("a", time.Hour))
	w.Expect(err).To(MatchError(ContainSubstring("kind of the machine template")))
}

func TestSetSpec(t *testing.T) {
	g := NewWithT(t)
	live, wanted := &infrav1.MaasMachineTemplate{}, &infrav1.MaasMachineTemplate{}
	live.Spec.Template.Spec.Tags, wanted.Spec.Template.Spec.Tags = []string{}, nil
	setSpec(live, wanted)
	g.Expect(live.Spec.Template.Spec.Tags).NotTo(BeNil(), "what means the same is not written anew")
	wanted.Spec.Template.Spec.Tags = []string{"gpu"}
	setSpec(live, wanted)
	g.Expect(live.Spec).To(Equal(wanted.Spec))
}

func TestUnusedTemplates(t *testing.T) {
	w, s := inMemory(t), configured(func(s *reconciliation) { s.PlatformServed = true })
	of := func(name, pool string) *infrav1.MaasMachineTemplate {
		return &infrav1.MaasMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: w.hosted(), Name: name, Annotations: map[string]string{hyperv1.NodePoolAnnotation: pool}}}
	}
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.hosted(), Name: "old"}}
	set.Spec.Template.Spec.InfrastructureRef.Name = "used"
	going := of("going", "clusters/demo")
	going.Finalizers = []string{"somebody.example/holds"}
	fixture.Create(t, w.client, set, going, of("current", "clusters/demo"), of("used", "clusters/demo"), of("unused", "clusters/demo"), of("strangers", "clusters/other"))
	w.Expect(w.client.Delete(t.Context(), going)).To(Succeed())
	counted := fixture.NewFaulty(w.client)
	w.Reconciler.Client = counted
	w.Expect(w.deleteUnusedTemplates(t.Context(), s, "current")).To(Succeed())
	w.Expect(counted.Log).To(Equal([]string{"delete v1beta1.MaasMachineTemplate clusters-demo/unused"}))
}

func TestSeconds(t *testing.T) {
	g := NewWithT(t)
	g.Expect(seconds(nil)).To(BeNil())
	g.Expect(seconds(&metav1.Duration{Duration: 90 * time.Second})).To(HaveValue(BeEquivalentTo(90)))
	g.Expect(seconds(&metav1.Duration{Duration: 999999 * time.Hour})).To(HaveValue(BeEquivalentTo(math.MaxInt32)))
}
