// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// broken makes the adapter of config.yaml return an error; nil repairs it.
func broken(c *Component, why error) {
	c.Adapters = map[string]Adapter{"config.yaml": Adapt(func(context.Context, *Scope, *corev1.ConfigMap) error { return why })}
}

// TestReportOutlivesErrors checks that an error keeps the previous report. A component that cannot be rolled out may
// still serve, and other components depend on its report.
func TestReportOutlivesErrors(t *testing.T) {
	g, s, c := NewWithT(t), newScope(), web()
	broken(c, errAway)
	g.Expect(c.Reconcile(t.Context(), s)).To(MatchError(errAway))
	g.Expect(reported(t, s, c, "Available")).To(Equal("False/NotFound"), "it never ran")
	g.Expect(get(t, s, c.Name, &hyperv1.ControlPlaneComponent{}).Status.Resources).To(BeEmpty())

	broken(c, nil)
	g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
	finish(t, s)
	g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
	before := get(t, s, c.Name, &hyperv1.ControlPlaneComponent{}).Status
	g.Expect(before.Resources).To(HaveLen(4))

	broken(c, errAway)
	s.Version, s.HCP.Generation = "1.37.0", 4
	g.Expect(c.Reconcile(t.Context(), s)).To(MatchError(errAway))
	after := get(t, s, c.Name, &hyperv1.ControlPlaneComponent{})
	g.Expect(reported(t, s, c, "Available")).To(Equal("True/AsExpected"), "nobody took it away")
	g.Expect(reported(t, s, c, "RolloutComplete")).To(Equal("False/" + ReasonError))
	g.Expect(after.Status.Version).To(Equal("1.36.3"), "its pods run that")
	g.Expect(after.Status.Resources).To(Equal(before.Resources), "what was applied last is still there")
	g.Expect(after.Status.ObservedGeneration).To(Equal(int64(4)))
	g.Expect(meta.FindStatusCondition(after.Status.Conditions, "RolloutComplete").Message).To(ContainSubstring("the API server is away"))
	g.Expect(Done(after, "1.36.3", 4)).To(BeFalse(), "who depends on it waits")

	version := after.ResourceVersion
	g.Expect(c.Reconcile(t.Context(), s)).To(MatchError(errAway))
	g.Expect(get(t, s, c.Name, &hyperv1.ControlPlaneComponent{}).ResourceVersion).To(Equal(version), "an error that stays is written once")
}

func TestDone(t *testing.T) {
	of := func(available, rolledOut metav1.ConditionStatus) *hyperv1.ControlPlaneComponent {
		return &hyperv1.ControlPlaneComponent{Status: hyperv1.ControlPlaneComponentStatus{Version: "1.36.3", ObservedGeneration: 3, Conditions: []metav1.Condition{
			{Type: string(hyperv1.ControlPlaneComponentAvailable), Status: available}, {Type: string(hyperv1.ControlPlaneComponentRolloutComplete), Status: rolledOut},
		}}}
	}
	for _, tc := range []struct {
		name string
		of   *hyperv1.ControlPlaneComponent
		want bool
	}{
		{"serves and has rolled out", of("True", "True"), true},
		{"rolls out", of("True", "False"), false},
		{"does not serve", of("False", "True"), false},
		{"says nothing", &hyperv1.ControlPlaneComponent{Status: hyperv1.ControlPlaneComponentStatus{Version: "1.36.3", ObservedGeneration: 3}}, false},
	} {
		t.Run("When a dependency "+tc.name+", it should let dependent components continue only if it is complete", func(t *testing.T) {
			NewWithT(t).Expect(Done(tc.of, "1.36.3", 3)).To(Equal(tc.want))
		})
	}
	t.Run("When control plane and guest run different releases, components should wait for the control plane's release", func(t *testing.T) {
		dependency := of("True", "True")
		dependency.Namespace, dependency.Name = namespace, "etcd"
		s := newScope(dependency)
		c := web(func(c *Component) { c.Dependencies = []string{"etcd"} })
		g := NewWithT(t)
		s.Version = "1.35.0"
		g.Expect(c.unmet(t.Context(), s)).To(Equal([]string{"etcd"}))
		s.ControlPlaneVersion = "1.36.3"
		g.Expect(c.unmet(t.Context(), s)).To(BeEmpty())
	})
}

// TestDependencyThatStartsToRollOut checks that the dependents of a component wait although a cache still has the status
// from before its rollout.
func TestDependencyThatStartsToRollOut(t *testing.T) {
	g := NewWithT(t)
	before := newScope()
	first := web()
	second := web(func(c *Component) {
		c.Name, c.Dependencies = "etcd-second", []string{first.Name}
		second := strings.ReplaceAll(deploymentYAML, "metadata: {name: web}", "metadata: {name: second}")
		c.Manifests = manifests(map[string]string{"deployment.yaml": second})
	})
	g.Expect(first.Reconcile(t.Context(), before)).To(Succeed())
	finish(t, before)
	g.Expect(first.Reconcile(t.Context(), before)).To(Succeed())
	g.Expect(second.Reconcile(t.Context(), before)).To(Succeed())
	image := func() string {
		return get(t, before, "second", &appsv1.Deployment{}).Spec.Template.Spec.Containers[0].Image
	}
	g.Expect(image()).To(Equal("registry/web:1"))

	cached := get(t, before, first.Name, &hyperv1.ControlPlaneComponent{})
	rolling := get(t, before, "web", &appsv1.Deployment{})
	rolling.Status.UpdatedReplicas = 0
	g.Expect(before.Client.Status().Update(t.Context(), rolling)).To(Succeed())
	behind := interceptor.NewClient(before.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
			opts ...client.GetOption) error {
			if cpc, ok := obj.(*hyperv1.ControlPlaneComponent); ok && key.Name == first.Name {
				cached.DeepCopyInto(cpc)
				return nil
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	after := &Scope{Client: behind, HCP: before.HCP, Version: before.Version, Images: payload{"web": "registry/web:2"}}
	g.Expect(first.Reconcile(t.Context(), after)).To(Succeed())
	g.Expect(second.Reconcile(t.Context(), after)).To(Succeed())
	g.Expect(image()).To(Equal("registry/web:1"))
	g.Expect(reported(t, before, second, "RolloutComplete")).To(Equal("False/WaitingForDependencies"))
}

// TestFirstStart checks that components whose pods wait for their dependencies are created together with them, and that
// they follow in order in each later release.
func TestFirstStart(t *testing.T) {
	g := NewWithT(t)
	first := &hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd"}}
	s := newScope(first)
	c := web(func(c *Component) { c.Name, c.Dependencies, c.WaitsInPod = "etcd-web", []string{"etcd"}, true })
	g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
	g.Expect(gone(t, s, "web", &appsv1.Deployment{})).To(BeFalse())
	g.Expect(reported(t, s, c, "RolloutComplete")).NotTo(ContainSubstring("WaitingForDependencies"))

	first = get(t, s, "etcd", &hyperv1.ControlPlaneComponent{})
	first.Status.Version = "1.35.0"
	g.Expect(s.Client.Status().Update(t.Context(), first)).To(Succeed())
	g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
	g.Expect(reported(t, s, c, "RolloutComplete")).To(Equal("False/WaitingForDependencies"))
}

// TestComponentsThatTheAPIServerNeeds checks that these components do not wait for the API server: otherwise no control
// plane would start.
func TestComponentsThatTheAPIServerNeeds(t *testing.T) {
	hcp := newScope().HCP
	for _, name := range []string{"kube-apiserver", "etcd", "control-plane-operator", "cluster-api", "capi-provider", "router", "ignition-server-proxy", "karpenter"} {
		t.Run("When the component is "+name+", it should not wait for the API server", func(t *testing.T) {
			NewWithT(t).Expect((&Component{Name: name}).dependencies(hcp)).To(BeEmpty())
		})
	}
	t.Run("When several dependencies are declared, it should return them sorted and unique, and not change the input", func(t *testing.T) {
		g, declared := NewWithT(t), []string{"router", "etcd", "router"}
		g.Expect((&Component{Name: "web", Dependencies: declared}).dependencies(hcp)).To(Equal([]string{"etcd", "kube-apiserver", "router"}))
		g.Expect(declared).To(Equal([]string{"router", "etcd", "router"}))
	})
}

func TestJobs(t *testing.T) {
	job := func(conditions ...batchv1.JobCondition) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: batchv1.JobStatus{Conditions: conditions}}
	}
	condition := func(t batchv1.JobConditionType, status corev1.ConditionStatus, message string) batchv1.JobCondition {
		return batchv1.JobCondition{Type: t, Status: status, Message: message}
	}
	for _, tc := range []struct {
		name               string
		job                *batchv1.Job
		available, message string
	}{
		{"is done", job(condition(batchv1.JobComplete, corev1.ConditionTrue, "")), "True/JobComplete", ""},
		{"failed", job(condition(batchv1.JobFailed, corev1.ConditionTrue, "deadline")), "False/JobFailed", "Job web failed: deadline"},
		{"is said not to be done", job(condition(batchv1.JobComplete, corev1.ConditionFalse, "")), "False/JobActive", "Job web has not finished"},
		{"is said not to have failed", job(condition(batchv1.JobFailed, corev1.ConditionFalse, "")), "False/JobActive", "Job web has not finished"},
		{"is suspended", job(condition(batchv1.JobSuspended, corev1.ConditionTrue, "")), "False/JobActive", "Job web has not finished"},
		{"is about to fail, and does", job(condition(batchv1.JobFailureTarget, corev1.ConditionTrue, "soon"), condition(batchv1.JobFailed, corev1.ConditionTrue, "now")),
			"False/JobFailed", "Job web failed: now"},
	} {
		t.Run("When a Job "+tc.name+", it should report that in the conditions", func(t *testing.T) {
			g, h := NewWithT(t), healthOf(tc.job)
			g.Expect(string(h.available.Status) + "/" + h.available.Reason).To(Equal(tc.available))
			g.Expect(h.available.Message).To(Equal(tc.message))
			g.Expect(h.rolledOut.Message).To(Equal(tc.message))
			g.Expect(h.rolledOut.Status).To(Equal(h.available.Status))
		})
	}
}

func TestWhyADeploymentIsNotAvailable(t *testing.T) {
	g := NewWithT(t)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	g.Expect(healthOf(d).available.Message).To(Equal("Waiting for Deployment web to report its availability"))
	d.Status.Conditions = []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue},
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Message: "no pod is ready"},
	}
	g.Expect(healthOf(d).available.Message).To(Equal("Deployment web is not available: no pod is ready"))
	g.Expect(healthOf(d).rolledOut.Message).To(Equal("Deployment web: 0 of 1 replicas updated, 0 available"), "Kubernetes runs one where nobody says how many")
}

// TestFailingPods checks that the message names a few of many failing pods, and always the same ones.
func TestFailingPods(t *testing.T) {
	pod := func(name string, init bool, reason string) client.Object {
		status := []corev1.ContainerStatus{{Image: "i", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: map[string]string{"app": "x"}}, Spec: corev1.PodSpec{NodeName: "n"}}
		if init {
			p.Status.InitContainerStatuses = status
		} else {
			p.Status.ContainerStatuses = status
		}
		return p
	}
	elsewhere, other := pod("e", false, "ErrImagePull"), pod("o", false, "ErrImagePull")
	elsewhere.SetNamespace("default")
	other.SetLabels(map[string]string{"app": "y"})
	said := func(name, reason string) string { return fmt.Sprintf("pod %s on node n: %s of image i", name, reason) }
	for name, tc := range map[string]struct {
		pods []client.Object
		want string
	}{
		"there is none":                 {nil, ""},
		"they are about to start":       {[]client.Object{pod("a", false, "ContainerCreating"), pod("b", true, "PodInitializing")}, ""},
		"they are another workload's":   {[]client.Object{elsewhere, other}, ""},
		"an image pull fails":           {[]client.Object{pod("a", false, "ErrImagePull")}, said("a", "ErrImagePull")},
		"an image name is invalid":      {[]client.Object{pod("a", false, "InvalidImageName")}, said("a", "InvalidImageName")},
		"a Secret is missing":           {[]client.Object{pod("a", false, "CreateContainerConfigError")}, said("a", "CreateContainerConfigError")},
		"an image pull backs off":       {[]client.Object{pod("a", false, "ImagePullBackOff")}, said("a", "ImagePullBackOff")},
		"an image may never be pulled":  {[]client.Object{pod("a", false, "ErrImageNeverPull")}, said("a", "ErrImageNeverPull")},
		"a container cannot be started": {[]client.Object{pod("a", false, "RunContainerError")}, said("a", "RunContainerError")},
		"what prepares a pod crashes":   {[]client.Object{pod("a", true, "CrashLoopBackOff")}, said("a", "CrashLoopBackOff")},
		"there are too many to list,":   {[]client.Object{pod("d", false, "ErrImagePull"), pod("b", false, "ErrImagePull"), pod("c", false, "ErrImagePull"), pod("a", false, "ErrImagePull")}, said("a", "ErrImagePull") + "; " + said("b", "ErrImagePull") + "; " + said("c", "ErrImagePull")},
	} {
		t.Run("When Pods are checked and "+name+", it should name the Pods that fail", func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(tc.pods...).Build()
			got, err := failingPods(t.Context(), c, "kube-system", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}})
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
	t.Run("When Pods cannot be listed, it should return an error instead of reporting no failures", func(t *testing.T) {
		c := (&outage{}).through(fake.NewClientBuilder().WithScheme(scheme.Scheme).Build())
		_, err := failingPods(t.Context(), c, "kube-system", &metav1.LabelSelector{})
		NewWithT(t).Expect(err).To(MatchError("listing Pods of namespace kube-system: the API server is away"))
	})
	t.Run("When nodes cannot be listed, it should return an error instead of a guest cluster without nodes", func(t *testing.T) {
		guest := &Guest{Client: (&outage{}).through(fake.NewClientBuilder().WithScheme(scheme.Scheme).Build())}
		_, err := guest.Nodes(t.Context())
		NewWithT(t).Expect(err).To(MatchError("listing Nodes: the API server is away"))
	})
	t.Run("When a guest component has an unsupported kind, it should return an error", func(t *testing.T) {
		_, err := guestHealth(t.Context(), &Guest{}, nil, &batchv1.Job{})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("*v1.Job is not a kind of workload for a guest")))
	})
}

func TestManyNodesAreNotReady(t *testing.T) {
	g := NewWithT(t)
	h := daemonSetHealth(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 9, UpdatedNumberScheduled: 1, NumberAvailable: 1}},
		[]string{"a", "b", "c", "d"})
	g.Expect(h.rolledOut.Message).To(HaveSuffix("; not Ready: a, b, c"))
	g.Expect(h.available.Status).To(Equal(metav1.ConditionTrue))
	h = daemonSetHealth(&appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 1}}, []string{"a", "b"})
	g.Expect(h.available.Status).To(Equal(metav1.ConditionTrue), "more nodes are away than it is wanted on")
	g.Expect(h.rolledOut.Status).To(Equal(metav1.ConditionTrue))
}
