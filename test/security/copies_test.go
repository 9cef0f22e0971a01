// SPDX-License-Identifier: Apache-2.0

package security

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/hosted"
)

// logins returns a configuration whose identity provider makes the guest read the Secret with this name.
func logins(secret string) *hyperv1.ClusterConfiguration {
	return &hyperv1.ClusterConfiguration{OAuth: &configv1.OAuthSpec{IdentityProviders: []configv1.IdentityProvider{{
		Name: "users", MappingMethod: configv1.MappingMethodClaim, IdentityProviderConfig: configv1.IdentityProviderConfig{
			Type:     configv1.IdentityProviderTypeHTPasswd,
			HTPasswd: &configv1.HTPasswdIdentityProvider{FileData: configv1.SecretNameReference{Name: secret}}},
	}}}}
}

// TestOperatorTokenByKubevirtCredentials covers an attack on version 0.1.0, in which a tenant got the operator's token.
// The kubeconfig that the cluster names is absent, and the Secret of an identity provider has the name of the copy that
// the operator connects with.
func TestOperatorTokenByKubevirtCredentials(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	t.Cleanup(server.Close)
	kubeconfig := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],
		"clusters":[{"name":"a","cluster":{"server":%q,"insecure-skip-tls-verify":true}}],
		"users":[{"name":"a","user":{"tokenFile":"/var/run/secrets/kubernetes.io/serviceaccount/token"}}]}`, server.URL)
	o := newOperator(t, "mallory-kubevirt")
	hc := fixture.HostedCluster(o.tenant)
	hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.KubevirtPlatform, Kubevirt: &hyperv1.KubevirtPlatformSpec{
		Credentials: &hyperv1.KubevirtPlatformCredentials{InfraNamespace: "vms",
			InfraKubeConfigSecret: &hyperv1.KubeconfigSecretRef{Name: "absent", Key: "kubeconfig"}}}}
	hc.Annotations = map[string]string{hyperv1.ClusterAPIKubeVirtProviderImage: "registry.example/capk:1"}
	hc.Spec.Configuration = logins(hosted.KubevirtCredentials)
	fixture.Create(t, o.client, append(fixture.Inputs(o.tenant), hc, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.tenant, Name: hosted.KubevirtCredentials},
		StringData: map[string]string{"kubeconfig": kubeconfig}})...)
	o.pass()
	err := o.client.Get(t.Context(), client.ObjectKey{Namespace: o.hosted(), Name: hosted.KubevirtCredentials},
		&corev1.Secret{})
	o.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	o.Expect(calls.Load()).To(BeZero(), "the operator called the tenant's server")
	o.Expect(o.condition(hyperv1.PlatformCredentialsFound)).To(HaveField("Status", metav1.ConditionFalse))
	hcp := &hyperv1.HostedControlPlane{}
	o.read(hcp, fixture.ClusterName)
	o.Expect(hcp.Spec.Configuration.OAuth.IdentityProviders[0].HTPasswd.FileData.Name).To(
		Equal(hosted.CopyName(hosted.UseConfiguration, hosted.KubevirtCredentials)))
	o.read(&corev1.Secret{}, hcp.Spec.Configuration.OAuth.IdentityProviders[0].HTPasswd.FileData.Name)
}

// TestObjectsOfTheControlPlaneByIdentityProviders covers an attack that 0.1.0 allowed. A tenant could choose the
// kubeconfig of Cluster API, the encryption of Secrets with the images that it runs, and the spec of the control plane.
func TestObjectsOfTheControlPlaneByIdentityProviders(t *testing.T) {
	for tenant, name := range map[string]string{
		"mallory-capi": hosted.ClusterAPIKubeconfig("victim"), "mallory-provider": hosted.ProviderKubeconfig("victim"),
		"mallory-spec": hosted.LastValidSpec, "mallory-keys": "kas-secret-encryption-config", "mallory-hooks": "kas-webhooks",
		"mallory-hcco": "hcco-kubeconfig", "mallory-admin": hosted.ServiceNetworkKubeconfig,
		"mallory-roles": "cloud-controller-creds",
	} {
		t.Run("a Secret "+name+" of a tenant does not take the place of the control plane's", func(t *testing.T) {
			o := newOperator(t, tenant)
			hc := fixture.HostedCluster(o.tenant)
			hc.Spec.InfraID = "victim"
			hc.Spec.Configuration = logins(name)
			fixture.Create(t, o.client, append(fixture.Inputs(o.tenant), hc, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: o.tenant, Name: name}, StringData: map[string]string{"value": stolen}})...)
			cluster, _ := o.pass()
			o.Expect(cluster).NotTo(HaveOccurred())
			err := o.client.Get(t.Context(), client.ObjectKey{Namespace: o.hosted(), Name: name}, &corev1.Secret{})
			o.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		})
	}
}
