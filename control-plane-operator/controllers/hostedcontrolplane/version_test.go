// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// guestRuns reports, as the config operator does, that the components of the guest run a version.
func (w *world) guestRuns(version string) {
	w.t.Helper()
	w.get("demo", w.hcp)
	for _, name := range []string{"kube-proxy", "coredns", "node-network"} {
		c := &hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if err := w.client.Create(w.t.Context(), c); client.IgnoreAlreadyExists(err) != nil {
			w.t.Fatal(err)
		}
		w.get(name, c)
		c.Status = done(name, version).Status
		c.Status.ObservedGeneration = w.hcp.Generation
		for i := range c.Status.Conditions {
			c.Status.Conditions[i].LastTransitionTime = metav1.Time{Time: w.clock.Now()}
		}
		if err := w.client.Status().Update(w.t.Context(), c); err != nil {
			w.t.Fatal(err)
		}
	}
}

// settled returns a control plane whose first release is rolled out, on both sides.
func settled() (*scope, observed) {
	s, o := healthy()
	for range 2 {
		s.hcp.Status = status(s, o, now)
	}
	return s, o
}

// at replaces a component's report.
func at(o *observed, name, version string) {
	for i := range o.components {
		if o.components[i].Name == name {
			o.components[i] = done(name, version)
		}
	}
}

func TestCompletedNeedsTheGuest(t *testing.T) {
	upgrade := func() (*scope, observed) {
		s, o := settled()
		s.hcp.Spec.ReleaseImage = "registry.example/release:1.36.4"
		s.release = releaseinfo.New("", kubernetes("1.36.4"))
		s.guestRelease = s.release
		s.hcp.Status = status(s, o, now)
		at(&o, "etcd", "1.36.4")
		at(&o, "kube-apiserver", "1.36.4")
		return s, o
	}
	t.Run("When only the control plane runs the new version, the release should not be completed", func(t *testing.T) {
		g := NewWithT(t)
		s, o := upgrade()
		next := status(s, o, now.Add(time.Minute))
		g.Expect(next.ControlPlaneVersion.History[0].State).To(Equal(configv1.CompletedUpdate))
		g.Expect(next.VersionStatus.History[0].State).To(Equal(configv1.PartialUpdate))
		g.Expect(next.Version).To(Equal("1.36.3"))
		c := meta.FindStatusCondition(next.Conditions, string(hyperv1.ClusterVersionProgressing))
		g.Expect(c.Status).To(Equal(metav1.ConditionTrue))
		g.Expect(c.Message).To(HaveSuffix("waiting for coredns, kube-proxy, node-network"))
	})
	t.Run("When kube-proxy cannot start, the conditions should name the cause", func(t *testing.T) {
		g := NewWithT(t)
		s, o := upgrade()
		o.components[2].Status.Conditions[1] = metav1.Condition{
			Type: string(hyperv1.ControlPlaneComponentRolloutComplete), Status: metav1.ConditionFalse, Reason: "PodsFailing", Message: "pod x: ErrImagePull",
		}
		next := status(s, o, now.Add(time.Minute))
		for _, t := range []hyperv1.ConditionType{hyperv1.ClusterVersionProgressing, hyperv1.ClusterVersionFailing, hyperv1.HostedControlPlaneDegraded} {
			c := meta.FindStatusCondition(next.Conditions, string(t))
			g.Expect(c.Status).To(Equal(metav1.ConditionTrue), string(t))
			g.Expect(c.Message).To(And(ContainSubstring("kube-proxy"), ContainSubstring("pod x: ErrImagePull")), string(t))
		}
	})
	t.Run("When the guest also runs the new version, the release should be completed", func(t *testing.T) {
		g := NewWithT(t)
		s, o := upgrade()
		for _, name := range []string{"kube-proxy", "node-network", "coredns"} {
			at(&o, name, "1.36.4")
		}
		next := status(s, o, now.Add(time.Minute))
		g.Expect(next.VersionStatus.History[0].State).To(Equal(configv1.CompletedUpdate))
		g.Expect(next.VersionStatus.History).To(HaveLen(2))
		g.Expect(next.Version).To(Equal("1.36.4"))
	})
	t.Run("When no node opens the tunnel, the release should be completed and the control plane degraded", func(t *testing.T) {
		g := NewWithT(t)
		s, o := upgrade()
		for _, name := range []string{"kube-proxy", "node-network", "coredns"} {
			at(&o, name, "1.36.4")
		}
		o.components = append(o.components, hyperv1.ControlPlaneComponent{
			ObjectMeta: metav1.ObjectMeta{Name: "tunnel-agent"}, Status: hyperv1.ControlPlaneComponentStatus{
				Conditions: []metav1.Condition{{
					Type: string(hyperv1.ControlPlaneComponentAvailable), Status: metav1.ConditionFalse,
					LastTransitionTime: metav1.NewTime(now),
				}},
			},
		})
		next := status(s, o, now.Add(time.Minute))
		g.Expect(next.VersionStatus.History[0].State).To(Equal(configv1.CompletedUpdate))
		g.Expect(next.ControlPlaneVersion.History[0].State).To(Equal(configv1.CompletedUpdate))
		c := func(next hyperv1.HostedControlPlaneStatus) *metav1.Condition {
			return meta.FindStatusCondition(next.Conditions, string(hyperv1.HostedControlPlaneDegraded))
		}
		g.Expect(c(next).Status).To(Equal(metav1.ConditionFalse), "the nodes are new")
		next = status(s, o, now.Add(4*time.Minute))
		g.Expect(c(next).Reason).To(Equal("TunnelNotConnected"))
		g.Expect(c(next).Message).To(ContainSubstring("let nodes reach Service konnectivity-server"))
	})
	t.Run("When the guest's components have not reported, the release should not be completed", func(t *testing.T) {
		g := NewWithT(t)
		s, o := healthy()
		o.components = o.components[:2]
		for range 2 {
			s.hcp.Status = status(s, o, now)
		}
		g.Expect(s.hcp.Status.VersionStatus.History[0].State).To(Equal(configv1.PartialUpdate))
	})
	t.Run("When the user brings a network plugin, the release should be completed without the built-in network", func(t *testing.T) {
		g := NewWithT(t)
		s, o := healthy()
		s.hcp.Spec.Networking.NetworkType = hyperv1.Other
		o.components = append(o.components[:3:3], o.components[4])
		for range 2 {
			s.hcp.Status = status(s, o, now)
		}
		g.Expect(s.hcp.Status.VersionStatus.History[0].State).To(Equal(configv1.CompletedUpdate))
	})
	t.Run("When the control plane gets a release of its own, the guest's release should stay completed", func(t *testing.T) {
		g := NewWithT(t)
		s, o := settled()
		s.hcp.Spec.ControlPlaneReleaseImage = ptr.To("registry.example/release:1.36.4")
		s.release = releaseinfo.New("", kubernetes("1.36.4"))
		s.hcp.Status = status(s, o, now)
		at(&o, "etcd", "1.36.4")
		at(&o, "kube-apiserver", "1.36.4")
		next := status(s, o, now.Add(time.Minute))
		g.Expect(next.ControlPlaneVersion.History[0]).To(And(HaveField("Version", "1.36.4"), HaveField("State", configv1.CompletedUpdate)))
		g.Expect(next.VersionStatus.History).To(HaveLen(1))
		g.Expect(next.Version).To(Equal("1.36.3"))
	})
}
