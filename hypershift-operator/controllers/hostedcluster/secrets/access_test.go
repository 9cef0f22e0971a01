// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
)

// made returns a Secret in the hosted namespace that the control plane created.
func made(name string, data map[string]string) *corev1.Secret {
	return clustertest.Secret(metav1.ObjectMeta{Namespace: "clusters-demo", Name: name}, data)
}

// TestAccess checks which Secrets for users of the guest are in the cluster's namespace.
func TestAccess(t *testing.T) {
	full := hyperv1.HostedControlPlaneStatus{
		KubeConfig: &hyperv1.KubeconfigSecretRef{Name: "admin", Key: "config"}, CustomKubeconfig: &hyperv1.KubeconfigSecretRef{Name: "custom", Key: "config"},
		KubeadminPassword: &corev1.LocalObjectReference{Name: "password"},
	}
	sources := []client.Object{made("admin", map[string]string{"config": "a", "x": "y"}), made("custom", map[string]string{"config": "c"}), made("password", map[string]string{"password": "p", "hash": "h"})}
	old := func(name string) client.Object {
		return clustertest.Secret(clustertest.Ours("clusters", name), map[string]string{"old": "o"})
	}
	all := map[string]string{"demo-admin-kubeconfig/kubeconfig": "a", "demo-custom-admin-kubeconfig/kubeconfig": "c", "demo-kubeadmin-password/password": "p", "demo-kubeadmin-password/hash": "h"}
	kept := map[string]string{"demo-admin-kubeconfig/old": "o", "demo-custom-admin-kubeconfig/old": "o", "demo-kubeadmin-password/old": "o"}
	olds := []client.Object{old("demo-admin-kubeconfig"), old("demo-custom-admin-kubeconfig"), old("demo-kubeadmin-password")}
	others := clustertest.Secret(metav1.ObjectMeta{Namespace: "clusters", Name: "demo-admin-kubeconfig"}, map[string]string{"mine": "m"})
	nameless := hyperv1.HostedControlPlaneStatus{KubeadminPassword: &corev1.LocalObjectReference{}}
	for name, test := range map[string]struct {
		status  *hyperv1.HostedControlPlaneStatus
		objects []client.Object
		refuse  string
		want    map[string]string
		fails   bool
	}{
		"there is no control plane, it should keep the copies":                                    {nil, olds, "", kept, false},
		"the control plane reports all Secrets, it should copy them":                              {&full, sources, "", all, false},
		"the control plane has renewed all Secrets, it should update the copies":                  {&full, append(olds, sources...), "", all, false},
		"the control plane reports no Secrets, it should delete the copies":                       {&hyperv1.HostedControlPlaneStatus{}, append(olds, sources...), "", map[string]string{}, false},
		"the control plane reports a password Secret without a name, it should delete the copies": {&nameless, append(olds, sources...), "", map[string]string{}, false},
		"the reported Secrets do not exist, it should keep the copies":                            {&full, olds, "", kept, false},
		"the reported Secrets are empty, it should keep the copies":                               {&full, append([]client.Object{made("admin", nil), made("custom", map[string]string{"x": "y"}), made("password", nil)}, olds...), "", kept, false},
		"the admin kubeconfig cannot be read, it should update the other copies":                  {&full, append(olds, sources...), "get v1.Secret clusters-demo/admin", map[string]string{"demo-admin-kubeconfig/old": "o", "demo-custom-admin-kubeconfig/kubeconfig": "c", "demo-kubeadmin-password/password": "p", "demo-kubeadmin-password/hash": "h"}, true},
		"the custom kubeconfig cannot be read, it should update the other copies":                 {&full, append(olds, sources...), "get v1.Secret clusters-demo/custom", map[string]string{"demo-admin-kubeconfig/kubeconfig": "a", "demo-custom-admin-kubeconfig/old": "o", "demo-kubeadmin-password/password": "p", "demo-kubeadmin-password/hash": "h"}, true},
		"the password cannot be read, it should update the other copies":                          {&full, append(olds, sources...), "get v1.Secret clusters-demo/password", map[string]string{"demo-admin-kubeconfig/kubeconfig": "a", "demo-custom-admin-kubeconfig/kubeconfig": "c", "demo-kubeadmin-password/old": "o"}, true},
		"nothing can be written, it should return the error":                                      {&full, sources, "create v1.Secret", map[string]string{}, true},
		"nothing can be deleted, it should return the error":                                      {&hyperv1.HostedControlPlaneStatus{}, olds, "delete v1.Secret", kept, true},
		"a Secret of the user has the name, it should keep that Secret":                           {&full, append([]client.Object{others}, sources...), "", map[string]string{"demo-admin-kubeconfig/mine": "m", "demo-custom-admin-kubeconfig/kubeconfig": "c", "demo-kubeadmin-password/password": "p", "demo-kubeadmin-password/hash": "h"}, true},
	} {
		t.Run("When "+name, func(t *testing.T) {
			d := newServer(test.objects...)
			d.Refuse = test.refuse
			s := clustertest.Scope()
			if test.status != nil {
				s.HCP = &hyperv1.HostedControlPlane{Status: *test.status}
			}
			_, err := Access{d.Client}.Reconcile(t.Context(), s)
			NewWithT(t).Expect(err != nil).To(Equal(test.fails))
			secrets, found := &corev1.SecretList{}, map[string]string{}
			NewWithT(t).Expect(d.Direct.List(t.Context(), secrets, client.InNamespace("clusters"))).To(Succeed())
			for _, secret := range secrets.Items {
				for key, value := range secret.Data {
					found[secret.Name+"/"+key] = string(value)
				}
			}
			if diff := cmp.Diff(test.want, found); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestWrittenForUsers checks that Secrets in the cluster's namespace have the cluster's labels and are deleted with
// it.
func TestWrittenForUsers(t *testing.T) {
	g, s := NewWithT(t), clustertest.Scope(func(s *cluster.Scope) { s.HC.Labels, s.HC.UID = map[string]string{"team": "x"}, "1-2-3" })
	for kind, want := range map[corev1.SecretType]corev1.SecretType{"": corev1.SecretTypeOpaque, corev1.SecretTypeTLS: corev1.SecretTypeTLS} {
		live := clustertest.Secret(clustertest.Ours("clusters", "a"), nil)
		live.Labels, live.Type = map[string]string{"by": "user"}, kind
		d := newServer(live)
		g.Expect(Access{d.Client}.writeUserSecret(t.Context(), s, userSecret(s, "a"), map[string][]byte{"k": []byte("v")})).To(Succeed())
		g.Expect(d.Has(t, live)).To(BeTrue())
		g.Expect(live.Labels).To(Equal(map[string]string{"team": "x", "by": "user"}))
		g.Expect(live.Type).To(Equal(want))
		g.Expect(live.OwnerReferences).To(ConsistOf(And(HaveField("Kind", "HostedCluster"), HaveField("Name", "demo"), HaveField("UID", BeEquivalentTo("1-2-3")))))
	}
}

func TestAdoptedSecrets(t *testing.T) {
	labelled := func(name, safe, infra string) *corev1.Secret {
		secret := usersSecret(name, nil)
		secret.Labels = map[string]string{hyperv1.SafeToDeleteWithClusterLabel: safe, hyperv1.AutoCreatedForInfraLabel: infra}
		return secret
	}
	elsewhere := labelled("elsewhere", "true", "demo-1")
	elsewhere.Namespace = "other"
	objects := []client.Object{labelled("made", "true", "demo-1"), labelled("made-too", "true", "demo-1"), labelled("kept", "false", "demo-1"), labelled("another's", "true", "demo-2"), elsewhere, usersSecret("mine", nil)}
	for name, test := range map[string]struct {
		refuse string
		owned  []string
		fails  bool
	}{
		"When Secrets were created by the CLI, it should set their owner reference":          {"", []string{"made", "made-too"}, false},
		"When the Secrets cannot be listed, it should set no owner reference":                {"list v1.SecretList", nil, true},
		"When a later Secret cannot be written, it should still set the owner of the others": {"patch v1.Secret clusters/made-too", []string{"made"}, true},
		"When the first Secret cannot be written, it should return an error":                 {"patch v1.Secret clusters/made", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := newServer(objects...), clustertest.Scope(func(s *cluster.Scope) { s.HC.Spec.InfraID, s.HC.UID = "demo-1", "1-2-3" })
			d.Refuse = test.refuse
			_, err := CLI{d.Client}.Reconcile(t.Context(), s)
			NewWithT(t).Expect(err != nil).To(Equal(test.fails))
			secrets := &corev1.SecretList{}
			NewWithT(t).Expect(d.Direct.List(t.Context(), secrets)).To(Succeed())
			var owned []string
			for _, secret := range secrets.Items {
				if len(secret.OwnerReferences) == 1 && secret.OwnerReferences[0].UID == "1-2-3" {
					owned = append(owned, secret.Name)
				}
			}
			NewWithT(t).Expect(owned).To(Equal(test.owned))
		})
	}
}

// TestObservedCopies checks which of the Secrets in the cluster's namespace its status names.
func TestObservedCopies(t *testing.T) {
	others, going := clustertest.Ours("clusters", "demo-admin-kubeconfig"), clustertest.Ours("clusters", "demo-admin-kubeconfig")
	others.Annotations[hyperv1.HostedClusterAnnotation] = "clusters/another"
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: clustertest.Now}, []string{"test/wait"}
	for name, test := range map[string]struct {
		secret metav1.ObjectMeta
		want   *corev1.LocalObjectReference
	}{
		"When the Secret belongs to the cluster, the status should name it":         {clustertest.Ours("clusters", "demo-admin-kubeconfig"), &corev1.LocalObjectReference{Name: "demo-admin-kubeconfig"}},
		"When the Secret belongs to another cluster, the status should not name it": {others, nil},
		"When the Secret has no owner, the status should not name it":               {metav1.ObjectMeta{Namespace: "clusters", Name: "demo-admin-kubeconfig"}, nil},
		"When the Secret is being deleted, the status should not name it":           {going, nil},
		"When the Secret has an unrelated name, the status should not name it":      {clustertest.Ours("clusters", "demo-kubeconfig"), nil},
		"When the Secret is in another namespace, the status should not name it":    {clustertest.Ours("elsewhere", "demo-admin-kubeconfig"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := clustertest.Scope(func(s *cluster.Scope) { s.HC.Status.KubeConfig = &corev1.LocalObjectReference{Name: "of before"} })
			names, err := Access{newServer(&corev1.Secret{ObjectMeta: test.secret}).Client}.Observe(t.Context(), s)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(names.Kubeconfig).To(Equal(test.want))
		})
	}
}
