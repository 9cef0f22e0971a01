// SPDX-License-Identifier: Apache-2.0

package component

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/klog/v2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// fits reports whether a node matches a term of node affinity.
func fits(t *testing.T, term corev1.NodeSelectorTerm, node *corev1.Node) bool {
	t.Helper()
	if len(term.MatchExpressions) == 0 {
		return false
	}
	for _, wanted := range term.MatchExpressions {
		if wanted.Operator != corev1.NodeSelectorOpIn {
			t.Fatalf("teach this test the operator %s", wanted.Operator)
		}
		requirement, err := labels.NewRequirement(wanted.Key, selection.In, wanted.Values)
		if err != nil {
			t.Fatalf("the scheduler refuses %v: %v", wanted, err)
		}
		if !requirement.Matches(labels.Set(node.Labels)) {
			return false
		}
	}
	return true
}

// liked returns the weight of a node for a pod, and whether the pod may run there.
func liked(t *testing.T, pod corev1.PodSpec, node *corev1.Node) (weight int32, allowed bool) {
	t.Helper()
	for i := range node.Spec.Taints {
		tolerated := false
		for j := range pod.Tolerations {
			tolerated = tolerated || pod.Tolerations[j].ToleratesTaint(klog.Background(), &node.Spec.Taints[i], false)
		}
		if !tolerated {
			return 0, false
		}
	}
	affinity := pod.Affinity.NodeAffinity
	for _, preferred := range affinity.PreferredDuringSchedulingIgnoredDuringExecution {
		if fits(t, preferred.Preference, node) {
			weight += preferred.Weight
		}
	}
	if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		for _, term := range required.NodeSelectorTerms {
			allowed = allowed || fits(t, term, node)
		}
		return weight, allowed
	}
	return weight, true
}

// reserved returns a node that is reserved by labels, and by taints with the same keys.
func reserved(set map[string]string) *corev1.Node {
	node := &corev1.Node{}
	node.Labels = set
	for key, value := range set {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule})
	}
	return node
}

// TestNodes checks which nodes of the management cluster a control plane prefers, and which it must not use.
func TestNodes(t *testing.T) {
	const controlPlane, cluster, serving = "hypershift.openshift.io/control-plane", "hypershift.openshift.io/cluster", "hypershift.openshift.io/request-serving-component"
	nodes := map[string]*corev1.Node{
		"any":                            reserved(nil),
		"of control planes":              reserved(map[string]string{controlPlane: "true"}),
		"of this cluster":                reserved(map[string]string{controlPlane: "true", cluster: namespace}),
		"of another cluster":             reserved(map[string]string{controlPlane: "true", cluster: "clusters-other"}),
		"for requests of this cluster":   reserved(map[string]string{serving: "true", cluster: namespace}),
		"for requests of another":        reserved(map[string]string{serving: "true", cluster: "clusters-other"}),
		"of another owner":               reserved(map[string]string{"example.com/gpu": "true"}),
		"no more of control planes":      reserved(map[string]string{controlPlane: "false"}),
		"for requests of no one cluster": reserved(map[string]string{serving: "true"}),
	}
	for _, tc := range []struct {
		name    string
		edit    func(*Scope)
		options Options
		// want holds the nodes on which the pod may run, with their weights.
		want map[string]int32
	}{
		{"an ordinary pod", nil, Options{}, map[string]int32{"any": 0, "of control planes": 50, "of this cluster": 150}},
		{"a request-serving pod", nil, Options{RequestServing: true}, map[string]int32{
			"any": 0, "of control planes": 50, "of this cluster": 150, "for requests of this cluster": 100, "for requests of no one cluster": 0}},
		{"a request-serving pod with dedicated nodes", annotated(topologyAnnotation, dedicatedTopology), Options{RequestServing: true},
			map[string]int32{"for requests of this cluster": 100}},
		{"another pod where request serving has dedicated nodes", annotated(topologyAnnotation, dedicatedTopology), Options{},
			map[string]int32{"any": 0, "of control planes": 50, "of this cluster": 150}},
		{"a request-serving pod with another topology", annotated(topologyAnnotation, "shared"), Options{RequestServing: true}, map[string]int32{
			"any": 0, "of control planes": 50, "of this cluster": 150, "for requests of this cluster": 100, "for requests of no one cluster": 0}},
		{"a pod with the user's tolerations", func(s *Scope) {
			s.HCP.Spec.Tolerations = []corev1.Toleration{{Key: "example.com/gpu", Operator: corev1.TolerationOpExists}}
		}, Options{}, map[string]int32{"any": 0, "of control planes": 50, "of this cluster": 150, "of another owner": 0}},
	} {
		t.Run("When it is "+tc.name+", it should prefer nodes that are reserved for it and avoid those of others", func(t *testing.T) {
			pod := rendered(t, tc.edit, tc.options).Spec.Template.Spec
			got := map[string]int32{}
			for name, node := range nodes {
				if weight, allowed := liked(t, pod, node); allowed {
					got[name] = weight
				}
			}
			NewWithT(t).Expect(got).To(Equal(tc.want))
		})
	}
}

// TestNeighbours checks that the pods of a control plane prefer one host, for short network paths, and that the
// replicas of a component do not.
func TestNeighbours(t *testing.T) {
	labelsOf := func(name, namespace string) labels.Set {
		return labels.Set{hyperv1.ControlPlaneComponentLabel: name, hyperv1.ControlPlaneNamespaceLabel: namespace}
	}
	attracts := func(t *testing.T, term corev1.PodAffinityTerm, pod labels.Set) bool {
		t.Helper()
		if term.LabelSelector == nil || len(term.LabelSelector.MatchLabels) == 0 {
			return false
		}
		return labels.SelectorFromSet(term.LabelSelector.MatchLabels).Matches(pod)
	}
	t.Run("When a Pod is placed, it should prefer hosts with other Pods of its control plane", func(t *testing.T) {
		g := NewWithT(t)
		near := rendered(t, nil, Options{}).Spec.Template.Spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		g.Expect(near).To(HaveLen(1))
		g.Expect(near[0].Weight).To(BeNumerically(">", 0), "or the API server refuses it")
		g.Expect(near[0].PodAffinityTerm.TopologyKey).To(Equal(corev1.LabelHostname))
		g.Expect(attracts(t, near[0].PodAffinityTerm, labelsOf("other", namespace))).To(BeTrue())
		g.Expect(attracts(t, near[0].PodAffinityTerm, labelsOf("other", "clusters-other"))).To(BeFalse())
	})
	for name, tc := range map[string]struct {
		edit    func(*Scope)
		options Options
		spread  bool
	}{
		"has replicas that are to be apart": {highlyAvailable, Options{MultiZone: true}, true},
		"has replicas that may be together": {highlyAvailable, Options{}, false},
		"has one replica":                   {nil, Options{MultiZone: true}, false},
		"runs once":                         {highlyAvailable, Options{MultiZone: true, Singleton: true}, false},
		"is stopped to be debugged": {func(s *Scope) {
			highlyAvailable(s)
			annotated(debugAnnotation, "web")(s)
		}, Options{MultiZone: true}, false},
	} {
		t.Run("When a component "+name+", it should be spread over hosts only if its replicas must be apart", func(t *testing.T) {
			g := NewWithT(t)
			pod := rendered(t, tc.edit, tc.options).Spec.Template.Spec
			if !tc.spread {
				g.Expect(pod.TopologySpreadConstraints).To(BeEmpty())
				g.Expect(pod.Affinity.PodAntiAffinity).To(BeNil())
				return
			}
			hosts := pod.TopologySpreadConstraints[0]
			g.Expect(hosts.MatchLabelKeys).To(Equal([]string{appsv1.DefaultDeploymentUniqueLabelKey}), "pods of the last revision are about to go")
			g.Expect(*hosts.NodeTaintsPolicy).To(Equal(corev1.NodeInclusionPolicyHonor), "a host that died is no reason to wait")
			counted := labels.SelectorFromSet(hosts.LabelSelector.MatchLabels)
			g.Expect(counted.Matches(labelsOf("web", namespace))).To(BeTrue())
			g.Expect(counted.Matches(labelsOf("web", "clusters-other"))).To(BeFalse(), "another cluster's replicas are not in the way")
			g.Expect(counted.Matches(labelsOf("etcd", namespace))).To(BeFalse())
			zones := pod.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm
			g.Expect(zones.TopologyKey).To(Equal(corev1.LabelTopologyZone))
			g.Expect(attracts(t, zones, labelsOf("web", namespace))).To(BeTrue())
			g.Expect(attracts(t, zones, labelsOf("etcd", namespace))).To(BeFalse())
		})
	}
	t.Run("When a StatefulSet is spread, it should not match on revisions, because its Pods have no such label", func(t *testing.T) {
		s := newScope()
		highlyAvailable(s)
		c := web(func(c *Component) {
			c.MultiZone = true
			c.Manifests = manifests(map[string]string{"statefulset.yaml": setYAML("8Gi")})
		})
		obj, err := c.Render(t.Context(), s)
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		hosts := obj.(*appsv1.StatefulSet).Spec.Template.Spec.TopologySpreadConstraints
		g.Expect(hosts).To(HaveLen(1))
		g.Expect(hosts[0].MatchLabelKeys).To(BeEmpty())
	})
}
