// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/config"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// chooser is a platform whose user-data format a test sets.
type chooser struct {
	platform.Platform
	chosen  platform.UserData
	err     error
	running bool
}

func (c *chooser) UserDataFormat(_ context.Context, _ client.Reader, _ platform.Pool, running bool) (platform.UserData, error) {
	c.running = running
	return c.chosen, c.err
}

// configuring returns the scope of an existing pool, up to its configuration.
func configuring(t *testing.T) (*world, *reconciliation, *chooser) {
	t.Helper()
	w, s := inMemory(t), configured(func(*reconciliation) {})
	s.Pool.Spec.Management.Replace, s.config = rolling(), config.Config{}
	s.HC.Status.KubeConfig = &corev1.LocalObjectReference{Name: "admin"}
	fixture.Create(t, w.client, append(fixture.Inputs("clusters"), s.Pool)...)
	c := &chooser{Platform: s.Platform, chosen: platform.UserData{Format: hyperv1.UserDataIgnition}}
	s.Platform = c
	return w, s, c
}

// holds creates a ConfigMap with a configuration.
func (s *world) holds(namespace, name, text string, labels map[string]string) {
	s.t.Helper()
	fixture.Create(s.t, s.client, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Data: map[string]string{"config": text}})
}

func machineConfig(name string) string {
	return "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: " + name + "}\nspec: {config: {ignition: {version: 3.2.0}}}\n"
}

func TestChooseFormat(t *testing.T) {
	const kept = hyperv1.NodePoolUserDataFormatAnnotation
	why := platform.UserData{Format: hyperv1.UserDataCloudConfig, Why: "as somebody says", Again: time.Hour}
	keep := why
	keep.Keep = "CloudConfig of a"
	for name, test := range map[string]struct {
		chosen        platform.UserData
		before, after string
		again         time.Duration
		waiting, told string
		format        hyperv1.UserDataFormat
	}{
		"When there is no choice, it should set no condition":                              {platform.UserData{Format: hyperv1.UserDataIgnition}, "", "", 0, "", "", hyperv1.UserDataIgnition},
		"When the platform gives a reason, the condition should contain it":                {why, "", "", time.Hour, "", "cloud-init, as somebody says", hyperv1.UserDataCloudConfig},
		"When the platform chooses Ignition for a reason, the condition should contain it": {platform.UserData{Format: hyperv1.UserDataIgnition, Why: "as I say"}, "", "", 0, "", "Ignition, as I say", hyperv1.UserDataIgnition},
		"When the choice is permanent, it should be recorded in an annotation":             {keep, "", keep.Keep, 0, "", "cloud-init", hyperv1.UserDataCloudConfig},
		"When another choice was recorded, it should be replaced":                          {keep, "Ignition of b", keep.Keep, 0, "", "cloud-init", hyperv1.UserDataCloudConfig},
		"When the choice is already recorded, it should check again later":                 {keep, keep.Keep, keep.Keep, time.Hour, "", "cloud-init", hyperv1.UserDataCloudConfig},
		"When the platform waits for MAAS, it should report that":                          {platform.UserData{Waiting: "for MAAS", Again: time.Minute}, "", "", time.Minute, "for MAAS", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, s, c := configuring(t)
			if test.before != "" {
				scope.Annotate(s.Pool, kept, test.before)
				w.Expect(w.client.Update(t.Context(), s.Pool)).To(Succeed())
			}
			c.chosen = test.chosen
			waiting, again, err := w.chooseFormat(t.Context(), s)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(waiting).To(Equal(test.waiting))
			w.Expect(again).To(Equal(test.again))
			w.Expect(s.config.Format).To(Equal(test.format))
			w.Expect(w.pool().Annotations[kept]).To(Equal(test.after))
			w.Expect(s.Conditions[hyperv1.NodePoolValidPlatformConfigConditionType].Message).To(ContainSubstring(test.told))
			w.Expect(s.Conditions).To(HaveLen(min(len(test.told), 1)))
			w.Expect(c.running).To(BeFalse())
			s.Machines = pass(scopetest.Machine("a", "x")).Machines
			_, _, err = w.chooseFormat(t.Context(), s)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(c.running).To(BeTrue(), "one machine is enough")
		})
	}
	t.Run("When the platform returns an error, it should return that error", func(t *testing.T) {
		w, s, c := configuring(t)
		c.err = errors.New("no answer")
		_, err := w.reconcileConfig(t.Context(), s)
		w.Expect(err).To(MatchError(c.err))
	})
}

func TestReconcileConfig(t *testing.T) {
	type outcome struct {
		reason, ready string
		after         time.Duration
		stopped       bool
	}
	for name, test := range map[string]struct {
		change func(*world, *reconciliation, *chooser)
		want   outcome
		told   string
	}{
		"When the configuration is valid, it should requeue when the platform requests it": {
			func(_ *world, _ *reconciliation, c *chooser) { c.chosen.Again = time.Hour }, outcome{"AsExpected", "", time.Hour, false}, ""},
		"When the platform waits, it should wait too": {
			func(_ *world, _ *reconciliation, c *chooser) { c.chosen = platform.UserData{Waiting: "for MAAS"} }, outcome{"ValidationFailed", "WaitingForControlPlane", 5 * time.Second, true}, "for MAAS"},
		"When a ConfigMap is missing, it should name the ConfigMap": {
			func(_ *world, s *reconciliation, _ *chooser) {
				s.Pool.Spec.Config = []corev1.LocalObjectReference{{Name: "gone"}}
			},
			outcome{"ValidationFailed", "ValidationFailed", 20 * time.Second, true}, "clusters/gone"},
		"When a ConfigMap has no config key, it should name the key": {func(w *world, s *reconciliation, _ *chooser) {
			w.holds("clusters", "empty", "", nil)
			s.Pool.Spec.Config = []corev1.LocalObjectReference{{Name: "empty"}}
		}, outcome{"ValidationFailed", "ValidationFailed", 20 * time.Second, true}, `clusters/empty has no key "config"`},
		"When a ConfigMap contains another kind, it should name the ConfigMap": {func(w *world, s *reconciliation, _ *chooser) {
			w.holds("clusters", "bad", "kind: Deployment", nil)
			s.Pool.Spec.Config = []corev1.LocalObjectReference{{Name: "bad"}}
		}, outcome{"ValidationFailed", "ValidationFailed", 20 * time.Second, true}, "clusters/bad"},
		"When the proxy of the cluster is invalid, it should name the cluster": {func(_ *world, s *reconciliation, _ *chooser) {
			s.HC.Spec.Configuration = &hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{HTTPProxy: "no URL at all\n"}}
		}, outcome{"ValidationFailed", "ValidationFailed", 20 * time.Second, true}, "HostedCluster demo"},
		"When the release does not have the OS image stream, it should report an invalid configuration": {func(_ *world, s *reconciliation, _ *chooser) {
			s.Release = releaseinfo.New("r", releaseinfo.Payload{Version: "4.20.1", Components: map[string]string{"haproxy-router": "h"}})
			s.Pool.Spec.OSImageStream = &hyperv1.OSImageStreamReference{Name: "rhel-10"}
		}, outcome{"ValidationFailed", "ValidationFailed", 20 * time.Second, true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, s, c := configuring(t)
			test.change(w, s, c)
			result, err := w.reconcileConfig(t.Context(), s)
			got := s.Conditions[hyperv1.NodePoolValidMachineConfigConditionType]
			w.Expect(got.Message).To(ContainSubstring(test.told))
			w.Expect(outcome{got.Reason, s.Conditions[hyperv1.NodePoolReadyConditionType].Reason, result.RequeueAfter, errors.Is(err, phase.ErrStop)}).To(Equal(test.want))
			w.Expect(got.Status == metav1.ConditionTrue).To(Equal(!test.want.stopped))
			w.Expect(s.config.Hash != "").To(Equal(!test.want.stopped))
		})
	}
}

// TestConfigDocuments checks that the order of ConfigMaps does not matter.
func TestConfigDocuments(t *testing.T) {
	w, s, _ := configuring(t)
	w.holds("clusters", "two", machineConfig("b")+"---\n"+machineConfig("a"), nil)
	w.holds("clusters", "one", machineConfig("c"), nil)
	s.Pool.Spec.Config = []corev1.LocalObjectReference{{Name: "two"}, {Name: "one"}}
	_, err := w.reconcileConfig(t.Context(), s)
	w.Expect(err).NotTo(HaveOccurred())
	first := s.config
	w.Expect(first.Raw).To(MatchRegexp(`(?s)name: a\b.*\n---\n.*name: b\b.*\n---\n.*name: c\b`))
	w.Expect(first.TrustBundle).To(HavePrefix("-----BEGIN"))
	w.Expect(first.Hash).NotTo(Equal(first.HashWithoutVersion))
	s.Pool.Spec.Config = []corev1.LocalObjectReference{{Name: "one"}, {Name: "two"}}
	_, err = w.reconcileConfig(t.Context(), s)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(s.config).To(Equal(first))
	w.Expect(s.Conditions[hyperv1.NodePoolUpdatingConfigConditionType].Message).To(ContainSubstring(first.HashWithoutVersion))
}

// TestOpenShiftDocuments checks that the control plane's own parts are included, and that the reconcile waits for
// them.
func TestOpenShiftDocuments(t *testing.T) {
	w, s, _ := configuring(t)
	s.Release = fixture.Payloads()[fixture.OCPImage]
	w.Expect(w.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "admin"},
		Data: map[string][]byte{"kubeconfig": []byte(guestKubeconfig)}})).To(Succeed())
	w.holds(w.hosted(), "core-1", machineConfig("core-1"), map[string]string{coreConfigLabel: "true"})
	w.holds(w.hosted(), "not-core", machineConfig("not-core"), map[string]string{coreConfigLabel: "false"})
	_, waiting, err := w.documents(t.Context(), s)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(waiting).To(ContainSubstring("expected 2 core ignition configs, found 1"))

	w.holds(w.hosted(), "core-2", machineConfig("core-2"), map[string]string{coreConfigLabel: "true"})
	w.holds(w.hosted(), "tuned", machineConfig("tuned"), map[string]string{tunedGeneratedLabel: "true", hyperv1.NodePoolAnnotation: "demo"})
	w.holds(w.hosted(), "others", machineConfig("others"), map[string]string{tunedGeneratedLabel: "true", hyperv1.NodePoolAnnotation: "other"})
	w.holds(w.hosted(), "by-hand", machineConfig("by-hand"), map[string]string{tunedGeneratedLabel: "false", hyperv1.NodePoolAnnotation: "demo"})
	w.holds("clusters", "user", machineConfig("user"), nil)
	s.Pool.Spec.Config = []corev1.LocalObjectReference{{Name: "user"}}
	documents, waiting, err := w.documents(t.Context(), s)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(waiting).To(BeEmpty())
	w.Expect(documents).To(ConsistOf(ContainSubstring("20-apiserver-haproxy"), ContainSubstring("name: core-1"), ContainSubstring("name: core-2"),
		ContainSubstring("name: tuned"), ContainSubstring("name: user")))

	s.config.Raw = "the payload's own ignition-server reads it"
	w.Expect(s.checkConfig()).To(Succeed())
}

func TestNodeImagesAndApplier(t *testing.T) {
	g, s := NewWithT(t), configured(func(*reconciliation) {})
	g.Expect(s.nodeImages()).To(BeEmpty())
	s.Release = releaseinfo.New("r", releaseinfo.Payload{Version: "1.36.3", Components: map[string]string{"pod": "p", "other": "o", "node": "n"}})
	g.Expect(s.nodeImages()).To(Equal([]string{"n", "p"}))
	g.Expect(s.applier()).To(Equal(nodeinput.ByIgnition))
	s.config.Format = hyperv1.UserDataCloudConfig
	g.Expect(s.applier()).To(Equal(nodeinput.ByNodeAgent))
}

// TestCheckConfig checks that a configuration is rejected if it blocks a registry that nodes need, or if a mirror is
// invalid.
func TestCheckConfig(t *testing.T) {
	blocked := func(s *reconciliation, registry string) {
		s.HC.Spec.Configuration = &hyperv1.ClusterConfiguration{Image: &configv1.ImageSpec{RegistrySources: configv1.RegistrySources{BlockedRegistries: []string{registry}}}}
	}
	for name, test := range map[string]struct {
		change func(*reconciliation)
		told   string
	}{
		"When there is no configuration, it should return no error":                       {func(s *reconciliation) { s.config.Raw = "" }, ""},
		"When the merged configuration is invalid, it should name spec.config as a whole": {func(s *reconciliation) { s.config.Raw = "kind: Deployment" }, "spec.config together"},
		"When the registry of a node image is blocked, it should name the cluster": {func(s *reconciliation) {
			blocked(s, "registry.example")
			s.Release = releaseinfo.New("r", releaseinfo.Payload{Version: "1.36.3", Distribution: releaseinfo.Kubernetes, Components: map[string]string{"node": "registry.example/node:1"}})
		}, "HostedCluster demo"},
		"When another registry is blocked, it should return no error": {func(s *reconciliation) { blocked(s, "elsewhere.example") }, ""},
		"When a mirror is invalid, it should name the cluster": {func(s *reconciliation) {
			s.HC.Spec.ImageContentSources = []hyperv1.ImageContentSource{{Source: "registry.example/a", Mirrors: []string{"no mirror"}}}
		}, "HostedCluster demo"},
		"When a source is invalid, it should name the cluster": {func(s *reconciliation) {
			s.HC.Spec.ImageContentSources = []hyperv1.ImageContentSource{{Source: "no source", Mirrors: []string{"mirror.example/a"}}}
		}, "HostedCluster demo"},
		"When a mirror is valid, it should return no error": {func(s *reconciliation) {
			s.HC.Spec.ImageContentSources = []hyperv1.ImageContentSource{{Source: "registry.example/a", Mirrors: []string{"mirror.example/a"}}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), configured(func(s *reconciliation) { s.config.Raw = "" })
			test.change(s)
			err := s.checkConfig()
			if test.told == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(test.told)))
		})
	}
}
