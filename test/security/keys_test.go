// SPDX-License-Identifier: Apache-2.0

package security

import (
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	v2 "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/hosted"
	supportpki "github.com/openshift/hypershift/support/pki"
)

// controlPlane reconciles a cluster until all of its managers, components and keys exist.
func (o *operator) controlPlane() *hyperv1.HostedControlPlane {
	o.t.Helper()
	fixture.Create(o.t, o.client, append(fixture.Inputs(o.tenant), fixture.HostedCluster(o.tenant), fixture.NodePool(o.tenant))...)
	o.pass()
	hcp := &hyperv1.HostedControlPlane{}
	o.read(hcp, fixture.ClusterName)
	hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "192.0.2.10", Port: 30443}
	o.Expect(o.client.Status().Update(o.t.Context(), hcp)).To(Succeed())
	o.pass()
	for _, c := range v2.Kubernetes(v2.Config{}) {
		o.role(c)
	}
	keys := &pki.Reconciler{Client: o.client, Clock: clock.RealClock{}, Lifetime: supportpki.Lifetime{Validity: time.Hour, RenewAfter: 0.7}}
	infra := &component.Infra{API: component.Endpoint{Host: "192.0.2.10", Port: 30443}, Ignition: component.Endpoint{Host: "192.0.2.10"}}
	o.Expect(keys.Reconcile(o.t.Context(), hcp, infra)).To(Succeed())
	return hcp
}

// role grants a component of the control plane the permissions of its manifest.
func (o *operator) role(c *component.Component) {
	o.t.Helper()
	raw, err := fs.ReadFile(c.Manifests, "role.yaml")
	if err != nil {
		return // The pods of this component have no token.
	}
	role := &rbacv1.Role{}
	o.Expect(yaml.Unmarshal(raw, role)).To(Succeed())
	role.Namespace = o.hosted()
	meta := metav1.ObjectMeta{Namespace: o.hosted(), Name: c.Name}
	fixture.Create(o.t, o.client, role, &corev1.ServiceAccount{ObjectMeta: meta}, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: c.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: o.hosted(), Name: c.Name}},
	})
}

// accounts returns the service accounts of the hosted namespace.
func (o *operator) accounts() []string {
	o.t.Helper()
	list := &corev1.ServiceAccountList{}
	o.Expect(o.client.List(o.t.Context(), list, client.InNamespace(o.hosted()))).To(Succeed())
	var names []string
	for _, account := range list.Items {
		names = append(names, account.Name)
	}
	return names
}

// may asks the API server whether a service account of the hosted namespace has a permission.
func (o *operator) may(account, verb, group, resource, namespace, name string) bool {
	o.t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   "system:serviceaccount:" + o.hosted() + ":" + account,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + o.hosted(), "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: name,
		},
	}}
	o.Expect(o.client.Create(o.t.Context(), review)).To(Succeed())
	return review.Status.Allowed
}

func (o *operator) who(verb, group, resource, namespace, name string) []string {
	o.t.Helper()
	return slices.DeleteFunc(o.accounts(), func(account string) bool { return !o.may(account, verb, group, resource, namespace, name) })
}

// eventually expects that exactly these service accounts have a permission on a Secret. It waits, since new permissions
// take effect after a short delay.
func (o *operator) eventually(verb, namespace, secret string, accounts ...string) {
	o.t.Helper()
	o.Eventually(func() []string { return o.who(verb, "", "secrets", namespace, secret) }).WithTimeout(patience).Should(ConsistOf(accounts), "%s %s", verb, secret)
}

func TestKeysOfAHostedNamespace(t *testing.T) {
	o := newOperator(t, "keys")
	hcp := o.controlPlane()
	const (
		operator, clusterAPI, provider = "control-plane-operator", "cluster-api", "capi-provider"
		configOperator, ignition       = "hosted-cluster-config-operator", "ignition-server"
	)
	o.Expect(o.accounts()).To(ContainElements(operator, clusterAPI, provider, configOperator, ignition, "cluster-autoscaler"))

	t.Run("When access to the MAAS key is listed, only the provider should have it", func(t *testing.T) {
		key := fixture.CredentialsCopy(o.tenant)
		o.eventually("get", key.Namespace, key.Name, provider)
		for _, verb := range []string{"list", "watch", "update", "patch", "delete"} {
			o.Expect(o.who(verb, "", "secrets", key.Namespace, key.Name)).To(BeEmpty(), verb)
		}
		o.Expect(o.who("get", "", "secrets", key.Namespace, "maas-credentials-another-demo")).To(BeEmpty())
		secrets := &corev1.SecretList{}
		o.Expect(o.client.List(t.Context(), secrets, client.InNamespace(o.hosted()))).To(Succeed())
		for _, secret := range secrets.Items {
			o.Expect(secret.Data).NotTo(HaveKey("MAAS_API_KEY"), secret.Name)
		}
	})
	t.Run("When access to the control plane's keys is listed, only the operator and Cluster API should have it", func(t *testing.T) {
		for _, name := range []string{"root-ca", "cluster-signer-ca", "etcd-client-tls", "sa-signing-key", "admin-kubeconfig", "service-network-admin-kubeconfig"} {
			for _, verb := range []string{"get", "list", "watch"} {
				o.eventually(verb, o.hosted(), name, operator, clusterAPI)
			}
			o.eventually("update", o.hosted(), name, operator)
		}
	})
	t.Run("When the config operator runs, it should have no access to Pods and Deployments", func(t *testing.T) {
		for _, verb := range []string{"get", "list", "create", "update", "patch", "delete"} {
			o.Expect(o.may(configOperator, verb, "", "pods", o.hosted(), "")).To(BeFalse(), verb)
			o.Expect(o.may(configOperator, verb, "apps", "deployments", o.hosted(), "")).To(BeFalse(), verb)
		}
		o.eventually("get", o.hosted(), "pull-secret", operator, clusterAPI, configOperator, ignition)
	})
	t.Run("When a kubeconfig is for a program, its user should not be an administrator", func(t *testing.T) {
		masters := map[string]bool{}
		secrets := &corev1.SecretList{}
		o.Expect(o.client.List(t.Context(), secrets, client.InNamespace(o.hosted()), client.HasLabels{"hypershift.openshift.io/kubeconfig"})).To(Succeed())
		for _, secret := range secrets.Items {
			for _, raw := range secret.Data {
				masters[secret.Name] = o.administrator(raw)
			}
		}
		o.Expect(masters).To(HaveKeyWithValue(hosted.ClusterAPIKubeconfig(hcp.Spec.InfraID), false))
		o.Expect(masters).To(HaveKeyWithValue(hosted.ProviderKubeconfig(hcp.Spec.InfraID), false))
		for name, master := range masters {
			o.Expect(master).To(Equal(name == "admin-kubeconfig" || name == "service-network-admin-kubeconfig"), name)
		}
	})
}

// administrator reports whether the user of a kubeconfig is in the group with all permissions.
func (o *operator) administrator(kubeconfig []byte) bool {
	o.t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	o.Expect(err).NotTo(HaveOccurred())
	block, _ := pem.Decode(config.CertData)
	if block == nil {
		return false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	o.Expect(err).NotTo(HaveOccurred())
	return slices.Contains(certificate.Subject.Organization, "system:masters")
}
