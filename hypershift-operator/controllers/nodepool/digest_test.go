// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/release"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
)

// builds are payloads of the same version with different images.
type builds struct {
	*world
	registry *releasetest.Registry
}

// push pushes a build under a tag, and returns its pull specs by tag and by digest.
func (b *builds) push(tag, build string) (tagged, pinned string) {
	b.t.Helper()
	image, err := releaseinfo.Build(releaseinfo.Payload{
		Version: "1.36.3", Distribution: releaseinfo.Kubernetes, Components: map[string]string{"node": "registry.example/node:" + build},
	})
	b.Expect(err).NotTo(HaveOccurred())
	tagged = b.registry.Host + "/release:" + tag
	return tagged, b.registry.Push(b.t, tagged, image)
}

// restart simulates a restart of the operator, which clears the cache of releases.
func (b *builds) restart() { b.Releases = release.NewReader(nil) }

func (b *builds) userData() string {
	b.t.Helper()
	return *b.deployment().Spec.Template.Spec.Bootstrap.DataSecretName
}

func (b *builds) wants(image string) {
	b.t.Helper()
	b.change(func(p *hyperv1.NodePool) { p.Spec.Release.Image = image })
	b.mustPass()
}

// unresolved removes the resolved release from the status, as in a pool of 0.1.0.
func (b *builds) unresolved() {
	b.t.Helper()
	pool := b.pool()
	pool.Status.ResolvedRelease = nil
	b.Expect(b.client.Status().Update(b.t.Context(), pool)).To(Succeed())
}

// startBuilds creates a cluster and a pool of two machines that run a release from the test's own registry.
func startBuilds(s *world) (b *builds, tagged, pinned string) {
	s.t.Helper()
	b = &builds{world: s, registry: releasetest.Start(s.t)}
	tagged, pinned = b.push("first", "1")
	b.restart()
	b.ready(func(hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = tagged })
	bundle := &corev1.ConfigMap{}
	b.Expect(b.client.Get(b.t.Context(), ctrlKey(b.namespace, fixture.TrustBundle), bundle)).To(Succeed())
	bundle.Data["ca-bundle.crt"] = string(b.registry.CA)
	b.Expect(b.client.Update(b.t.Context(), bundle)).To(Succeed())
	pool := fixture.NodePool(b.namespace)
	pool.Spec.Release.Image = tagged
	fixture.Create(b.t, b.client, pool)
	b.mustPass()
	b.born("a")
	b.born("b")
	b.mustPass()
	b.rests()
	return b, tagged, pinned
}

func TestDigests(t *testing.T) {
	c := fixture.Start(t)

	t.Run("When another build of the same version is requested, it should replace machines and report it until done", func(t *testing.T) {
		b, first, pinned := startBuilds(newWorld(t, c, "builds"))
		before := b.userData()
		b.Expect(string(b.tokenOf(before).Data["release"])).To(Equal(pinned), "a tag may move before the configuration is rendered")
		second, _ := b.push("second", "2")
		b.wants(second)
		b.Expect(b.userData()).NotTo(Equal(before))
		b.totals(2)
		b.mustPass()
		b.updates("UpdatingVersion", "2 of 2 machines are to be replaced")
		b.Expect(b.condition("UpdatingConfig").Status).To(Equal(corev1.ConditionFalse))
		b.bury("a", "b")
		b.born("a2")
		b.born("b2")
		b.mustPass()
		b.rests()

		b.wants(first)
		b.Expect(b.userData()).To(Equal(before), "a release has one name wherever it stands in the history")
	})

	t.Run("When the tag moves to another build, it should replace nothing until the spec changes", func(t *testing.T) {
		b, _, pinned := startBuilds(newWorld(t, c, "moved"))
		before := b.userData()
		b.push("first", "2")
		b.restart()
		counted := fixture.NewFaulty(c)
		b.Reconciler.Client = counted
		b.mustPass()
		b.Expect(counted.Log).To(BeEmpty())
		b.Expect(b.userData()).To(Equal(before))
		b.Reconciler.Client = c
		b.Expect(c.Delete(t.Context(), b.tokenOf(before))).To(Succeed())
		b.mustPass()
		b.Expect(string(b.tokenOf(before).Data["release"])).To(Equal(pinned))
	})

	t.Run("When the NodePool is from 0.1.0, with the digest in an annotation, it should keep its machines",
		func(t *testing.T) {
			b, first, pinned := startBuilds(newWorld(t, c, "annotated"))
			before := b.userData()
			b.push("first", "2")
			b.restart()
			b.unresolved()
			b.mustPass()
			b.Expect(b.userData()).To(Equal(before))
			b.Expect(b.pool().Status.ResolvedRelease).To(Equal(&hyperv1.NodePoolResolvedRelease{Image: first,
				PinnedImage: pinned}))
			b.rests()
		})

	t.Run("When a tenant sets another registry in the annotation, it should not connect to that registry", func(t *testing.T) {
		b, first, pinned := startBuilds(newWorld(t, c, "elsewhere"))
		before, evil := b.userData(), releasetest.Start(t)
		_, digest, _ := strings.Cut(pinned, "@")
		b.change(func(p *hyperv1.NodePool) {
			scope.Annotate(p, hyperv1.NodePoolResolvedReleaseAnnotation, first+" "+evil.Host+"/release@"+digest)
		})
		b.restart()
		b.mustPass()
		b.unresolved()
		b.mustPass()
		b.Expect(evil.Requests()).To(BeZero())
		b.Expect(b.userData()).To(Equal(before))
		b.Expect(b.pool().Annotations).To(HaveKeyWithValue(hyperv1.NodePoolResolvedReleaseAnnotation, first+" "+pinned))
	})

	t.Run("When the NodePool is from a release without digests, it should keep its machines", func(t *testing.T) {
		b, _, _ := startBuilds(newWorld(t, c, "before-digests"))
		before := b.userData()
		b.change(func(p *hyperv1.NodePool) {
			for _, unknown := range []string{
				hyperv1.NodePoolResolvedReleaseAnnotation, hyperv1.NodePoolFirstReleaseAnnotation, hyperv1.NodePoolCurrentReleaseAnnotation,
			} {
				delete(p.Annotations, unknown)
			}
		})
		b.unresolved()
		b.mustPass()
		b.Expect(b.userData()).To(Equal(before))
		b.rests()
	})

	t.Run("When the control plane is being updated to the build, nodes should follow after it is complete", func(t *testing.T) {
		b, _, pinned := startBuilds(newWorld(t, c, "order"))
		before := b.userData()
		_, second := b.push("second", "2")
		done := updateHistory("1.36.3", b.pool().CreationTimestamp)
		done.Image = pinned
		coming := configv1.UpdateHistory{State: configv1.PartialUpdate, StartedTime: done.StartedTime, Version: "1.36.3", Image: second}
		b.cluster(func(hc *hyperv1.HostedCluster) {
			hc.Status.Version = &hyperv1.ClusterVersionStatus{History: []configv1.UpdateHistory{coming, done}}
		})
		b.wants(second)
		b.Expect(b.condition("ValidReleaseImage").Message).To(ContainSubstring("nodes are updated afterwards"))
		b.Expect(b.userData()).To(Equal(before))

		coming.State, coming.CompletionTime = configv1.CompletedUpdate, &done.StartedTime
		b.cluster(func(hc *hyperv1.HostedCluster) { hc.Status.Version.History[0] = coming })
		b.mustPass()
		b.Expect(b.userData()).NotTo(Equal(before))
	})

	for _, tc := range []struct {
		name, namespace string
		progressing     metav1.ConditionStatus
		behind          int64
		follows         bool
	}{
		{"When the cluster's new spec is not observed yet, nodes should wait", "at-once", metav1.ConditionFalse, 1, false},
		{"When the control plane has not started the rollout yet, nodes should wait", "announced", metav1.ConditionTrue, 0, false},
		{"When the control plane reports that the rollout is complete, nodes should follow", "through", metav1.ConditionFalse, 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, _, pinned := startBuilds(newWorld(t, c, tc.namespace))
			before := b.userData()
			second, _ := b.push("second", "2")
			hc := &hyperv1.HostedCluster{}
			b.Expect(c.Get(t.Context(), ctrlKey(b.namespace, fixture.ClusterName), hc)).To(Succeed())
			hc.Spec.Release.Image = second
			b.Expect(c.Update(t.Context(), hc)).To(Succeed())
			b.cluster(func(hc *hyperv1.HostedCluster) {
				done := updateHistory("1.36.3", b.pool().CreationTimestamp)
				done.Image = pinned
				hc.Status.Version = &hyperv1.ClusterVersionStatus{History: []configv1.UpdateHistory{done}}
				hc.Status.Conditions = append(hc.Status.Conditions, metav1.Condition{
					Type: string(hyperv1.HostedClusterProgressing), Status: tc.progressing, Reason: "Progressing",
					ObservedGeneration: hc.Generation - tc.behind, LastTransitionTime: done.StartedTime,
				})
			})
			b.wants(second)
			b.Expect(b.userData() != before).To(Equal(tc.follows))
		})
	}

	t.Run("When the tag has moved since, a NodePool with the tag should get the build of the control plane", func(t *testing.T) {
		b, first, pinned := startBuilds(newWorld(t, c, "taken"))
		fixture.Create(t, c, controlPlane(b.namespace, first, pinned))
		b.push("first", "2")
		b.restart()
		b.change(func(p *hyperv1.NodePool) { delete(p.Annotations, hyperv1.NodePoolResolvedReleaseAnnotation) })
		b.unresolved()
		b.mustPass()
		b.Expect(b.pool().Annotations).To(HaveKeyWithValue(hyperv1.NodePoolResolvedReleaseAnnotation, first+" "+pinned))
		b.rests()
	})
}

// controlPlane returns a HostedControlPlane that pinned a release to its digest.
func controlPlane(namespace, source, pinned string) *hyperv1.HostedControlPlane {
	spec := fixture.HostedCluster(namespace).Spec
	return &hyperv1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Hosted(namespace), Name: fixture.ClusterName,
			Annotations: map[string]string{hyperv1.ReleaseImageSourceAnnotation: source}},
		Spec: hyperv1.HostedControlPlaneSpec{
			ReleaseImage: pinned, PullSecret: spec.PullSecret, SSHKey: spec.SSHKey, Platform: hyperv1.PlatformSpec{Type: hyperv1.NonePlatform},
			Networking: spec.Networking, Etcd: spec.Etcd, Services: spec.Services, InfraID: "demo-abcde", IssuerURL: "https://issuer.example",
		},
	}
}
