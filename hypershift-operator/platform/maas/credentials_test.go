// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/maas"
)

func testCluster() platform.Cluster {
	return platform.Cluster{
		Namespace: "clusters-demo", OperatorImage: "registry.example/hypershift:1",
		HostedCluster: &hyperv1.HostedCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"},
			Spec: hyperv1.HostedClusterSpec{Platform: hyperv1.PlatformSpec{Type: hyperv1.MAASPlatform,
				MAAS: &hyperv1.MAASPlatformSpec{IdentityRef: hyperv1.MAASIdentityReference{Name: "creds"}}}},
		},
	}
}

// theCopy is the Secret with the operator's copy of testCluster's credentials.
var theCopy = client.ObjectKey{Namespace: "hypershift", Name: "maas-credentials-clusters-demo"}

func testClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	g := NewWithT(t)
	g.Expect(errors.Join(corev1.AddToScheme(scheme), rbacv1.AddToScheme(scheme), appsv1.AddToScheme(scheme))).To(Succeed())
	g.Expect(infrav1.AddToScheme(scheme)).To(Succeed())
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&infrav1.MaasMachine{}).Build()
}

func credentials(data map[string]string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "creds"}, Data: map[string][]byte{}}
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	return secret
}

func testPlatform(s *server) *Platform { return New(Options{WhoAmI: s.whoAmI}) }

func TestReconcileCredentials(t *testing.T) {
	good := map[string]string{"MAAS_ENDPOINT": "http://maas.example:5240/MAAS", "MAAS_API_KEY": "a:b:c"}

	t.Run("When the Secret uses the alternative keys, it should copy them to the standard keys", func(t *testing.T) {
		g := NewWithT(t)
		c := testClient(t, credentials(map[string]string{"maas-server-url": good["MAAS_ENDPOINT"], "maas-api-key": "a:b:c", "MAAS_CA_BUNDLE": "PEM"}))
		found, err := testPlatform(&server{}).ReconcileCredentials(t.Context(), c, testCluster())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Condition.Status).To(Equal(metav1.ConditionTrue))
		g.Expect(found.Hash).NotTo(BeEmpty())
		copied := &corev1.Secret{}
		g.Expect(c.Get(t.Context(), theCopy, copied)).To(Succeed())
		g.Expect(copied.Data).To(Equal(map[string][]byte{
			"MAAS_ENDPOINT": []byte(good["MAAS_ENDPOINT"]), "MAAS_API_KEY": []byte("a:b:c"), "MAAS_CA_BUNDLE": []byte("PEM")}))
		g.Expect(copied.Annotations).To(HaveKeyWithValue("hypershift.openshift.io/cluster", "clusters/demo"))
	})

	for _, tc := range []struct {
		name    string
		objects []client.Object
		want    string
	}{
		{"When there is no Secret, it should report which one to create", nil, "There is no Secret clusters/creds"},
		{"When a key is missing, it should name the key", []client.Object{credentials(map[string]string{"MAAS_ENDPOINT": good["MAAS_ENDPOINT"]})}, "lacks MAAS_API_KEY"},
		{"When a key is empty, it should name the key", []client.Object{credentials(map[string]string{"MAAS_ENDPOINT": "", "MAAS_API_KEY": "a:b:c"})}, "lacks MAAS_ENDPOINT"},
		{"When the API key is malformed, it should report the expected format", []client.Object{credentials(map[string]string{"MAAS_ENDPOINT": good["MAAS_ENDPOINT"], "MAAS_API_KEY": "secret-without-colons"})}, "consumer:token:secret"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, s := NewWithT(t), &server{}
			found, err := testPlatform(s).ReconcileCredentials(t.Context(), testClient(t, tc.objects...), testCluster())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Condition.Reason).To(Equal("PlatformCredentialsNotFound"))
			g.Expect(found.Condition.Message).To(ContainSubstring(tc.want))
			g.Expect(found.Condition.Message).NotTo(ContainSubstring("secret-without-colons"))
			g.Expect(found.Hash).To(BeEmpty(), "no provider can run")
			g.Expect(s.asked).To(BeZero())
		})
	}

	t.Run("When MAAS is unreachable and the credentials did not change, it should not mention the last valid ones", func(t *testing.T) {
		g, s, c := NewWithT(t), &server{}, testClient(t, credentials(good))
		_, err := testPlatform(s).ReconcileCredentials(t.Context(), c, testCluster())
		g.Expect(err).NotTo(HaveOccurred())
		s.err = &maas.UnreachableError{Operation: "check the API key", Endpoint: "maas.example", Err: errors.New("refused")}
		found, err := testPlatform(s).ReconcileCredentials(t.Context(), c, testCluster())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Condition.Message).To(ContainSubstring("maas.example"))
		g.Expect(found.Condition.Message).NotTo(ContainSubstring("last valid"))
	})

	t.Run("When the Secret is deleted, it should keep the copy so that machines can be released", func(t *testing.T) {
		g := NewWithT(t)
		source := credentials(good)
		c := testClient(t, source)
		p := testPlatform(&server{})
		first, err := p.ReconcileCredentials(t.Context(), c, testCluster())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Delete(t.Context(), source)).To(Succeed())
		second, err := p.ReconcileCredentials(t.Context(), c, testCluster())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(second.Condition.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(second.Hash).To(Equal(first.Hash))
	})
}

func machine(name string, mutate func(*infrav1.MaasMachine)) *infrav1.MaasMachine {
	now := metav1.Now()
	m := &infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "clusters-demo", Name: name, Finalizers: []string{infrav1.MachineFinalizer}, DeletionTimestamp: &now,
	}}
	if mutate != nil {
		mutate(m)
	}
	return m
}

func TestOrphanedMachines(t *testing.T) {
	allocated := func(m *infrav1.MaasMachine) { id := "abc"; m.Spec.SystemID = &id }
	waiting := func(m *infrav1.MaasMachine) {
		m.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Deleting", Message: "MAAS is releasing abc"}}
	}
	run := func(t *testing.T, s *server, objects ...client.Object) (string, client.Client) {
		t.Helper()
		c := testClient(t, objects...)
		why, err := testPlatform(s).OrphanedMachines(t.Context(), c, testCluster())
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return why, c
	}
	held := func(t *testing.T, c client.Client) int {
		t.Helper()
		list := &infrav1.MaasMachineList{}
		NewWithT(t).Expect(c.List(t.Context(), list)).To(Succeed())
		return len(list.Items)
	}

	t.Run("When there are no machines, it should report nothing", func(t *testing.T) {
		why, _ := run(t, &server{})
		NewWithT(t).Expect(why).To(BeEmpty())
	})
	t.Run("When the credentials work, it should report the progress of the release", func(t *testing.T) {
		g := NewWithT(t)
		why, c := run(t, &server{}, credentials(map[string]string{"MAAS_ENDPOINT": "http://m/MAAS", "MAAS_API_KEY": "a:b:c"}), machine("m1", waiting))
		g.Expect(why).To(Equal("MaasMachine m1: MAAS is releasing abc"))
		g.Expect(held(t, c)).To(Equal(1))
	})
	t.Run("When only the MaasCluster is left, it should report its message and keep the copied credentials", func(t *testing.T) {
		now := metav1.Now()
		infra := &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo", Finalizers: []string{infrav1.ClusterFinalizer}, DeletionTimestamp: &now}}
		infra.Status.Conditions = []metav1.Condition{{Type: "Deleting", Status: metav1.ConditionTrue, Reason: "MachinesNotReleased", Message: "MAAS has not taken back machine one (abc)"}}
		why, c := run(t, &server{}, credentials(map[string]string{"MAAS_ENDPOINT": "http://m/MAAS", "MAAS_API_KEY": "a:b:c"}), infra)
		g := NewWithT(t)
		g.Expect(why).To(Equal("MaasCluster demo: MAAS has not taken back machine one (abc)"))
		copies := &corev1.SecretList{}
		g.Expect(c.List(t.Context(), copies, client.InNamespace(theCopy.Namespace))).To(Succeed())
		g.Expect(copies.Items).To(HaveLen(1), "a key that is mended reaches the provider")
	})
	t.Run("When the credentials are gone, it should keep the finalizer of an allocated machine", func(t *testing.T) {
		g := NewWithT(t)
		why, c := run(t, &server{}, machine("m1", allocated), machine("m2", nil))
		g.Expect(why).To(ContainSubstring("1 machine cannot be released in MAAS"))
		g.Expect(why).To(ContainSubstring("There is no Secret clusters/creds"))
		g.Expect(held(t, c)).To(Equal(1))
	})
	t.Run("When the namespace was deleted, it should name the machines to release by hand", func(t *testing.T) {
		g := NewWithT(t)
		now := metav1.Now()
		c := testClient(t, credentials(map[string]string{"MAAS_ENDPOINT": "http://m/MAAS", "MAAS_API_KEY": "a:b:c"}), machine("m1", allocated), machine("m2", nil),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo", DeletionTimestamp: &now, Finalizers: []string{"kubernetes"}}})
		why, err := testPlatform(&server{}).OrphanedMachines(t.Context(), c, testCluster())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(why).To(ContainSubstring("in MAAS by hand: abc; then"))
		g.Expect(held(t, c)).To(Equal(2))
	})
	t.Run("When the provider already handles a machine, it should keep the machine's finalizer", func(t *testing.T) {
		_, c := run(t, &server{}, machine("m1", waiting))
		NewWithT(t).Expect(held(t, c)).To(Equal(1))
	})
	t.Run("When no machine was ever allocated, it should remove all finalizers", func(t *testing.T) {
		g := NewWithT(t)
		why, c := run(t, &server{}, machine("m1", nil), machine("m2", nil))
		g.Expect(why).To(BeEmpty())
		g.Expect(held(t, c)).To(BeZero())
	})
}

// TestStranded checks that the message contains the names of all machines to release by hand, and no empty name.
func TestStranded(t *testing.T) {
	machines := []infrav1.MaasMachine{{}, {}, {}, {}}
	machines[0].Spec.SystemID, machines[2].Spec.SystemID, machines[3].Spec.SystemID = ptr.To("abc123"), ptr.To(""), ptr.To("def456")
	NewWithT(t).Expect(stranded(machines, "clusters-demo")).To(And(
		HavePrefix("Namespace clusters-demo was deleted"), ContainSubstring("by hand: abc123, def456; then")))
}

// provider returns the provider's container of a cluster with credentials.
func provider(t *testing.T, p *Platform, cluster platform.Cluster) corev1.Container {
	t.Helper()
	g, scheme := NewWithT(t), runtime.NewScheme()
	g.Expect(errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), rbacv1.AddToScheme(scheme), hyperv1.AddToScheme(scheme))).To(Succeed())
	cluster.CredentialsHash = "one"
	obj, err := p.Provider(cluster).Render(t.Context(), &component.Scope{
		Client: fake.NewClientBuilder().WithScheme(scheme).Build(),
		HCP:    &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "demo"}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	return obj.(*appsv1.Deployment).Spec.Template.Spec.Containers[0]
}

func TestProvider(t *testing.T) {
	t.Run("When there are no credentials, it should run no provider", func(t *testing.T) {
		NewWithT(t).Expect(testPlatform(&server{}).Provider(testCluster())).To(BeNil())
	})
	for _, tc := range []struct{ name, annotation, setting, want string }{
		{"When no image is set, it should run the in-tree provider", "", "", "registry.example/hypershift:1"},
		{"When the operator's image is set, it should run that image", "", "setting:1", "setting:1"},
		{"When the cluster's image is set, it should take precedence", "annotation:1", "setting:1", "annotation:1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			cluster := testCluster()
			if tc.annotation != "" {
				cluster.HostedCluster.Annotations = map[string]string{hyperv1.ClusterAPIProviderMAASImage: tc.annotation}
			}
			container := provider(t, New(Options{ProviderImage: tc.setting}), cluster)
			g.Expect(container.Image).To(Equal(tc.want))
			g.Expect(container.Command).To(Equal([]string{"/manager"}))
		})
	}
	t.Run("When the pod starts, its environment should name the Secret but not contain the key", func(t *testing.T) {
		g := NewWithT(t)
		env := provider(t, testPlatform(&server{}), testCluster()).Env
		g.Expect(env).To(ContainElements(
			corev1.EnvVar{Name: "MAAS_CREDENTIALS_NAMESPACE", Value: theCopy.Namespace}, corev1.EnvVar{Name: "MAAS_CREDENTIALS_SECRET", Value: theCopy.Name}))
		g.Expect(env).NotTo(ContainElement(HaveField("Name", maas.SecretKeyAPIKey)))
	})
	t.Run("When the operator sets logging variables, it should pass them to the provider", func(t *testing.T) {
		level := corev1.EnvVar{Name: "HYPERSHIFT_LOG_LEVEL", Value: "debug"}
		NewWithT(t).Expect(provider(t, New(Options{LogEnv: []corev1.EnvVar{level}}), testCluster()).Env).To(ContainElement(level))
	})
	t.Run("When another image runs, it should pass the key in upstream's environment variable", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(provider(t, New(Options{ProviderImage: "upstream:1"}), testCluster()).Env).To(ContainElement(And(
			HaveField("Name", maas.SecretKeyAPIKey), HaveField("ValueFrom.SecretKeyRef.Name",
				mirrorName(testCluster().HostedCluster)))))
	})
}

func TestNewDefaults(t *testing.T) {
	t.Run("When MAAS is unreachable, it should return an error and not hang", func(t *testing.T) {
		_, err := withClient(Options{}, whoAmI)(t.Context(), maas.Config{Endpoint: "http://127.0.0.1:1/MAAS", APIKey: "a:b:c"})
		NewWithT(t).Expect(maas.IsUnreachable(err)).To(BeTrue())
	})
}
