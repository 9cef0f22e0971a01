// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// payloadDigest is the digest of the payload's disk.
const payloadDigest = "sha256:12"

// keepingPool returns a pool with a cached disk, in an external cluster if credentials are given. The status contains
// the known cache.
func keepingPool(credentials *hyperv1.KubevirtPlatformCredentials, known string) platform.Pool {
	pool := cachedPool("")
	pool.NodePool.UID, pool.NodePool.Spec.ClusterName = "pool-1", "demo"
	pool.HostedCluster = testCluster(credentials).HostedCluster
	if known != "" {
		pool.NodePool.Status.Platform = &hyperv1.NodePoolPlatformStatus{KubeVirt: &hyperv1.KubeVirtNodePoolStatus{CacheName: known, Credentials: credentials}}
	}
	return pool
}

// unkeeping disables the pool's cache.
func unkeeping(pool platform.Pool) platform.Pool {
	pool.NodePool.Spec.Platform.Kubevirt.RootVolume.CacheStrategy.Type = hyperv1.KubevirtCachingStrategyNone
	return pool
}

// TestKeepWithoutCache checks that a pool without a cache makes no calls, and records only the credentials of an
// external cluster.
func TestKeepWithoutCache(t *testing.T) {
	for _, tc := range []struct {
		name        string
		credentials *hyperv1.KubevirtPlatformCredentials
	}{
		{"When virtual machines are in the hosted namespace, it should set no platform status", nil},
		{"When virtual machines are in an external cluster, it should record its credentials in the status", elsewhere()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, a := NewWithT(t), newAbroad(t)
			pool := unkeeping(keepingPool(tc.credentials, ""))
			kept, err := a.KeepImage(t.Context(), a.here, pool)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(kept.Condition).To(And(HaveField("Type", "ValidPlatformImage"), HaveField("Status", metav1.ConditionTrue), HaveField("Message", HaveSuffix(payloadDisk))))
			g.Expect(kept.Missing).To(BeFalse())
			g.Expect(kept.CheckAgain).To(BeZero())
			g.Expect(a.calls).To(BeEmpty())
			if tc.credentials == nil {
				g.Expect(kept.Status).To(BeNil())
				return
			}
			g.Expect(kept.Status.KubeVirt).To(HaveValue(Equal(hyperv1.KubeVirtNodePoolStatus{Credentials: tc.credentials})))
			kept.Status.KubeVirt.Credentials.InfraKubeConfigSecret.Name = "changed"
			g.Expect(pool.HostedCluster.Spec.Platform.Kubevirt.Credentials).To(Equal(elsewhere()), "the cluster's own is not shared")
		})
	}
}

// TestKeepImage checks from which DataVolume a pool's machines are cloned, whatever an earlier reconcile left behind.
func TestKeepImage(t *testing.T) {
	going := volume("vms", "going", "pool-1", payloadDigest)
	going.SetDeletionTimestamp(ptr.To(metav1.Now()))
	going.SetFinalizers([]string{"cdi/finalizer"})
	other := volume("vms", "others", "pool-2", payloadDigest)
	stranger := volume("vms", "stranger", "pool-1", payloadDigest)
	stranger.SetLabels(map[string]string{cachePoolLabel: "pool-1"})
	for _, tc := range []struct {
		name   string
		known  string
		there  []client.Object
		want   string // empty for a new one
		stays  []string
		writes map[string]int
	}{
		{"When there is no volume, it should create one", "", nil, "", nil, map[string]int{"create": 1}},
		{"When a volume exists but is not in the status, it should use that volume", "", []client.Object{volume("vms", "first", "pool-1", payloadDigest)}, "first", []string{"vms/first"}, nil},
		{"When two reconciles created one each, it should keep the first by name", "", []client.Object{volume("vms", "b", "pool-1", payloadDigest), volume("vms", "a", "pool-1", payloadDigest)},
			"a", []string{"vms/a"}, map[string]int{"delete": 1}},
		{"When the disk image changes, it should delete the old volume", "old", []client.Object{volume("vms", "old", "pool-1", "sha256:00")}, "", nil, map[string]int{"create": 1, "delete": 1}},
		{"When both the new and the old volume exist, it should delete only the old one", "old",
			[]client.Object{volume("vms", "old", "pool-1", "sha256:00"), volume("vms", "new", "pool-1", payloadDigest)}, "new", []string{"vms/new"}, map[string]int{"delete": 1}},
		{"When the volume is being deleted, it should create another one", "going", []client.Object{going}, "", []string{"vms/going"}, map[string]int{"create": 1}},
		{"When another pool has a volume of the same disk, it should not use that volume", "", []client.Object{other}, "", []string{"vms/others"}, map[string]int{"create": 1}},
		{"When a volume of the pool is not a cache, it should keep that volume", "", []client.Object{stranger}, "", []string{"vms/stranger"}, map[string]int{"create": 1}},
		{"When a volume of the same name is in another namespace, it should create its own", "first", []client.Object{volume("elsewhere", "first", "pool-1", payloadDigest)}, "",
			[]string{"elsewhere/first"}, map[string]int{"create": 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, a := NewWithT(t), newAbroad(t, tc.there...)
			kept, err := a.KeepImage(t.Context(), a.here, keepingPool(elsewhere(), tc.known))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(kept.Missing).To(BeFalse())
			g.Expect(kept.Condition.Status).To(Equal(metav1.ConditionTrue))
			g.Expect(kept.CheckAgain).To(Equal(goodFor), "somebody may delete it")
			name := kept.Status.KubeVirt.CacheName
			if tc.want == "" {
				g.Expect(name).To(HavePrefix("kv-boot-image-cache-"))
				tc.stays = append(tc.stays, "vms/"+name)
			} else {
				g.Expect(name).To(Equal(tc.want))
			}
			g.Expect(kept.Status.KubeVirt.Credentials).To(Equal(elsewhere()))
			g.Expect(volumesOf(t, a.there)).To(ConsistOf(tc.stays))
			for _, verb := range []string{"create", "delete", "update"} {
				g.Expect(a.calls[verb]).To(Equal(tc.writes[verb]), verb)
			}
		})
	}
}

// TestKeptOnce checks when a settled pool calls the external cluster again: if the cached finding has expired, is
// lost, or is about another disk.
func TestKeptOnce(t *testing.T) {
	g, a := NewWithT(t), newAbroad(t)
	keep := func(pool platform.Pool) string {
		kept, err := a.KeepImage(t.Context(), a.here, pool)
		g.Expect(err).NotTo(HaveOccurred())
		return kept.Status.KubeVirt.CacheName
	}
	first := keep(keepingPool(elsewhere(), ""))
	g.Expect(a.calls).To(Equal(map[string]int{"list": 1, "create": 1}))
	g.Expect(keep(keepingPool(elsewhere(), first))).To(Equal(first))
	g.Expect(a.calls["list"]).To(Equal(1), "it was asked a moment ago")

	g.Expect(keep(keepingPool(elsewhere(), ""))).To(Equal(first))
	g.Expect(a.calls).To(Equal(map[string]int{"list": 2, "create": 1}), "a status that was lost is not believed")

	a.later()
	g.Expect(keep(keepingPool(elsewhere(), first))).To(Equal(first))
	g.Expect(a.calls).To(Equal(map[string]int{"list": 3, "create": 1}), "somebody may have deleted it meanwhile")

	other := keepingPool(elsewhere(), first)
	other.NodePool.UID = "pool-2"
	g.Expect(keep(other)).NotTo(Equal(first), "each pool has its own")

	var newer releaseinfo.BootArchitecture
	newer.Images.KubeVirt = releaseinfo.BootImage{DigestRef: "quay.example/rhcos@sha256:34"}
	upgraded := keepingPool(elsewhere(), first)
	upgraded.Release = releaseinfo.New("", releaseinfo.Payload{Distribution: releaseinfo.OpenShift,
		BootImages: releaseinfo.BootImages{Architectures: map[string]releaseinfo.BootArchitecture{"x86_64": newer}}})
	g.Expect(keep(upgraded)).NotTo(Equal(first), "another disk is looked for at once")
}

// TestKeepHere checks the DataVolume in the management cluster. It is in the hosted control plane namespace, and is
// read in every reconcile.
func TestKeepHere(t *testing.T) {
	g, c, p := NewWithT(t), otherCluster(t, volume("clusters-other", "first", "pool-1", payloadDigest)), &Platform{}
	kept, err := p.KeepImage(t.Context(), c, keepingPool(nil, ""))
	g.Expect(err).NotTo(HaveOccurred())
	name := kept.Status.KubeVirt.CacheName
	g.Expect(kept.Status.KubeVirt.Credentials).To(BeNil())
	g.Expect(volumesOf(t, c)).To(ConsistOf("clusters-other/first", "clusters-demo/"+name))
	g.Expect(c.Delete(t.Context(), volume("clusters-demo", name, "pool-1", ""))).To(Succeed())
	kept, err = p.KeepImage(t.Context(), c, keepingPool(nil, name))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(volumesOf(t, c)).To(ConsistOf("clusters-other/first", "clusters-demo/"+kept.Status.KubeVirt.CacheName))
}

// TestKeptByItsDigest checks that a cached disk is identified by its digest, whatever its registry is. A disk without
// a digest is identified by its complete name.
func TestKeptByItsDigest(t *testing.T) {
	tagged := func(disk string) platform.Pool {
		pool := keepingPool(elsewhere(), "")
		var intel releaseinfo.BootArchitecture
		intel.Images.KubeVirt = releaseinfo.BootImage{Image: disk}
		pool.Release = releaseinfo.New("", releaseinfo.Payload{Distribution: releaseinfo.OpenShift,
			BootImages: releaseinfo.BootImages{Architectures: map[string]releaseinfo.BootArchitecture{"x86_64": intel}}})
		return pool
	}
	g, a := NewWithT(t), newAbroad(t)
	keep := func(disk string) string {
		kept, err := a.KeepImage(t.Context(), a.here, tagged(disk))
		g.Expect(err).NotTo(HaveOccurred())
		return kept.Status.KubeVirt.CacheName
	}
	first := keep("quay.example/disk@sha256:12")
	g.Expect(keep("mirror.example/disk@sha256:12")).To(Equal(first))
	second := keep("quay.example/disk:1")
	g.Expect(second).NotTo(Equal(first))
	g.Expect(keep("quay.example/disk:1")).To(Equal(second))
	g.Expect(keep("quay.example/disk:2")).NotTo(Equal(second))
}

// TestUnkept checks that a condition reports why a disk is missing if a user or time can fix it. The known cache stays
// recorded.
func TestUnkept(t *testing.T) {
	for _, tc := range []struct {
		name   string
		fails  func(string) error
		reason string
		says   string
		again  time.Duration
	}{
		{"When the kubeconfig may not list volumes, it should report the missing permission", only("list", forbidden), "InfraClusterForbidden", "user vms cannot", firstWait},
		{"When the kubeconfig may not create volumes, it should report the missing permission", only("create", forbidden), "InfraClusterForbidden", "lacks a right", firstWait},
		{"When the kubeconfig is rejected, it should report it and wait", only("", unauthorized), "InfraClusterUnauthorized", "does not accept", firstWait},
		{"When the external cluster does not answer, it should report it", only("", unanswered), "InfraClusterUnreachable", "does not answer", firstWait},
		{"When the external cluster is unavailable, it should report it without the server's message", only("", unavailable), "InfraClusterUnreachable", "not available", firstWait},
		{"When the DataVolume API is not found, it should report what to install and check again later", only("list", absent), "ValidationFailed", "Containerized Data Importer", lastWait},
		{"When the DataVolume kind is unknown, it should report that the cache can be disabled", only("list", &meta.NoKindMatchError{}), "ValidationFailed", "cacheStrategy.type to None", lastWait},
		{"When the namespace is missing, it should report it", only("create", absent), "ValidationFailed", "lacks the namespace", lastWait},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, a := NewWithT(t), newAbroad(t)
			a.fails = tc.fails
			kept, err := a.KeepImage(t.Context(), a.here, keepingPool(elsewhere(), "last"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(kept.Missing).To(BeTrue(), "no machine can be cloned from nothing")
			g.Expect(kept.Condition).To(And(HaveField("Type", "ValidPlatformImage"), HaveField("Status", metav1.ConditionFalse), HaveField("Reason", tc.reason)))
			g.Expect(kept.Condition.Message).To(And(HavePrefix("The disk image is not cached: "), ContainSubstring(tc.says), Not(ContainSubstring("10.0.0.7"))))
			g.Expect(kept.CheckAgain).To(Equal(tc.again))
			g.Expect(kept.Status.KubeVirt.CacheName).To(Equal("last"), "existing machines were made of it")
			g.Expect(kept.Status.KubeVirt.Credentials).To(Equal(elsewhere()))

			a.fails = nil
			a.later()
			kept, err = a.KeepImage(t.Context(), a.here, keepingPool(elsewhere(), "last"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(kept.Missing).To(BeFalse(), "it comes by itself")
		})
	}
	t.Run("When too many external clusters are being called, it should retry soon", func(t *testing.T) {
		g, a := NewWithT(t), newAbroad(t)
		a.infra.calls = callsOfOthers(parallelCalls)
		kept, err := a.KeepImage(t.Context(), a.here, keepingPool(elsewhere(), ""))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kept.Condition.Reason).To(Equal("WaitingForInfraCluster"))
		g.Expect(kept.CheckAgain).To(Equal(busyWait))
		g.Expect(a.calls).To(BeEmpty())
	})
	t.Run("When the old volume cannot be deleted, it should not create the new one", func(t *testing.T) {
		g, a := NewWithT(t), newAbroad(t, volume("vms", "old", "pool-1", "sha256:00"))
		a.fails = only("delete", forbidden)
		kept, err := a.KeepImage(t.Context(), a.here, keepingPool(elsewhere(), "old"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kept.Condition.Reason).To(Equal("InfraClusterForbidden"))
		g.Expect(volumesOf(t, a.there)).To(ConsistOf("vms/old"))
		a.fails = only("delete", absent)
		a.later()
		kept, err = a.KeepImage(t.Context(), a.here, keepingPool(elsewhere(), "old"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kept.Missing).To(BeFalse(), "somebody else deleted it meanwhile")
	})
	t.Run("When the management cluster fails, it should return an error", func(t *testing.T) {
		g := NewWithT(t)
		c := failingClient(otherCluster(t), "list", errors.New("etcd is slow"))
		_, err := (&Platform{}).KeepImage(t.Context(), c, keepingPool(nil, ""))
		g.Expect(err).To(MatchError(And(ContainSubstring("namespace clusters-demo"), ContainSubstring("etcd is slow"))))
	})
	t.Run("When the management cluster has no Containerized Data Importer, it should report it", func(t *testing.T) {
		g := NewWithT(t)
		c := failingClient(fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build(), "list", &meta.NoKindMatchError{GroupKind: dataVolumes.GroupKind()})
		kept, err := (&Platform{}).KeepImage(t.Context(), c, keepingPool(nil, "last"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kept.Condition.Reason).To(Equal("ValidationFailed"))
		g.Expect(kept.Status.KubeVirt.CacheName).To(Equal("last"))
	})
}

// TestNoLongerKept checks that a pool that disables its cache leaves no volume behind, and that a volume stays
// recorded until it is deleted.
func TestNoLongerKept(t *testing.T) {
	t.Run("When all requests succeed, it should delete all of the pool's volumes", func(t *testing.T) {
		g, a := NewWithT(t), newAbroad(t, volume("vms", "a", "pool-1", payloadDigest), volume("vms", "b", "pool-1", "sha256:00"), volume("vms", "c", "pool-2", payloadDigest))
		kept, err := a.KeepImage(t.Context(), a.here, unkeeping(keepingPool(elsewhere(), "a")))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kept.Missing).To(BeFalse())
		g.Expect(kept.Status.KubeVirt.CacheName).To(BeEmpty())
		g.Expect(volumesOf(t, a.there)).To(ConsistOf("vms/c"))
	})
	t.Run("When the external cluster does not answer, it should keep the volume in the status", func(t *testing.T) {
		g, a := NewWithT(t), newAbroad(t, volume("vms", "a", "pool-1", payloadDigest))
		a.fails = only("", unanswered)
		kept, err := a.KeepImage(t.Context(), a.here, unkeeping(keepingPool(elsewhere(), "a")))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kept.Condition.Reason).To(Equal("InfraClusterUnreachable"))
		g.Expect(kept.Status.KubeVirt.CacheName).To(Equal("a"))
	})
	t.Run("When the Containerized Data Importer is gone, it should remove the volume from the status", func(t *testing.T) {
		g, a := NewWithT(t), newAbroad(t)
		a.fails = only("list", &meta.NoKindMatchError{})
		kept, err := a.KeepImage(t.Context(), a.here, unkeeping(keepingPool(elsewhere(), "a")))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kept.Missing).To(BeFalse())
		g.Expect(kept.Status.KubeVirt.CacheName).To(BeEmpty())
	})
	t.Run("When the volume is in the hosted namespace, it should remove the volume and the status", func(t *testing.T) {
		g, c := NewWithT(t), otherCluster(t, volume("clusters-demo", "a", "pool-1", payloadDigest))
		kept, err := (&Platform{}).KeepImage(t.Context(), c, unkeeping(keepingPool(nil, "a")))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kept.Status).To(BeNil())
		g.Expect(volumesOf(t, c)).To(BeEmpty())
	})
}

// TestDropImage checks that a pool's deletion deletes its volumes. It waits for a cluster that may respond again, but
// not if its kubeconfig is gone.
func TestDropImage(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fails func(string) error
		// without deletes the user's Secret.
		without bool
		waits   string
		stays   []string
	}{
		{"When the external cluster answers, it should delete all volumes", nil, false, "", nil},
		{"When a volume is deleted concurrently, it should not wait for it", only("delete", absent), false, "", []string{"vms/a"}},
		{"When the external cluster does not answer, it should report the wait and how to skip it", only("", unanswered), false,
			"Waiting to delete the DataVolumes with label hypershift.openshift.io/nodepool-uid=pool-1 of namespace vms: the cluster for virtual machines cannot be used: " +
				"it does not answer: check the server in its kubeconfig, and that the management cluster reaches it; delete Secret clusters/infra to leave them behind", []string{"vms/a"}},
		{"When a permission is missing, it should report which one", only("delete", forbidden), false, "user vms cannot", []string{"vms/a"}},
		{"When the user deleted the kubeconfig, it should not wait", only("", unanswered), true, "", []string{"vms/a"}},
	} {
		for what, hc := range map[string]*hyperv1.HostedCluster{"there": testCluster(elsewhere()).HostedCluster, "gone": nil} {
			t.Run(tc.name+", with the cluster "+what, func(t *testing.T) {
				g, a := NewWithT(t), newAbroad(t, volume("vms", "a", "pool-1", payloadDigest))
				a.fails = tc.fails
				if tc.without {
					g.Expect(a.here.Delete(t.Context(), userSecret("", ""))).To(Succeed())
				}
				pool := keepingPool(elsewhere(), "a")
				pool.HostedCluster = hc
				waits, err := a.DropImage(t.Context(), a.here, pool)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(waits).To(ContainSubstring(tc.waits))
				g.Expect(waits == "").To(Equal(tc.waits == ""), waits)
				g.Expect(volumesOf(t, a.there)).To(ConsistOf(tc.stays))
			})
		}
	}
	t.Run("When the pool never had a cache, it should make no calls", func(t *testing.T) {
		g, a := NewWithT(t), newAbroad(t)
		g.Expect(a.DropImage(t.Context(), a.here, unkeeping(keepingPool(elsewhere(), "")))).To(BeEmpty())
		g.Expect(a.calls).To(BeEmpty())
	})
	t.Run("When a volume exists but is not in the status, it should delete that volume", func(t *testing.T) {
		g, a := NewWithT(t), newAbroad(t, volume("vms", "a", "pool-1", payloadDigest))
		g.Expect(a.DropImage(t.Context(), a.here, keepingPool(elsewhere(), ""))).To(BeEmpty())
		g.Expect(volumesOf(t, a.there)).To(BeEmpty())
	})
	t.Run("When the cache was disabled and a volume is left, it should delete that volume", func(t *testing.T) {
		g, a := NewWithT(t), newAbroad(t, volume("vms", "a", "pool-1", payloadDigest))
		g.Expect(a.DropImage(t.Context(), a.here, unkeeping(keepingPool(elsewhere(), "a")))).To(BeEmpty())
		g.Expect(volumesOf(t, a.there)).To(BeEmpty())
	})
	t.Run("When the cluster is gone and the status has no credentials, it should use the hosted namespace", func(t *testing.T) {
		g, c := NewWithT(t), otherCluster(t, volume("clusters-demo", "a", "pool-1", payloadDigest), volume("clusters", "b", "pool-1", payloadDigest))
		pool := keepingPool(nil, "a")
		pool.HostedCluster = nil
		g.Expect((&Platform{}).DropImage(t.Context(), c, pool)).To(BeEmpty())
		g.Expect(volumesOf(t, c)).To(ConsistOf("clusters/b"))
	})
	t.Run("When the user's Secret cannot be read, it should return an error and keep waiting", func(t *testing.T) {
		g, a := NewWithT(t), newAbroad(t, volume("vms", "a", "pool-1", payloadDigest))
		a.fails = only("", unanswered)
		_, err := a.DropImage(t.Context(), failingGet(a.here, "infra"), keepingPool(elsewhere(), "a"))
		g.Expect(err).To(MatchError(ContainSubstring("timed out")))
	})
	t.Run("When the management cluster fails to delete a volume, it should return an error", func(t *testing.T) {
		g := NewWithT(t)
		c := failingClient(otherCluster(t, volume("clusters-demo", "a", "pool-1", payloadDigest)), "delete", errors.New("etcd is slow"))
		_, err := (&Platform{}).DropImage(t.Context(), c, keepingPool(nil, "a"))
		g.Expect(err).To(MatchError(And(ContainSubstring("DataVolume a"), ContainSubstring("etcd is slow"))))
	})
}

// TestDroppedWhereNothingLeads checks that the deletion waits for an existing Secret without a kubeconfig, because a
// user may still fix it.
func TestDroppedWhereNothingLeads(t *testing.T) {
	g, p := NewWithT(t), &Platform{}
	broken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "infra"}}
	g.Expect(p.DropImage(t.Context(), testClient(t, broken), keepingPool(elsewhere(), "a"))).To(ContainSubstring("Secret clusters/infra has no kubeconfig under config"))
	g.Expect(p.DropImage(t.Context(), testClient(t), keepingPool(elsewhere(), "a"))).To(BeEmpty())
	unnamed := elsewhere()
	unnamed.InfraKubeConfigSecret = nil
	g.Expect(p.DropImage(t.Context(), testClient(t), keepingPool(unnamed, "a"))).To(BeEmpty(), "no Secret is named that could come")
}
