// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/releaseinfo"
)

func TestReplicas(t *testing.T) {
	scaledOn := func(platform hyperv1.PlatformType, minimum, maximum int32) *hyperv1.NodePool {
		return &hyperv1.NodePool{Spec: hyperv1.NodePoolSpec{Platform: hyperv1.NodePoolPlatform{Type: platform},
			AutoScaling: &hyperv1.NodePoolAutoScaling{Min: ptr.To(minimum), Max: maximum}}}
	}
	scaled := func(minimum, maximum int32) *hyperv1.NodePool {
		return scaledOn(hyperv1.MAASPlatform, minimum, maximum)
	}
	for _, tc := range []struct {
		name    string
		pool    *hyperv1.NodePool
		current *int32
		want    int32
		lowest  string
	}{
		{"When replicas is not set, it should create no machines", &hyperv1.NodePool{}, nil, 0, "0"},
		{"When replicas is set, it should take precedence", &hyperv1.NodePool{Spec: hyperv1.NodePoolSpec{Replicas: ptr.To[int32](3)}}, ptr.To[int32](7), 3, "0"},
		{"When autoscaling starts, it should use the minimum", scaled(2, 5), nil, 2, "2"},
		{"When the autoscaler has set replicas, it should keep that number", scaled(2, 5), ptr.To[int32](4), 4, "2"},
		{"When replicas is above the maximum, it should use the maximum", scaled(2, 5), ptr.To[int32](9), 5, "2"},
		{"When replicas is below the minimum, it should use the minimum", scaled(2, 5), ptr.To[int32](1), 2, "2"},
		{"When the minimum is zero, it should create no machines", scaled(0, 5), nil, 0, "0"},
		{"When the autoscaler has scaled to zero, it should keep zero", scaled(0, 5), ptr.To[int32](0), 0, "0"},
		{"When the platform cannot scale from zero, it should keep one machine", scaledOn(hyperv1.KubevirtPlatform, 0, 5), ptr.To[int32](0), 1, "1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(replicas(tc.pool, tc.current)).To(HaveValue(Equal(tc.want)))
			lowest, _ := autoscalerBounds(tc.pool, &clusterv1.MachineDeployment{})
			g.Expect(lowest).To(Equal(tc.lowest))
		})
	}
}

// fromZero creates a pool that the autoscaler may scale to zero.
func (s *world) fromZero(mutate func(*hyperv1.NodePool)) {
	s.t.Helper()
	s.ready(nil)
	pool := fixture.NodePool(s.namespace)
	pool.Spec.Replicas, pool.Spec.AutoScaling = nil, &hyperv1.NodePoolAutoScaling{Min: ptr.To[int32](0), Max: 3}
	if mutate != nil {
		mutate(pool)
	}
	fixture.Create(s.t, s.client, pool)
	s.mustPass()
}

// brings sets the capacity that the provider reports for the next machine.
func (s *world) brings(cores, memory, disk string) {
	s.t.Helper()
	template := &s.templates()[0]
	template.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cores), corev1.ResourceMemory: resource.MustParse(memory)}
	if disk != "" {
		template.Status.Capacity[corev1.ResourceEphemeralStorage] = resource.MustParse(disk)
	}
	s.Expect(s.client.Status().Update(s.t.Context(), template)).To(Succeed())
	s.mustPass()
}

// autoscalers returns the annotations that the autoscaler reads, without their common prefix.
func autoscalers(obj metav1.Object) map[string]string {
	told := map[string]string{}
	for key, value := range obj.GetAnnotations() {
		if name, ok := strings.CutPrefix(key, "capacity.cluster-autoscaler.kubernetes.io/"); ok {
			told[name] = value
		}
		if name, ok := strings.CutPrefix(key, "cluster.x-k8s.io/"); ok && strings.Contains(name, "autoscal") {
			told[name] = value
		}
	}
	return told
}

func TestAutoscalerOfEmptyPool(t *testing.T) {
	c := fixture.Start(t)
	bounds := map[string]string{
		"cluster-api-autoscaler-node-group-min-size": "0", "cluster-api-autoscaler-node-group-max-size": "3",
		"autoscaling-options-maxnodeprovisiontime": "3h45m0s",
	}
	with := func(more map[string]string) map[string]string {
		all := map[string]string{}
		for _, part := range []map[string]string{bounds, more} {
			for key, value := range part {
				all[key] = value
			}
		}
		return all
	}
	labels := "hypershift.openshift.io/nodePool=demo,kubernetes.io/arch=amd64,topology.kubernetes.io/zone=az1"

	t.Run("When a NodePool starts at zero, it should create no machine and set no capacity annotations", func(t *testing.T) {
		s := newWorld(t, c, "from-zero")
		s.fromZero(nil)
		s.Expect(s.deployment().Spec.Replicas).To(HaveValue(BeZero()))
		s.Expect(cmp.Diff(bounds, autoscalers(s.deployment()))).To(BeEmpty())
	})

	t.Run("When the provider reports the capacity, the autoscaler should get what is allocatable to Pods", func(t *testing.T) {
		s := newWorld(t, c, "from-zero")
		s.brings("8", "16Gi", "120G")
		s.Expect(cmp.Diff(with(map[string]string{
			"cpu": "8", "memory": "15772Mi", "ephemeral-disk": "97274Mi", "maxPods": "110", "labels": labels,
		}), autoscalers(s.deployment()))).To(BeEmpty())
	})

	t.Run("When the annotations are up to date, it should write nothing", func(t *testing.T) {
		s := newWorld(t, c, "from-zero")
		counted := fixture.NewFaulty(c)
		s.Reconciler.Client = counted
		s.mustPass()
		s.Expect(counted.Log).To(BeEmpty())
	})

	t.Run("When the capacity, labels or taints change, it should update the annotations and replace no nodes", func(t *testing.T) {
		s := newWorld(t, c, "from-zero")
		before := s.deployment().Spec.Template
		s.change(func(p *hyperv1.NodePool) {
			p.Spec.NodeLabels = map[string]string{"rack": "r1"}
			p.Spec.Taints = []hyperv1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}, {Key: "own", Effect: corev1.TaintEffectNoExecute}}
			p.Spec.Platform.MAAS.DeployTimeout = &metav1.Duration{Duration: 10 * time.Minute}
		})
		s.brings("64", "1Ti", "")
		s.Expect(cmp.Diff(with(map[string]string{
			"cpu": "64", "memory": "1031836Mi", "maxPods": "110", "labels": strings.Replace(labels, ",topology", ",rack=r1,topology", 1),
			"taints": "gpu=yes:NoSchedule,own:NoExecute", "autoscaling-options-maxnodeprovisiontime": "1h15m0s",
		}), autoscalers(s.deployment()))).To(BeEmpty())
		s.Expect(s.deployment().Spec.Template).To(Equal(before))
	})

	t.Run("When the autoscaler changes replicas, the NodePool should keep the autoscaler's number", func(t *testing.T) {
		s := newWorld(t, c, "from-zero")
		for _, wanted := range []int32{2, 0} {
			md := s.deployment()
			md.Spec.Replicas = &wanted
			s.Expect(c.Update(t.Context(), md)).To(Succeed())
			s.mustPass()
			s.Expect(s.deployment().Spec.Replicas).To(HaveValue(Equal(wanted)))
		}
	})

	t.Run("When the cluster sets maxNodeProvisionTime, it should take precedence", func(t *testing.T) {
		s := newWorld(t, c, "from-zero")
		hc := &hyperv1.HostedCluster{}
		s.Expect(c.Get(t.Context(), ctrlKey(s.namespace, fixture.ClusterName), hc)).To(Succeed())
		hc.Spec.Autoscaling.MaxNodeProvisionTime = "90m"
		s.Expect(c.Update(t.Context(), hc)).To(Succeed())
		s.mustPass()
		s.Expect(autoscalers(s.deployment())).NotTo(HaveKey("autoscaling-options-maxnodeprovisiontime"))
	})

	t.Run("When autoscaling is disabled, it should keep only annotations that stop the autoscaler", func(t *testing.T) {
		s := newWorld(t, c, "from-zero")
		s.change(func(p *hyperv1.NodePool) { p.Spec.Replicas, p.Spec.AutoScaling = ptr.To[int32](1), nil })
		s.mustPass()
		s.Expect(cmp.Diff(map[string]string{
			"cluster-api-autoscaler-node-group-min-size": "0", "cluster-api-autoscaler-node-group-max-size": "0",
		}, autoscalers(s.deployment()))).To(BeEmpty())
	})

	t.Run("When nodes are updated in place, the MachineSet should have the same annotations", func(t *testing.T) {
		s := newWorld(t, c, "from-zero-in-place")
		s.fromZero(func(p *hyperv1.NodePool) { p.Spec.Management.UpgradeType = hyperv1.UpgradeTypeInPlace })
		s.brings("8", "16Gi", "")
		set := look(s, &clusterv1.MachineSet{}, fixture.PoolName)
		s.Expect(set.Spec.Replicas).To(HaveValue(BeZero()))
		s.Expect(cmp.Diff(with(map[string]string{"cpu": "8", "memory": "15772Mi", "maxPods": "110", "labels": labels}), autoscalers(set))).To(BeEmpty())
	})
}

func TestAutoscalerDuringUpdateInPlace(t *testing.T) {
	s := newWorld(t, fixture.Start(t), "scaled-in-place")
	s.fromZero(func(p *hyperv1.NodePool) { p.Spec.Management.UpgradeType = hyperv1.UpgradeTypeInPlace })
	set := func() *clusterv1.MachineSet { return look(s, &clusterv1.MachineSet{}, fixture.PoolName) }
	bounds := func() string {
		told := autoscalers(set())
		return told["cluster-api-autoscaler-node-group-min-size"] + " to " + told["cluster-api-autoscaler-node-group-max-size"]
	}
	changes := func(mutate func(*clusterv1.MachineSet)) {
		t.Helper()
		ms := set()
		mutate(ms)
		s.Expect(s.client.Update(t.Context(), ms)).To(Succeed())
		s.mustPass()
	}
	changes(func(ms *clusterv1.MachineSet) { ms.Spec.Replicas = ptr.To[int32](2) })
	s.Expect(bounds()).To(Equal("0 to 3"), "no update is on the way")

	t.Run("When an update starts, the bounds should prevent the autoscaler from adding or removing nodes", func(*testing.T) {
		ref := s.configMap("pods", "config", "apiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig\nmetadata: {name: pods}\n")
		s.change(func(p *hyperv1.NodePool) { p.Spec.Config = []corev1.LocalObjectReference{ref} })
		s.mustPass()
		s.Expect(bounds()).To(Equal("2 to 2"))
	})
	t.Run("When the maximum is lowered during an update, it should take precedence", func(*testing.T) {
		s.change(func(p *hyperv1.NodePool) { p.Spec.AutoScaling.Max = 1 })
		s.mustPass()
		s.Expect(bounds()).To(Equal("1 to 1"))
		s.change(func(p *hyperv1.NodePool) { p.Spec.AutoScaling.Max = 3 })
		changes(func(ms *clusterv1.MachineSet) { ms.Spec.Replicas = ptr.To[int32](2) })
		s.Expect(bounds()).To(Equal("2 to 2"))
	})
	t.Run("When the update stops at a node, the autoscaler should be allowed to add nodes", func(*testing.T) {
		changes(func(ms *clusterv1.MachineSet) {
			ms.Annotations[hyperv1.NodePoolUpgradeInProgressFalseAnnotation] = "Node a went back"
		})
		s.Expect(bounds()).To(Equal("2 to 3"))
	})
	t.Run("When all nodes are updated, it should restore the bounds of the NodePool", func(*testing.T) {
		changes(func(ms *clusterv1.MachineSet) {
			delete(ms.Annotations, hyperv1.NodePoolUpgradeInProgressFalseAnnotation)
			ms.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation] = ms.Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation]
		})
		s.Expect(bounds()).To(Equal("0 to 3"))
	})
}

func TestRoomOfNode(t *testing.T) {
	room := func(distribution releaseinfo.Distribution, have corev1.ResourceList) map[string]string {
		return (&reconciliation{
			Scope: &scope.Scope{Pool: &hyperv1.NodePool{},
				Release: releaseinfo.New("r", releaseinfo.Payload{Version: "1.36.3", Distribution: distribution})},
			capacity: platform.MachineCapacity{Resources: have},
		}).roomOfNode()
	}
	small := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi")}
	t.Run("When the system reserves more, less should be allocatable to Pods", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(room(releaseinfo.OpenShift, small)).To(And(HaveKeyWithValue(autoscalerCPU, "3500m"), HaveKeyWithValue(autoscalerMemory, "6684Mi"), HaveKeyWithValue(autoscalerPods, "250")))
		g.Expect(room(releaseinfo.Kubernetes, small)).To(And(HaveKeyWithValue(autoscalerCPU, "4"), HaveKeyWithValue(autoscalerMemory, "7708Mi")))
	})
	t.Run("When a machine is smaller than the reserved resources, nothing should be allocatable to Pods", func(t *testing.T) {
		tiny := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("128Mi")}
		NewWithT(t).Expect(room(releaseinfo.Kubernetes, tiny)).To(HaveKeyWithValue(autoscalerMemory, "0"))
	})
	t.Run("When a part of the capacity is unknown, it should report no capacity", func(t *testing.T) {
		NewWithT(t).Expect(room(releaseinfo.Kubernetes, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")})).To(BeNil())
	})
}
