// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/namespaceguard"
)

// going returns the objects of a cluster at the start of its deletion.
func going() []client.Object {
	of := func(name, cluster string, finalizers ...string) *hyperv1.NodePool {
		pool := fixture.NodePool("clusters")
		pool.Name, pool.Spec.ClusterName, pool.Finalizers = name, cluster, finalizers
		return pool
	}
	leaving := of("leaving", "demo", "test/machines")
	leaving.DeletionTimestamp = ptr.To(metav1.NewTime(clustertest.Now))
	elsewhere := of("elsewhere", "demo")
	elsewhere.Namespace = "others"
	owned := metav1.ObjectMeta{Name: "owned", Labels: map[string]string{cluster.OwnerNamespace: "clusters", cluster.OwnerName: "demo"}}
	others := metav1.ObjectMeta{Name: "others", Labels: map[string]string{cluster.OwnerNamespace: "clusters", cluster.OwnerName: "other"}}
	return []client.Object{
		of("mine", "demo", "test/machines"), of("too", "demo", "test/machines"), leaving, of("others", "other"), elsewhere,
		&rbacv1.ClusterRole{ObjectMeta: owned}, &rbacv1.ClusterRole{ObjectMeta: others},
		&rbacv1.ClusterRoleBinding{ObjectMeta: owned}, &rbacv1.ClusterRoleBinding{ObjectMeta: others},
	}
}

func TestOwnPoolsAndRightsGo(t *testing.T) {
	t.Run("When a cluster is deleted, it should delete each of its NodePools once", func(t *testing.T) {
		g, d := NewWithT(t), newDesk(going()...)
		g.Expect(d.deleteNodePools(t.Context(), clustertest.Scope())).To(BeEmpty())
		g.Expect(d.Wrote).To(ConsistOf("delete v1beta1.NodePool clusters/mine", "delete v1beta1.NodePool clusters/too"))
	})
	t.Run("When a cluster is deleted, it should delete its ClusterRoles and ClusterRoleBindings", func(t *testing.T) {
		g, d := NewWithT(t), newDesk(going()...)
		g.Expect(d.DeleteClusterRoles(t.Context(), clustertest.Scope())).To(BeEmpty())
		for _, obj := range []client.Object{&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}} {
			obj.SetName("owned")
			g.Expect(d.Has(t, obj)).To(BeFalse())
			obj.SetName("others")
			g.Expect(d.Has(t, obj)).To(BeTrue())
		}
	})
	for refuse, run := range map[string]func(*desk) func(context.Context, *cluster.Scope) (string, error){
		"list v1beta1.NodePoolList":             func(d *desk) func(context.Context, *cluster.Scope) (string, error) { return d.deleteNodePools },
		"delete v1beta1.NodePool clusters/mine": func(d *desk) func(context.Context, *cluster.Scope) (string, error) { return d.deleteNodePools },
		"delete v1beta1.NodePool clusters/too":  func(d *desk) func(context.Context, *cluster.Scope) (string, error) { return d.deleteNodePools },
		"delete all v1.ClusterRoleBinding":      func(d *desk) func(context.Context, *cluster.Scope) (string, error) { return d.DeleteClusterRoles },
		"delete all v1.ClusterRole ":            func(d *desk) func(context.Context, *cluster.Scope) (string, error) { return d.DeleteClusterRoles },
	} {
		t.Run("When the server refuses to "+refuse+", it should delete the other objects and return the error", func(t *testing.T) {
			g, d := NewWithT(t), newDesk(going()...)
			d.Refuse = refuse
			_, err := run(d)(t.Context(), clustertest.Scope())
			g.Expect(err).To(MatchError(clustertest.ErrNotNow))
			g.Expect(len(d.Wrote)).To(Equal(map[bool]int{true: 0, false: 1}[refuse == "list v1beta1.NodePoolList"]))
		})
	}
}

func TestResumeForDeletion(t *testing.T) {
	g, s := NewWithT(t), clustertest.Scope()
	s.HC.Annotations = map[string]string{hyperv1.CleanupCloudResourcesAnnotation: "true"}
	s.HC.Spec.InfraID = "infra"
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "demo"}, Spec: hyperv1.HostedControlPlaneSpec{PausedUntil: ptr.To("true")}}
	capi := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "infra"}, Spec: clusterv1.ClusterSpec{Paused: ptr.To(true)}}
	d := newDesk(hcp, capi)
	s.HCP = &hyperv1.HostedControlPlane{ObjectMeta: *hcp.ObjectMeta.DeepCopy()}
	g.Expect(d.Has(t, s.HCP)).To(BeTrue())
	g.Expect(d.resume(t.Context(), s)).To(BeEmpty())
	g.Expect(d.Has(t, hcp) && d.Has(t, capi)).To(BeTrue())
	g.Expect(hcp.Spec.PausedUntil).To(BeNil())
	g.Expect(hcp.Annotations).To(HaveKeyWithValue(hyperv1.CleanupCloudResourcesAnnotation, "true"))
	g.Expect(capi.Spec.Paused).To(HaveValue(BeFalse()))
	d.Wrote = nil
	g.Expect(d.resume(t.Context(), s)).To(BeEmpty())
	g.Expect(d.Wrote).To(BeEmpty(), "once is enough")
	for _, refuse := range []string{"get v1beta2.Cluster", "patch v1beta1.HostedControlPlane"} {
		d.Refuse, s.HCP.Spec.PausedUntil = refuse, ptr.To("true")
		_, err := d.resume(t.Context(), s)
		g.Expect(err).To(MatchError(clustertest.ErrNotNow), refuse)
	}
	t.Run("When no cleanup is requested, it should set no annotation on the control plane", func(t *testing.T) {
		g, s := NewWithT(t), clustertest.Scope(func(s *cluster.Scope) { s.HCP = hcp.DeepCopy() })
		s.HCP.Annotations, s.HCP.ResourceVersion = nil, ""
		d := newDesk(s.HCP.DeepCopy())
		g.Expect(d.Has(t, s.HCP)).To(BeTrue())
		g.Expect(d.resume(t.Context(), s)).To(BeEmpty())
		g.Expect(s.HCP.Annotations).To(BeEmpty())
	})
}

func TestMachinesGo(t *testing.T) {
	held := func() *clusterv1.Cluster {
		return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "infra", Finalizers: []string{"test/capi"}}}
	}
	const waits = "Waiting for Cluster API to delete Cluster clusters-demo/infra with its machines"
	for name, tc := range map[string]struct {
		infraID string
		p       *clustertest.Plugin
		served  bool
		refuse  string
		want    string
		err     error
		asked   int
	}{
		"When the cluster never had machines, it should wait for nothing":                 {"", &clustertest.Plugin{Says: "x"}, true, "", "", nil, 0},
		"When only another cluster has machines, it should wait for nothing":              {"gone", &clustertest.Plugin{Says: "x"}, true, "", "", nil, 0},
		"When machines remain, the platform should report what they wait for":             {"infra", &clustertest.Plugin{Says: "MAAS is away"}, true, "", waits + ". MAAS is away", nil, 1},
		"When the platform reports nothing, it should still wait for the machines":        {"infra", &clustertest.Plugin{}, true, "", waits, nil, 1},
		"When the platform is not served, it should wait without calling it":              {"infra", &clustertest.Plugin{Says: "x"}, false, "", waits, nil, 0},
		"When the platform returns an error, it should return that and what it waits for": {"infra", &clustertest.Plugin{Err: clustertest.ErrNotNow}, true, "", waits, clustertest.ErrNotNow, 1},
		"When the API server refuses to delete the Cluster, it should return an error":    {"infra", &clustertest.Plugin{}, true, "delete v1beta2.Cluster", "", clustertest.ErrNotNow, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g, d, s := NewWithT(t), newDesk(held()), clustertest.On(tc.p)
			s.PlatformServed, s.HC.Spec.InfraID, d.Refuse = tc.served, tc.infraID, tc.refuse
			waitsFor, err := d.deleteMachines(t.Context(), s)
			g.Expect(waitsFor).To(Equal(tc.want))
			g.Expect(errors.Is(err, clustertest.ErrNotNow)).To(Equal(tc.err != nil))
			g.Expect(tc.p.Seen).To(HaveLen(tc.asked))
			for _, seen := range tc.p.Seen {
				g.Expect(seen).To(Equal(s.ForPlatform(operatorImage)))
			}
			cluster := held()
			g.Expect(d.Has(t, cluster)).To(BeTrue())
			g.Expect(cluster.DeletionTimestamp != nil).To(Equal(tc.want != ""))
		})
	}
}

func TestManagersAreLetGo(t *testing.T) {
	manager := func(name string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name, Finalizers: []string{hyperv1.ControlPlaneComponentFinalizer}}}
	}
	g, d := NewWithT(t), newDesk(manager("cluster-api"), manager("capi-provider"), manager("control-plane-operator"))
	d.Refuse = "capi-provider"
	_, err := d.releaseManagers(t.Context(), clustertest.Scope())
	g.Expect(err).To(MatchError(clustertest.ErrNotNow))
	d.Refuse = "nothing"
	g.Expect(d.releaseManagers(t.Context(), clustertest.Scope())).To(BeEmpty())
	for name, held := range map[string]int{"cluster-api": 0, "capi-provider": 0, "control-plane-operator": 1} {
		live := manager(name)
		g.Expect(d.Has(t, live)).To(BeTrue())
		g.Expect(live.Finalizers).To(HaveLen(held), name)
	}
}

func TestCredentialsAndControlPlaneGo(t *testing.T) {
	t.Run("When the platform copied credentials, the platform should delete them", func(t *testing.T) {
		g, p := NewWithT(t), &clustertest.Plugin{Err: clustertest.ErrNotNow}
		s := clustertest.On(p)
		_, err := newDesk().deleteCredentials(t.Context(), s)
		g.Expect(err).To(MatchError(clustertest.ErrNotNow))
		g.Expect(p.Seen[0]).To(Equal(s.ForPlatform(operatorImage)))
		g.Expect(newDesk().deleteCredentials(t.Context(), clustertest.Scope())).To(BeEmpty(), "the platform is not known")
	})
	t.Run("When the control plane still has finalizers, it should wait and name them", func(t *testing.T) {
		g, s := NewWithT(t), clustertest.Scope()
		hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "demo", Finalizers: []string{"a", "b"}}}
		d := newDesk(hcp)
		g.Expect(d.deleteControlPlane(t.Context(), s)).To(And(ContainSubstring("HostedControlPlane clusters-demo/demo"), ContainSubstring("[a b]")))
		d.Refuse = "get v1beta1.HostedControlPlane"
		_, err := d.deleteControlPlane(t.Context(), s)
		g.Expect(err).To(MatchError(clustertest.ErrNotNow))
		g.Expect(newDesk().deleteControlPlane(t.Context(), s)).To(BeEmpty())
	})
}

func TestNamespaceGoes(t *testing.T) {
	hosted := func(mutate ...func(*corev1.Namespace)) *corev1.Namespace {
		namespace := &corev1.Namespace{ObjectMeta: clustertest.Ours("", "clusters-demo")}
		namespace.Finalizers = []string{"test/content"}
		for _, m := range mutate {
			m(namespace)
		}
		return namespace
	}
	theirs := func(n *corev1.Namespace) { n.Annotations = nil }
	leaving := func(n *corev1.Namespace) {
		n.DeletionTimestamp = ptr.To(metav1.NewTime(clustertest.Now))
		n.Status.Conditions = []corev1.NamespaceCondition{{Status: corev1.ConditionTrue}, {Status: corev1.ConditionTrue, Message: "pods remain"}}
	}
	pod := podOf("clusters-demo", "ReplicaSet")
	for name, tc := range map[string]struct {
		there    []client.Object
		keep     string
		refuse   string
		want     string
		err      error
		deleted  bool
		released bool
	}{
		"When the namespace exists, it should remove the finalizer and delete the namespace": {there: []client.Object{hosted()}, want: "Waiting for namespace clusters-demo to be deleted", deleted: true, released: true},
		"When the namespace does not exist, it should do nothing":                            {},
		"When the namespace belongs to another cluster, it should keep it":                   {there: []client.Object{hosted(theirs)}},
		"When the annotation keeps the namespace, it should not delete it":                   {there: []client.Object{hosted()}, keep: "true"},
		"When the annotation is false, it should delete the namespace":                       {there: []client.Object{hosted()}, keep: "false", want: "Waiting for namespace clusters-demo", deleted: true, released: true},
		"When pods run in the namespace, it should wait for them":                            {there: []client.Object{hosted(), pod}, want: "of-deployment"},
		"When the namespace is being deleted, it should report what the deletion waits for":  {there: []client.Object{hosted(leaving), pod}, want: "to be deleted. pods remain", deleted: true},
		"When the namespace cannot be read, it should return an error":                       {there: []client.Object{hosted()}, refuse: "get v1.Namespace", err: clustertest.ErrNotNow},
		"When pods cannot be stopped, it should keep the namespace and return an error":      {there: []client.Object{hosted()}, refuse: "delete all v1.Deployment", err: clustertest.ErrNotNow},
		"When the finalizer cannot be removed, it should return an error":                    {there: []client.Object{hosted()}, refuse: "patch v1.Namespace", err: clustertest.ErrNotNow},
		"When the namespace cannot be deleted, it should return an error":                    {there: []client.Object{hosted()}, refuse: "delete v1.Namespace", err: clustertest.ErrNotNow, released: true},
	} {
		t.Run(name, func(t *testing.T) {
			g, d, s := NewWithT(t), newDesk(tc.there...), clustertest.Scope()
			d.Refuse = tc.refuse
			s.HC.Annotations = map[string]string{hyperv1.SkipDeleteHostedControlPlaneNamespaceAnnotation: tc.keep}
			waitsFor, err := d.deleteNamespace(t.Context(), s)
			g.Expect(errors.Is(err, clustertest.ErrNotNow)).To(Equal(tc.err != nil), "%v", err)
			if tc.want == "" {
				g.Expect(waitsFor).To(BeEmpty())
			}
			g.Expect(waitsFor).To(ContainSubstring(tc.want))
			live := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo"}}
			if d.Has(t, live) {
				g.Expect(live.DeletionTimestamp != nil).To(Equal(tc.deleted))
				g.Expect(live.Annotations[namespaceguard.ReleasedAnnotation] == "true").To(Equal(tc.released))
			}
		})
	}
}

func TestWhyNamespaceStays(t *testing.T) {
	condition := func(kind corev1.NamespaceConditionType, status corev1.ConditionStatus, message string) corev1.NamespaceCondition {
		return corev1.NamespaceCondition{Type: kind, Status: status, Message: message}
	}
	for _, tc := range []struct {
		name       string
		conditions []corev1.NamespaceCondition
		want       string
	}{
		{"When there are no conditions, it should report nothing", nil, ""},
		{"When the conditions show no problem, it should report nothing", []corev1.NamespaceCondition{condition(corev1.NamespaceContentRemaining, corev1.ConditionFalse, "All content successfully removed")}, ""},
		{"When content remains, it should report what remains", []corev1.NamespaceCondition{
			condition(corev1.NamespaceDeletionDiscoveryFailure, corev1.ConditionFalse, "All resources successfully discovered"),
			condition(corev1.NamespaceContentRemaining, corev1.ConditionTrue, "maasmachines has 1 resource instances"),
			condition(corev1.NamespaceFinalizersRemaining, corev1.ConditionTrue, "maasmachine.x in 1 resource instances"),
		}, ". maasmachines has 1 resource instances. maasmachine.x in 1 resource instances"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(whyNamespaceStays(&corev1.Namespace{Status: corev1.NamespaceStatus{Conditions: tc.conditions}})).To(Equal(tc.want))
		})
	}
}
