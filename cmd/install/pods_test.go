// SPDX-License-Identifier: Apache-2.0

package install

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/management"
)

// matches reports whether a selector matches these labels.
func matches(t *testing.T, selector *metav1.LabelSelector, of map[string]string) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return s.Matches(labels.Set(of))
}

// port returns the container port with this name; 0 if there is none.
func port(c corev1.Container, name intstr.IntOrString) int32 {
	for _, p := range c.Ports {
		if p.Name == name.StrVal {
			return p.ContainerPort
		}
	}
	return 0
}

// TestPartsFitTogether checks that the selectors of all other objects match the operator's pods.
func TestPartsFitTogether(t *testing.T) {
	g := NewWithT(t)
	o := installation(t, "--namespace=other", "--replicas=2", "--management-apis", management.Monitoring)
	deployment := the[*appsv1.Deployment](t, o, operatorName)
	pod := deployment.Spec.Template
	g.Expect(matches(t, deployment.Spec.Selector, pod.Labels)).To(BeTrue())
	g.Expect(*deployment.Spec.Replicas).To(BeEquivalentTo(2))

	service := the[*corev1.Service](t, o, operatorName)
	g.Expect(labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels))).To(BeTrue())
	g.Expect(service.Spec.Selector).NotTo(BeEmpty())
	container := pod.Spec.Containers[0]
	for _, p := range service.Spec.Ports {
		g.Expect(port(container, p.TargetPort)).NotTo(BeZero(), p.Name)
	}
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
		g.Expect(container.Args).To(ContainElement("--health-probe-addr=:8081"))
		g.Expect(port(container, probe.HTTPGet.Port)).To(BeEquivalentTo(8081))
	}
	g.Expect(container.LivenessProbe.HTTPGet.Path).NotTo(Equal(container.ReadinessProbe.HTTPGet.Path))
	g.Expect(container.Args).To(ContainElement("--metrics-addr=:9000"))
	g.Expect(port(container, intstr.FromString("metrics"))).To(BeEquivalentTo(9000))

	monitor := the[*monitoringv1.ServiceMonitor](t, o, "operator")
	g.Expect(monitor.Namespace).To(Equal("other"))
	g.Expect(matches(t, &monitor.Spec.Selector, service.Labels)).To(BeTrue(), "it finds Services by their labels")
	g.Expect(service.Spec.Ports).To(ContainElement(HaveField("Name", monitor.Spec.Endpoints[0].Port)))

	account := the[*corev1.ServiceAccount](t, o, pod.Spec.ServiceAccountName)
	for _, obj := range o.resources() {
		var subjects []rbacv1.Subject
		switch binding := obj.(type) {
		case *rbacv1.ClusterRoleBinding:
			subjects = binding.Subjects
		case *rbacv1.RoleBinding:
			subjects = binding.Subjects
		default:
			continue
		}
		g.Expect(subjects).To(ConsistOf(rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}), obj.GetName())
	}
	the[*schedulingv1.PriorityClass](t, o, pod.Spec.PriorityClassName)
	term := pod.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm
	g.Expect(matches(t, term.LabelSelector, pod.Labels)).To(BeTrue(), "two pods keep away from each other")
	g.Expect(matches(t, term.LabelSelector, map[string]string{"app": "another"})).To(BeFalse(), "and from nobody else")
	g.Expect(term.TopologyKey).To(Equal(corev1.LabelHostname))
	for _, rules := range the[*monitoringv1.PrometheusRule](t, o, "metrics").Spec.Groups {
		for _, rule := range rules.Rules {
			g.Expect(rule.Expr.StrVal).NotTo(ContainSubstring("NAMESPACE"), rule.Record)
		}
	}
}

// TestPodsAskForLittle checks that no pod has more permissions than its work needs.
func TestPodsAskForLittle(t *testing.T) {
	for name, user := range map[string]*int64{"": ptrTo(1000), management.Security: nil} {
		t.Run("When the management cluster has "+name+" the operator should run as the expected user", func(t *testing.T) {
			g := NewWithT(t)
			pod := the[*appsv1.Deployment](t, installation(t, "--management-apis="+name), operatorName).Spec.Template.Spec
			g.Expect(pod.SecurityContext.RunAsUser).To(Equal(user), "OpenShift chooses the user of each namespace itself")
			g.Expect(pod.SecurityContext.RunAsNonRoot).To(HaveValue(BeTrue()))
			g.Expect(pod.SecurityContext.SeccompProfile.Type).To(Equal(corev1.SeccompProfileTypeRuntimeDefault))
			for _, c := range append(pod.InitContainers, pod.Containers...) {
				g.Expect(c.SecurityContext.AllowPrivilegeEscalation).To(HaveValue(BeFalse()), c.Name)
				g.Expect(c.SecurityContext.ReadOnlyRootFilesystem).To(HaveValue(BeTrue()), c.Name)
				g.Expect(c.SecurityContext.Capabilities.Drop).To(ConsistOf(corev1.Capability("ALL")), c.Name)
				g.Expect(c.SecurityContext.Capabilities.Add).To(BeEmpty(), c.Name)
				g.Expect(c.Resources.Requests.Memory().IsZero()).To(BeFalse(), "a node that is full must know what the operator needs")
			}
		})
	}
	t.Run("When nodes hold virtual IPs, their Pods should have only the network capabilities", func(t *testing.T) {
		g := NewWithT(t)
		c := the[*appsv1.DaemonSet](t, installation(t, "--api-virtual-ip=10.0.0.5"), virtualIPName).Spec.Template.Spec.Containers[0]
		g.Expect(c.SecurityContext.Capabilities.Drop).To(ConsistOf(corev1.Capability("ALL")))
		g.Expect(c.SecurityContext.Capabilities.Add).To(ConsistOf(corev1.Capability("NET_ADMIN"), corev1.Capability("NET_RAW")))
		g.Expect(c.SecurityContext.Privileged).To(BeNil())
		g.Expect(c.SecurityContext.AllowPrivilegeEscalation).To(HaveValue(BeFalse()))
	})
}

func ptrTo(n int64) *int64 { return &n }

// reaches reports whether an egress rule allows calls to an external address.
func reaches(rule networkingv1.NetworkPolicyEgressRule, address string) bool {
	ip := netip.MustParseAddr(address)
	return slices.ContainsFunc(rule.To, func(to networkingv1.NetworkPolicyPeer) bool {
		if to.IPBlock == nil || !netip.MustParsePrefix(to.IPBlock.CIDR).Contains(ip) {
			return false
		}
		return !slices.ContainsFunc(to.IPBlock.Except, func(except string) bool { return netip.MustParsePrefix(except).Contains(ip) })
	})
}

func TestNetworkPolicy(t *testing.T) {
	g := NewWithT(t)
	o := installation(t, "--namespace=other")
	policy := the[*networkingv1.NetworkPolicy](t, o, operatorName)
	pod := the[*appsv1.Deployment](t, o, operatorName).Spec.Template
	g.Expect(policy.Namespace).To(Equal("other"))
	g.Expect(matches(t, &policy.Spec.PodSelector, pod.Labels)).To(BeTrue())
	g.Expect(policy.Spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress))
	g.Expect(policy.Spec.Egress).To(HaveLen(2))
	for address, want := range map[string]bool{
		"192.0.2.1": true, "10.0.0.1": true, "2001:db8::1": true,
		// The metadata service of a cloud, and link-local addresses of the node.
		"169.254.169.254": false, "169.254.0.1": false, "fe80::1": false,
	} {
		g.Expect(reaches(policy.Spec.Egress[0], address)).To(Equal(want), address)
		g.Expect(reaches(policy.Spec.Egress[1], address)).NotTo(Equal(want), address)
	}
	for _, dns := range policy.Spec.Egress[1].Ports {
		g.Expect(dns.Port.IntValue()).To(Equal(53), "a DNS cache of the node has any link-local address")
	}
	from := map[string]bool{} // The value is true if only some sources may call the port.
	for _, rule := range policy.Spec.Ingress {
		for _, p := range rule.Ports {
			g.Expect(port(pod.Spec.Containers[0], *p.Port)).NotTo(BeZero(), p.Port.StrVal)
			from[p.Port.StrVal] = len(rule.From) > 0
		}
	}
	g.Expect(from).To(Equal(map[string]bool{"manager": false, "metrics": true}), "an API server may call from anywhere, and metrics are for who monitors")
}

// TestVirtualIPPods checks how the virtual IP flags configure the pods.
func TestVirtualIPPods(t *testing.T) {
	holder := func(t *testing.T, args ...string) *appsv1.DaemonSet {
		t.Helper()
		return the[*appsv1.DaemonSet](t, installation(t, append([]string{"--api-virtual-ip=10.0.0.5,fd00:0::5"}, args...)...), virtualIPName)
	}
	t.Run("When only virtual IPs are set, any Linux node with a healthy kube-proxy should hold them", func(t *testing.T) {
		g := NewWithT(t)
		set := holder(t)
		g.Expect(set.Annotations).To(HaveKeyWithValue("hypershift.openshift.io/api-virtual-ip", "10.0.0.5,fd00::5"), "who creates clusters finds them there")
		pod := set.Spec.Template.Spec
		g.Expect(pod.NodeSelector).To(Equal(map[string]string{corev1.LabelOSStable: "linux"}))
		g.Expect(pod.HostNetwork).To(BeTrue())
		g.Expect(matches(t, set.Spec.Selector, set.Spec.Template.Labels)).To(BeTrue())
		args := pod.Containers[0].Args
		g.Expect(args[0]).To(Equal("virtual-ip"))
		g.Expect(args).To(ContainElements("--address=10.0.0.5,fd00::5", "--lease-duration=6s", "--health-check=http://127.0.0.1:10256/healthz"))
		g.Expect(args).NotTo(ContainElement(HavePrefix("--interface")))
		g.Expect(pod.Containers[0].Env).To(ConsistOf(
			HaveField("ValueFrom.FieldRef.FieldPath", "spec.nodeName"), HaveField("ValueFrom.FieldRef.FieldPath", "metadata.namespace")))
		for _, probe := range []*corev1.Probe{pod.Containers[0].LivenessProbe, pod.Containers[0].ReadinessProbe} {
			g.Expect(args).To(ContainElement("--health-probe-addr=" + probe.HTTPGet.Host + ":" + probe.HTTPGet.Port.String()))
		}
	})
	t.Run("When more virtual IP flags are set, the Pods should use them", func(t *testing.T) {
		g := NewWithT(t)
		pod := holder(t, "--api-virtual-ip-interface=bond0", "--api-virtual-ip-node-selector=rack=a", "--api-virtual-ip-lease-duration=9s", "--api-virtual-ip-health-check=").Spec.Template.Spec
		g.Expect(pod.NodeSelector).To(Equal(map[string]string{corev1.LabelOSStable: "linux", "rack": "a"}))
		g.Expect(pod.Containers[0].Args).To(ContainElements("--interface=bond0", "--lease-duration=9s"))
		g.Expect(pod.Containers[0].Args).NotTo(ContainElement(HavePrefix("--health-check")))
	})
	for _, security := range []bool{false, true} {
		t.Run("When the management cluster restricts Pods with OpenShift's SCCs: "+map[bool]string{true: "yes", false: "no"}[security]+", it should ask for a way around them only there", func(t *testing.T) {
			g := NewWithT(t)
			args := []string{"--api-virtual-ip=10.0.0.5"}
			if security {
				args = append(args, "--management-apis", management.Security)
			}
			o := installation(t, args...)
			bound := slices.ContainsFunc(o.resources(), func(obj client.Object) bool {
				binding, ok := obj.(*rbacv1.RoleBinding)
				return ok && binding.Namespace == "hypershift-virtual-ip" && strings.HasSuffix(binding.RoleRef.Name, ":privileged")
			})
			g.Expect(bound).To(Equal(security))
			namespace := the[*corev1.Namespace](t, o, "hypershift-virtual-ip")
			g.Expect(namespace.Labels).To(HaveKeyWithValue("pod-security.kubernetes.io/enforce", "privileged"), "Kubernetes' own rules would refuse the node's network")
			g.Expect(the[*corev1.Namespace](t, o, "hypershift").Labels).NotTo(HaveKey("pod-security.kubernetes.io/enforce"))
		})
	}
	t.Run("When no virtual IP is set, it should create no objects for virtual IPs", func(t *testing.T) {
		for _, obj := range installation(t).resources() {
			NewWithT(t).Expect(obj.GetName() + obj.GetNamespace()).NotTo(ContainSubstring("virtual-ip"))
		}
	})
}

// TestPodProblemOfSeveral checks that the newest pod is reported, with the first thing that it waits for.
func TestPodProblemOfSeveral(t *testing.T) {
	at := func(second int64, name string, reason string) corev1.Pod {
		p := corev1.Pod{}
		p.Name, p.CreationTimestamp = name, metav1.Unix(second, 0)
		if reason != "" {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: operatorName, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
		}
		p.Status.Phase = corev1.PodRunning
		return p
	}
	for name, tt := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"When an old Pod runs and the new Pod fails, it should report the new Pod": {[]corev1.Pod{at(1, "old", ""), at(2, "new", "ErrImagePull")}, "container operator of pod new: ErrImagePull"},
		"When the new Pod is listed first, it should still report the new Pod":     {[]corev1.Pod{at(2, "new", "ErrImagePull"), at(1, "old", "")}, "container operator of pod new: ErrImagePull"},
		"When an old Pod fails and the new Pod runs, it should report the new Pod": {[]corev1.Pod{at(1, "old", "ErrImagePull"), at(2, "new", "")}, "pod new is Running"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(podProblem(tt.pods)).To(Equal(tt.want))
		})
	}
	t.Run("When an init container fails, it should report it before the containers that wait for it", func(t *testing.T) {
		pod := at(1, "new", "PodInitializing")
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init-environment", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}}}}
		NewWithT(t).Expect(podProblem([]corev1.Pod{pod})).To(Equal("container init-environment of pod new: CrashLoopBackOff: back-off"))
	})
	t.Run("When a Pod is scheduled, it should report no scheduling problem", func(t *testing.T) {
		pod := at(1, "new", "")
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionFalse, Message: "not yet"}}
		NewWithT(t).Expect(podProblem([]corev1.Pod{pod})).To(Equal("pod new is Running"))
	})
}
