// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// poolAt returns a pool of a cluster that has reached a version, and whose nodes report these kubelet versions.
func poolAt(name, cluster, reached string, kubelets ...string) *hyperv1.NodePool {
	pool := fixture.NodePool("clusters")
	pool.Name, pool.Spec.ClusterName, pool.Status.Version = name, cluster, reached
	pool.Spec.Release.Image = tagged("1.35.0")
	if len(kubelets) > 0 {
		pool.Status.NodesInfo = &hyperv1.NodePoolNodesInfo{}
		for _, version := range kubelets {
			pool.Status.NodesInfo.NodeVersions = append(pool.Status.NodesInfo.NodeVersions, hyperv1.NodeVersion{KubeletVersion: version})
		}
	}
	return pool
}

// ofImage sets the release of a pool.
func ofImage(pool *hyperv1.NodePool, image string) *hyperv1.NodePool {
	pool.Spec.Release.Image = image
	return pool
}

func TestPoolsTooOld(t *testing.T) {
	elsewhere := poolAt("elsewhere", "demo", "1.31.0")
	elsewhere.Namespace = "other"
	for name, test := range map[string]struct {
		pools []client.Object
		want  string
	}{
		"there are no pools, it should report none":                                                   {nil, ""},
		"all pools are new enough, it should report none":                                             {[]client.Object{poolAt("a", "demo", "1.33.0")}, ""},
		"one pool is too old, it should name the pool":                                                {[]client.Object{poolAt("a", "demo", "1.32.0"), poolAt("b", "demo", "1.35.0")}, "in the NodePools a (1.32.0): "},
		"several pools are too old, it should name each in order":                                     {[]client.Object{poolAt("b", "demo", "1.31.0"), poolAt("a", "demo", "1.32.0")}, "in the NodePools a (1.32.0), b (1.31.0): "},
		"a node of a pool is too old, it should name the pool and the node's version":                 {[]client.Object{poolAt("a", "demo", "1.35.0", "v1.35.0", "v1.32.0")}, "in the NodePools a (1.32.0): "},
		"the nodes are new enough, but the version of their pool is too old, it should name the pool": {[]client.Object{poolAt("a", "demo", "1.32.0", "v1.35.0")}, "in the NodePools a (1.32.0): "},
		"a pool of another cluster is too old, it should ignore the pool":                             {[]client.Object{poolAt("a", "other", "1.31.0")}, ""},
		"a pool in another namespace is too old, it should ignore the pool":                           {[]client.Object{elsewhere}, ""},
		"the first nodes of a pool would be too old, it should name the pool":                         {[]client.Object{ofImage(poolAt("a", "demo", ""), tagged("1.32.0"))}, "in the NodePools a (1.32.0): "},
		"the first nodes of a pool would be new enough, it should report none":                        {[]client.Object{poolAt("a", "demo", "")}, ""},
		"the first release is unknown, it should report none":                                         {[]client.Object{ofImage(poolAt("a", "demo", ""), tagged("1.30.0"))}, ""},
		"the pool requests an old release but has reached a new one, it should report none":           {[]client.Object{ofImage(poolAt("a", "demo", "1.36.0"), tagged("1.31.0"))}, ""},
	} {
		t.Run("When "+name, func(t *testing.T) {
			got, err := shop(test.pools...).tooOld(t.Context(), wanting("", ""), distributions.Of(releaseinfo.Kubernetes), "1.36.0")
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			if test.want == "" {
				NewWithT(t).Expect(got).To(BeEmpty())
				return
			}
			NewWithT(t).Expect(got).To(And(ContainSubstring(test.want), ContainSubstring("1.36.0"), ContainSubstring("more than 3 minor")))
		})
	}
}

// TestPoolsTooOldInOrder checks that the pools in the message are sorted. A cache lists in any order, and an unsorted
// message would be rewritten each time.
func TestPoolsTooOldInOrder(t *testing.T) {
	d := shop(poolAt("a", "demo", "1.31.0"), poolAt("b", "demo", "1.31.0"))
	d.Client = interceptor.NewClient(d.Direct, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		err := c.List(ctx, list, opts...)
		slices.Reverse(list.(*hyperv1.NodePoolList).Items)
		return err
	}})
	got, err := d.tooOld(t.Context(), wanting("", ""), distributions.Of(releaseinfo.Kubernetes), "1.36.0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(got).To(ContainSubstring("a (1.31.0), b (1.31.0)"))
}

// TestReportUpgradeable checks that a Kubernetes control plane reports nodes that are too old for the next minor
// version, before an upgrade is requested.
func TestReportUpgradeable(t *testing.T) {
	old := poolAt("a", "demo", "1.33.0")
	for name, test := range map[string]struct {
		image    string
		reported metav1.ConditionStatus
		pool     *hyperv1.NodePool
		said     bool
	}{
		"the nodes are too old, ClusterVersionUpgradeable should be False":                      {fixture.ReleaseImage, "True", old, true},
		"the nodes are new enough, it should set no condition":                                  {fixture.ReleaseImage, "True", poolAt("a", "demo", "1.34.0"), false},
		"the control plane is not upgradeable anyway, it should set no condition":               {fixture.ReleaseImage, "False", old, false},
		"the control plane does not know whether it is upgradeable, it should set no condition": {fixture.ReleaseImage, "Unknown", old, false},
		"the release is OpenShift, which reports it itself, it should set no condition":         {fixture.OCPImage, "True", poolAt("a", "demo", "4.15.0"), false},
		"there is no control plane, it should set no condition":                                 {fixture.ReleaseImage, "", old, false},
	} {
		t.Run("When "+name, func(t *testing.T) {
			s := wanting("", "", func(s *scope) {
				if s.Release = fixture.Payloads()[test.image]; test.reported != "" {
					reporting(is("ClusterVersionUpgradeable", test.reported, "R", ""))(s)
				}
			})
			NewWithT(t).Expect(shop(test.pool).reportUpgradeable(t.Context(), s)).To(Succeed())
			c, said := s.Conditions["ClusterVersionUpgradeable"]
			NewWithT(t).Expect(said).To(Equal(test.said))
			if said {
				NewWithT(t).Expect(c).To(And(HaveField("Status", BeEquivalentTo("False")), HaveField("Reason", "NodesTooOld"), HaveField("Message", ContainSubstring("1.37.0 in the NodePools a (1.33.0)"))))
			}
		})
	}
}

// TestVersionFaults checks which releases a cluster can never upgrade to from its current state.
func TestVersionFaults(t *testing.T) {
	begun136 := func(s *scope) {
		at135(s)
		s.HCP.Status.ControlPlaneVersion.History = append([]hyperv1.ControlPlaneUpdateHistory{{Version: "1.36.0", State: configv1.PartialUpdate}}, s.HCP.Status.ControlPlaneVersion.History...)
	}
	at134 := func(s *scope) {
		at135(s)
		s.HCP.Spec.ReleaseImage, s.HCP.Status.ControlPlaneVersion.History[0].Version = pinned("1.34.0"), "1.34.0"
	}
	nodesAt := func(version string) func(*scope) {
		return func(s *scope) { s.HC.Status.Version = guestHistory(went(version, configv1.CompletedUpdate)) }
	}
	skipped := func(s *scope) {
		at135(s)
		cluster.Annotate(s.HC, hyperv1.SkipReleaseImageValidation, "true")
	}
	for name, test := range map[string]struct {
		image, own string
		change     func(*scope)
		want       string
	}{
		"a new cluster may start at any version":                              {tagged("1.34.0"), "", func(*scope) {}, ""},
		"an upgrade by one minor version is allowed":                          {tagged("1.36.0"), "", at135, ""},
		"an upgrade by two minor versions is rejected":                        {tagged("1.36.0"), "", at134, "spec.release.image: a control plane is upgraded by one minor version at a time"},
		"an upgrade by two minor versions of controlPlaneRelease is rejected": {tagged("1.34.0"), tagged("1.36.0"), at134, "spec.controlPlaneRelease.image: a control plane is upgraded"},
		"a downgrade is rejected":                                             {tagged("1.34.0"), "", at135, "spec.release.image: going back from version 1.35.0"},
		"a downgrade from a version whose rollout has started is rejected":    {tagged("1.35.0"), "", begun136, "spec.release.image: going back from version 1.36.0"},
		"a downgrade is allowed if validation is skipped":                     {tagged("1.34.0"), "", skipped, ""},
		"nodes may be older than the control plane":                           {tagged("1.34.0"), tagged("1.35.0"), at135, ""},
		"nodes may have the version of the control plane":                     {tagged("1.35.0"), tagged("1.35.0"), at135, ""},
		"nodes may not be newer than the control plane":                       {tagged("1.36.0"), tagged("1.35.0"), at135, "spec.release.image: version 1.36.0 is newer than the 1.35.0 of spec.controlPlaneRelease.image"},
		"a downgrade of nodes is rejected":                                    {tagged("1.34.0"), tagged("1.35.0"), func(s *scope) { at135(s); nodesAt("1.35.0")(s) }, "spec.release.image: going back from version 1.35.0"},
		"two releases of different distributions are rejected":                {fixture.OCPImage, tagged("1.35.0"), at135, "spec.controlPlaneRelease.image is a release of"},
		"with a single release, the nodes do not limit the version":           {tagged("1.35.0"), "", func(s *scope) { at135(s); nodesAt("1.36.0")(s) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := wanting(test.image, test.own, test.change)
			wanted, err := shop().resolve(t.Context(), s)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			fault := s.versionFault(wanted)
			if test.want == "" {
				NewWithT(t).Expect(fault).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(fault).To(MatchError(HavePrefix(test.want)))
		})
	}
	t.Run("When the release does not change, the version reached before should not be an error", func(t *testing.T) {
		s := wanting(tagged("1.36.0"), "", at134, func(s *scope) { s.HCP.Spec.ReleaseImage = pinned("1.36.0") })
		wanted, err := shop().resolve(t.Context(), s)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(s.versionFault(wanted)).To(Succeed())
	})
	t.Run("When OpenShift has started an upgrade, it should allow going back to the completed version", func(t *testing.T) {
		s := wanting(fixture.OCPImage, "", reporting(), func(s *scope) {
			s.HCP.Status.VersionStatus = guestHistory(went("4.21.0", configv1.PartialUpdate), went("4.20.1", configv1.CompletedUpdate))
		})
		wanted, err := shop().resolve(t.Context(), s)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(s.versionFault(wanted)).To(Succeed())
	})
}

// TestBlockedUpgrade checks when an upgrade is blocked, and the message.
func TestBlockedUpgrade(t *testing.T) {
	old := poolAt("a", "demo", "1.32.0")
	small := func(s *scope) {
		s.HCP.Status.Conditions = append(s.HCP.Status.Conditions, is("ClusterVersionUpgradeable", "False", "R", "etcd is small."))
	}
	forced := func(s *scope) { cluster.Annotate(s.HC, hyperv1.ForceUpgradeToAnnotation, tagged("1.36.0")) }
	begun := func(s *scope) {
		s.HCP.Status.ControlPlaneVersion.History = append([]hyperv1.ControlPlaneUpdateHistory{{Version: "1.36.0", State: configv1.PartialUpdate}}, s.HCP.Status.ControlPlaneVersion.History...)
	}
	for name, test := range map[string]struct {
		image, own string
		change     []func(*scope)
		objects    []client.Object
		want       []string
	}{
		"nothing blocks the upgrade, it should not be blocked":                                        {tagged("1.36.0"), "", []func(*scope){at135}, nil, nil},
		"the control plane blocks the upgrade, it should repeat the reason":                           {tagged("1.36.0"), "", []func(*scope){at135, small}, nil, []string{"from 1.35.0 to 1.36.0 now: etcd is small. Fix that", hyperv1.ForceUpgradeToAnnotation + "=" + tagged("1.36.0")}},
		"the nodes block the upgrade, it should name the pool":                                        {tagged("1.36.0"), "", []func(*scope){at135}, []client.Object{old}, []string{"a (1.32.0)"}},
		"both block the upgrade, it should name the pool":                                             {tagged("1.36.0"), "", []func(*scope){at135, small}, []client.Object{old}, []string{"a (1.32.0)"}},
		"the upgrade of controlPlaneRelease is blocked, it should name the annotation that forces it": {tagged("1.35.0"), tagged("1.36.0"), []func(*scope){at135, small}, nil, []string{hyperv1.ForceUpgradeToAnnotation + "=" + tagged("1.36.0")}},
		"a user forces the upgrade, it should not be blocked":                                         {tagged("1.36.0"), "", []func(*scope){at135, small, forced}, nil, nil},
		"the upgrade has already started, it should not be blocked":                                   {tagged("1.36.0"), "", []func(*scope){at135, small, begun}, nil, nil},
		"the version does not change, it should not be blocked":                                       {tagged("1.35.0"), "", []func(*scope){at135, small}, nil, nil},
		"there is no control plane, it should not be blocked":                                         {tagged("1.36.0"), "", nil, []client.Object{old}, nil},
		"the control plane has not completed any version, it should not be blocked":                   {tagged("1.36.0"), "", []func(*scope){reporting(), small}, nil, nil},
	} {
		t.Run("When "+name, func(t *testing.T) {
			d, s := shop(test.objects...), wanting(test.image, test.own, test.change...)
			wanted, err := d.resolve(t.Context(), s)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			why, err := d.upgradeBlocked(t.Context(), s, wanted)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(why == "").To(Equal(test.want == nil), why)
			for _, part := range test.want {
				NewWithT(t).Expect(why).To(ContainSubstring(part))
			}
		})
	}
}

func TestCompletedVersion(t *testing.T) {
	for want, version := range map[string]*hyperv1.ClusterVersionStatus{
		"":       guestHistory(went("1.36.0", configv1.PartialUpdate)),
		"1.35.0": guestHistory(went("1.36.0", configv1.PartialUpdate), went("1.35.0", configv1.CompletedUpdate), went("1.34.0", configv1.CompletedUpdate)),
	} {
		NewWithT(t).Expect(completedVersion(version)).To(Equal(want))
	}
	NewWithT(t).Expect(completedVersion(nil)).To(BeEmpty())
}
