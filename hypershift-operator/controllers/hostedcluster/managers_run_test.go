// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/none"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/testenv"
)

// newShop returns a fixture that also supports managers: their ControlPlaneComponents and the platform's cluster have a
// status subresource.
func newShop(objects ...client.Object) *desk {
	d := newDesk()
	d.Direct = fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(objects...).
		WithStatusSubresource(&hyperv1.HostedCluster{}, &hyperv1.ControlPlaneComponent{}, &infrav1.MaasCluster{}).Build()
	c := testenv.Intercept(d.Direct, func(request testenv.Request) error {
		if d.Refuse != "" && strings.Contains(request.String(), d.Refuse) {
			return errNotNow
		}
		if request.Writes() {
			d.Wrote = append(d.Wrote, request.String())
		}
		return request.Do()
	})
	d.Client, d.LiveReader = c, c
	return d
}

// inside returns the metadata of an object in the hosted namespace.
func inside(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "clusters-demo", Name: name}
}

// aProvider returns a provider with the manifests of Cluster API.
func aProvider() *component.Component {
	return &component.Component{Name: capiProviderName, Manifests: folder(capiManagerName), Images: map[string]string{capiManagerTag: "provider:1"}}
}

func TestControlPlaneOperatorRuns(t *testing.T) {
	for image, theirs := range map[string]bool{fixture.ReleaseImage: false, fixture.OCPImage: true} {
		t.Run("When the release is "+image+", the release's operator should get the monitor and rights that it needs", func(t *testing.T) {
			g, d, s := NewWithT(t), newShop(), managed(t, image)
			_, err := d.reconcileControlPlaneOperator(t.Context(), s)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(d.Has(t, &appsv1.Deployment{ObjectMeta: inside("control-plane-operator")})).To(BeTrue())
			g.Expect(d.Has(t, &monitoringv1.PodMonitor{ObjectMeta: inside("controlplane-operator")})).To(Equal(theirs))
			g.Expect(d.Has(t, &corev1.Service{ObjectMeta: inside("control-plane-operator")})).To(Equal(!theirs))
			g.Expect(d.Has(t, &monitoringv1.ServiceMonitor{ObjectMeta: inside("control-plane-operator")})).To(Equal(!theirs))
			g.Expect(d.Has(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "hypershift-metrics-clusters-demo"}})).To(BeTrue())
			report := &hyperv1.ControlPlaneComponent{ObjectMeta: inside("control-plane-operator")}
			g.Expect(d.Has(t, report)).To(BeTrue())
			g.Expect(report.Labels).To(BeEmpty())
		})
	}
	t.Run("When the ClusterRole for metrics cannot be created, it should not create the Deployment", func(t *testing.T) {
		g, d := NewWithT(t), newShop()
		d.Refuse = "create v1.ClusterRole"
		_, err := d.reconcileControlPlaneOperator(t.Context(), managed(t, fixture.ReleaseImage))
		g.Expect(err).To(MatchError(errNotNow))
		g.Expect(d.Has(t, &appsv1.Deployment{ObjectMeta: inside("control-plane-operator")})).To(BeFalse())
	})
	t.Run("When the Deployment cannot be created, it should return an error", func(t *testing.T) {
		g, d := NewWithT(t), newShop()
		d.Refuse = "Deployment clusters-demo/control-plane-operator"
		_, err := d.reconcileControlPlaneOperator(t.Context(), managed(t, fixture.ReleaseImage))
		g.Expect(err).To(MatchError(errNotNow))
	})
	t.Run("When it renders managers, it should pass the control plane's settings to them", func(t *testing.T) {
		g, d, s := NewWithT(t), newShop(), managed(t, fixture.ReleaseImage)
		d.Settings.PassedEnv = map[string]string{"METRICS_SET": "SRE"}
		got := d.components(s)
		g.Expect(got.Client).NotTo(BeNil())
		got.Client = nil
		g.Expect(*got).To(Equal(component.Scope{
			HCP: s.HCP, Operator: "hypershift-operator", Version: "1.36.3", Images: s.Release, PodUID: s.securityUserID(), MetricsSet: "SRE"}))
		g.Expect(got.PodUID).To(HaveValue(BeEquivalentTo(1001)))
	})
}

// clustered returns a scope of a platform with an infrastructure cluster, and with a provider if the platform has one.
func clustered(t *testing.T, p *plugged) *scope {
	t.Helper()
	s := managed(t, fixture.ReleaseImage)
	p.Infra = &platform.Object{}
	s.Platform, s.PlatformServed = p, true
	return s
}

func TestClusterAPIManagerRuns(t *testing.T) {
	t.Run("When there is a cluster, the manager should run with its finalizer and webhook certificate", func(t *testing.T) {
		g, d, s := NewWithT(t), newShop(), clustered(t, &plugged{})
		_, err := d.reconcileCAPIManager(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		manager := &appsv1.Deployment{ObjectMeta: inside("cluster-api")}
		g.Expect(d.Has(t, manager)).To(BeTrue())
		g.Expect(manager.Finalizers).To(ContainElement(hyperv1.ControlPlaneComponentFinalizer))
		g.Expect(d.Has(t, s.Secret(naming.CAPIWebhookCert))).To(BeTrue())
		g.Expect(d.Has(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "hypershift-cluster-api-clusters-demo"}})).To(BeTrue())
		report := &hyperv1.ControlPlaneComponent{ObjectMeta: inside("cluster-api")}
		g.Expect(d.Has(t, report)).To(BeTrue())

		s.HC.Annotations = map[string]string{hyperv1.DisableMachineManagement: ""}
		_, err = d.reconcileCAPIManager(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.Has(t, manager)).To(BeTrue(), "it may have machines to release")
		g.Expect(d.Has(t, report)).To(BeFalse(), "nobody waits for it")
	})
	for _, refuse := range []string{"Secret clusters-demo/" + naming.CAPIWebhookCert, "create v1.ClusterRole ", "Deployment clusters-demo/cluster-api"} {
		t.Run("When the server refuses "+refuse+", it should create no Deployment", func(t *testing.T) {
			g, d := NewWithT(t), newShop()
			d.Refuse = refuse
			_, err := d.reconcileCAPIManager(t.Context(), clustered(t, &plugged{}))
			g.Expect(err).To(MatchError(errNotNow))
			g.Expect(d.Has(t, &appsv1.Deployment{ObjectMeta: inside("cluster-api")})).To(BeFalse())
		})
	}
}

func TestProviderRuns(t *testing.T) {
	report := func() *hyperv1.ControlPlaneComponent {
		return &hyperv1.ControlPlaneComponent{ObjectMeta: inside("capi-provider")}
	}
	for name, tc := range map[string]struct {
		p           *plugged
		annotations map[string]string
		refuse      string
		runs, fails bool
	}{
		"When the platform has a provider, it should run":                                                              {p: &plugged{Runs: aProvider()}, runs: true},
		"When the platform has no provider, it should delete the ControlPlaneComponent":                                {p: &plugged{}},
		"When machine management is disabled, it should not run the provider":                                          {p: &plugged{Runs: aProvider()}, annotations: map[string]string{hyperv1.DisableMachineManagement: "x"}},
		"When the Deployment cannot be created, it should return an error":                                             {p: &plugged{Runs: aProvider()}, refuse: "Deployment clusters-demo/", runs: true, fails: true},
		"When the platform has no provider and the ControlPlaneComponent cannot be deleted, it should return an error": {p: &plugged{}, refuse: "delete v1beta1.ControlPlaneComponent", runs: true, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			g, d, s := NewWithT(t), newShop(report()), clustered(t, tc.p)
			d.Refuse, s.HC.Annotations = tc.refuse, tc.annotations
			_, err := d.reconcileCAPIProvider(t.Context(), s)
			g.Expect(err != nil).To(Equal(tc.fails), "%v", err)
			g.Expect(d.Has(t, report())).To(Equal(tc.runs))
			g.Expect(s.Cleared).To(Equal([]string{string(hyperv1.PlatformProviderSupported)}))
		})
	}
	t.Run("When the provider is a third-party one, a condition should report what it lacks", func(t *testing.T) {
		g, s := NewWithT(t), on(&plugged{Says: "it lacks much"})
		newShop().reportProvider(s)
		c := s.Conditions[string(hyperv1.PlatformProviderSupported)]
		g.Expect(string(c.Status) + "/" + c.Reason + "/" + c.Message).To(Equal("False/" + hyperv1.ForeignProviderReason + "/it lacks much"))
		g.Expect(s.Platform.(*plugged).Seen).To(Equal([]platform.Cluster{s.ForPlatform(operatorImage)}))
	})
	t.Run("When the provider is the product's own or the platform has none, it should set no condition", func(t *testing.T) {
		for _, p := range []platform.Platform{&plugged{}, none.Platform{}} {
			s := on(p)
			newShop().reportProvider(s)
			NewWithT(t).Expect(s.Conditions).To(BeEmpty())
		}
	})
	t.Run("When a platform has no infrastructure cluster, it should need no managers", func(t *testing.T) {
		g, s := NewWithT(t), on(&plugged{Infra: &platform.Object{}})
		g.Expect(newShop().wantsManagers(s)).To(BeTrue())
		g.Expect(newShop().wantsManagers(on(none.Platform{}))).To(BeFalse())
	})
}

func TestClusterWideRights(t *testing.T) {
	account := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: "ServiceAccount", Namespace: "clusters-demo", Name: name}
	}
	watch := []string{"get", "list", "watch"}
	for name, tc := range map[string]struct {
		run      func(*desk, *scope) error
		rules    []rbacv1.PolicyRule
		accounts []rbacv1.Subject
	}{
		"hypershift-cluster-api": {func(d *desk, s *scope) error { return d.readCRDs(t.Context(), s) },
			[]rbacv1.PolicyRule{{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: watch}},
			[]rbacv1.Subject{account("cluster-api"), account("capi-provider")}},
		"hypershift-metrics": {func(d *desk, s *scope) error { return d.reviewReaders(t.Context(), s) },
			[]rbacv1.PolicyRule{
				{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
				{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}}},
			[]rbacv1.Subject{account("control-plane-operator"), account("capi-provider"), account("hosted-cluster-config-operator"), account("ignition-server")}},
	} {
		t.Run("When ClusterRole "+name+" is granted, it should have exactly these rules and service accounts", func(t *testing.T) {
			g := NewWithT(t)
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"*"}}}}
			binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name + "-clusters-demo", Labels: withScope().OwnerLabels()}, Subjects: []rbacv1.Subject{account("x")}}
			d, s := newDesk(role.DeepCopy(), binding.DeepCopy()), withScope()
			for range 2 {
				g.Expect(tc.run(d, s)).To(Succeed())
			}
			g.Expect(d.Wrote).To(HaveLen(2), "each once")
			g.Expect(d.Has(t, role) && d.Has(t, binding)).To(BeTrue())
			g.Expect(role.Rules).To(Equal(tc.rules))
			g.Expect(role.Labels).To(BeEmpty(), "it stays when the cluster goes")
			g.Expect(binding.Subjects).To(Equal(tc.accounts))
			g.Expect(binding.RoleRef).To(Equal(rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: name}))
			g.Expect(binding.Labels).To(Equal(map[string]string{cluster.OwnerNamespace: "clusters", cluster.OwnerName: "demo"}))

			fresh := newDesk()
			g.Expect(tc.run(fresh, s)).To(Succeed())
			g.Expect(fresh.Wrote).To(HaveLen(2))
			for _, refuse := range []string{"create v1.ClusterRole ", "create v1.ClusterRoleBinding"} {
				d := newDesk()
				d.Refuse = refuse
				g.Expect(tc.run(d, s)).To(MatchError(errNotNow))
			}
			binding.Labels = nil
			binding.ResourceVersion = ""
			g.Expect(tc.run(newDesk(binding), s)).To(MatchError(ContainSubstring("not this cluster's")))
		})
	}
}
