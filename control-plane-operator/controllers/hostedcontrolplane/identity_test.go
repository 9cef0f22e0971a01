// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// rebuild updates a control plane to a rebuilt release of the version that it runs. What components report about the
// first release does not apply to the rebuilt one.
func (w *world) rebuild(t *testing.T, version string) {
	t.Helper()
	g := NewWithT(t)
	const image = "registry.example/release@sha256:rebuilt"
	rebuilt := kubernetes(version)
	for tag := range rebuilt.Components {
		rebuilt.Components[tag] = "registry.example/" + tag + ":rebuilt"
	}
	w.r.Releases.(releases)[image] = rebuilt
	running := func() string {
		d := &appsv1.Deployment{}
		w.get("kube-apiserver", d)
		return d.Spec.Template.Spec.Containers[0].Image
	}
	newest := func() hyperv1.ControlPlaneUpdateHistory {
		w.get("demo", w.hcp)
		return w.hcp.Status.ControlPlaneVersion.History[0]
	}
	first := newest()
	g.Expect(first.State).To(Equal(configv1.CompletedUpdate))

	w.edit(func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.ReleaseImage = image })
	for range 2 {
		g.Expect(w.pass()).To(Succeed())
		g.Expect(running()).To(Equal("registry.example/kube-apiserver:"+version), "it waits for etcd of the release that it goes to")
		g.Expect(newest()).To(And(HaveField("Image", image), HaveField("State", configv1.PartialUpdate)))
	}
	g.Expect(w.condition(hyperv1.ClusterVersionUpgradeable)).To(Equal("False/UpdateInProgress"))
	settle := func() {
		for range 5 {
			w.rollOut()
			w.guestRuns(version)
			g.Expect(w.pass()).To(Succeed())
		}
	}
	settle()
	g.Expect(running()).To(Equal("registry.example/kube-apiserver:rebuilt"))
	g.Expect(newest()).To(And(HaveField("Version", version), HaveField("State", configv1.CompletedUpdate)))
	g.Expect(w.hcp.Status.ControlPlaneVersion.History[1].Image).To(Equal(first.Image))
	g.Expect(w.condition(hyperv1.ClusterVersionUpgradeable)).To(Equal("True/AsExpected"))

	w.edit(func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.ReleaseImage = first.Image })
	g.Expect(w.pass()).To(Succeed())
	settle()
	g.Expect(running()).To(Equal("registry.example/kube-apiserver:"+version), "and back")
}

func TestStaleReports(t *testing.T) {
	t.Run("When components have not observed a new spec, it should not report the rollout as completed", func(t *testing.T) {
		g := NewWithT(t)
		s, o := healthy()
		s.hcp.Status = status(s, o, now)
		s.hcp.Status = status(s, o, now.Add(time.Second))
		g.Expect(s.hcp.Status.VersionStatus.History[0].State).To(Equal(configv1.CompletedUpdate))
		s.hcp.Generation++
		s.hcp.Spec.ReleaseImage = "registry.example/release@sha256:rebuilt"
		for range 2 {
			s.hcp.Status = status(s, o, now.Add(time.Minute))
			g.Expect(s.hcp.Status.VersionStatus.History[0].State).To(Equal(configv1.PartialUpdate))
		}
	})
}

func TestUpgradeable(t *testing.T) {
	completed := configv1.UpdateHistory{State: configv1.CompletedUpdate, Version: "1.36.3"}
	for _, tc := range []struct {
		name    string
		current configv1.UpdateHistory
		failing error
		want    metav1.ConditionStatus
		says    string
	}{
		{"When the release is rolled out and no component fails, it should be upgradeable", completed, nil, metav1.ConditionTrue, ""},
		{"When the rollout is in progress, it should not be upgradeable", configv1.UpdateHistory{State: configv1.PartialUpdate, Version: "1.36.3"}, nil,
			metav1.ConditionFalse, "Release 1.36.3 is still being rolled out"},
		{"When a component fails, it should not be upgradeable and the message should name the component", completed, errors.New("kube-scheduler: quota exceeded"), metav1.ConditionFalse, "kube-scheduler: quota exceeded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			all := []metav1.Condition{upgradeable(tc.current, tc.failing)}
			g.Expect(meta.FindStatusCondition(all, "ClusterVersionUpgradeable")).NotTo(BeNil(), "the type that upstream's dashboards read")
			g.Expect(all[0].Status).To(Equal(tc.want))
			g.Expect(all[0].Message).To(ContainSubstring(tc.says))
			g.Expect(all[0].Message == "").To(Equal(tc.says == ""))
		})
	}
}
