// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/kube/kubetest"
)

// cluster returns a HostedCluster with its hosted namespace; an empty server means that it has no kubeconfig yet.
func cluster(t *testing.T, namespace, name, server string) []client.Object {
	t.Helper()
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if server == "" {
		return []client.Object{hc}
	}
	hc.Status.KubeConfig = &corev1.LocalObjectReference{Name: name + "-admin-kubeconfig"}
	objects := kubetest.Hosted(client.ObjectKeyFromObject(hc), text(t, server))
	return append([]client.Object{hc, secret(namespace, name+"-admin-kubeconfig", text(t, server+"/copy"))}, objects...)
}

func text(t *testing.T, server string) []byte {
	t.Helper()
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"cluster": {Server: server}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"admin": {Token: "t"}},
		Contexts:       map[string]*clientcmdapi.Context{"admin": {Cluster: "cluster", AuthInfo: "admin", Namespace: "default"}},
		CurrentContext: "admin",
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func secret(namespace, name string, text []byte) *corev1.Secret {
	data := map[string][]byte{"kubeconfig": text}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

// owned replaces the content of the Secret in the hosted namespace.
func owned(t *testing.T, objects []client.Object, text string) []client.Object {
	t.Helper()
	var all []client.Object
	for _, obj := range objects {
		obj = obj.DeepCopyObject().(client.Object)
		if secret, is := obj.(*corev1.Secret); is && secret.Name == kubetest.AdminKubeconfig {
			secret.Data["kubeconfig"] = []byte(text)
		}
		all = append(all, obj)
	}
	return all
}

const withExec = `{kind: Config, apiVersion: v1, current-context: x, contexts: [{name: x, context: {cluster: x, user: x}}],
clusters: [{name: x, cluster: {server: "https://a:6443"}}],
users: [{name: x, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/true, interactiveMode: Never}}}]}`

func TestCollect(t *testing.T) {
	a := cluster(t, "clusters", "a", "https://a:6443")
	b := cluster(t, "other", "b", "https://b:6443")
	young := cluster(t, "clusters", "young", "")
	tests := []struct {
		name     string
		objs     [][]client.Object
		ask      string
		contexts map[string]string
		current  string
		says     string
	}{
		{
			name: "When one cluster is named, it should return its kubeconfig", objs: [][]client.Object{a, b}, ask: "a",
			contexts: map[string]string{"clusters-a": "https://a:6443"}, current: "clusters-a",
		},
		{
			name: "When no cluster is named, it should merge the kubeconfigs that exist", objs: [][]client.Object{a, b, young},
			contexts: map[string]string{"clusters-a": "https://a:6443", "other-b": "https://b:6443"}, current: "clusters-a",
		},
		{name: "When there is no cluster, it should return an empty kubeconfig", contexts: map[string]string{}},
		{name: "When the cluster has no kubeconfig yet, it should name the condition to wait for", objs: [][]client.Object{young}, ask: "young", says: "wait for condition Available"},
		{name: "When the cluster does not exist, it should say so", ask: "a", says: "read HostedCluster clusters/a"},
		{
			name: "When the Secret is missing, it should name the Secret", objs: [][]client.Object{a[:4]}, ask: "a",
			says: "read Secret clusters-a/admin-kubeconfig",
		},
		{
			name: "When the Secret holds no kubeconfig, it should reject the Secret", ask: "a",
			says: "Secret clusters-a/admin-kubeconfig is refused: it holds no kubeconfig",
			objs: [][]client.Object{owned(t, a, "{")},
		},
		{
			name: "When the kubeconfig runs a program, it should reject the kubeconfig", ask: "a", says: "users[].user.exec runs a program",
			objs: [][]client.Object{owned(t, a, withExec)},
		},
		{
			name: "When the control plane does not own the Secret, it should reject the Secret", ask: "a", says: "does not own it",
			objs: [][]client.Object{a[:4], {secret("clusters-a", kubetest.AdminKubeconfig, text(t, "https://a:6443"))}},
		},
		{
			name: "When the hosted namespace belongs to another cluster, it should reject the namespace", ask: "a",
			says: `its annotation hypershift.openshift.io/cluster is "other/a"`,
			objs: [][]client.Object{a[:3], {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: "clusters-a", Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "other/a"}}}}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			builder := fake.NewClientBuilder().WithScheme(kube.Scheme)
			for _, objs := range tt.objs {
				builder = builder.WithObjects(objs...)
			}
			merged, err := collect(t.Context(), builder.Build(), "clusters", tt.ask)
			if tt.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			got := map[string]string{}
			for name, c := range merged.Contexts {
				got[name] = merged.Clusters[c.Cluster].Server
				g.Expect(merged.AuthInfos).To(HaveKey(c.AuthInfo))
			}
			g.Expect(got).To(Equal(tt.contexts))
			g.Expect(merged.CurrentContext).To(Equal(tt.current))
		})
	}
}
