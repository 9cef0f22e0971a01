// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

const operatorImage = "registry.example/hypershift:1"

// world is one cluster in its own namespace on a shared API server.
type world struct {
	*GomegaWithT
	t         *testing.T
	client    client.WithWatch
	clock     *testingclock.FakeClock
	namespace string
	*Reconciler
}

func newWorld(t *testing.T, c client.WithWatch, namespace string) *world {
	clock := testingclock.NewFakeClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	operator := fixture.AsOperator(t)
	return &world{GomegaWithT: NewWithT(t), t: t, client: c, clock: clock, namespace: namespace, Reconciler: &Reconciler{
		Client: operator, LiveReader: operator, Clock: clock, Recorder: &events.FakeRecorder{}, Releases: fixture.Payloads(),
		Platforms: fixture.Platforms(nil), Settings: Settings{OperatorImage: operatorImage},
	}}
}

func (s *world) hosted() string { return fixture.Hosted(s.namespace) }

func (s *world) request() ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: s.namespace, Name: fixture.ClusterName}}
}

// pass reconciles once.
func (s *world) pass() (ctrl.Result, error) { return s.Reconcile(s.t.Context(), s.request()) }

// mustPass reconciles until the object no longer changes, as several events would.
func (s *world) mustPass() {
	s.t.Helper()
	for range 3 {
		_, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
	}
}

func (s *world) cluster() *hyperv1.HostedCluster {
	s.t.Helper()
	hc := &hyperv1.HostedCluster{}
	s.Expect(s.client.Get(s.t.Context(), s.request().NamespacedName, hc)).To(Succeed())
	return hc
}

func (s *world) get(obj client.Object, name string) {
	s.t.Helper()
	s.Expect(s.client.Get(s.t.Context(), client.ObjectKey{Namespace: s.hosted(), Name: name}, obj)).To(Succeed())
}

func (s *world) condition(conditionType hyperv1.ConditionType) metav1.Condition {
	s.t.Helper()
	c := meta.FindStatusCondition(s.cluster().Status.Conditions, string(conditionType))
	s.Expect(c).NotTo(BeNil(), "condition %s", conditionType)
	return *c
}

// serve writes what the control plane's operator would write.
func (s *world) serve() {
	s.t.Helper()
	fixture.Create(s.t, s.client,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: "admin-kubeconfig"},
			Data: map[string][]byte{"kubeconfig": []byte("admin")}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: "ignition-server"}, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 443}}}},
	)
	hcp := &hyperv1.HostedControlPlane{}
	s.get(hcp, fixture.ClusterName)
	hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "172.30.240.1", Port: 31443}
	hcp.Status.KubeConfig = &hyperv1.KubeconfigSecretRef{Name: "admin-kubeconfig", Key: "kubeconfig"}
	hcp.Status.ReleaseImage = fixture.ReleaseImage
	hcp.Status.Version = "1.36.3"
	hcp.Status.LastReleaseImageTransitionTime = &metav1.Time{Time: s.clock.Now()}
	meta.SetStatusCondition(&hcp.Status.Conditions, metav1.Condition{
		Type: string(hyperv1.HostedControlPlaneAvailable), Status: metav1.ConditionTrue, Reason: hyperv1.AsExpectedReason,
	})
	s.Expect(s.client.Status().Update(s.t.Context(), hcp)).To(Succeed())
}

func TestReconcile(t *testing.T) {
	c := fixture.Start(t)

	t.Run("When a cluster is created, it should create its namespace, control plane and managers", func(t *testing.T) {
		s := newWorld(t, c, "create")
		fixture.Create(t, c, append(fixture.Inputs(s.namespace), fixture.HostedCluster(s.namespace))...)
		s.mustPass()

		namespace := &corev1.Namespace{}
		s.Expect(c.Get(t.Context(), client.ObjectKey{Name: s.hosted()}, namespace)).To(Succeed())
		s.Expect(namespace.Labels).To(HaveKeyWithValue("hypershift.openshift.io/hosted-control-plane", "true"))
		hcp := &hyperv1.HostedControlPlane{}
		s.get(hcp, fixture.ClusterName)
		s.Expect(hcp.Spec.Platform).To(Equal(hyperv1.PlatformSpec{Type: hyperv1.NonePlatform}))
		s.Expect(hcp.Spec.PullSecret.Name).To(Equal("pull-secret"))
		s.Expect(hcp.Spec.InfraID).To(HavePrefix("demo-"))
		for _, name := range []string{"pull-secret", "ssh-key"} {
			s.get(&corev1.Secret{}, name)
		}
		s.Expect(c.Get(t.Context(), fixture.CredentialsCopy(s.namespace), &corev1.Secret{})).To(Succeed())
		s.get(&corev1.ConfigMap{}, "user-ca-bundle")
		operator := &appsv1.Deployment{}
		s.get(operator, "control-plane-operator")
		s.Expect(operator.Spec.Template.Spec.Containers[0].Image).To(Equal(operatorImage))
		s.get(&rbacv1.Role{}, "control-plane-operator")
		s.Expect(s.condition(hyperv1.HostedClusterAvailable).Status).To(Equal(metav1.ConditionFalse))
		s.Expect(s.condition(hyperv1.ReconciliationSucceeded).Status).To(Equal(metav1.ConditionTrue))
		s.Expect(s.condition(hyperv1.PlatformCredentialsFound).Status).To(Equal(metav1.ConditionTrue))
		s.Expect(s.condition(hyperv1.PlatformCredentialsFound).Message).To(ContainSubstring("plain http, so that every call sends the API key in the clear"))

		s.serve()
		s.mustPass()
		hc := s.cluster()
		s.Expect(s.condition(hyperv1.HostedClusterAvailable).Status).To(Equal(metav1.ConditionTrue))
		s.Expect(hc.Status.KubeConfig.Name).To(Equal("demo-admin-kubeconfig"))
		s.Expect(hc.Status.IgnitionEndpoint).To(MatchRegexp(`^172\.30\.240\.1:3\d{4}$`))
		s.Expect(hc.Status.Version.History[0].State).To(BeEquivalentTo("Completed"))
		infra := &infrav1.MaasCluster{}
		s.get(infra, fixture.ClusterName)
		s.Expect(infra.Spec.ControlPlaneEndpoint).To(Equal(infrav1.APIEndpoint{Host: "172.30.240.1", Port: 31443}))
		s.Expect(infra.Annotations).To(HaveKey(infrav1.CustomDNSAnnotation))
		cluster := &clusterv1.Cluster{}
		s.get(cluster, hc.Spec.InfraID)
		s.Expect(cluster.Spec.InfrastructureRef.Kind).To(Equal("MaasCluster"))
		for _, name := range []string{"cluster-api", "capi-provider"} {
			deployment := &appsv1.Deployment{}
			s.get(deployment, name)
			s.Expect(deployment.Finalizers).To(ContainElement(hyperv1.ControlPlaneComponentFinalizer))
		}
		s.get(hcp, fixture.ClusterName)
		for _, name := range []string{"control-plane-operator", "cluster-api", "capi-provider"} {
			report := &hyperv1.ControlPlaneComponent{}
			s.get(report, name)
			s.Expect(report.Status.ObservedGeneration).To(Equal(hcp.Generation), "the release is rolled out when all report this generation")
			s.Expect(report.Status.Resources).To(ContainElement(hyperv1.ComponentResource{Group: "apps", Kind: "Deployment", Name: name}))
		}
	})

	t.Run("When nothing has changed, it should write nothing", func(t *testing.T) {
		s := newWorld(t, c, "create")
		counted := fixture.NewFaulty(c)
		s.Reconciler.Client = counted
		s.mustPass()
		s.Expect(counted.Log).To(BeEmpty())
	})

	t.Run("When the credentials change, the provider should read them without a rollout", func(t *testing.T) {
		s := newWorld(t, c, "create")
		before, after := &appsv1.Deployment{}, &appsv1.Deployment{}
		s.get(before, "capi-provider")
		secret := &corev1.Secret{}
		s.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: fixture.Credentials}, secret)).To(Succeed())
		secret.Data["MAAS_API_KEY"] = []byte("new:api:key")
		s.Expect(c.Update(t.Context(), secret)).To(Succeed())
		s.mustPass()
		s.get(after, "capi-provider")
		s.Expect(after.Spec.Template).To(Equal(before.Spec.Template))
		copied := &corev1.Secret{}
		s.Expect(c.Get(t.Context(), fixture.CredentialsCopy(s.namespace), copied)).To(Succeed())
		s.Expect(copied.Data["MAAS_API_KEY"]).To(BeEquivalentTo("new:api:key"))
	})

	t.Run("When the spec is invalid, it should still copy the kubeconfig that the control plane renews", func(t *testing.T) {
		s := newWorld(t, c, "create")
		hc := s.cluster()
		hc.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{AllowedCIDRBlocks: []hyperv1.CIDRBlock{"10.0.0.0/8"}}
		s.Expect(c.Update(t.Context(), hc)).To(Succeed())
		renewed := &corev1.Secret{}
		s.get(renewed, "admin-kubeconfig")
		renewed.Data["kubeconfig"] = []byte("renewed")
		s.Expect(c.Update(t.Context(), renewed)).To(Succeed())
		s.mustPass()
		s.Expect(s.condition(hyperv1.ValidHostedClusterConfiguration).Status).To(Equal(metav1.ConditionFalse))
		copied := &corev1.Secret{}
		s.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "demo-admin-kubeconfig"}, copied)).To(Succeed())
		s.Expect(copied.Data["kubeconfig"]).To(BeEquivalentTo("renewed"))
		hc = s.cluster()
		hc.Spec.Networking.APIServer = nil
		s.Expect(c.Update(t.Context(), hc)).To(Succeed())
	})

	t.Run("When the cluster is deleted, it should delete its objects in order and then remove the finalizer", func(t *testing.T) {
		s := newWorld(t, c, "create")
		fixture.Create(t, c, fixture.NodePool(s.namespace))
		infraID := s.cluster().Spec.InfraID
		s.Expect(c.Delete(t.Context(), s.cluster())).To(Succeed())
		cluster := &clusterv1.Cluster{}
		s.get(cluster, infraID)
		cluster.Finalizers = []string{"test/cluster-api"}
		s.Expect(c.Update(t.Context(), cluster)).To(Succeed())

		_, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(apierrors.IsNotFound(c.Get(t.Context(), s.request().NamespacedName, &hyperv1.NodePool{}))).To(BeTrue())
		s.get(&hyperv1.HostedControlPlane{}, fixture.ClusterName)
		s.Expect(s.condition(hyperv1.HostedClusterAvailable).Message).To(ContainSubstring("Waiting for Cluster API"))

		s.get(cluster, infraID)
		cluster.Finalizers = nil
		s.Expect(c.Update(t.Context(), cluster)).To(Succeed())
		for range 3 {
			_, err = s.pass()
			s.Expect(err).NotTo(HaveOccurred())
		}
		namespace := &corev1.Namespace{}
		s.Expect(c.Get(t.Context(), client.ObjectKey{Name: s.hosted()}, namespace)).To(Succeed())
		s.Expect(namespace.DeletionTimestamp).NotTo(BeNil())
		s.Expect(s.condition(hyperv1.HostedClusterAvailable).Message).To(ContainSubstring("Waiting for namespace"))

		// No namespace controller runs here to finish the deletion.
		namespace.Spec.Finalizers = nil
		s.Expect(c.SubResource("finalize").Update(t.Context(), namespace)).To(Succeed())
		_, err = s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(apierrors.IsNotFound(c.Get(t.Context(), s.request().NamespacedName, &hyperv1.HostedCluster{}))).To(BeTrue())
		s.Expect(apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKey{Name: "hypershift-cluster-api-" + s.hosted()}, &rbacv1.ClusterRoleBinding{}))).To(BeTrue())
	})
}
