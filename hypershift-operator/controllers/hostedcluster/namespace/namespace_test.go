// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/support/rights"
)

const uidAnnotation = hyperv1.DefaultSecurityContextUIDAnnotation

func TestMadeNamespace(t *testing.T) {
	fresh := map[string]string{
		"hypershift.openshift.io/hosted-control-plane": "true", "security.openshift.io/scc.podSecurityLabelSync": "false",
		"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/audit": "restricted", "pod-security.kubernetes.io/warn": "restricted",
	}
	with := func(changes map[string]string) map[string]string {
		labels := map[string]string{}
		for _, from := range []map[string]string{fresh, changes} {
			for key, value := range from {
				if labels[key] = value; value == "" {
					delete(labels, key)
				}
			}
		}
		return labels
	}
	lenient, going := clustertest.HostedNamespace("clusters-demo", "clusters/demo", "1007"), clustertest.HostedNamespace("clusters-demo", "clusters/demo", "1007")
	lenient.Labels["pod-security.kubernetes.io/enforce"] = "baseline"
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: clustertest.Now}, []string{"test/wait"}
	for name, test := range map[string]struct {
		objects   []client.Object
		monitored bool
		refuse    string
		labels    map[string]string
		uid       string
		fails     string
	}{
		"the object is new": {nil, false, "", fresh, "1001", ""},
		"OpenShift should monitor the namespace, it should set the monitoring label": {nil, true, "", with(map[string]string{hyperv1.ClusterMonitoringLabel: "true"}), "1001", ""},
		"other namespaces have user IDs, it should use a free user ID":               {[]client.Object{clustertest.HostedNamespace("a", "c/a", "1001"), clustertest.HostedNamespace("b", "c/b", "1003")}, false, "", fresh, "1002", ""},
		"the service has a node port":                                                {[]client.Object{clustertest.HostedNamespace("clusters-demo", "clusters/demo", "1007")}, false, "", fresh, "1007", ""},
		"the namespace has a Pod Security level, it should keep the level":           {[]client.Object{lenient}, false, "", with(map[string]string{"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/audit": "", "pod-security.kubernetes.io/warn": ""}), "1007", ""},
		"the namespace belongs to another cluster, it should return an error":        {[]client.Object{clustertest.HostedNamespace("clusters-demo", "clusters/other", "")}, false, "", nil, "", "belongs to HostedCluster clusters/other"},
		"the namespace existed before, it should return an error":                    {[]client.Object{clustertest.HostedNamespace("clusters-demo", "", "")}, false, "", nil, "", "existed before"},
		"the namespace is being deleted, it should return an error":                  {[]client.Object{going}, false, "", nil, "", "is being deleted without its HostedCluster"},
		"the namespace cannot be created now, it should return the error":            {nil, false, "create v1.Namespace", nil, "", clustertest.ErrNotNow.Error()},
		"the user IDs of namespaces cannot be listed, it should return the error":    {nil, false, "list v1.NamespaceList", nil, "", clustertest.ErrNotNow.Error()},
	} {
		t.Run("When "+name, func(t *testing.T) {
			g, d, lock := NewWithT(t), clustertest.NewServer(test.objects...), &sync.Mutex{}
			d.Refuse = test.refuse
			uid, err := Creator{Client: d.Refusing, LiveReader: d.Refusing, Monitored: test.monitored, Identities: lock}.
				Reconcile(t.Context(), clustertest.Scope())
			g.Expect(uid).To(Equal(test.uid))
			if test.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.fails)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			got := clustertest.HostedNamespace("clusters-demo", "", "")
			g.Expect(d.Has(t, got)).To(BeTrue())
			if diff := cmp.Diff(test.labels, got.Labels); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			g.Expect(got.Annotations).To(HaveKey(hyperv1.ServedClusterAnnotation))
			delete(got.Annotations, hyperv1.ServedClusterAnnotation)
			g.Expect(got.Annotations).To(Equal(map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo", uidAnnotation: test.uid}))
			g.Expect(lock.TryLock()).To(BeTrue(), "the next cluster has to get one too")
		})
	}
	t.Run("When OpenShift assigns user IDs, it should assign none", func(t *testing.T) {
		g, d := NewWithT(t), clustertest.NewServer()
		uid, err := Creator{Client: clustertest.AssigningUsers(d.Refusing), LiveReader: d.Refusing, Identities: &sync.Mutex{}}.
			Reconcile(t.Context(), clustertest.Scope())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(uid).To(BeEmpty())
	})
}

func TestFreeSecurityUID(t *testing.T) {
	list := func(from, to int) []client.Object {
		var all []client.Object
		for uid := from; uid <= to; uid++ {
			all = append(all, clustertest.HostedNamespace("n"+strconv.Itoa(uid), "c/n", strconv.Itoa(uid)))
		}
		return all
	}
	unlabelled := clustertest.HostedNamespace("x", "c/x", "1001")
	unlabelled.Labels = nil
	for name, test := range map[string]struct {
		taken []client.Object
		want  int
	}{
		"When no user IDs are taken, it should return the first":                   {nil, 1001},
		"When the first IDs are taken, it should return the next":                  {list(1001, 1004), 1005},
		"When an ID between others is free, it should return that ID":              {append(list(1001, 1001), list(1003, 1004)...), 1002},
		"When only namespaces that are not hosted have IDs, it should ignore them": {[]client.Object{unlabelled}, 1001},
		"When all but the last ID are taken, it should return the last":            {list(1001, 10999), 11000},
	} {
		t.Run(name, func(t *testing.T) {
			uid, err := Creator{LiveReader: clustertest.NewServer(test.taken...).Direct}.freeSecurityUID(t.Context())
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(uid).To(Equal(test.want))
		})
	}
	t.Run("When all IDs are taken, it should return an error", func(t *testing.T) {
		_, err := Creator{LiveReader: clustertest.NewServer(list(1001, 11000)...).Direct}.freeSecurityUID(t.Context())
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("10000")))
	})
}

// TestPlatformsOwnMonitoring tests OpenShift's Prometheus, which gets access if the installer requested it.
func TestPlatformsOwnMonitoring(t *testing.T) {
	binding := func(owner string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "openshift-prometheus", Annotations: map[string]string{hyperv1.HostedClusterAnnotation: owner}}}
	}
	for name, test := range map[string]struct {
		wanted        bool
		bound, refuse string
		label, stays  bool
		fails         bool
	}{
		"monitoring is disabled again, it should remove the label and the RoleBinding":       {false, "clusters/demo", "", false, false, false},
		"the namespace has the label but no RoleBinding, it should keep the label":           {false, "", "", true, false, false},
		"an administrator granted access, it should keep the RoleBinding":                    {false, "another", "", false, true, false},
		"the RoleBinding cannot be read, it should keep the label and return the error":      {false, "clusters/demo", "get v1.RoleBinding", true, true, true},
		"the label cannot be removed, it should keep the RoleBinding and return the error":   {false, "clusters/demo", "update v1.Namespace", true, true, true},
		"the RoleBinding cannot be deleted, it should remove the label and return the error": {false, "clusters/demo", "delete v1.RoleBinding", false, true, true},
		"monitoring is enabled, it should set the label and create the RoleBinding":          {true, "", "", true, true, false},
		"the RoleBinding cannot be created, it should return the error":                      {true, "", "create v1.RoleBinding", true, false, true},
	} {
		t.Run("When "+name, func(t *testing.T) {
			g, namespace := NewWithT(t), clustertest.HostedNamespace("clusters-demo", "clusters/demo", "1001")
			namespace.Labels[hyperv1.ClusterMonitoringLabel] = "true"
			d := clustertest.NewServer(namespace)
			if test.bound != "" {
				g.Expect(d.Direct.Create(t.Context(), binding(test.bound))).To(Succeed())
			}
			d.Refuse = test.refuse
			_, err := Monitoring{Client: d.Refusing, Enabled: test.wanted}.Reconcile(t.Context(), clustertest.Scope())
			g.Expect(err != nil).To(Equal(test.fails))
			live := binding("")
			g.Expect(d.Has(t, live)).To(Equal(test.stays))
			g.Expect(d.Has(t, namespace)).To(BeTrue())
			g.Expect(namespace.Labels[hyperv1.ClusterMonitoringLabel] == "true").To(Equal(test.label))
			if test.wanted && test.stays {
				g.Expect(live.RoleRef).To(Equal(rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: rights.PrometheusRole}))
				g.Expect(live.Subjects).To(Equal([]rbacv1.Subject{rights.PlatformPrometheus()}))
				g.Expect(live.Annotations).To(HaveKeyWithValue(hyperv1.HostedClusterAnnotation, "clusters/demo"))
			}
		})
	}
}
