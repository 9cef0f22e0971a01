// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	controlplanepki "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/pki"
)

// TestConditionsNameTheCause checks that each condition names what the user has to check: an object, a number, a
// field. In the table, "" stands for no message, and $ for the end of a message.
func TestConditionsNameTheCause(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "root-ca", errors.New("changed"))
	for name, test := range map[string]struct {
		change    func(*scope, *observed)
		condition hyperv1.ConditionType
		want      string
		says      []string
	}{
		"images are missing":       {func(s *scope, _ *observed) { s.missing = []string{"etcd", "coredns"} }, hyperv1.ValidReleaseInfo, "False/MissingReleaseImages", []string{"etcd", "coredns"}},
		"the release is available": {func(*scope, *observed) {}, hyperv1.ValidReleaseInfo, "True/AsExpected", []string{""}},
		"the release is not read in this reconcile": {func(s *scope, _ *observed) {
			s.release = nil
			s.hcp.Status.Conditions = []metav1.Condition{condition.False(string(hyperv1.ValidReleaseInfo), "Before", "as it was")}
		}, hyperv1.ValidReleaseInfo, "False/Before", []string{"as it was"}},
		"the release has never been read": {func(s *scope, _ *observed) { s.release = nil }, hyperv1.ValidReleaseInfo, "Unknown/StatusUnknown", nil},
		"an invalid spec without a running control plane": {func(s *scope, _ *observed) { s.invalid = errors.New("spec.x: no") },
			hyperv1.ValidHostedControlPlaneConfiguration, "False/InsufficientClusterCapabilities", []string{"spec.x: no"}},
		"an invalid spec with a running control plane": {func(s *scope, _ *observed) { s.invalid, s.valid = errors.New("spec.x: no"), s.hcp },
			hyperv1.ValidHostedControlPlaneConfiguration, "False/InsufficientClusterCapabilities", []string{"spec.x: no", "last valid spec"}},
		"components refuse parts of the spec": {func(_ *scope, o *observed) { o.refusals = []error{errors.New("spec.a: no"), errors.New("spec.b: no")} },
			hyperv1.ValidHostedControlPlaneConfiguration, "False/InsufficientClusterCapabilities", []string{"spec.a: no", "spec.b: no"}},
		"the control plane is paused": {func(s *scope, _ *observed) { s.paused, s.hcp.Spec.PausedUntil = true, ptr.To("2030-01-01T00:00:00Z") },
			hyperv1.ReconciliationActive, "False/ReconciliationPaused", []string{"2030-01-01T00:00:00Z"}},
		"the pause has ended": {func(s *scope, _ *observed) { s.hcp.Spec.PausedUntil = ptr.To("2020-01-01T00:00:00Z") }, hyperv1.ReconciliationActive, "True/AsExpected", nil},
		"the address is pending": {func(s *scope, _ *observed) { s.infra, s.waiting = nil, "Service x has no address" },
			hyperv1.InfrastructureReady, "False/WaitingOnInfrastructureReady", []string{"Service x has no address"}},
		"publishing failed": {func(s *scope, _ *observed) { s.infra, s.infraErr = nil, errors.New("forbidden") },
			hyperv1.InfrastructureReady, "Unknown/InfraStatusFailure", []string{"forbidden"}},
		"the address is published": {func(*scope, *observed) {}, hyperv1.InfrastructureReady, "True/AsExpected", []string{""}},
		"a pause starts before the address is published": {func(s *scope, _ *observed) { s.infra, s.paused = nil, true },
			hyperv1.InfrastructureReady, "False/WaitingOnInfrastructureReady", nil},
		"a pause starts after the address is published": {func(s *scope, _ *observed) {
			s.infra, s.paused, s.hcp.Status.ControlPlaneEndpoint.Host = nil, true, "api"
			s.hcp.Status.Conditions = []metav1.Condition{condition.True(string(hyperv1.InfrastructureReady), "Before", "")}
		}, hyperv1.InfrastructureReady, "True/Before", nil},
		"the user's etcd is incomplete": {func(s *scope, o *observed) {
			s.hcp.Spec.Etcd.ManagementType, o.ownEtcd = hyperv1.Unmanaged, &controlplanepki.OwnEtcdError{Err: errors.New("Secret x has no key")}
		}, hyperv1.EtcdAvailable, "False/UnmanagedEtcdMisconfigured", []string{"Secret x has no key"}},
		"the user's etcd does not serve": {func(s *scope, o *observed) {
			s.hcp.Spec.Etcd.ManagementType, o.ownEtcd = hyperv1.Unmanaged, errors.New("10.0.0.1: refused")
		}, hyperv1.EtcdAvailable, "False/UnmanagedEtcdUnavailable", []string{"10.0.0.1: refused"}},
		"two of five etcd members are ready": {func(_ *scope, o *observed) {
			o.etcd.Spec.Replicas, o.etcd.Status.ReadyReplicas, o.etcd.Status.ObservedGeneration = ptr.To[int32](5), 2, 1
		},
			hyperv1.EtcdAvailable, "False/EtcdWaitingForQuorum", []string{"2 of 5", "3 are needed"}},
		"three of five etcd members are ready": {func(_ *scope, o *observed) {
			o.etcd.Spec.Replicas, o.etcd.Status.ReadyReplicas, o.etcd.Status.ObservedGeneration = ptr.To[int32](5), 3, 1
		},
			hyperv1.EtcdAvailable, "True/QuorumAvailable", []string{""}},
		"one etcd member, replicas unset": {func(_ *scope, o *observed) {
			o.etcd.Spec.Replicas, o.etcd.Status.ReadyReplicas, o.etcd.Status.ObservedGeneration = nil, 1, 1
		},
			hyperv1.EtcdAvailable, "True/QuorumAvailable", nil},
		"a Deployment has no Available condition": {func(_ *scope, o *observed) { o.kas.Status.Conditions[0].Type = appsv1.DeploymentProgressing },
			hyperv1.KubeAPIServerAvailable, "False/WaitingForAvailable", nil},
		"certificates fail": {func(s *scope, _ *observed) { s.pkiErr = errors.New("Secret named-cert not found") },
			hyperv1.HostedControlPlaneDegraded, "True/CertificatesFailed", []string{"Secret named-cert not found"}},
		"a write of a certificate conflicts": {func(s *scope, _ *observed) { s.pkiErr = conflict }, hyperv1.HostedControlPlaneDegraded, "False/AsExpected", []string{""}},
		"Deployments lack pods": {func(_ *scope, o *observed) {
			o.deployments = []appsv1.Deployment{lacking("z", 1), lacking("m", 0), lacking("a", 3)}
		}, hyperv1.HostedControlPlaneDegraded, "True/UnavailableReplicas", []string{"a deployment has 3 unavailable replicas, z deployment has 1 unavailable replicas"}},
		"a component's Pods fail": {func(_ *scope, o *observed) {
			c := &o.components[1].Status.Conditions
			*c = condition.Merge(*c, 0, condition.False(string(hyperv1.ControlPlaneComponentRolloutComplete), component.ReasonPodsFailing, "pod x: CrashLoopBackOff"))
		}, hyperv1.HostedControlPlaneDegraded, "True/PodsFailing", []string{"pod x: CrashLoopBackOff"}},
		"KMS plugins fail": {func(_ *scope, o *observed) { o.plugins, o.pluginFaults = true, []string{"pod a: x", "pod b: y"} },
			hyperv1.KMSPluginAvailable, "False/PluginUnavailable", []string{"pod a: x; pod b: y", "spec.secretEncryption.kms.plugin"}},
		"KMS plugins serve": {func(_ *scope, o *observed) { o.plugins = true }, hyperv1.KMSPluginAvailable, "True/AsExpected", []string{""}},
		"a certificate is about to expire": {func(_ *scope, o *observed) {
			o.secrets = []corev1.Secret{authority("root-ca", now.Add(-10*365*24*time.Hour))}
		},
			hyperv1.CertificatesValid, "False/CertificatesExpiring", []string{"Secret root-ca: 20", "Z"}},
		"two components are not available": {func(_ *scope, o *observed) {
			o.components[0].Status.Conditions, o.components[1].Status.Conditions = nil, nil
		},
			hyperv1.HostedControlPlaneAvailable, "False/ControlPlaneComponentsNotAvailable", []string{"etcd, kube-apiserver"}},
		"the load balancer does not answer": {func(_ *scope, o *observed) { o.unhealthy = errors.New("192.0.2.10: timeout") },
			hyperv1.HostedControlPlaneAvailable, "False/KASLoadBalancerNotReachable", []string{"192.0.2.10: timeout"}},
		"the cause is another condition": {func(s *scope, _ *observed) { s.infra, s.waiting = nil, "Service x has no address" },
			hyperv1.HostedControlPlaneAvailable, "False/WaitingOnInfrastructureReady", []string{"Service x has no address"}},
		"another release is refused": {func(s *scope, o *observed) {
			s.hcp.Status, s.releaseErr = status(s, *o, now), errors.New("no such tag")
		},
			hyperv1.ClusterVersionReleaseAccepted, "False/AsExpected", []string{"no such tag"}},
		"the release is accepted":         {func(*scope, *observed) {}, hyperv1.ClusterVersionReleaseAccepted, "True/AsExpected", []string{""}},
		"all components have the release": {func(s *scope, o *observed) { s.hcp.Status = status(s, *o, now) }, hyperv1.ClusterVersionProgressing, "False/AsExpected", []string{"1.36.3"}},
		"a guest component is not rolled out": {func(_ *scope, o *observed) {
			c := &o.components[4].Status.Conditions
			*c = condition.Merge(*c, 0, condition.False(string(hyperv1.ControlPlaneComponentRolloutComplete), component.ReasonError, "no node"))
		}, hyperv1.ClusterVersionProgressing, "True/AsExpected", []string{"1.36.3", "coredns (no node)$"}},
		"a guest component fails": {func(_ *scope, o *observed) {
			c := &o.components[4].Status.Conditions
			*c = condition.Merge(*c, 0, condition.False(string(hyperv1.ControlPlaneComponentRolloutComplete), component.ReasonError, "no node"))
		}, hyperv1.ClusterVersionFailing, "True/AsExpected", []string{"coredns: no node"}},
		"a guest component reports no reason": {func(_ *scope, o *observed) { o.components[4].Status.Conditions[1].Status = metav1.ConditionFalse },
			hyperv1.ClusterVersionProgressing, "True/AsExpected", []string{"waiting for coredns$"}},
		"no release has been rolled out":                    {func(_ *scope, o *observed) { o.components = nil }, hyperv1.ClusterVersionAvailable, "False/AsExpected", nil},
		"a release has been rolled out":                     {func(s *scope, o *observed) { s.hcp.Status = status(s, *o, now) }, hyperv1.ClusterVersionAvailable, "True/AsExpected", nil},
		"all is well, and the control plane is upgradeable": {func(s *scope, o *observed) { s.hcp.Status = status(s, *o, now) }, hyperv1.ClusterVersionUpgradeable, "True/AsExpected", []string{""}},
		"all is well":                      {func(*scope, *observed) {}, hyperv1.HostedControlPlaneAvailable, "True/AsExpected", []string{""}},
		"no names are published":           {func(*scope, *observed) {}, hyperv1.ExternalDNSReachable, "Unknown/StatusUnknown", nil},
		"no node moves to another address": {func(*scope, *observed) {}, hyperv1.PublishedAddressUpToDate, "True/AsExpected", []string{""}},
		"certificates are fresh":           {func(*scope, *observed) {}, hyperv1.CertificatesValid, "True/AsExpected", []string{""}},
		"several signers rotate": {func(_ *scope, o *observed) {
			o.secrets = []corev1.Secret{authority("root-ca", now, false), authority("etcd-signer", now, false, true, true), authority("cluster-signer-ca", now, false)}
		}, hyperv1.SignersUpToDate, "False/TrustInProgress", []string{"etcd-signer: ", "; cluster-signer-ca, root-ca: "}},
		"two certificates are about to expire": {func(_ *scope, o *observed) {
			o.secrets = []corev1.Secret{authority("z", now.Add(-pki.CAValidity)), authority("a", now.Add(-pki.CAValidity))}
		}, hyperv1.CertificatesValid, "False/CertificatesExpiring", []string{"Secret a: 2026-11-20T12:00:00Z, Secret z: 2026-11-20T12:00:00Z$"}},
		"the release image does not exist": {func(s *scope, _ *observed) { s.releaseErr = errors.New("no image") }, hyperv1.ValidReleaseInfo, "False/InvalidRelease", []string{"no image"}},
		"components refuse a part of a spec that works": {func(s *scope, o *observed) { s.valid, o.refusals = s.hcp, []error{errors.New("spec.a: no")} },
			hyperv1.ValidHostedControlPlaneConfiguration, "False/InsufficientClusterCapabilities", []string{"spec.a: no$"}},
		"all fields of the spec have an effect": {func(*scope, *observed) {}, hyperv1.ValidHostedControlPlaneConfiguration, "True/AsExpected", []string{"validation$"}},
		"one field has no effect":               {func(s *scope, _ *observed) { s.hcp.Spec.FIPS = true }, hyperv1.ValidHostedControlPlaneConfiguration, "True/AsExpected", []string{": fips$"}},
		"an invalid spec after the address is published": {func(s *scope, _ *observed) {
			s.infra, s.invalid, s.hcp.Status.ControlPlaneEndpoint.Host = nil, errors.New("spec.x: no"), "api"
			s.hcp.Status.Conditions = []metav1.Condition{condition.True(string(hyperv1.InfrastructureReady), "Before", "")}
		}, hyperv1.InfrastructureReady, "True/Before", nil},
		"the published address is unknown in this reconcile": {func(s *scope, _ *observed) { s.infra, s.hcp.Status.ControlPlaneEndpoint.Host = nil, "api" },
			hyperv1.InfrastructureReady, "False/WaitingOnInfrastructureReady", nil},
		"etcd was healthy, and its StatefulSet lacks two pods":   {func(s *scope, o *observed) { membersWell(s, o, nil) }, hyperv1.EtcdAvailable, "False/EtcdWaitingForQuorum", nil},
		"etcd was healthy, and its StatefulSet is being deleted": {func(s *scope, o *observed) { membersWell(s, o, &metav1.Time{Time: now}) }, hyperv1.EtcdAvailable, "True/Before", nil},
		"two unavailable components are listed out of order": {func(_ *scope, o *observed) {
			o.components[0], o.components[1] = o.components[1], o.components[0]
			o.components[0].Status.Conditions, o.components[1].Status.Conditions = nil, nil
		}, hyperv1.HostedControlPlaneAvailable, "False/ControlPlaneComponentsNotAvailable", []string{"etcd, kube-apiserver$"}},
		"no component fails": {func(*scope, *observed) {}, hyperv1.ClusterVersionFailing, "False/AsExpected", []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s, o := healthy()
			test.change(s, &o)
			c := meta.FindStatusCondition(status(s, o, now).Conditions, string(test.condition))
			g.Expect(c).NotTo(BeNil())
			g.Expect(string(c.Status) + "/" + c.Reason).To(Equal(test.want))
			for _, fact := range test.says {
				if fact == "" {
					g.Expect(c.Message).To(BeEmpty())
				}
				if end, last := strings.CutSuffix(fact, "$"); last {
					g.Expect(c.Message).To(HaveSuffix(end))
					continue
				}
				g.Expect(c.Message).To(ContainSubstring(fact))
			}
		})
	}
}

// membersWell sets an etcd whose members were healthy when last observed, while one of three pods of its StatefulSet is
// ready.
func membersWell(s *scope, o *observed, going *metav1.Time) {
	o.etcd.Status.ReadyReplicas, o.etcd.Status.ObservedGeneration, o.etcd.DeletionTimestamp = 1, 1, going
	s.hcp.Status.Conditions = []metav1.Condition{
		condition.True(string(hyperv1.EtcdMembersHealthy), hyperv1.AsExpectedReason, ""), condition.True(string(hyperv1.EtcdAvailable), "Before", "")}
}

func lacking(name string, pods int32) appsv1.Deployment {
	return appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: appsv1.DeploymentStatus{UnavailableReplicas: pods}}
}
