// SPDX-License-Identifier: Apache-2.0

package hostedclusterconfigoperator

import (
	"context"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	certificatesv1 "k8s.io/api/certificates/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/crds"
	certs "github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/support/testenv"
)

// watchedManagement is a management cluster whose client records reads.
type watchedManagement struct {
	cluster.Cluster
	requests *testenv.Requests
}

// GetClient implements cluster.Cluster.
func (w watchedManagement) GetClient() client.Client { return w.requests }

// sides holds the clients of a test and of the controllers under test.
type sides struct {
	guestConfig, managementConfig *rest.Config
	guest, management             client.Client
}

// watch runs one controller of the operator, and returns its clients.
func (s *sides) watch(t *testing.T, name string) (guest, management *testenv.Requests) {
	t.Helper()
	o := &options{namespace: namespace, controlPlane: "absent", metricsAddr: "0", healthAddr: "0", countsNodes: true, controllers: []string{name}}
	c, err := o.connect(s.managementConfig, rest.CopyConfig(s.guestConfig))
	if err != nil {
		t.Fatal(err)
	}
	guest, management = testenv.NewRequests(c.mgr.GetClient()), testenv.NewRequests(c.management.GetClient())
	c.mgr, c.management = testenv.Watched(c.mgr, guest), watchedManagement{c.management, management}
	if err := o.addControllers(c, payload{}); err != nil {
		t.Fatal(err)
	}
	testenv.Run(t, c.mgr)
	return guest, management
}

// TestWatches runs each controller alone. The HostedControlPlane of its reconciles does not exist, so only the watch
// can trigger a reconcile.
func TestWatches(t *testing.T) {
	s := &sides{managementConfig: testenv.Start(t, crds.HyperShift, crds.ClusterAPI), guestConfig: testenv.Start(t)}
	s.management, s.guest = newClient(t, s.managementConfig, true), newClient(t, s.guestConfig, false)
	create(t, s.management, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	absent := client.ObjectKey{Namespace: namespace, Name: "absent"}
	made := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, Labels: map[string]string{component.GuestLabel: "true"}}
	}
	global := func(name string) metav1.ObjectMeta {
		m := made(name)
		m.Namespace = ""
		return m
	}
	hosted := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	machine := &clusterv1.Machine{ObjectMeta: hosted("machine"), Spec: clusterv1.MachineSpec{
		ClusterName: "demo", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("user-data")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "MaasMachine", Name: "machine"}}}
	create(t, s.management, machine)
	touchMachine := func() error {
		machine.Annotations = map[string]string{"touched": machine.ResourceVersion}
		return s.management.Update(t.Context(), machine)
	}
	// controlPlane returns a HostedControlPlane other than the operator's. The operator watches all of them.
	controlPlane := func(name string) *hyperv1.HostedControlPlane {
		hcp := fixture.GuestControlPlane()
		hcp.Namespace, hcp.Name = namespace, name
		return hcp
	}
	labels := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "demo"}}
	pods := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels.MatchLabels}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "demo", Image: "registry.example/demo"}}}}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: made("slice"), AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{}}
	service := func(name string) *corev1.Service {
		return &corev1.Service{ObjectMeta: made(name), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}}
	}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: global("resources"), Spec: admissionv1.ValidatingAdmissionPolicySpec{
		Validations: []admissionv1.Validation{{Expression: "true"}},
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule: admissionv1.Rule{APIGroups: []string{"demo.example"}, APIVersions: []string{"v1"}, Resources: []string{"demos"}}}}}}}}
	for name, objects := range map[string][]client.Object{
		"resources": {
			service("resources"), &corev1.ConfigMap{ObjectMeta: made("resources")}, slice,
			&rbacv1.ClusterRole{ObjectMeta: global("resources")}, &rbacv1.ClusterRoleBinding{ObjectMeta: global("resources"), RoleRef: role},
			&corev1.Namespace{ObjectMeta: global("resources")},
			&rbacv1.Role{ObjectMeta: made("resources")}, &rbacv1.RoleBinding{ObjectMeta: made("resources"), RoleRef: role}, policy,
			&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: global("resources"), Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: "resources", ValidationActions: []admissionv1.ValidationAction{admissionv1.Audit}}},
		},
		"workloads": {
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "workloads"}}, service("workloads"), &corev1.ConfigMap{ObjectMeta: made("workloads")},
			&corev1.ServiceAccount{ObjectMeta: made("workloads")},
			&appsv1.DaemonSet{ObjectMeta: made("workloads"), Spec: appsv1.DaemonSetSpec{Selector: labels, Template: pods}},
			&appsv1.Deployment{ObjectMeta: made("workloads"), Spec: appsv1.DeploymentSpec{Selector: labels, Template: pods}},
			&policyv1.PodDisruptionBudget{ObjectMeta: made("workloads")},
			&hyperv1.ControlPlaneComponent{ObjectMeta: hosted("workloads")},
		},
		"connection": {&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "connection"}}},
		"nodecount":  {&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "nodecount"}}},
		"address": {
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "address"}},
			&appsv1.DaemonSet{ObjectMeta: made("address"), Spec: appsv1.DaemonSetSpec{Selector: labels, Template: pods}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			side := func(obj client.Object) client.Client {
				if obj.GetNamespace() == namespace {
					return s.management
				}
				return s.guest
			}
			// Delete the objects. Otherwise they would trigger a reconcile of the next controller when it starts.
			t.Cleanup(func() {
				for _, obj := range objects {
					if err := side(obj).Delete(context.WithoutCancel(t.Context()), obj); client.IgnoreNotFound(err) != nil {
						t.Error(err)
					}
				}
			})
			_, management := s.watch(t, name)
			// Wait for the first reconcile. The connection controller starts with a check, and the Machine already triggers the
			// address controller.
			if name == "connection" || name == "address" {
				management.Await(t, &hyperv1.HostedControlPlane{}, absent)
			}
			for _, obj := range objects {
				c := side(obj)
				t.Run(kindOf(t, c, obj), func(t *testing.T) {
					management.Expect(t, &hyperv1.HostedControlPlane{}, absent, func() error { return c.Create(t.Context(), obj) })
				})
			}
			if name == "workloads" {
				t.Run("taint of a Node", func(t *testing.T) {
					node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
					patch := client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"taints":[{"key":"dedicated","effect":"NoSchedule"}]}}`))
					management.Expect(t, &hyperv1.HostedControlPlane{}, absent, func() error { return s.guest.Patch(t.Context(), node, patch) })
				})
			}
			if name == "workloads" || name == "resources" || name == "address" {
				asked := client.ObjectKey{Namespace: namespace, Name: name}
				t.Run("HostedControlPlane", func(t *testing.T) {
					hcp := controlPlane(name)
					management.Expect(t, hcp, asked, func() error { return s.management.Create(t.Context(), hcp) })
				})
			}
		})
	}
	t.Run("revocation", func(t *testing.T) {
		_, management := s.watch(t, "revocation")
		expect := func(what string, key client.ObjectKey, change func() error) {
			t.Helper()
			t.Run(what, func(t *testing.T) { management.Expect(t, &hyperv1.HostedControlPlane{}, key, change) })
		}
		management.Await(t, &hyperv1.HostedControlPlane{}, absent) // The existing Machine triggers a reconcile.
		csr := joinRequest(t)
		csr.Name = "issued"
		create(t, s.guest, csr)
		csr.Status.Certificate = certificate(t)
		expect("CertificateSigningRequest", absent, func() error { return s.guest.SubResource("status").Update(t.Context(), csr) })
		expect("ConfigMap", absent, func() error {
			record := &corev1.ConfigMap{ObjectMeta: made("record")}
			record.Labels[hyperv1.NodeCredentialsLabel] = "held"
			return s.guest.Create(t.Context(), record)
		})
		expect("Machine", absent, touchMachine)
		expect("HostedControlPlane", client.ObjectKey{Namespace: namespace, Name: "revocation"}, func() error {
			return s.management.Create(t.Context(), controlPlane("revocation"))
		})
	})
	t.Run("reencryption", func(t *testing.T) {
		_, management := s.watch(t, "reencryption")
		secret := &corev1.Secret{ObjectMeta: hosted(kubeapiserver.EncryptionSecret)}
		management.Expect(t, secret, client.ObjectKeyFromObject(secret), func() error { return s.management.Create(t.Context(), secret) })
	})
	t.Run("node", func(t *testing.T) {
		guest, _ := s.watch(t, "node")
		node, key := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}, client.ObjectKey{Name: "node"}
		guest.Expect(t, node, key, func() error { return s.guest.Create(t.Context(), node) })
		guest.Expect(t, node, key, func() error { return s.management.Create(t.Context(), controlPlane("node")) })
		guest.Expect(t, node, client.ObjectKey{Name: "of-the-machine"}, func() error {
			machine.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineHostName, Address: "of-the-machine"}}
			return s.management.Status().Update(t.Context(), machine)
		})
	})
	t.Run("inplaceupgrade", func(t *testing.T) {
		set := &clusterv1.MachineSet{ObjectMeta: hosted("pool"), Spec: clusterv1.MachineSetSpec{
			ClusterName: "demo", Selector: metav1.LabelSelector{MatchLabels: labels.MatchLabels},
			Template: clusterv1.MachineTemplateSpec{ObjectMeta: clusterv1.ObjectMeta{Labels: labels.MatchLabels}, Spec: machine.Spec}}}
		set.Annotations = map[string]string{hyperv1.NodePoolTargetConfigVersionAnnotation: "after", hyperv1.NodePoolCurrentConfigVersionAnnotation: "before"}
		_, management := s.watch(t, "inplaceupgrade")
		key := client.ObjectKeyFromObject(set)
		management.Expect(t, set, key, func() error { return s.management.Create(t.Context(), set) })
		management.Expect(t, set, key, touchMachine)
		management.Expect(t, set, key, func() error {
			return s.guest.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "inplaceupgrade"}})
		})
		management.Expect(t, set, key, func() error { return s.management.Create(t.Context(), controlPlane("inplaceupgrade")) })
	})
	t.Run("csr-approval", func(t *testing.T) {
		guest, _ := s.watch(t, "csr-approval")
		impersonating := rest.CopyConfig(s.guestConfig)
		impersonating.Impersonate.UserName, impersonating.Impersonate.Groups = pki.NodeBootstrapper, []string{"system:masters"}
		csr, key := &certificatesv1.CertificateSigningRequest{}, client.ObjectKey{Name: "join"}
		guest.Expect(t, csr, key, func() error { return newClient(t, impersonating, false).Create(t.Context(), joinRequest(t)) })
		guest.Expect(t, csr, key, touchMachine)
		guest.Expect(t, csr, key, func() error { return s.management.Create(t.Context(), controlPlane("csr")) })
	})
}

// certificate returns a certificate without any key usage.
func certificate(t *testing.T) []byte {
	t.Helper()
	ca, err := certs.NewCA(certs.Name{CommonName: "demo"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return ca.CertPEM
}

func kindOf(t *testing.T, c client.Client, obj client.Object) string {
	t.Helper()
	kind, err := c.GroupVersionKindFor(obj)
	if err != nil {
		t.Fatal(err)
	}
	return kind.Kind
}
