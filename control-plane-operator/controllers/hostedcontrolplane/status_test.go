// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	controlplanepki "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/support/releaseinfo"
)

var now = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

func done(name, version string) hyperv1.ControlPlaneComponent {
	c := hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Status.Version = version
	for _, t := range []hyperv1.ConditionType{hyperv1.ControlPlaneComponentAvailable, hyperv1.ControlPlaneComponentRolloutComplete} {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: string(t), Status: metav1.ConditionTrue, Reason: "AsExpected"})
	}
	return c
}

// healthy returns the state of a reconcile of a healthy control plane.
func healthy() (*scope, observed) {
	set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3)}, Status: appsv1.StatefulSetStatus{ReadyReplicas: 3}}
	kas := appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver"},
		Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
		}},
	}
	s := &scope{
		hcp:     fixture.ControlPlane(),
		infra:   &component.Infra{API: component.Endpoint{Host: "192.0.2.10", Port: 30443}},
		release: releaseinfo.New("", kubernetes("1.36.3")),
	}
	s.guestRelease = s.release
	o := observed{
		etcd: set, kas: &kas, deployments: []appsv1.Deployment{kas}, hasKubeconfig: true,
		components: []hyperv1.ControlPlaneComponent{
			done("etcd", "1.36.3"), done("kube-apiserver", "1.36.3"),
			done("kube-proxy", "1.36.3"), done("node-network", "1.36.3"), done("coredns", "1.36.3"),
		},
	}
	return s, o
}

// authority returns a signer with the given creation time and rotation steps. Each element of taken reports whether all
// pods have loaded that step.
func authority(name string, made time.Time, taken ...bool) corev1.Secret {
	secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
	rotation := pki.Rotation{Overlap: time.Hour}
	_, err := rotation.Ensure(&secret, made)
	rotation.Request = "once"
	for _, t := range taken {
		err = errors.Join(err, rotation.Advance(&secret, t, made))
	}
	if err != nil {
		panic(err)
	}
	return secret
}

func TestConditions(t *testing.T) {
	type change func(*scope, *observed)
	cases := []struct {
		name      string
		change    change
		condition hyperv1.ConditionType
		want      string
		available string
	}{
		{"all is well", func(*scope, *observed) {}, hyperv1.InfrastructureReady, "True/AsExpected", "True/AsExpected"},
		{"the address is unknown", func(s *scope, _ *observed) { s.infra, s.waiting = nil, "waiting" },
			hyperv1.InfrastructureReady, "False/WaitingOnInfrastructureReady", "False/WaitingOnInfrastructureReady"},
		{"publishing failed", func(s *scope, _ *observed) { s.infra, s.infraErr = nil, errors.New("forbidden") },
			hyperv1.InfrastructureReady, "Unknown/InfraStatusFailure", "False/InfraStatusFailure"},
		{"publishing fails for a moment under a control plane that serves", func(s *scope, _ *observed) {
			s.infra, s.infraErr = nil, errors.New("the object has been modified")
			s.hcp.Status.Conditions = []metav1.Condition{{Type: string(hyperv1.HostedControlPlaneAvailable), Status: metav1.ConditionTrue}}
		}, hyperv1.InfrastructureReady, "Unknown/InfraStatusFailure", "True/AsExpected"},
		{"a control plane with an invalid spec is paused", func(s *scope, _ *observed) {
			s.paused = true
			s.hcp.Status.Conditions = []metav1.Condition{{Type: string(hyperv1.ValidHostedControlPlaneConfiguration), Status: metav1.ConditionFalse, Reason: "Before"}}
		}, hyperv1.ValidHostedControlPlaneConfiguration, "False/Before", "False/Before"},
		{"certificates are not issued", func(s *scope, _ *observed) { s.pkiErr = errors.New("Secret named-cert not found") },
			hyperv1.HostedControlPlaneDegraded, "True/CertificatesFailed", "True/AsExpected"},
		{"the configuration is invalid", func(s *scope, _ *observed) { s.invalid = errors.New("no routes") },
			hyperv1.ValidHostedControlPlaneConfiguration, "False/InsufficientClusterCapabilities", "False/InsufficientClusterCapabilities"},
		{"there is no kubeconfig", func(_ *scope, o *observed) { o.hasKubeconfig = false },
			hyperv1.HostedControlPlaneAvailable, "False/KubeconfigWaitingForCreate", "False/KubeconfigWaitingForCreate"},
		{"etcd has no pods", func(_ *scope, o *observed) { o.etcd = nil },
			hyperv1.EtcdAvailable, "False/StatefulSetNotFound", "False/StatefulSetNotFound"},
		{"etcd has lost its quorum", func(_ *scope, o *observed) { o.etcd.Status.ReadyReplicas = 1 },
			hyperv1.EtcdAvailable, "False/EtcdWaitingForQuorum", "False/EtcdWaitingForQuorum"},
		{"etcd has lost one of three members", func(_ *scope, o *observed) { o.etcd.Status.ReadyReplicas = 2 },
			hyperv1.EtcdAvailable, "True/QuorumAvailable", "True/AsExpected"},
		{"etcd's StatefulSet is about to be replaced", func(s *scope, o *observed) {
			o.etcd.Status, o.etcd.DeletionTimestamp = appsv1.StatefulSetStatus{}, &metav1.Time{}
			s.hcp.Status.Conditions = []metav1.Condition{
				{Type: string(hyperv1.EtcdMembersHealthy), Status: metav1.ConditionTrue},
				{Type: string(hyperv1.EtcdAvailable), Status: metav1.ConditionTrue, Reason: "QuorumAvailable"}}
		}, hyperv1.EtcdAvailable, "True/QuorumAvailable", "True/AsExpected"},
		{"etcd's StatefulSet is new, and its members were not healthy", func(s *scope, o *observed) {
			o.etcd.Status = appsv1.StatefulSetStatus{}
			s.hcp.Status.Conditions = []metav1.Condition{{Type: string(hyperv1.EtcdAvailable), Status: metav1.ConditionTrue, Reason: "QuorumAvailable"}}
		}, hyperv1.EtcdAvailable, "False/EtcdWaitingForQuorum", "False/EtcdWaitingForQuorum"},
		{"the user provides the etcd", func(s *scope, o *observed) { s.hcp.Spec.Etcd.ManagementType = hyperv1.Unmanaged; o.etcd = nil },
			hyperv1.EtcdAvailable, "True/EtcdRunning", "True/AsExpected"},
		{"the user's etcd does not answer", func(s *scope, o *observed) {
			s.hcp.Spec.Etcd.ManagementType = hyperv1.Unmanaged
			o.ownEtcd = errors.New("refused")
		}, hyperv1.EtcdAvailable, "False/UnmanagedEtcdUnavailable", "False/UnmanagedEtcdUnavailable"},
		{"the Secret of the user's etcd is incomplete", func(s *scope, o *observed) {
			s.hcp.Spec.Etcd.ManagementType = hyperv1.Unmanaged
			o.ownEtcd = &controlplanepki.OwnEtcdError{Err: errors.New("no key")}
		}, hyperv1.EtcdAvailable, "False/UnmanagedEtcdMisconfigured", "False/UnmanagedEtcdMisconfigured"},
		{"the API server has no Deployment", func(_ *scope, o *observed) { o.kas = nil },
			hyperv1.KubeAPIServerAvailable, "False/NotFound", "False/NotFound"},
		{"the API server is not available", func(_ *scope, o *observed) { o.kas.Status.Conditions[0].Status = corev1.ConditionFalse },
			hyperv1.KubeAPIServerAvailable, "False/WaitingForAvailable", "False/WaitingForAvailable"},
		{"the load balancer does not answer", func(_ *scope, o *observed) { o.unhealthy = errors.New("timeout") },
			hyperv1.HostedControlPlaneAvailable, "False/KASLoadBalancerNotReachable", "False/KASLoadBalancerNotReachable"},
		{"a component has never been available", func(_ *scope, o *observed) { o.components[1].Status.Conditions = nil },
			hyperv1.HostedControlPlaneAvailable, "False/ControlPlaneComponentsNotAvailable", "False/ControlPlaneComponentsNotAvailable"},
		{"a component fails after all were available", func(s *scope, o *observed) {
			o.components[1].Status.Conditions = nil
			s.hcp.Status.Conditions = []metav1.Condition{{Type: string(hyperv1.HostedControlPlaneAvailable), Status: metav1.ConditionTrue}}
		}, hyperv1.HostedControlPlaneAvailable, "True/AsExpected", "True/AsExpected"},
		{"a Deployment has unavailable replicas", func(_ *scope, o *observed) { o.deployments[0].Status.UnavailableReplicas = 1 },
			hyperv1.HostedControlPlaneDegraded, "True/UnavailableReplicas", "True/AsExpected"},
		{"a Pod of the guest network cannot start", func(_ *scope, o *observed) {
			o.components[2].Status.Conditions[1] = metav1.Condition{
				Type: string(hyperv1.ControlPlaneComponentRolloutComplete), Status: metav1.ConditionFalse, Reason: "PodsFailing", Message: "pod x on node y",
			}
		}, hyperv1.HostedControlPlaneDegraded, "True/PodsFailing", "True/AsExpected"},
		{"the guest's DNS has never been available", func(_ *scope, o *observed) { o.components[4].Status.Conditions = nil },
			hyperv1.HostedControlPlaneAvailable, "True/AsExpected", "True/AsExpected"},
		{"the encryption key changes", func(_ *scope, o *observed) {
			o.encryption = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
				"hypershift.openshift.io/encryption-stage": "WritePromote", "hypershift.openshift.io/encryption-move": "2",
			}}}
		}, hyperv1.EtcdDataEncryptionUpToDate, "False/WritePromotionInProgress", "True/AsExpected"},
		{"all certificates are valid", func(_ *scope, o *observed) { o.secrets = []corev1.Secret{authority("root-ca", now)} },
			hyperv1.CertificatesValid, "True/AsExpected", "True/AsExpected"},
		{"a certificate was not renewed", func(_ *scope, o *observed) {
			o.secrets = []corev1.Secret{authority("root-ca", now.Add(29*24*time.Hour-pki.CAValidity))}
		}, hyperv1.CertificatesValid, "False/CertificatesExpiring", "True/AsExpected"},
		{"no signer rotates", func(_ *scope, o *observed) { o.secrets = []corev1.Secret{authority("root-ca", now)} },
			hyperv1.SignersUpToDate, "True/AsExpected", "True/AsExpected"},
		{"a new signer is not yet trusted", func(_ *scope, o *observed) { o.secrets = []corev1.Secret{authority("root-ca", now, false)} },
			hyperv1.SignersUpToDate, "False/TrustInProgress", "True/AsExpected"},
		{"a new signer starts to sign", func(_ *scope, o *observed) { o.secrets = []corev1.Secret{authority("root-ca", now, false, true)} },
			hyperv1.SignersUpToDate, "False/SigningInProgress", "True/AsExpected"},
		{"a previous signer is still trusted", func(_ *scope, o *observed) { o.secrets = []corev1.Secret{authority("root-ca", now, false, true, true)} },
			hyperv1.SignersUpToDate, "True/FormerTrusted", "True/AsExpected"},
		{"another owner's Secret is in the namespace", func(_ *scope, o *observed) { o.secrets = []corev1.Secret{authority("mine", now, false)} },
			hyperv1.SignersUpToDate, "True/AsExpected", "True/AsExpected"},
		{"the payload lacks images", func(s *scope, _ *observed) { s.missing = []string{"etcd"} },
			hyperv1.ValidReleaseInfo, "False/MissingReleaseImages", "True/AsExpected"},
		{"the registry denies access", func(s *scope, _ *observed) {
			s.releaseErr = &releaseinfo.Error{Reason: releaseinfo.ReasonUnauthorized, Err: errors.New("401")}
		}, hyperv1.ValidReleaseInfo, "False/Unauthorized", "True/AsExpected"},
	}
	for _, tc := range cases {
		t.Run("When "+tc.name+" the condition should report it, and Available whether users are served", func(t *testing.T) {
			g := NewWithT(t)
			s, o := healthy()
			tc.change(s, &o)
			next := status(s, o, now)
			read := func(t hyperv1.ConditionType) string {
				c := meta.FindStatusCondition(next.Conditions, string(t))
				g.Expect(c).NotTo(BeNil())
				return string(c.Status) + "/" + c.Reason
			}
			g.Expect(read(tc.condition)).To(Equal(tc.want))
			g.Expect(read(hyperv1.HostedControlPlaneAvailable)).To(Equal(tc.available))
			g.Expect(next.Ready).To(Equal(tc.available == "True/AsExpected"))
		})
	}
}

func TestStatus(t *testing.T) {
	t.Run("When nothing changes, the status should stay identical, so that it is not written", func(t *testing.T) {
		g := NewWithT(t)
		s, o := healthy()
		s.hcp.Status = status(s, o, now)
		s.served = s.hcp.Status.ServedAddresses // The next reconcile reads them from the status.
		s.hcp.Status = status(s, o, now.Add(time.Minute))
		g.Expect(status(s, o, now.Add(time.Hour))).To(Equal(s.hcp.Status))
	})
	t.Run("When a control plane has been initialized, it should stay initialized", func(t *testing.T) {
		g := NewWithT(t)
		s, o := healthy()
		s.hcp.Status = status(s, o, now)
		g.Expect(s.hcp.Status.Initialized).To(BeTrue())
		o.kas = nil
		next := status(s, o, now)
		g.Expect(next.Ready).To(BeFalse())
		g.Expect(next.Initialized).To(BeTrue())
	})
	t.Run("When a field has no effect in this distribution, the condition should name it once", func(t *testing.T) {
		g := NewWithT(t)
		s, o := healthy()
		s.hcp.Spec.FIPS = true
		s.hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{OAuth: &configv1.OAuthSpec{}}
		c := meta.FindStatusCondition(status(s, o, now).Conditions, string(hyperv1.ValidHostedControlPlaneConfiguration))
		g.Expect(c.Status).To(Equal(metav1.ConditionTrue))
		g.Expect(c.Message).To(HaveSuffix("without effect in the Kubernetes distribution: fips, configuration.oauth"))
	})
	t.Run("When a reconcile stops before the release check, it should keep the earlier release error", func(t *testing.T) {
		g := NewWithT(t)
		s, o := healthy()
		accepted := func() metav1.ConditionStatus {
			s.hcp.Status = status(s, o, now)
			return meta.FindStatusCondition(s.hcp.Status.Conditions, string(hyperv1.ClusterVersionReleaseAccepted)).Status
		}
		g.Expect(accepted()).To(Equal(metav1.ConditionTrue))
		s.releaseErr = errors.New("no such image")
		g.Expect(accepted()).To(Equal(metav1.ConditionFalse))
		s.release, s.releaseErr, s.pkiErr = nil, nil, errors.New("no signer")
		g.Expect(accepted()).To(Equal(metav1.ConditionFalse))
	})
	t.Run("When only the management components have reported, it should wait for the API server", func(t *testing.T) {
		g := NewWithT(t)
		s, o := healthy()
		all := o.components
		o.components = []hyperv1.ControlPlaneComponent{done("control-plane-operator", "1.36.3"), done("cluster-api", "1.36.3")}
		completed := func() configv1.UpdateState {
			s.hcp.Status = status(s, o, now)
			return s.hcp.Status.ControlPlaneVersion.History[0].State
		}
		completed()
		g.Expect(completed()).To(Equal(configv1.PartialUpdate))
		o.components = append(all, o.components...)
		g.Expect(completed()).To(Equal(configv1.CompletedUpdate))
	})
	t.Run("When the endpoint is no longer known, it should keep the last one", func(t *testing.T) {
		g := NewWithT(t)
		s, o := healthy()
		s.hcp.Status = status(s, o, now)
		s.infra = nil
		g.Expect(status(s, o, now).ControlPlaneEndpoint).To(Equal(hyperv1.APIEndpoint{Host: "192.0.2.10", Port: 30443}))
	})
}

func TestAdvance(t *testing.T) {
	release := func(version string) configv1.Release {
		return configv1.Release{Version: version, Image: "release:" + version}
	}
	t.Run("When a version is new, it should be partial, even if components report the old one as done", func(t *testing.T) {
		g := NewWithT(t)
		history := advance(nil, release("1.36.3"), true, now)
		g.Expect(history).To(HaveLen(1))
		g.Expect(history[0].State).To(Equal(configv1.PartialUpdate))
		g.Expect(history[0].CompletionTime.IsZero()).To(BeTrue())
	})
	t.Run("When a version is done, it should be completed once and stay completed", func(t *testing.T) {
		g := NewWithT(t)
		history := advance(advance(nil, release("1.36.3"), false, now), release("1.36.3"), true, now.Add(time.Minute))
		g.Expect(history[0].State).To(Equal(configv1.CompletedUpdate))
		again := advance(advance(history, release("1.36.3"), false, now.Add(time.Hour)), release("1.36.3"), true, now.Add(2*time.Hour))
		g.Expect(again).To(Equal(history))
	})
	t.Run("When a version is done, advance should not modify the history that it was given", func(t *testing.T) {
		g := NewWithT(t)
		before := advance(nil, release("1.36.3"), false, now)
		g.Expect(advance(before, release("1.36.3"), true, now.Add(time.Minute))).NotTo(Equal(before))
		g.Expect(before[0].State).To(Equal(configv1.PartialUpdate))
		g.Expect(fromGuest(toGuest(before))).To(Equal(before))
	})
	t.Run("When a history is copied for the guest, it should be unchanged after the conversion back", func(t *testing.T) {
		g := NewWithT(t)
		history := advance(advance(nil, release("1.36.3"), false, now), release("1.36.3"), true, now.Add(time.Minute))
		history = advance(history, release("1.36.4"), false, now.Add(time.Hour))
		guest := toGuest(history)
		g.Expect(fromGuest(guest)).To(Equal(history))
		g.Expect(guest[0].CompletionTime).To(BeNil())
		g.Expect(guest[1].CompletionTime.Time).To(Equal(now.Add(time.Minute)))
	})
	t.Run("When the same version comes from another image, it should be a new entry", func(t *testing.T) {
		g := NewWithT(t)
		history := advance(nil, release("1.36.3"), false, now)
		other := release("1.36.3")
		other.Image = "mirror:1.36.3"
		g.Expect(advance(history, other, false, now)).To(HaveLen(2))
	})
	t.Run("When the history exceeds the limit, it should drop the oldest versions", func(t *testing.T) {
		g := NewWithT(t)
		var history []hyperv1.ControlPlaneUpdateHistory
		for range 60 {
			history = advance(history, release("1.36.3"), false, now)
			history = advance(history, release("1.36.4"), false, now)
		}
		g.Expect(history).To(HaveLen(100))
		g.Expect(history[0].Version).To(Equal("1.36.4"))
	})
}
