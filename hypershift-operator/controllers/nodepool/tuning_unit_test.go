// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/testenv"
)

const runtimeDocument = "apiVersion: machineconfiguration.openshift.io/v1\nkind: ContainerRuntimeConfig\nmetadata: {name: logs}\nspec: {}\n"

// tuned returns a document for the node tuning operator, as the controller writes it.
func tuned(name string) string {
	return "apiVersion: tuned.openshift.io/v1\nkind: Tuned\nmetadata:\n  name: " + name + "\n"
}

// tuningPass returns an in-memory world and a scope of an OpenShift pool. The pool refers to ConfigMaps for tuning and
// for configuration, given by name and text.
func tuningPass(t *testing.T, tuning, configuration [][2]string) (*world, *reconciliation) {
	t.Helper()
	w, s := fleet(t)
	s.Release = fixture.Payloads()[fixture.OCPImage]
	for _, source := range tuning {
		s.Pool.Spec.TuningConfig = append(s.Pool.Spec.TuningConfig, w.configMap(source[0], "tuning", source[1]))
	}
	for _, source := range configuration {
		s.Pool.Spec.Config = append(s.Pool.Spec.Config, w.configMap(source[0], "config", source[1]))
	}
	return w, s
}

// handed returns a ConfigMap of the hosted control plane namespace.
func handed(name string, data map[string]string, labels ...string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name, Labels: map[string]string{}}, Data: data}
	for _, label := range labels {
		c.Labels[label] = "true"
	}
	return c
}

// TestTuningOfPool checks the ConfigMaps for the node tuning operator.
func TestTuningOfPool(t *testing.T) {
	profile := "apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\nmetadata:\n  name: fast\nspec:\n  cpu:\n    isolated: 2-7\n    reserved: 0-1\n"
	long := strings.Repeat("n", 60)
	of := func(document string) map[string]string { return map[string]string{"tuning": document} }
	for name, tc := range map[string]struct {
		sources [][2]string
		want    []*corev1.ConfigMap
		err     string
	}{
		"When no tuning is set, it should return nothing": {},
		"When several Tuneds are set, it should merge them into one ConfigMap, sorted by their content": {
			[][2]string{{"b", tuned("b")}, {"a", tuned("a")}},
			[]*corev1.ConfigMap{handed("tuned-demo", of(tuned("a")+"\n---\n"+tuned("b")), "hypershift.openshift.io/tuned-config")}, ""},
		"When only a profile is set, it should return only the profile's ConfigMap": {[][2]string{{"fast", profileDocument}},
			[]*corev1.ConfigMap{handed("fast-demo", of(profile), "hypershift.openshift.io/performanceprofile-config")}, ""},
		"When one ConfigMap has a Tuned and a profile, it should return both": {[][2]string{{"all", profileDocument + "---\n" + tuned("a")}},
			[]*corev1.ConfigMap{handed("tuned-demo", of(tuned("a")), "hypershift.openshift.io/tuned-config"),
				handed("all-demo", of(profile), "hypershift.openshift.io/performanceprofile-config")}, ""},
		"When a ConfigMap's name is long, it should shorten the pool's copy to fit a label": {[][2]string{{long, profileDocument}},
			[]*corev1.ConfigMap{handed(strings.Repeat("n", 49)+"-820f61f5-demo", of(profile), "hypershift.openshift.io/performanceprofile-config")}, ""},
		"When two profiles are set, it should return an error":             {[][2]string{{"one", profileDocument}, {"two", profileDocument}}, nil, "the ConfigMap two holds a PerformanceProfile"},
		"When the ConfigMap holds another kind, it should return an error": {[][2]string{{"wrong", kubeletDocument}}, nil, "spec.tuningConfig: the ConfigMap clusters/wrong cannot be used"},
		"When the ConfigMap has no tuning key, it should return an error":  {[][2]string{{"empty", ""}}, nil, "spec.tuningConfig: the ConfigMap clusters/empty has no key \"tuning\""},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := tuningPass(t, tc.sources, nil)
			got, err := w.tuning(t.Context(), s)
			if tc.err != "" {
				w.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(cmp.Diff(tc.want, got)).To(BeEmpty(), "-want +got")
		})
	}
}

// TestMirroredConfigs checks the ConfigMaps with which tuning must agree.
func TestMirroredConfigs(t *testing.T) {
	const kubelet, runtime, mirrored = "hypershift.openshift.io/kubeletconfig-config", "hypershift.openshift.io/containerruntimeconfig-config", "hypershift.openshift.io/mirrored-config"
	of := func(document string) map[string]string { return map[string]string{"config": document} }
	generated := func(name, pool string, labels ...string) *corev1.ConfigMap {
		c := handed(name, nil, labels...)
		c.Labels[hyperv1.NodePoolAnnotation] = pool
		return c
	}
	machineConfig := "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: motd}\n"
	for name, tc := range map[string]struct {
		sources [][2]string
		there   []*corev1.ConfigMap
		want    []*corev1.ConfigMap
		err     string
	}{
		"When no configuration is set, it should return nothing":     {},
		"When only a MachineConfig is set, it should return nothing": {sources: [][2]string{{"motd", machineConfig}}},
		"When kubelet and runtime configurations are set, it should return both": {sources: [][2]string{{"pods", kubeletDocument}, {"motd", machineConfig}, {"logs", runtimeDocument}},
			want: []*corev1.ConfigMap{handed("pods-demo", of(kubeletDocument), kubelet, mirrored), handed("logs-demo", of(runtimeDocument), runtime, mirrored)}},
		"When one ConfigMap has both, it should add both labels": {sources: [][2]string{{"both", kubeletDocument + "---\n" + runtimeDocument}},
			want: []*corev1.ConfigMap{handed("both-demo", of(kubeletDocument+"---\n"+runtimeDocument), kubelet, runtime, mirrored)}},
		"When a ConfigMap's name is long, it should shorten the copy's name to fit a label": {sources: [][2]string{{strings.Repeat("n", 60), runtimeDocument}},
			want: []*corev1.ConfigMap{handed(strings.Repeat("n", 49)+"-820f61f5-demo", of(runtimeDocument), runtime, mirrored)}},
		"When two KubeletConfigs are set, it should return an error": {sources: [][2]string{{"one", kubeletDocument}, {"two", kubeletDocument}}, err: "in the ConfigMaps one, two:"},
		"When tuning generated another KubeletConfig, it should return an error": {sources: [][2]string{{"one", kubeletDocument}},
			there: []*corev1.ConfigMap{generated("made", "demo", tunedGeneratedLabel, kubelet)}, err: "in the ConfigMaps one, made:"},
		"When only tuning generated a KubeletConfig, it should return nothing": {there: []*corev1.ConfigMap{generated("made", "demo", tunedGeneratedLabel, kubelet)}},
		"When ConfigMaps are another pool's or not generated KubeletConfigs, it should ignore them": {sources: [][2]string{{"one", kubeletDocument}},
			there: []*corev1.ConfigMap{generated("of-another", "other", tunedGeneratedLabel, kubelet), generated("of-tuned", "demo", tunedGeneratedLabel), generated("own", "demo", kubelet)},
			want:  []*corev1.ConfigMap{handed("one-demo", of(kubeletDocument), kubelet, mirrored)}},
		"When the configuration cannot be parsed, it should return an error": {sources: [][2]string{{"broken", ": no yaml"}}, err: "the ConfigMap clusters/broken holds a configuration"},
		"When the ConfigMap has no config key, it should return an error":    {sources: [][2]string{{"empty", ""}}, err: "spec.config: the ConfigMap clusters/empty has no key \"config\""},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := tuningPass(t, nil, tc.sources)
			for _, obj := range tc.there {
				fixture.Create(t, w.client, obj)
			}
			got, err := w.mirroredConfigs(t.Context(), s)
			if tc.err != "" {
				w.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(cmp.Diff(tc.want, got)).To(BeEmpty(), "-want +got")
		})
	}
	t.Run("When the generated ConfigMaps cannot be listed, it should return an error", func(t *testing.T) {
		w, s := tuningPass(t, nil, nil)
		w.Reconciler.Client = scopetest.Answering(w.client, "list v1.ConfigMapList .*", testenv.ErrRefused)
		_, err := w.mirroredConfigs(t.Context(), s)
		w.Expect(err).To(MatchError(testenv.ErrRefused))
	})
}

// TestHandOver checks that ConfigMaps that are no longer desired are deleted, and that those of another pool stay.
func TestHandOver(t *testing.T) {
	owned := func(c *corev1.ConfigMap, owner, pool string) *corev1.ConfigMap {
		scope.Annotate(c, hyperv1.NodePoolAnnotation, owner)
		c.Labels[hyperv1.NodePoolAnnotation] = pool
		return c
	}
	data := map[string]string{"tuning": "new"}
	for name, tc := range map[string]struct {
		answers string
		with    error
		fails   bool
		stays   []string
	}{
		"When all requests succeed, it should write the desired ConfigMaps and delete the others": {},
		"When one ConfigMap cannot be written, it should write the others and return an error": {
			answers: "(create|update) v1.ConfigMap .*/tuned-demo", with: testenv.ErrRefused, fails: true},
		"When one ConfigMap cannot be deleted, it should delete the others and return an error": {
			answers: "delete v1.ConfigMap .*/old-tuned", with: testenv.ErrRefused, fails: true, stays: []string{"old-tuned"}},
		"When a ConfigMap is already gone, it should succeed": {
			answers: "delete v1.ConfigMap .*/old-tuned", with: apierrors.NewNotFound(schema.GroupResource{}, "old-tuned"), stays: []string{"old-tuned"}},
		"When the existing ConfigMaps cannot be listed, it should return an error": {
			answers: "list v1.ConfigMapList .*", with: testenv.ErrRefused, fails: true, stays: []string{"old-tuned", "old-profile", "old-mirrored"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := tuningPass(t, nil, nil)
			fixture.Create(t, w.client,
				owned(handed("tuned-demo", map[string]string{"tuning": "old", "more": ""}, tunedLabel, "other"), "clusters/demo", "demo"),
				owned(handed("old-tuned", nil, tunedLabel), "clusters/demo", "demo"), owned(handed("old-profile", nil, performanceProfileLabel), "clusters/demo", "demo"),
				owned(handed("old-mirrored", nil, mirroredLabel), "clusters/demo", "demo"), owned(handed("of-another", nil, tunedLabel), "clusters/another", "another"),
				owned(handed("of-one-with-its-label", nil, tunedLabel), "clusters/another", "demo"), owned(handed("made-by-tuning", nil, tunedGeneratedLabel), "clusters/demo", "demo"))
			w.Reconciler.Client = w.client
			if tc.answers != "" {
				w.Reconciler.Client = scopetest.Answering(w.client, tc.answers, tc.with)
			}
			err := w.handOver(t.Context(), s, []*corev1.ConfigMap{handed("tuned-demo", data, tunedLabel), handed("fast-demo", data, performanceProfileLabel)})
			if tc.fails {
				w.Expect(err).To(MatchError(tc.with))
			} else {
				w.Expect(err).NotTo(HaveOccurred())
				w.Expect(look(w, &corev1.ConfigMap{}, "tuned-demo")).To(And(HaveField("Data", data),
					HaveField("Labels", map[string]string{tunedLabel: "true", hyperv1.NodePoolAnnotation: "demo"})))
			}
			made := look(w, &corev1.ConfigMap{}, "fast-demo")
			w.Expect(made.Data).To(Equal(data))
			w.Expect(made.Labels).To(Equal(map[string]string{performanceProfileLabel: "true", hyperv1.NodePoolAnnotation: "demo"}))
			w.Expect(made.Annotations).To(Equal(map[string]string{hyperv1.NodePoolAnnotation: "clusters/demo"}))
			list := &corev1.ConfigMapList{}
			w.Expect(w.client.List(t.Context(), list, client.InNamespace(w.hosted()))).To(Succeed())
			var names []string
			for _, c := range list.Items {
				names = append(names, c.Name)
			}
			w.Expect(names).To(ConsistOf(append(tc.stays, "tuned-demo", "fast-demo", "of-another", "of-one-with-its-label", "made-by-tuning")))
		})
	}
}

// TestReconcileTuning checks that nodes are not created until the tuning is valid.
func TestReconcileTuning(t *testing.T) {
	const valid, config = "ValidTuningConfig", "ValidMachineConfig"
	for name, tc := range map[string]struct {
		before    func(*world, *reconciliation)
		condition string
		want      metav1.Condition
		result    ctrl.Result
		err       error
		found     []string
	}{
		"When the tuning is valid, it should write the ConfigMaps": {condition: valid, want: metav1.Condition{Status: "True", Reason: "AsExpected"}, found: []string{"pods-demo", "tuned-demo"}},
		"When the release is Kubernetes, it should set no condition and write nothing": {
			before: func(_ *world, s *reconciliation) { s.Release = fixture.Payloads()[fixture.ReleaseImage] }, condition: valid},
		"When the tuning is invalid, it should report why and retry": {
			before: func(_ *world, s *reconciliation) { s.Pool.Spec.TuningConfig[0].Name = "nowhere" }, condition: valid,
			want: metav1.Condition{Status: "False", Reason: "ValidationFailed"}, result: ctrl.Result{RequeueAfter: releaseRetry}, err: phase.ErrStop},
		"When the configuration is invalid, it should report why and retry": {
			before: func(_ *world, s *reconciliation) { s.Pool.Spec.Config[0].Name = "nowhere" }, condition: config,
			want: metav1.Condition{Status: "False", Reason: "ValidationFailed"}, result: ctrl.Result{RequeueAfter: releaseRetry}, err: phase.ErrStop},
		"When the MachineDeployment cannot be read, it should return an error": {
			before: func(w *world, s *reconciliation) {
				s.Pool.Spec.TuningConfig[0].Name = "nowhere"
				w.Reconciler.Client = scopetest.Answering(w.client, "get .*MachineDeployment .*", testenv.ErrRefused)
			}, condition: valid, want: metav1.Condition{Status: "False", Reason: "ValidationFailed"}, result: ctrl.Result{RequeueAfter: releaseRetry}, err: testenv.ErrRefused},
		"When a ConfigMap cannot be written, it should return an error": {
			before: func(w *world, _ *reconciliation) {
				w.Reconciler.Client = scopetest.Answering(w.client, "create v1.ConfigMap .*/tuned-demo", testenv.ErrRefused)
			},
			condition: valid, want: metav1.Condition{Status: "True", Reason: "AsExpected"}, err: testenv.ErrRefused, found: []string{"pods-demo"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := tuningPass(t, [][2]string{{"one", tuned("a")}}, [][2]string{{"pods", kubeletDocument}})
			s.SetTrue(valid, "as before")
			if tc.before != nil {
				tc.before(w, s)
			}
			result, err := w.reconcileTuning(t.Context(), s)
			w.Expect(result).To(Equal(tc.result))
			if tc.err != nil {
				w.Expect(err).To(MatchError(tc.err))
			} else {
				w.Expect(err).NotTo(HaveOccurred())
			}
			got := s.Conditions[tc.condition]
			w.Expect([]any{got.Status, got.Reason}).To(Equal([]any{tc.want.Status, tc.want.Reason}))
			w.Expect(got.Message).NotTo(Equal("as before"))
			if tc.result != (ctrl.Result{}) {
				w.Expect(s.Conditions["Ready"].Reason).To(Equal("ValidationFailed"))
				w.Expect(s.Conditions["Ready"].Message).To(HaveSuffix(got.Message))
			}
			list := &corev1.ConfigMapList{}
			w.Expect(w.client.List(t.Context(), list, client.InNamespace(w.hosted()))).To(Succeed())
			var names []string
			for _, c := range list.Items {
				names = append(names, c.Name)
			}
			w.Expect(names).To(ConsistOf(tc.found))
		})
	}
}
