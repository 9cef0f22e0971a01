// SPDX-License-Identifier: Apache-2.0

package security

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/hosted"
)

// victim creates another user's namespace with the name of the tenant's control plane namespace, and with everything
// that an operator may mistake for its own.
func (o *operator) victim(annotations map[string]string) {
	o.t.Helper()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: o.hosted(), Name: name} }
	labels := map[string]string{"app": "x"}
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}}}
	machines := clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
		ClusterName: "victim", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("x")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "MaasMachineTemplate", Name: "x"},
	}}
	o.Expect(o.client.Create(o.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: o.hosted(), Annotations: annotations, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}})).To(Succeed())
	fixture.Create(o.t, o.client,
		&corev1.Secret{ObjectMeta: meta("pull-secret"), Data: map[string][]byte{"victim": []byte("s3cret")}},
		&corev1.Secret{ObjectMeta: meta(fixture.Credentials), Data: map[string][]byte{"MAAS_API_KEY": []byte("s3cret")}},
		&corev1.ConfigMap{ObjectMeta: meta("user-ca-bundle"), Data: map[string]string{"ca-bundle.crt": "victim"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.hosted(), Name: "labelled", Labels: map[string]string{hyperv1.NodePoolAnnotation: fixture.PoolName}}},
		&appsv1.Deployment{ObjectMeta: meta("capi-provider"), Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: pod}},
		&clusterv1.Cluster{ObjectMeta: meta("victim"), Spec: clusterv1.ClusterSpec{Paused: ptr.To(true),
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "MaasCluster", Name: "victim"}}},
		&clusterv1.MachineDeployment{ObjectMeta: meta(fixture.PoolName), Spec: clusterv1.MachineDeploymentSpec{ClusterName: "victim", Template: machines,
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"x": "y"}}}},
	)
}

// belongings returns all objects in the hosted namespace, and the namespace.
func (o *operator) belongings() []client.Object {
	o.t.Helper()
	namespace := &corev1.Namespace{}
	o.Expect(o.client.Get(o.t.Context(), client.ObjectKey{Name: o.hosted()}, namespace)).To(Succeed())
	all := []client.Object{namespace}
	for _, list := range []client.ObjectList{
		&corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.ServiceAccountList{}, &appsv1.DeploymentList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
		&networkingv1.NetworkPolicyList{}, &clusterv1.ClusterList{}, &clusterv1.MachineDeploymentList{}, &hyperv1.HostedControlPlaneList{},
	} {
		o.Expect(o.client.List(o.t.Context(), list, client.InNamespace(o.hosted()))).To(Succeed())
		o.Expect(apimeta.EachListItem(list, func(item runtime.Object) error {
			all = append(all, item.(client.Object))
			return nil
		})).To(Succeed())
	}
	return all
}

func TestNamespaceOfSomebodyElse(t *testing.T) {
	for _, tt := range []struct {
		name, tenant string
		annotations  map[string]string
		says         string
	}{
		{name: "When the namespace existed before, it should not be touched", tenant: "mallory",
			says: "have an administrator give it the namespace by the annotation hypershift.openshift.io/cluster=mallory/demo"},
		{name: "When the namespace belongs to another cluster, it should not be touched", tenant: "mallory-two",
			annotations: map[string]string{hyperv1.HostedClusterAnnotation: "mallory/two-demo"}, says: "belongs to HostedCluster mallory/two-demo already"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOperator(t, tt.tenant)
			o.victim(tt.annotations)
			before := o.belongings()
			hc := fixture.HostedCluster(o.tenant)
			hc.Spec.InfraID = "victim"
			fixture.Create(t, o.client, append(fixture.Inputs(o.tenant), hc, fixture.NodePool(o.tenant))...)

			untouched := func(when string) {
				t.Helper()
				o.Expect(cmp.Diff(before, o.belongings())).To(BeEmpty(), "what is another's changed %s", when)
			}
			cluster, pool := o.pass()
			untouched("with the cluster")
			o.Expect(cluster).To(MatchError(ContainSubstring(tt.says)))
			o.Expect(pool).To(MatchError(ContainSubstring(tt.says)))
			o.Expect(o.condition(hyperv1.ValidHostedClusterConfiguration)).To(And(HaveField("Reason", "NamespaceNotOwned"), HaveField("Status", metav1.ConditionFalse)))
			o.Expect(o.condition(hyperv1.HostedClusterAvailable).Message).To(ContainSubstring(tt.says))

			o.Expect(o.client.Get(t.Context(), client.ObjectKeyFromObject(hc), hc)).To(Succeed())
			hc.Spec.PausedUntil = ptr.To("false")
			o.Expect(o.client.Update(t.Context(), hc)).To(Succeed())
			o.pass()
			untouched("with a pause that is over")

			o.Expect(o.client.Delete(t.Context(), hc)).To(Succeed())
			cluster, pool = o.pass()
			o.Expect(cluster).NotTo(HaveOccurred())
			o.Expect(pool).NotTo(HaveOccurred())
			untouched("with the cluster's deletion")
			o.Expect(apierrors.IsNotFound(o.client.Get(t.Context(), client.ObjectKeyFromObject(hc), hc))).To(BeTrue(), "the cluster should go")
			pools := &hyperv1.NodePoolList{}
			o.Expect(o.client.List(t.Context(), pools, client.InNamespace(o.tenant))).To(Succeed())
			o.Expect(pools.Items).To(BeEmpty(), "the pool should go")
		})
	}
}

func TestNamespaceThatAnAdministratorGave(t *testing.T) {
	t.Run("When a namespace is annotated for the cluster, it should be adopted", func(t *testing.T) {
		o := newOperator(t, "given")
		fixture.Create(t, o.client, append(fixture.Inputs(o.tenant), fixture.HostedCluster(o.tenant))...)
		o.Expect(o.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: o.hosted(), Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "given/demo"}}})).To(Succeed())
		cluster, _ := o.pass()
		o.Expect(cluster).NotTo(HaveOccurred())
		o.read(&appsv1.Deployment{}, "control-plane-operator")
	})
}

func TestNamesThatATenantChooses(t *testing.T) {
	tests := []struct {
		name, tenant, secret string
		choose               func(hc *hyperv1.HostedCluster)
		// refuses is the operator's error about an object of the same name in the hosted namespace that it did not create.
		refuses string
	}{
		{name: "When the audit webhook's Secret has the name of a control plane Secret, it should not overwrite it", tenant: "audit", secret: "root-ca",
			choose: func(hc *hyperv1.HostedCluster) {
				hc.Spec.AuditWebhook = &corev1.LocalObjectReference{Name: "root-ca"}
			}},
		{name: "When the credentials Secret has the name of a control plane Secret, it should not overwrite it", tenant: "identity", secret: "root-ca",
			choose: func(hc *hyperv1.HostedCluster) {
				hc.Spec.Platform.MAAS.IdentityRef.Name = "root-ca"
				// The copy of the in-tree provider is in another namespace.
				hc.Annotations = map[string]string{hyperv1.ClusterAPIProviderMAASImage: "upstream:1"}
			}},
		{name: "When the credentials Secret has the name of the pull secret, it should not overwrite it", tenant: "reserved", secret: "pull-secret",
			choose:  func(hc *hyperv1.HostedCluster) { hc.Spec.Platform.MAAS.IdentityRef.Name = "pull-secret" },
			refuses: "an object of that name already exists"},
		{name: "When an encryption key has the name of the pull secret, it should not overwrite it", tenant: "encryption", secret: "pull-secret",
			choose: func(hc *hyperv1.HostedCluster) {
				hc.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC,
					AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: "pull-secret"}}}
			},
			refuses: "an object of that name already exists"},
		{name: "When the credentials of a plugin have the name of a CA, they should not overwrite it", tenant: "plugin", secret: "root-ca",
			choose: func(hc *hyperv1.HostedCluster) {
				hc.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{Provider: hyperv1.KMSPlugin,
					Plugin: &hyperv1.KMSPluginSpec{Name: "vault", Image: "registry.example/vault:1", Credentials: &corev1.LocalObjectReference{Name: "root-ca"}}}}
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := newOperator(t, tt.tenant)
			hc := fixture.HostedCluster(o.tenant)
			tt.choose(hc)
			fixture.Create(t, o.client, append(fixture.Inputs(o.tenant), hc)...)
			fixture.Create(t, o.client,
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.hosted(), Name: tt.secret}, Data: map[string][]byte{"ca.key": []byte("the control plane's")}},
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.tenant, Name: tt.secret}, Data: map[string][]byte{
					"webhook-kubeconfig": []byte(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://audit.example"}}],
						"contexts":[{"name":"x","context":{"cluster":"c"}}],"current-context":"x"}`),
					"key":           []byte("mine"),
					"MAAS_ENDPOINT": []byte(fixture.Endpoint), "MAAS_API_KEY": []byte(fixture.APIKey)}},
			)
			told, _ := o.pass()
			kept := &corev1.Secret{}
			o.read(kept, tt.secret)
			o.Expect(kept.Data).To(HaveKeyWithValue("ca.key", BeEquivalentTo("the control plane's")))
			if tt.refuses != "" {
				o.Expect(told).To(MatchError(ContainSubstring(tt.refuses)))
				return
			}
			copies := &corev1.SecretList{}
			o.Expect(o.client.List(t.Context(), copies, client.InNamespace(o.hosted()),
				client.MatchingLabels{hyperv1.UserCopyLabel: "true"})).To(Succeed())
			o.Expect(copies.Items).NotTo(BeEmpty(), "the tenant's own object is copied under a name that nothing else has")
			for i := range copies.Items {
				o.Expect(hosted.IsCopyName(copies.Items[i].Name)).To(BeTrue(), copies.Items[i].Name)
			}
		})
	}
}

func TestRightsOfSomebodyElse(t *testing.T) {
	t.Run("When a ClusterRoleBinding with the name of the cluster's own exists, it should not be overwritten", func(t *testing.T) {
		o := newOperator(t, "rights")
		theirs := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "hypershift-cluster-api-" + o.hosted()},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "hypershift-cluster-api"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "theirs"}},
		}
		o.Expect(o.client.Create(t.Context(), theirs)).To(Succeed())
		fixture.Create(t, o.client, append(fixture.Inputs(o.tenant), fixture.HostedCluster(o.tenant))...)
		o.pass()
		hcp := &hyperv1.HostedControlPlane{}
		o.read(hcp, fixture.ClusterName)
		hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "172.30.240.1", Port: 31443}
		o.Expect(o.client.Status().Update(t.Context(), hcp)).To(Succeed())
		cluster, _ := o.pass()
		o.Expect(cluster).To(MatchError(ContainSubstring("it is there already and not this cluster's")))
		o.Expect(o.client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs)).To(Succeed())
		o.Expect(theirs.Subjects).To(ConsistOf(HaveField("Name", "theirs")))
	})
}
