// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/secrets"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// told drains the events of a recorder.
func told(recorder *events.FakeRecorder) []string {
	var all []string
	for len(recorder.Events) > 0 {
		all = append(all, <-recorder.Events)
	}
	slices.Sort(all)
	return all
}

// reported runs report for a cluster, and returns its scope and the error.
func (d *desk) reported(t *testing.T, failure error, mutate ...func(*scope)) (*scope, error) {
	t.Helper()
	hc := fixture.HostedCluster("clusters")
	d.Has(t, hc)
	s := newScope(hc)
	s.Now = now
	for _, m := range mutate {
		m(s)
	}
	return s, d.report(t.Context(), s, failure)
}

func TestReport(t *testing.T) {
	recorder := events.NewFakeRecorder(100)
	d := newDesk(fixture.HostedCluster("clusters"), &corev1.Secret{ObjectMeta: ours("clusters", "demo-admin-kubeconfig")})
	d.Recorder = recorder
	up := reporting(is("Available", "True", "AsExpected", ""))
	stored := func() *hyperv1.HostedCluster {
		hc := fixture.HostedCluster("clusters")
		d.Has(t, hc)
		return hc
	}
	t.Run("When the cluster is not available yet, it should write only the status", func(t *testing.T) {
		g := NewWithT(t)
		_, err := d.reported(t, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.Wrote).To(Equal([]string{"update status v1beta1.HostedCluster clusters/demo"}))
		g.Expect(stored().Status.KubeConfig).To(Equal(&corev1.LocalObjectReference{Name: "demo-admin-kubeconfig"}))
		g.Expect(stored().Annotations).NotTo(HaveKey(hyperv1.HasBeenAvailableAnnotation))
		g.Expect(told(recorder)).To(ContainElement(HavePrefix("Normal WaitingForAvailable Available is False: ")))
	})
	t.Run("When nothing has changed, it should write nothing and record no events", func(t *testing.T) {
		d.Wrote = nil
		_, err := d.reported(t, nil)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(d.Wrote).To(BeEmpty())
		NewWithT(t).Expect(told(recorder)).To(BeEmpty())
	})
	t.Run("When the status cannot be written, it should return an error and record no events", func(t *testing.T) {
		g := NewWithT(t)
		d.Refuse = "update status"
		_, err := d.reported(t, nil, up)
		g.Expect(err).To(MatchError(errNotNow))
		g.Expect(err).To(MatchError(ContainSubstring("HostedCluster clusters/demo")))
		g.Expect(told(recorder)).To(BeEmpty())
		g.Expect(d.Wrote).To(BeEmpty(), "it would have been available in nobody's eyes")
	})
	t.Run("When the annotation cannot be written, it should return an error and retry", func(t *testing.T) {
		d.Refuse = "patch v1beta1.HostedCluster"
		_, err := d.reported(t, nil, up)
		NewWithT(t).Expect(err).To(MatchError(errNotNow))
		d.Refuse, d.Wrote = "", nil
		_, err = d.reported(t, nil, up)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(d.Wrote).To(Equal([]string{"patch v1beta1.HostedCluster clusters/demo"}))
		NewWithT(t).Expect(stored().Annotations).To(HaveKeyWithValue(hyperv1.HasBeenAvailableAnnotation, "true"))
	})
	t.Run("When the cluster was available before, it should not write the annotation again", func(t *testing.T) {
		d.Wrote = nil
		_, err := d.reported(t, nil, up)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(d.Wrote).To(BeEmpty())
	})
	t.Run("When the cluster no longer exists, it should return no error", func(t *testing.T) {
		NewWithT(t).Expect(d.Direct.Delete(t.Context(), stored())).To(Succeed())
		_, err := d.reported(t, nil)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
}

// TestReportOfWhatCannotBeRead checks that a value that cannot be read stays in the status.
func TestReportOfWhatCannotBeRead(t *testing.T) {
	before := func() *hyperv1.HostedCluster {
		hc := fixture.HostedCluster("clusters")
		hc.Status.KubeConfig = &corev1.LocalObjectReference{Name: "a"}
		hc.Status.CustomKubeconfig = &corev1.LocalObjectReference{Name: "b"}
		hc.Status.KubeadminPassword = &corev1.LocalObjectReference{Name: "c"}
		hc.Status.IgnitionEndpoint = "ignition.example:1"
		return hc
	}
	for refuse, kept := range map[string]func(hyperv1.HostedClusterStatus) any{
		"get v1.Secret clusters/demo-admin-kubeconfig":        func(s hyperv1.HostedClusterStatus) any { return s.KubeConfig },
		"get v1.Secret clusters/demo-custom-admin-kubeconfig": func(s hyperv1.HostedClusterStatus) any { return s.CustomKubeconfig },
		"get v1.Secret clusters/demo-kubeadmin-password":      func(s hyperv1.HostedClusterStatus) any { return s.KubeadminPassword },
		"get v1.Deployment clusters-demo/ignition-server":     func(s hyperv1.HostedClusterStatus) any { return s.IgnitionEndpoint },
		"get v1.Service clusters-demo/ignition-server-proxy":  func(s hyperv1.HostedClusterStatus) any { return s.IgnitionEndpoint },
	} {
		for _, mutate := range map[string]func(*scope){"": func(*scope) {}, "available": reporting(is("Available", "True", "AsExpected", ""))} {
			t.Run("When the server refuses to "+refuse+", the status should keep the last value", func(t *testing.T) {
				g, d := NewWithT(t), newDesk(before())
				d.Refuse = refuse
				s, err := d.reported(t, errors.New("a phase failed"), mutate)
				g.Expect(err).To(MatchError(errNotNow))
				g.Expect(err).NotTo(MatchError(ContainSubstring("a phase failed")), "the driver returns that")
				g.Expect(kept(s.HC.Status)).To(Equal(kept(before().Status)), "as it was")
				said := meta.FindStatusCondition(s.HC.Status.Conditions, "ReconciliationSucceeded")
				g.Expect(said.Message).To(And(ContainSubstring("not now"), ContainSubstring("a phase failed")))
				var others int
				for _, is := range []bool{s.HC.Status.KubeConfig == nil, s.HC.Status.CustomKubeconfig == nil, s.HC.Status.KubeadminPassword == nil, s.HC.Status.IgnitionEndpoint == ""} {
					if is {
						others++
					}
				}
				g.Expect(others).To(Equal(3), "all others are known to be gone")
			})
		}
	}
	t.Run("When the status cannot be written either, it should return both errors", func(t *testing.T) {
		d := newDesk(before())
		d.Refuse = "e"
		_, err := d.reported(t, nil)
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("demo-admin-kubeconfig"), ContainSubstring("writing the status"))))
	})
	t.Run("When the namespace belongs to another cluster, the status should not report its objects", func(t *testing.T) {
		d := newDesk(fixture.HostedCluster("clusters"), nodePortService("ignition-server", 31000))
		s, err := d.reported(t, nil, func(s *scope) { s.Refused = "it is another's" })
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(s.HC.Status.IgnitionEndpoint).To(BeEmpty())
	})
}

// TestStatusOfAControlPlane checks what a HostedCluster copies from the status of its control plane.
func TestStatusOfAControlPlane(t *testing.T) {
	version := &hyperv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{Version: "1.36.3"}}}
	hcp := hyperv1.HostedControlPlaneStatus{
		ControlPlaneEndpoint: hyperv1.APIEndpoint{Host: "192.0.2.1", Port: 6443}, OAuthCallbackURLTemplate: "https://oauth.example",
		Platform: &hyperv1.PlatformStatus{}, Configuration: &hyperv1.ConfigurationStatus{}, VersionStatus: version,
		ControlPlaneVersion: hyperv1.ControlPlaneVersionStatus{Desired: configv1.Release{Version: "1.36.3"}},
		AutoNode:            hyperv1.AutoNodeStatus{NodeCount: ptr.To[int32](2)},
		SecretEncryption:    hyperv1.SecretEncryptionStatus{History: []hyperv1.EncryptionMigrationHistory{{}}},
	}
	want := hyperv1.HostedClusterStatus{
		ControlPlaneEndpoint: hcp.ControlPlaneEndpoint, OAuthCallbackURLTemplate: hcp.OAuthCallbackURLTemplate, Platform: hcp.Platform, Configuration: hcp.Configuration,
		Version: version, ControlPlaneVersion: hcp.ControlPlaneVersion, AutoNode: hcp.AutoNode, SecretEncryption: hcp.SecretEncryption,
		KubeConfig: &corev1.LocalObjectReference{Name: "a"}, CustomKubeconfig: &corev1.LocalObjectReference{Name: "b"},
		KubeadminPassword: &corev1.LocalObjectReference{Name: "c"}, IgnitionEndpoint: "192.0.2.1:31000", PayloadArch: hyperv1.Multi,
	}
	full := func(s *scope) {
		s.HCP = &hyperv1.HostedControlPlane{Status: hcp}
		s.wanted = fixture.Payloads()[fixture.OCPImage]
		s.access = secrets.Names{Kubeconfig: want.KubeConfig, CustomKubeconfig: want.CustomKubeconfig, KubeadminPassword: want.KubeadminPassword}
		s.ignitionEndpoint = want.IgnitionEndpoint
	}
	emptied := want
	emptied.Platform, emptied.Configuration, emptied.OAuthCallbackURLTemplate = nil, nil, ""
	emptied.ControlPlaneVersion, emptied.AutoNode, emptied.SecretEncryption = hyperv1.ControlPlaneVersionStatus{}, hyperv1.AutoNodeStatus{}, hyperv1.SecretEncryptionStatus{}
	for name, test := range map[string]struct {
		change func(*scope)
		want   hyperv1.HostedClusterStatus
	}{
		"When the control plane reports everything, the cluster should report the same": {full, want},
		"When the control plane is gone, the cluster should keep the last status":       {func(s *scope) { full(s); s.HC.Status, s.HCP, s.wanted = want, nil, nil }, want},
		"When a new control plane reports nothing, only the address and version should be kept": {func(s *scope) {
			full(s)
			s.HC.Status, s.HCP, s.wanted = want, &hyperv1.HostedControlPlane{}, nil
		}, emptied},
	} {
		t.Run(name, func(t *testing.T) {
			got := computeStatus(withScope(test.change))
			got.Conditions = nil
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestPayloadArch(t *testing.T) {
	for arch, want := range map[string]hyperv1.PayloadArchType{"amd64": hyperv1.AMD64, "arm64": hyperv1.ARM64, releaseinfo.ArchitectureMulti: hyperv1.Multi} {
		payload := releaseinfo.New("a", releaseinfo.Payload{Architecture: arch})
		NewWithT(t).Expect(payloadArch(payload)).To(Equal(want), arch)
	}
}

// TestKeptConditions checks that conditions that no phase set stay as they were, and that conditions without a subject
// are removed.
func TestKeptConditions(t *testing.T) {
	last := []metav1.Condition{is("PlatformProviderSupported", "False", "A", "old"), is("PlatformCredentialsFound", "False", "B", "old")}
	s := withScope(func(s *scope) { s.HC.Status.Conditions = slices.Clone(last) })
	s.Clear(hyperv1.PlatformProviderSupported)
	g, got := NewWithT(t), computeStatus(s).Conditions
	g.Expect(meta.FindStatusCondition(got, "PlatformProviderSupported")).To(BeNil())
	g.Expect(meta.FindStatusCondition(got, "PlatformCredentialsFound").Message).To(Equal("old"))
	g.Expect(s.HC.Status.Conditions).To(Equal(last), "what was written last is compared with what is written now")
}

func TestAnnounce(t *testing.T) {
	long := strings.Repeat("x", 901)
	for name, test := range map[string]struct {
		before, after []metav1.Condition
		available     string
		want          []string
	}{
		"nothing changed, it should emit no event":                       {[]metav1.Condition{is("A", "True", "R", "m")}, []metav1.Condition{is("A", "True", "R", "m")}, "", nil},
		"only the reason and message changed, it should emit no event":   {[]metav1.Condition{is("A", "True", "R", "m")}, []metav1.Condition{is("A", "True", "S", "n")}, "", nil},
		"a new condition is Unknown, it should emit no event":            {nil, []metav1.Condition{is("A", "Unknown", "R", "m")}, "", nil},
		"a condition becomes Unknown, it should emit an event":           {[]metav1.Condition{is("A", "True", "R", "m")}, []metav1.Condition{is("A", "Unknown", "S", "n")}, "", []string{"Normal S A is Unknown: n"}},
		"two conditions are new, it should emit an event for each":       {nil, []metav1.Condition{is("A", "True", "R", "m"), is("B", "False", "S", "n")}, "", []string{"Normal R A is True: m", "Normal S B is False: n"}},
		"one of two conditions is new, it should emit one event":         {[]metav1.Condition{is("A", "True", "R", "m")}, []metav1.Condition{is("A", "True", "R", "m"), is("B", "True", "S", "n")}, "", []string{"Normal S B is True: n"}},
		"the cluster was available before, it should emit a warning":     {nil, []metav1.Condition{is("Available", "False", "R", "m")}, "true", []string{"Warning R Available is False: m"}},
		"the cluster was never available, it should emit a normal event": {nil, []metav1.Condition{is("Available", "False", "R", "m")}, "false", []string{"Normal R Available is False: m"}},
		"the user has to fix a condition, it should emit a warning":      {nil, []metav1.Condition{is("ValidReleaseImage", "False", "R", "m")}, "", []string{"Warning R ValidReleaseImage is False: m"}},
		"the message is too long, it should truncate it":                 {nil, []metav1.Condition{is("A", "True", "R", long)}, "", []string{"Normal R A is True: " + long[:897] + "..."}},
		"new conditions without a message are good, it should emit no event": {[]metav1.Condition{is("C", "Unknown", "R", "m"), is("D", "False", "R", "m")},
			[]metav1.Condition{is("A", "True", "R", ""), is("Degraded", "False", "R", ""), is("C", "True", "R", ""), is("D", "True", "R", "")}, "", nil},
		"a new condition without a message is bad, it should emit an event with the reason": {nil, []metav1.Condition{is("A", "False", "R", "")}, "", []string{"Normal R A is False: R"}},
		"a condition recovers without a message, it should emit an event":                   {[]metav1.Condition{is("D", "False", "R", "m")}, []metav1.Condition{is("D", "True", "R", "")}, "true", []string{"Normal R D is True: R"}},
		"the cluster is available for the first time, it should emit an event":              {nil, []metav1.Condition{is("Available", "True", "R", "")}, "", []string{"Normal R Available is True: R"}},
		"the message has the maximum length, it should not truncate it":                     {nil, []metav1.Condition{is("A", "True", "R", long[:900])}, "", []string{"Normal R A is True: " + long[:900]}},
	} {
		t.Run("When "+name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(10)
			hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{hyperv1.HasBeenAvailableAnnotation: test.available}}}
			hc.Status.Conditions = test.after
			(&Reconciler{Recorder: recorder}).announce(hc, test.before)
			if diff := cmp.Diff(test.want, told(recorder)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestUsersMend lists the conditions whose failure always causes a warning.
func TestUsersMend(t *testing.T) {
	g := NewWithT(t)
	for _, conditionType := range []string{
		"ValidConfiguration", "SupportedHostedCluster", "ValidReleaseImage", "PlatformCredentialsFound", "UnmanagedEtcdAvailable",
		"ReconciliationSucceeded", "ValidHostedControlPlaneConfiguration", "ValidReleaseInfo", "ValidIDPConfiguration",
		"ControlPlaneDataRetained",
	} {
		g.Expect(worse(is(hyperv1.ConditionType(conditionType), "False", "R", ""), false)).To(BeTrue(), conditionType)
		g.Expect(worse(is(hyperv1.ConditionType(conditionType), "Unknown", "R", ""), true)).To(BeFalse(), conditionType)
	}
	for _, end := range []hyperv1.ConditionType{hyperv1.ClusterVersionProgressing, hyperv1.HostedClusterProgressing, hyperv1.HostedClusterDegraded} {
		g.Expect(worse(is(end, "False", "R", ""), true)).To(BeFalse(), end)
	}
}

// nodePortService returns a Service in the hosted namespace.
func nodePortService(name string, ports ...int32) client.Object {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name}}
	for _, port := range ports {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Port: 443, NodePort: port})
	}
	return service
}
