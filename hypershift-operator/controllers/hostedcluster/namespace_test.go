// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/release"
	"github.com/openshift/hypershift/support/rights"
)

const uidAnnotation = hyperv1.DefaultSecurityContextUIDAnnotation

// hostedNamespace returns a hosted namespace with a user ID, empty for none.
func hostedNamespace(name, owner, uid string) *corev1.Namespace {
	annotations := map[string]string{}
	for key, value := range map[string]string{hyperv1.HostedClusterAnnotation: owner, uidAnnotation: uid} {
		if value != "" {
			annotations[key] = value
		}
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations, Labels: map[string]string{hyperv1.ControlPlaneNamespaceLabel: "true"}}}
}

// serving is a client whose server has additional kinds.
type serving struct {
	client.Client
	kinds meta.RESTMapper
}

func (s serving) RESTMapper() meta.RESTMapper { return s.kinds }

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
	lenient, going := hostedNamespace("clusters-demo", "clusters/demo", "1007"), hostedNamespace("clusters-demo", "clusters/demo", "1007")
	lenient.Labels["pod-security.kubernetes.io/enforce"] = "baseline"
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: now}, []string{"test/wait"}
	for name, test := range map[string]struct {
		objects   []client.Object
		monitored bool
		refuse    string
		labels    map[string]string
		uid       string
		fails     string
	}{
		"the namespace is new, it should create it with the first user ID":           {nil, false, "", fresh, "1001", ""},
		"OpenShift should monitor the namespace, it should set the monitoring label": {nil, true, "", with(map[string]string{hyperv1.ClusterMonitoringLabel: "true"}), "1001", ""},
		"other namespaces have user IDs, it should use a free user ID":               {[]client.Object{hostedNamespace("a", "c/a", "1001"), hostedNamespace("b", "c/b", "1003")}, false, "", fresh, "1002", ""},
		"the namespace has a user ID, it should keep the user ID":                    {[]client.Object{hostedNamespace("clusters-demo", "clusters/demo", "1007")}, false, "", fresh, "1007", ""},
		"the namespace has a Pod Security level, it should keep the level":           {[]client.Object{lenient}, false, "", with(map[string]string{"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/audit": "", "pod-security.kubernetes.io/warn": ""}), "1007", ""},
		"the namespace belongs to another cluster, it should return an error":        {[]client.Object{hostedNamespace("clusters-demo", "clusters/other", "")}, false, "", nil, "", "belongs to HostedCluster clusters/other"},
		"the namespace existed before, it should return an error":                    {[]client.Object{hostedNamespace("clusters-demo", "", "")}, false, "", nil, "", "existed before"},
		"the namespace is being deleted, it should return an error":                  {[]client.Object{going}, false, "", nil, "", "is being deleted without its HostedCluster"},
		"the namespace cannot be created now, it should return the error":            {nil, false, "create v1.Namespace", nil, "", errNotNow.Error()},
		"the user IDs of namespaces cannot be listed, it should return the error":    {nil, false, "list v1.NamespaceList", nil, "", errNotNow.Error()},
	} {
		t.Run("When "+name, func(t *testing.T) {
			g, d, s := NewWithT(t), newDesk(test.objects...), withScope()
			d.refuse, d.Settings.PlatformMonitoring = test.refuse, test.monitored
			_, err := d.reconcileNamespace(t.Context(), s)
			g.Expect(s.securityUID).To(Equal(test.uid))
			if test.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.fails)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			got := hostedNamespace("clusters-demo", "", "")
			g.Expect(d.has(t, got)).To(BeTrue())
			if diff := cmp.Diff(test.labels, got.Labels); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			g.Expect(got.Annotations).To(HaveKey(hyperv1.ServedClusterAnnotation))
			delete(got.Annotations, hyperv1.ServedClusterAnnotation)
			g.Expect(got.Annotations).To(Equal(map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo", uidAnnotation: test.uid}))
			g.Expect(d.identities.TryLock()).To(BeTrue(), "the next cluster has to get one too")
		})
	}
	t.Run("When OpenShift assigns user IDs, it should assign none", func(t *testing.T) {
		g, d, s := NewWithT(t), newDesk(), withScope()
		d.Client = assigningUsers(d.Client)
		_, err := d.reconcileNamespace(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.securityUserID()).To(BeNil())
	})
}

func TestFreeSecurityUID(t *testing.T) {
	list := func(from, to int) []client.Object {
		var all []client.Object
		for uid := from; uid <= to; uid++ {
			all = append(all, hostedNamespace("n"+strconv.Itoa(uid), "c/n", strconv.Itoa(uid)))
		}
		return all
	}
	unlabelled := hostedNamespace("x", "c/x", "1001")
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
			uid, err := newDesk(test.taken...).freeSecurityUID(t.Context())
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(uid).To(Equal(test.want))
		})
	}
	t.Run("When all IDs are taken, it should return an error", func(t *testing.T) {
		_, err := newDesk(list(1001, 11000)...).freeSecurityUID(t.Context())
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("10000")))
	})
}

func TestRefusedNamespace(t *testing.T) {
	d, s := newDesk(), withScope(func(s *scope) { s.refused = "it is another's" })
	_, err := d.refuseNamespace(t.Context(), s)
	NewWithT(t).Expect(err).To(MatchError("it is another's"))
	NewWithT(t).Expect(s.conditions).To(HaveKeyWithValue("ValidConfiguration", is("ValidConfiguration", "False", "NamespaceNotOwned", "it is another's")))
	NewWithT(t).Expect(d.wrote).To(BeEmpty())
}

// operators is a registry with image labels.
type operators struct {
	fixture.Releases
	labels map[string]string
	err    error
}

func (o operators) Labels(context.Context, string, release.Access) (map[string]string, error) {
	return o.labels, o.err
}

// assigningUsers returns a client for a management cluster that serves OpenShift's SecurityContextConstraints.
func assigningUsers(c client.Client) client.Client {
	version := schema.GroupVersion{Group: "security.openshift.io", Version: "v1"}
	kinds := meta.NewDefaultRESTMapper([]schema.GroupVersion{version})
	kinds.Add(version.WithKind("SecurityContextConstraints"), meta.RESTScopeRoot)
	return serving{c, kinds}
}

// TestPayloadsLevel checks the Pod Security level of a hosted namespace for each payload.
func TestPayloadsLevel(t *testing.T) {
	const said = hyperv1.ControlPlaneOperatorImageLabelsAnnotation
	for name, test := range map[string]struct {
		image       string
		labels      map[string]string
		annotations map[string]string
		err         error
		want        string
	}{
		"the release is Kubernetes, the level should be restricted":                                      {fixture.ReleaseImage, nil, nil, errNotNow, restricted},
		"nothing but a user is added to pods, the level should be baseline":                              {fixture.OCPImage, map[string]string{restrictedPods: "true"}, nil, nil, baseline},
		"the image sets the capability to true, the level should be restricted":                          {fixture.OCPImage, map[string]string{restrictedPods: "true"}, nil, nil, restricted},
		"the image sets the capability to false, the level should be baseline":                           {fixture.OCPImage, map[string]string{restrictedPods: "false"}, nil, nil, baseline},
		"the image does not set the capability, the level should be baseline":                            {fixture.OCPImage, nil, nil, nil, baseline},
		"an annotation of the cluster sets the capability to true, the level should be restricted":       {fixture.OCPImage, nil, map[string]string{said: "a=b," + restrictedPods + "=true"}, errNotNow, restricted},
		"the image sets the capability to true and the cluster to false, the level should be restricted": {fixture.OCPImage, map[string]string{restrictedPods: "true"}, map[string]string{said: restrictedPods + "=false"}, nil, restricted},
		"the cluster overrides the level with a stricter one, the level should be the stricter one":      {fixture.OCPImage, nil, map[string]string{hyperv1.PodSecurityAdmissionLabelOverrideAnnotation: restricted}, nil, restricted},
		"the image cannot be read now, it should return the error":                                       {fixture.OCPImage, nil, nil, errNotNow, ""},
	} {
		t.Run("When "+name, func(t *testing.T) {
			g, d := NewWithT(t), newDesk(hostedNamespace("clusters-demo", "clusters/demo", "1001"))
			d.Releases = operators{fixture.Payloads(), test.labels, test.err}
			if !strings.HasPrefix(name, "nothing but a user") {
				d.Client = assigningUsers(d.Client)
			}
			s := withScope(func(s *scope) { s.release, s.hc.Annotations = fixture.Payloads()[test.image], test.annotations })
			_, err := d.reconcilePodSecurity(t.Context(), s)
			got := hostedNamespace("clusters-demo", "", "")
			g.Expect(d.has(t, got)).To(BeTrue())
			for _, mode := range []string{"enforce", "audit", "warn"} {
				g.Expect(got.Labels["pod-security.kubernetes.io/"+mode]).To(Equal(test.want))
			}
			if test.want == "" {
				g.Expect(err).To(MatchError(errNotNow))
				g.Expect(err).To(MatchError(ContainSubstring(fixture.OCPOperator)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
	t.Run("When the namespace cannot be written, it should return an error", func(t *testing.T) {
		d := newDesk(hostedNamespace("clusters-demo", "clusters/demo", "1001"))
		d.refuse = "update v1.Namespace"
		_, err := d.reconcilePodSecurity(t.Context(), withScope(func(s *scope) { s.release = fixture.Payloads()[fixture.ReleaseImage] }))
		NewWithT(t).Expect(err).To(MatchError(errNotNow))
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
			g, namespace := NewWithT(t), hostedNamespace("clusters-demo", "clusters/demo", "1001")
			namespace.Labels[hyperv1.ClusterMonitoringLabel] = "true"
			d := newDesk(namespace)
			if test.bound != "" {
				g.Expect(d.server.Create(t.Context(), binding(test.bound))).To(Succeed())
			}
			d.refuse, d.Settings.PlatformMonitoring = test.refuse, test.wanted
			_, err := d.reconcilePlatformMonitoring(t.Context(), withScope())
			g.Expect(err != nil).To(Equal(test.fails))
			live := binding("")
			g.Expect(d.has(t, live)).To(Equal(test.stays))
			g.Expect(d.has(t, namespace)).To(BeTrue())
			g.Expect(namespace.Labels[hyperv1.ClusterMonitoringLabel] == "true").To(Equal(test.label))
			if test.wanted && test.stays {
				g.Expect(live.RoleRef).To(Equal(rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: rights.PrometheusRole}))
				g.Expect(live.Subjects).To(Equal([]rbacv1.Subject{rights.PlatformPrometheus()}))
				g.Expect(live.Annotations).To(HaveKeyWithValue(hyperv1.HostedClusterAnnotation, "clusters/demo"))
			}
		})
	}
}
