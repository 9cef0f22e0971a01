// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/hypershift-operator/release"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/tenantlimits"
)

// released returns a scope of an existing pool, reconciled up to its release.
func released(refused refusals, change func(*reconciliation)) (*reconciliation, *Reconciler) {
	s := onMAAS(pass())
	s.Release = nil
	s.HC.Spec.ImageContentSources = []hyperv1.ImageContentSource{{Source: "registry.example", Mirrors: []string{"mirror.example"}}}
	if change != nil {
		change(s)
	}
	return s, on(refused, append(fixture.Inputs("clusters"), s.Pool.DeepCopy())...)
}

func TestReconcileRelease(t *testing.T) {
	g := NewWithT(t)
	s, r := released(nil, nil)
	result, err := r.reconcileRelease(t.Context(), s)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result).To(Equal(ctrl.Result{}))
	g.Expect(s.Release).To(BeIdenticalTo(r.Releases.(fixture.Releases)[fixture.ReleaseImage]))
	g.Expect(s.says(hyperv1.NodePoolValidReleaseImageConditionType)).To(And(HavePrefix("True/AsExpected: "), HaveSuffix(" 1.36.3")))
	g.Expect(s.says(hyperv1.NodePoolSupportedVersionSkewConditionType)).To(HavePrefix("True/"))
	g.Expect(s.says(hyperv1.NodePoolValidPlatformConfigConditionType)).To(HavePrefix("True/"))
	g.Expect(s.says(hyperv1.NodePoolReadyConditionType)).To(BeEmpty())
	g.Expect(s.controlPlaneVersion).To(Equal("1.36.3"))
	g.Expect(s.pullSecret).To(Equal([]byte(`{"auths":{}}`)))
	g.Expect(s.access).To(Equal(release.Access{
		PullSecret: s.pullSecret, TrustBundle: []byte("-----BEGIN CERTIFICATE-----\n"), Mirrors: s.HC.Spec.ImageContentSources,
	}))
}

func TestReconcileReleaseRefuses(t *testing.T) {
	const ready, valid = hyperv1.NodePoolReadyConditionType, hyperv1.NodePoolValidReleaseImageConditionType
	for name, test := range map[string]struct {
		refused refusals
		change  func(*reconciliation)
		limits  *tenantlimits.Limits
		says    string
	}{
		"the image is unknown":                          {nil, func(s *reconciliation) { s.Pool.Spec.Release.Image = "registry.example/what" }, nil, "manifest unknown"},
		"the administrator does not allow the registry": {nil, nil, &tenantlimits.Limits{Registries: []string{"quay.io"}}, "spec.release.image"},
		"there is no pull secret":                       {nil, func(s *reconciliation) { s.HC.Spec.PullSecret.Name = "none" }, nil, "clusters/none is missing"},
		"the pull secret has no credentials":            {nil, func(s *reconciliation) { s.HC.Spec.PullSecret.Name = fixture.SSHKey }, nil, corev1.DockerConfigJsonKey},
		"the pull secret cannot be read":                {refusals{"get Secret"}, nil, nil, errRefused.Error()},
		"the trust bundle cannot be read":               {refusals{"get ConfigMap"}, nil, nil, errRefused.Error()},
		"the trust bundle does not exist":               {nil, func(s *reconciliation) { s.HC.Spec.AdditionalTrustBundle.Name = "none" }, nil, "ConfigMap clusters/none"},
		"the control plane cannot be read":              {refusals{"get HostedControlPlane"}, nil, nil, errRefused.Error()},
		"the control plane's release is unknown":        {nil, func(s *reconciliation) { s.HC.Spec.Release.Image = "registry.example/what" }, nil, "manifest unknown"},
	} {
		t.Run("When "+name+", it should report the reason and retry", func(t *testing.T) {
			for _, paused := range []bool{false, true} {
				g := NewWithT(t)
				s, r := released(test.refused, test.change)
				r.Limits = test.limits
				if paused {
					s.Pool.Spec.PausedUntil = ptr.To("true")
				}
				result, err := r.reconcileRelease(t.Context(), s)
				g.Expect(err).To(MatchError(phase.ErrStop))
				g.Expect(result).To(Equal(ctrl.Result{RequeueAfter: 20 * time.Second}))
				g.Expect(s.says(valid)).To(And(HavePrefix("False/ValidationFailed: "), ContainSubstring(test.says)))
				if paused {
					g.Expect(s.says(ready)).To(BeEmpty(), "a paused pool is left as it is")
					continue
				}
				g.Expect(s.says(ready)).To(And(HavePrefix("False/ValidationFailed: "), ContainSubstring(test.says)))
			}
		})
	}
}

// TestReleaseLooksOn checks the conditions that depend on the release alone.
func TestReleaseLooksOn(t *testing.T) {
	t.Run("When the platform rejects the pool, it should stop and report the release as valid", func(t *testing.T) {
		g := NewWithT(t)
		s, r := released(nil, func(s *reconciliation) { s.Platform = &faulty{fault: errRefused} })
		_, err := r.reconcileRelease(t.Context(), s)
		g.Expect(err).To(MatchError(phase.ErrStop))
		g.Expect(s.says(hyperv1.NodePoolValidReleaseImageConditionType)).To(HavePrefix("True/"))
		g.Expect(s.says(hyperv1.NodePoolValidPlatformConfigConditionType)).To(HavePrefix("False/ValidationFailed: "))
	})
	t.Run("When the release has no autoscaler, a pool with autoscaling should report it", func(t *testing.T) {
		g := NewWithT(t)
		s, r := released(nil, func(s *reconciliation) { s.Pool.Spec.AutoScaling = &hyperv1.NodePoolAutoScaling{Max: 3} })
		_, err := r.reconcileRelease(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.says(hyperv1.NodePoolAutoscalingEnabledConditionType)).To(HavePrefix("False/ValidationFailed: "))
	})
}

func TestRememberedRelease(t *testing.T) {
	g := NewWithT(t)
	s, r := released(nil, func(s *reconciliation) {
		s.Pool.Status.ResolvedRelease = &hyperv1.NodePoolResolvedRelease{Image: fixture.ReleaseImage,
			PinnedImage: "registry.example/release@sha256:gone"}
	})
	err := r.lookup(t.Context(), s)
	g.Expect(err).To(MatchError(And(ContainSubstring("manifest unknown"), ContainSubstring(fixture.ReleaseImage))))
	g.Expect(s.Release).To(BeNil())

	s.Pool.Status.ResolvedRelease = nil
	g.Expect(r.lookup(t.Context(), s)).To(Succeed())
	g.Expect(s.hcp).To(BeNil())
	s.Pool.Spec.Release.Image = "registry.example/what"
	g.Expect(r.lookup(t.Context(), s)).To(MatchError(Not(ContainSubstring("meant"))), "the pull spec itself says nothing of another")
}

func TestObserveControlPlane(t *testing.T) {
	g, s := NewWithT(t), pass()
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: inHosted(fixture.ClusterName, "a", "b")}
	g.Expect(on(nil, hcp).observeControlPlane(t.Context(), s)).To(Succeed())
	g.Expect(s.hcp.Annotations).To(Equal(hcp.Annotations))
	s = pass()
	g.Expect(on(nil).observeControlPlane(t.Context(), s)).To(Succeed())
	g.Expect(s.hcp).To(BeNil())
}

func TestTrustBundleOfNone(t *testing.T) {
	g, s := NewWithT(t), pass()
	s.HC.Spec.AdditionalTrustBundle = nil
	bundle, err := on(refusals{"get ConfigMap"}).trustBundle(t.Context(), s)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bundle).To(BeEmpty())
	s.HC.Spec.AdditionalTrustBundle = &corev1.LocalObjectReference{Name: "ca"}
	bundle, err = on(refusals{"get ConfigMap"}).trustBundle(t.Context(), s)
	g.Expect(err).To(MatchError(errRefused))
	g.Expect(bundle).To(BeEmpty())
}

func TestRequireIgnition(t *testing.T) {
	endpoint, config := string(hyperv1.IgnitionEndpointAvailable), hyperv1.NodePoolValidMachineConfigConditionType
	ca := &corev1.Secret{ObjectMeta: inHosted(naming.IgnitionServerCA), Data: map[string][]byte{corev1.TLSCertKey: []byte("CA")}}
	empty := &corev1.Secret{ObjectMeta: ca.ObjectMeta}
	for name, test := range map[string]struct {
		secret         client.Object
		endpoint       string
		kubeconfig     bool
		says, of, with string
	}{
		"everything exists":      {ca, "ign.example", true, "", endpoint, ""},
		"there is no endpoint":   {ca, "", true, "False/IgnitionEndpointMissing: ", endpoint, "(PodsFailing): image not found"},
		"there is no CA":         {nil, "ign.example", true, "False/IgnitionCACertMissing: ", endpoint, ""},
		"the CA is empty":        {empty, "ign.example", true, "False/IgnitionCACertMissing: ", endpoint, ""},
		"there is no kubeconfig": {ca, "ign.example", false, "False/KubeconfigMissing: ", config, ""},
	} {
		t.Run("When "+name+", it should report exactly what is missing", func(t *testing.T) {
			g, s, r := NewWithT(t), pass(), on(nil)
			if test.secret != nil {
				r = on(nil, test.secret.DeepCopyObject().(client.Object))
			}
			s.HC.Status.IgnitionEndpoint = test.endpoint
			s.HC.Status.Conditions = []metav1.Condition{{Type: endpoint, Status: metav1.ConditionFalse, Reason: "PodsFailing", Message: "image not found"}}
			if test.kubeconfig {
				s.HC.Status.KubeConfig = &corev1.LocalObjectReference{Name: "k"}
			}
			result, err := r.requireIgnition(t.Context(), s)
			g.Expect(s.says(test.of)).To(And(HavePrefix(test.says), ContainSubstring(test.with)))
			g.Expect(s.Cleared).To(HaveLen(map[bool]int{true: 1, false: 0}[test.says == "" || test.of == config]), "what is over is taken back")
			if test.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(result).To(Equal(ctrl.Result{}))
				g.Expect(s.Conditions).To(BeEmpty())
				g.Expect(string(s.ignitionCA)).To(Equal("CA"))
				return
			}
			g.Expect(err).To(MatchError(phase.ErrStop))
			g.Expect(result).To(Equal(ctrl.Result{RequeueAfter: 5 * time.Second}))
		})
	}
	t.Run("When the CA cannot be read, it should return an error", func(t *testing.T) {
		g, s := NewWithT(t), pass()
		s.HC.Status.IgnitionEndpoint = "ign.example"
		_, err := on(refusals{"get Secret"}).requireIgnition(t.Context(), s)
		g.Expect(err).To(MatchError(errRefused))
		g.Expect(s.Conditions).To(BeEmpty())
	})
}

func TestReleaseNotRemembered(t *testing.T) {
	for _, refused := range []string{"patch NodePool status", "patch NodePool"} {
		t.Run("When the server rejects "+refused+", it should return the error and set no condition", func(t *testing.T) {
			g := NewWithT(t)
			s, r := released(refusals{refused}, nil)
			r.Releases = fixture.Releases{fixture.ReleaseImage: releaseinfo.New(fixture.ReleaseImage, releaseinfo.Payload{
				Version: "1.36.3", Distribution: releaseinfo.Kubernetes, Digest: "sha256:1"})}
			_, err := r.reconcileRelease(t.Context(), s)
			g.Expect(err).To(MatchError(errRefused))
			g.Expect(s.Conditions).To(BeEmpty())
		})
	}
}
