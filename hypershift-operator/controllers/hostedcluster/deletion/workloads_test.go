// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// podOf returns a running pod that a kind of controller created.
func podOf(namespace, owner string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "of-" + map[string]string{"ReplicaSet": "deployment", "StatefulSet": "etcd"}[owner],
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: owner, Name: "x", UID: "1", Controller: ptr.To(true)}}},
		Spec: corev1.PodSpec{NodeName: "dead", Containers: []corev1.Container{{Name: "x", Image: "x"}}},
	}
}

func TestStopWorkloads(t *testing.T) {
	c := fixture.Start(t)
	g, operator := NewWithT(t), fixture.AsOperator(t)
	s := Deleter{Client: operator, LiveReader: operator}
	ctx := t.Context()
	scope := cluster.NewScope(fixture.HostedCluster("stopping"))
	labels := map[string]string{"app": "x"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podOf("", "ReplicaSet").Spec}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	meta := metav1.ObjectMeta{Namespace: scope.Namespace, Name: "x"}
	user, etcd := podOf(scope.Namespace, "ReplicaSet"), podOf(scope.Namespace, "StatefulSet")
	user.Spec.TerminationGracePeriodSeconds = ptr.To[int64](135)
	orphan := &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}}
	set := &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template}}
	fixture.Create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: scope.Namespace}},
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}}, orphan, set, user, etcd)

	waitsFor, err := s.stopWorkloads(ctx, scope)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(waitsFor).To(Equal(`Waiting for 1 pod in namespace ` + scope.Namespace + ` to stop: of-deployment on node "dead"`))
	g.Expect(c.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed(), "etcd stays while something uses it")
	g.Expect(set.DeletionTimestamp).To(BeNil())
	err = c.Get(ctx, client.ObjectKeyFromObject(orphan), orphan)
	g.Expect(apierrors.IsNotFound(err) || orphan.DeletionTimestamp != nil).To(BeTrue(), "a ReplicaSet without an owner would keep its pods")
	g.Expect(c.Get(ctx, client.ObjectKeyFromObject(user), user)).To(Succeed())
	g.Expect(user.DeletionGracePeriodSeconds).To(HaveValue(BeNumerically("<=", 2)),
		"the pod's own grace period of 135 s is cut short")
	g.Expect(c.Get(ctx, client.ObjectKeyFromObject(etcd), etcd)).To(Succeed())
	g.Expect(etcd.DeletionTimestamp).To(BeNil())

	g.Expect(c.Delete(ctx, user, client.GracePeriodSeconds(0))).To(Succeed())
	waitsFor, err = s.stopWorkloads(ctx, scope)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(waitsFor).NotTo(BeEmpty(), "etcd's pod still runs")
	g.Expect(client.IgnoreNotFound(c.Get(ctx, client.ObjectKeyFromObject(set), set))).To(Succeed())

	g.Expect(c.Delete(ctx, etcd, client.GracePeriodSeconds(0))).To(Succeed())
	g.Expect(s.stopWorkloads(ctx, scope)).To(BeEmpty())
}

func TestWorkloadsEndInOrder(t *testing.T) {
	at := metav1.ObjectMeta{Namespace: "clusters-demo", Name: "x"}
	there := func(pods ...*corev1.Pod) []client.Object {
		all := []client.Object{&appsv1.Deployment{ObjectMeta: at}, &appsv1.ReplicaSet{ObjectMeta: at}, &appsv1.StatefulSet{ObjectMeta: at}}
		for _, pod := range pods {
			all = append(all, pod)
		}
		return all
	}
	const deployments, etcd = "delete all v1.Deployment /,delete all v1.ReplicaSet /", ",delete all v1.StatefulSet /"
	const hurried = ",delete v1.Pod clusters-demo/of-deployment"
	user, store := podOf("clusters-demo", "ReplicaSet"), podOf("clusters-demo", "StatefulSet")
	nobodys, elsewhere := user.DeepCopy(), podOf("elsewhere", "ReplicaSet")
	nobodys.Name, nobodys.OwnerReferences = "nobodys", nil
	for name, tc := range map[string]struct {
		pods            []*corev1.Pod
		refuse, did, is string
		fails           bool
	}{
		"When a pod uses etcd, it should keep etcd": {pods: []*corev1.Pod{user, store}, did: deployments + hurried,
			is: `Waiting for 1 pod in namespace clusters-demo to stop: of-deployment on node "dead"`},
		"When no pod uses etcd, it should delete etcd":                  {pods: []*corev1.Pod{store, nobodys, elsewhere}, did: deployments + etcd, is: `Waiting for 1 pod in namespace clusters-demo to stop: of-etcd on node "dead"`},
		"When no pods run, it should not wait":                          {pods: []*corev1.Pod{nobodys}, did: deployments + etcd},
		"When Deployments cannot be deleted, it should return an error": {refuse: "delete all v1.Deployment", fails: true},
		"When etcd cannot be deleted, it should return an error":        {refuse: "delete all v1.StatefulSet", did: deployments, fails: true},
		"When pods cannot be deleted, it should return an error": {pods: []*corev1.Pod{user}, refuse: "delete v1.Pod",
			did: deployments, fails: true},
		"When pods cannot be listed, it should return an error": {refuse: "list v1.PodList", did: deployments, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			g, d := NewWithT(t), newDesk(there(tc.pods...)...)
			d.Refuse = tc.refuse
			waitsFor, err := d.stopWorkloads(t.Context(), clustertest.Scope())
			g.Expect(waitsFor).To(Equal(tc.is))
			g.Expect(strings.Join(d.Wrote, ",")).To(Equal(tc.did))
			if tc.fails {
				g.Expect(err).To(MatchError(And(HaveSuffix("in namespace clusters-demo: not now"), HavePrefix(map[bool]string{true: "listing", false: "deleting"}[tc.refuse == "list v1.PodList"]))))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}

func TestFirstFew(t *testing.T) {
	for want, names := range map[string][]string{
		"":             nil,
		"a":            {"a"},
		"a, b, c":      {"a", "b", "c"},
		"a, b, c, ...": {"a", "b", "c", "d"},
	} {
		NewWithT(t).Expect(firstFew(names)).To(Equal(want))
	}
}
