// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/deletion"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/rbac"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/monitoringcrds"
	"github.com/openshift/hypershift/support/pki"
)

// stockOperator is a fake of the control-plane-operator in an OpenShift release. It needs the same of the management
// cluster as the real one. It watches the monitoring kinds, and creates pods for which it sets only the user.
type stockOperator struct {
	*world
	// restarts is the number of times that it has exited.
	restarts int32
}

func newStockOperator(t *testing.T, c client.WithWatch, namespace string,
	mutate func(*hyperv1.HostedCluster)) *stockOperator {
	t.Helper()
	s := newWorld(t, c, namespace)
	s.start(func(hc *hyperv1.HostedCluster) {
		hc.Spec.Release.Image = fixture.OCPImage
		if mutate != nil {
			mutate(hc)
		}
	})
	s.mustPass()
	return &stockOperator{world: s}
}

// run simulates one run of its process, which exits with the error of the first kind that it cannot watch.
func (s *stockOperator) run() {
	s.t.Helper()
	account := fixture.As(s.t, "system:serviceaccount:"+s.hosted()+":"+controlPlaneOperatorName, "system:serviceaccounts",
		"system:authenticated")
	for _, list := range []client.ObjectList{
		&monitoringv1.ServiceMonitorList{}, &monitoringv1.PodMonitorList{}, &monitoringv1.PrometheusRuleList{},
	} {
		if err := account.List(s.t.Context(), list, client.InNamespace(s.hosted())); err != nil {
			s.end(err)
			return
		}
	}
	s.deploy()
}

// end writes the pod status that a kubelet reports for a process that has exited with an error and restarts.
func (s *stockOperator) end(why error) {
	s.t.Helper()
	s.restarts++
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: "control-plane-operator-5f7-abcde"}}
	if s.restarts == 1 {
		pod.Spec = corev1.PodSpec{ServiceAccountName: controlPlaneOperatorName, SecurityContext: restrictedPod(),
			Containers: []corev1.Container{restrictedContainer("control-plane-operator")}}
		s.Expect(s.client.Create(s.t.Context(), pod)).To(Succeed())
	}
	s.get(pod, pod.Name)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "control-plane-operator", RestartCount: s.restarts, Ready: true,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(s.clock.Now())}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 1, Reason: "Error", FinishedAt: metav1.NewTime(s.clock.Now()), Message: "error: " + why.Error() + "\n",
		}},
	}}
	s.Expect(s.client.Status().Update(s.t.Context(), pod)).To(Succeed())
}

// deploy creates a Deployment and its pod, as the operator and kube-controller-manager do, and reports whether the pod
// was admitted. It sets only the user.
func (s *stockOperator) deploy() bool {
	s.t.Helper()
	labels := map[string]string{"app": "kube-apiserver"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](1001)},
		Containers:      []corev1.Container{{Name: "kube-apiserver", Image: "registry.example/kube-apiserver:1"}},
	}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: "kube-apiserver"},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template}}
	if err := s.client.Create(s.t.Context(), deployment); !apierrors.IsAlreadyExists(err) {
		s.Expect(err).NotTo(HaveOccurred())
	}
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.GenerateName = s.hosted(), "kube-apiserver-"
	err := s.client.Create(s.t.Context(), pod)
	s.get(deployment, deployment.Name)
	deployment.Status.Conditions = nil
	if err != nil {
		s.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure,
			Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: err.Error()}}
	}
	s.Expect(s.client.Status().Update(s.t.Context(), deployment)).To(Succeed())
	return err == nil
}

func restrictedPod() *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
}

func restrictedContainer(name string) corev1.Container {
	return corev1.Container{Name: name, Image: "registry.example/" + name, SecurityContext: &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}}
}

// TestStockOperatorOnPlainKubernetes runs the fake operator on Kubernetes without OpenShift's kinds.
func TestStockOperatorOnPlainKubernetes(t *testing.T) {
	c := fixture.Start(t)
	stock := newStockOperator(t, c, "stock", nil)
	told := func(conditionType hyperv1.ConditionType) string { return stock.condition(conditionType).Message }
	t.Run("the HostedCluster names the missing monitoring kinds and the operator's last message", func(t *testing.T) {
		g := NewWithT(t)
		stock.run()
		stock.run()
		result, err := stock.pass()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", 30*time.Second)))
		for _, conditionType := range []hyperv1.ConditionType{hyperv1.HostedClusterAvailable, hyperv1.HostedClusterDegraded} {
			g.Expect(told(conditionType)).To(And(
				ContainSubstring("does not serve PodMonitor, PrometheusRule, ServiceMonitor of monitoring.coreos.com/v1"),
				ContainSubstring("run hypershift install --install-monitoring-crds"),
				ContainSubstring("Container control-plane-operator of pod control-plane-operator-5f7-abcde ended with exit code 1"),
				ContainSubstring("last message: error: "), ContainSubstring("no matches for "),
			), string(conditionType))
		}
		g.Expect(stock.condition(hyperv1.HostedClusterDegraded).Reason).To(Equal(hyperv1.ControlPlanePodsFailingReason))
	})
	t.Run("the operator works with the minimal CRDs, and its Pods are admitted", func(t *testing.T) {
		g := NewWithT(t)
		fixture.Install(t, monitoringcrds.Definitions()...)
		stock.run()
		g.Expect(stock.restarts).To(BeNumerically("==", 2), "it found all kinds")
		stock.clock.Step(time.Hour)
		stock.mustPass()
		g.Expect(stock.condition(hyperv1.HostedClusterDegraded).Status).To(Equal(metav1.ConditionUnknown))
		g.Expect(told(hyperv1.HostedClusterAvailable)).To(Equal("Waiting for the hosted control plane to become available"))
		g.Expect(stock.deploy()).To(BeTrue())
	})
	t.Run("Pods that Pod Security rejects are reported with the remedy", func(t *testing.T) {
		g := NewWithT(t)
		fixture.Install(t, monitoringcrds.Definitions()...)
		stock.level(restricted)
		stock.mustPass()
		g.Expect(stock.deploy()).To(BeFalse())
		stock.mustPass()
		for _, conditionType := range []hyperv1.ConditionType{hyperv1.HostedClusterAvailable, hyperv1.HostedClusterDegraded} {
			g.Expect(told(conditionType)).To(And(
				ContainSubstring(`Pods of Deployment kube-apiserver cannot be created: forbidden: violates PodSecurity "restricted:latest"`),
				ContainSubstring(hyperv1.PodSecurityAdmissionLabelOverrideAnnotation),
			), string(conditionType))
		}
		stock.level("")
		stock.mustPass()
		g.Expect(stock.deploy()).To(BeTrue())
		stock.mustPass()
		g.Expect(stock.condition(hyperv1.HostedClusterDegraded).Status).To(Equal(metav1.ConditionUnknown))
	})
}

// level sets the Pod Security level of the hosted namespace as an administrator.
func (s *world) level(decided string) {
	s.t.Helper()
	namespace := &corev1.Namespace{}
	s.Expect(s.client.Get(s.t.Context(), client.ObjectKey{Name: s.hosted()}, namespace)).To(Succeed())
	cluster.Annotate(namespace, hyperv1.PodSecurityAdmissionLabelOverrideAnnotation, decided)
	s.Expect(s.client.Update(s.t.Context(), namespace)).To(Succeed())
}

// TestStockOperatorLevels checks on a real API server which Pod Security level the namespace of an OpenShift payload
// has.
func TestStockOperatorLevels(t *testing.T) {
	c := fixture.Start(t)
	for name, tc := range map[string]struct {
		asked, loosest, want string
		scc                  bool
		told                 string
	}{
		"level-plain":    {want: baseline},
		"level-scc":      {scc: true, want: restricted},
		"level-loosened": {scc: true, asked: baseline, want: baseline},
		"level-too-far":  {asked: privileged, want: baseline, told: "asks for privileged, and this installation allows baseline"},
		"level-forbidden": {scc: true, asked: baseline, loosest: restricted, want: restricted,
			told: "asks for baseline, and this installation allows restricted"},
		"level-allowed":   {asked: privileged, loosest: privileged, want: privileged},
		"level-tightened": {asked: restricted, want: restricted},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if tc.scc {
				fixture.Serve(t, "security.openshift.io")
			}
			s := newWorld(t, c, name)
			s.Settings.LoosestPodSecurity = tc.loosest
			s.start(func(hc *hyperv1.HostedCluster) {
				hc.Spec.Release.Image = fixture.OCPImage
				hc.Annotations = map[string]string{hyperv1.PodSecurityAdmissionLabelOverrideAnnotation: tc.asked}
			})
			s.mustPass()
			namespace := &corev1.Namespace{}
			g.Expect(c.Get(t.Context(), client.ObjectKey{Name: s.hosted()}, namespace)).To(Succeed())
			g.Expect(namespace.Labels).To(HaveKeyWithValue(enforceLabel, tc.want))
			valid := s.condition(hyperv1.ValidHostedClusterConfiguration)
			g.Expect(valid.Status).To(Equal(metav1.ConditionTrue))
			g.Expect(valid.Message).To(ContainSubstring(tc.told))
			if tc.told == "" {
				g.Expect(valid.Message).To(Equal(hyperv1.AllIsWellMessage))
			}
		})
	}
}

// TestAuthenticationReader checks that the PKI operator of a payload may read the authentication settings of its
// metrics endpoint.
func TestAuthenticationReader(t *testing.T) {
	c := fixture.Start(t)
	payload, product := newStockOperator(t, c, "reads-authentication", nil), newWorld(t, c, "reads-nothing")
	product.start(nil)
	product.mustPass()
	read := func(namespace, name string) error {
		account := fixture.As(t, "system:serviceaccount:"+namespace+":"+name, "system:serviceaccounts",
			"system:serviceaccounts:"+namespace, "system:authenticated")
		key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "extension-apiserver-authentication"}
		return account.Get(t.Context(), key, &corev1.ConfigMap{})
	}
	binding := func() *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: payload.hosted() + "-authentication-reader"}}
	}
	allowed := func(t *testing.T) {
		t.Helper()
		NewWithT(t).Eventually(func() error { return read(payload.hosted(), rbac.PKIOperator) }).Should(Succeed())
	}
	t.Run("the PKI operator of an OpenShift payload may read the ConfigMap", allowed)
	t.Run("no other service account may read the ConfigMap", func(t *testing.T) {
		for _, err := range []error{
			read(payload.hosted(), controlPlaneOperatorName), read(payload.hosted(), "default"), read(product.hosted(), rbac.PKIOperator),
			read(payload.namespace, rbac.PKIOperator),
		} {
			NewWithT(t).Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		}
	})
	t.Run("the RoleBinding is created again when it is deleted", func(t *testing.T) {
		NewWithT(t).Expect(c.Delete(t.Context(), binding())).To(Succeed())
		payload.mustPass()
		allowed(t)
		requests := payload.owner(t.Context(), found(t, c, binding()))
		NewWithT(t).Expect(requests).To(ConsistOf(payload.request()), "its deletion asks for the cluster")
	})
	t.Run("the RoleBinding is deleted while PKI reconciliation is disabled", func(t *testing.T) {
		payload.change(func(hc *hyperv1.HostedCluster) {
			hc.Annotations = map[string]string{hyperv1.DisablePKIReconciliationAnnotation: ""}
		})
		payload.mustPass()
		NewWithT(t).Expect(apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(binding()), binding()))).To(BeTrue())
		payload.change(func(hc *hyperv1.HostedCluster) { hc.Annotations = nil })
		payload.mustPass()
		allowed(t)
	})
	t.Run("the RoleBinding is deleted with the cluster", func(t *testing.T) {
		_, err := deletion.Deleter{Client: payload.Client}.DeleteClusterRoles(t.Context(), cluster.NewScope(payload.cluster()))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(binding()), binding()))).To(BeTrue())
	})
	t.Run("a RoleBinding of the same name that belongs to another owner is kept and reported", func(t *testing.T) {
		g, theirs := NewWithT(t), binding()
		theirs.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "extension-apiserver-authentication-reader"}
		g.Expect(c.Create(t.Context(), theirs)).To(Succeed())
		_, err := payload.pass()
		g.Expect(err).To(MatchError(ContainSubstring("not this cluster's")))
		_, err = deletion.Deleter{Client: payload.Client}.DeleteClusterRoles(t.Context(), cluster.NewScope(payload.cluster()))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found(t, c, theirs).Subjects).To(BeEmpty())
	})
}

func found[T client.Object](t *testing.T, c client.Client, obj T) T {
	t.Helper()
	NewWithT(t).Expect(c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	return obj
}

// TestPayloadTrust connects with only the CAs of the bundle, as an operator of a payload does: it mounts the bundle
// over the bundle of its image.
func TestPayloadTrust(t *testing.T) {
	c := fixture.Start(t)
	registry, public := newSignedServer(t), newSignedServer(t)
	s := newWorld(t, c, "trusts")
	s.Settings.SystemTrust = func() ([]byte, error) { return public.ca, nil }
	s.start(func(hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = fixture.OCPImage })
	bundle := &corev1.ConfigMap{}
	calls := func(server signedServer) error {
		s.get(bundle, hosted.PayloadTrust)
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM([]byte(bundle.Data["ca-bundle.crt"]))
		caller := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
		response, err := caller.Get(server.URL)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	users := func(text []byte) {
		source := found(t, c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fixture.TrustBundle}})
		source.Data["ca-bundle.crt"] = string(text)
		s.Expect(c.Update(t.Context(), source)).To(Succeed())
		s.mustPass()
	}
	t.Run("the bundle contains the system's CAs and the cluster's CAs", func(t *testing.T) {
		g := NewWithT(t)
		users(registry.ca)
		g.Expect(calls(public)).To(Succeed())
		g.Expect(calls(registry)).To(Succeed())
	})
	t.Run("the bundle follows changes of the cluster's CAs", func(t *testing.T) {
		g := NewWithT(t)
		users([]byte("no certificates"))
		g.Expect(calls(public)).To(Succeed())
		g.Expect(calls(registry)).To(MatchError(ContainSubstring("unknown authority")))
	})
	t.Run("the bundle is restored when it is deleted or changed", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(c.Delete(t.Context(), bundle)).To(Succeed())
		s.mustPass()
		g.Expect(calls(public)).To(Succeed())
		bundle.Data["ca-bundle.crt"] = "changed"
		g.Expect(c.Update(t.Context(), bundle)).To(Succeed())
		s.mustPass()
		g.Expect(calls(public)).To(Succeed())
	})
	t.Run("without system CAs there is no bundle, so that operators use the bundle of their image", func(t *testing.T) {
		s.Settings.SystemTrust = nil
		s.mustPass()
		NewWithT(t).Expect(s.missing(&corev1.ConfigMap{}, hosted.PayloadTrust)).To(BeTrue())
	})
	t.Run("a ConfigMap of the same name that belongs to another owner is kept and reported", func(t *testing.T) {
		g := NewWithT(t)
		s.Settings.SystemTrust = func() ([]byte, error) { return public.ca, nil }
		theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: hosted.PayloadTrust},
			Data: map[string]string{"ca-bundle.crt": "theirs"}}
		g.Expect(c.Create(t.Context(), theirs)).To(Succeed())
		_, err := s.pass()
		g.Expect(err).To(MatchError(ContainSubstring("an object of that name already exists")))
		g.Expect(found(t, c, theirs).Data).To(HaveKeyWithValue("ca-bundle.crt", "theirs"))
	})
	t.Run("a Kubernetes payload gets no bundle", func(t *testing.T) {
		product := newWorld(t, c, "trusts-not")
		product.Settings.SystemTrust = s.Settings.SystemTrust
		product.start(nil)
		product.mustPass()
		NewWithT(t).Expect(product.missing(&corev1.ConfigMap{}, hosted.PayloadTrust)).To(BeTrue())
	})
}

// signedServer is a server with a certificate of its own CA.
type signedServer struct {
	*httptest.Server
	ca []byte
}

func newSignedServer(t *testing.T) signedServer {
	t.Helper()
	g := NewWithT(t)
	ca, err := pki.NewCA(pki.Name{CommonName: t.Name()}, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	leaf, err := ca.Issue(pki.Leaf{Server: true, Hosts: []string{"127.0.0.1"}}, pki.Lifetime{}, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	certificate, err := tls.X509KeyPair(leaf.CertPEM, leaf.KeyPEM)
	g.Expect(err).NotTo(HaveOccurred())
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return signedServer{server, ca.CertPEM}
}
