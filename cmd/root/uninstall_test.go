// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// TestUninstall removes an installation with many options from a real API server.
func TestUninstall(t *testing.T) {
	u := newUser(t)
	pull := filepath.Join(t.TempDir(), "pull-secret.json")
	u.Expect(os.WriteFile(pull, []byte(`{"auths":{"quay.example":{"username":"u","password":"p"}}}`), 0o600)).To(Succeed())
	credentials := filepath.Join(t.TempDir(), "credentials")
	u.Expect(os.WriteFile(credentials, []byte("[default]\naws_access_key_id = a\naws_secret_access_key = b\n"), 0o600)).To(Succeed())
	options := []string{
		"--hypershift-image", "registry.example/hypershift:1", "--pull-secret", pull, "--replicas", "2", "--api-virtual-ip", "10.0.0.5",
		"--additional-trust-bundle", filepath.Join("testdata", "ca.pem"), "--platform-monitoring", "All", "--metrics-set", "All",
		"--oidc-storage-provider-s3-bucket-name", "b", "--oidc-storage-provider-s3-region", "r", "--oidc-storage-provider-s3-credentials", credentials,
	}
	install := append([]string{"install", "--wait-until-crds-established"}, options...)
	u.succeeds("", install...)

	mine := u.foreign()
	u.Expect(u.types("", "uninstall", "--crds").code).To(Equal(2), "without a terminal it needs --yes")
	cluster := u.hostedCluster()
	u.Expect(u.client.Create(t.Context(), cluster)).To(Succeed())
	o := u.types("", "uninstall", "--crds", "--yes")
	u.Expect(o.code).To(Equal(1))
	u.Expect(o.stderr).To(ContainSubstring("HyperShift is in use: there are HostedCluster default/demo; destroy the clusters first"))
	u.Expect(u.client.Delete(t.Context(), cluster)).To(Succeed())

	o = u.succeeds("", "uninstall", "--crds", "--dry-run")
	u.Expect(o.stdout).To(ContainSubstring("remove  Deployment hypershift/operator\n"))
	u.Expect(o.stdout).To(ContainSubstring("keep    Namespace hypershift stays: it has ConfigMap hypershift/mine"))
	u.Expect(u.succeeds("", install...).stderr).To(MatchRegexp(`: 0 objects created, 0 changed, \d+ unchanged`), "a dry run changes nothing")

	u.succeeds("", "uninstall", "--crds", "--yes")
	for _, obj := range u.rendered(options) {
		u.Eventually(func() bool { return u.removed(obj) }).Should(BeTrue(), obj.GetKind()+" "+obj.GetName())
	}
	for _, obj := range mine {
		u.Expect(u.client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed(), "objects of others stay")
		u.Expect(obj.GetDeletionTimestamp()).To(BeNil())
	}
	o = u.succeeds("", "uninstall", "--crds", "--yes")
	u.Expect(o.stderr).To(Equal("There is no installation in namespace hypershift.\n"))
}

// foreign creates objects of others beside the installation.
func (u *user) foreign() []client.Object {
	u.t.Helper()
	all := []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "hypershift", Name: "mine"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "mine"}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "hypershift-mine"}},
	}
	for _, obj := range all {
		u.Expect(u.client.Create(u.t.Context(), obj, client.FieldOwner("kubectl-create"))).To(Succeed())
	}
	return all
}

func (u *user) hostedCluster() *hyperv1.HostedCluster {
	cluster := &hyperv1.HostedCluster{}
	u.Expect(yaml.Unmarshal([]byte(`
metadata: {name: demo, namespace: default}
spec:
  platform: {type: None}
  release: {image: registry.example/release:1}
  pullSecret: {name: pull}
  sshKey: {name: ssh}
  networking: {clusterNetwork: [{cidr: 10.132.0.0/14}]}
  services:
  - {service: APIServer, servicePublishingStrategy: {type: LoadBalancer}}
  - {service: OAuthServer, servicePublishingStrategy: {type: Route}}
  - {service: Konnectivity, servicePublishingStrategy: {type: Route}}
  - {service: Ignition, servicePublishingStrategy: {type: Route}}
  etcd: {managementType: Managed, managed: {storage: {type: PersistentVolume}}}
`), cluster)).To(Succeed())
	return cluster
}

// rendered returns the objects that an installation writes.
func (u *user) rendered(options []string) []*unstructured.Unstructured {
	u.t.Helper()
	o := hypershift(u.t.Context(), "", append([]string{"install", "render", "--render-sensitive", "--format", "json"}, options...)...)
	u.Expect(o.code).To(BeZero(), o.stderr)
	list := struct{ Items []map[string]any }{}
	u.Expect(yaml.Unmarshal([]byte(o.stdout), &list)).To(Succeed())
	var all []*unstructured.Unstructured
	for _, item := range list.Items {
		all = append(all, &unstructured.Unstructured{Object: item})
	}
	u.Expect(len(all)).To(BeNumerically(">", 50))
	return all
}

// removed reports whether an object is gone, or being deleted: this API server has no controller that completes the
// deletion of a namespace.
func (u *user) removed(obj *unstructured.Unstructured) bool {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(obj.GroupVersionKind())
	err := u.client.Get(u.t.Context(), types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}, found)
	if obj.GetKind() == "Namespace" && obj.GetName() == "hypershift" {
		return err == nil && found.GetDeletionTimestamp() == nil // It has an object of another user.
	}
	return apierrors.IsNotFound(err) || err == nil && found.GetDeletionTimestamp() != nil
}
