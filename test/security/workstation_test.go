// SPDX-License-Identifier: Apache-2.0

package security

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/kube/kubetest"
	"github.com/openshift/hypershift/cmd/root"
)

// paused returns a tenant's HostedCluster that the operator does not reconcile, so that the Secret beside it keeps the
// tenant's content.
func paused(kubeconfig []byte) []client.Object {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}}
	hc.Spec.PausedUntil = ptr.To("true")
	hc.Status.KubeConfig = &corev1.LocalObjectReference{Name: "demo-admin-kubeconfig"}
	return []client.Object{hc, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo-admin-kubeconfig"},
		Data:       map[string][]byte{"kubeconfig": kubeconfig},
	}}
}

func kubeconfigOf(t *testing.T, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) []byte {
	t.Helper()
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"x": cluster},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"x": user},
		Contexts:  map[string]*clientcmdapi.Context{"x": {Cluster: "x", AuthInfo: "x"}}, CurrentContext: "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// clusterAt returns a test server as the cluster of a kubeconfig.
func clusterAt(server *httptest.Server) *clientcmdapi.Cluster {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: ca}
}

// runCLI runs a hypershift command as an administrator does.
func runCLI(t *testing.T, management *kubetest.Server, args ...string) (said string) {
	t.Helper()
	var out bytes.Buffer
	cmd := root.Hypershift()
	cmd.SetArgs(append(args, "--kubeconfig", management.Kubeconfig))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	_ = root.Run(t.Context(), cmd, &out)
	return out.String()
}

// TestKubeconfigOfATenant checks that a tenant's kubeconfig runs no program on the workstation and sends none of its
// files.
func TestKubeconfigOfATenant(t *testing.T) {
	g, dir := NewWithT(t), t.TempDir()
	ran, secret := filepath.Join(dir, "ran"), filepath.Join(dir, "token")
	g.Expect(os.WriteFile(secret, []byte(loot), 0o600)).To(Succeed())
	var called, sent []string
	trap := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		called, sent = append(called, r.URL.Path), append(sent, r.Header.Get("Authorization"))
	}))
	defer trap.Close()
	for name, user := range map[string]*clientcmdapi.AuthInfo{
		"exec": {Exec: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
			Command: "/bin/sh", Args: []string{"-c", "touch " + ran},
		}},
		"tokenFile": {TokenFile: secret},
	} {
		t.Run("is refused with "+name, func(t *testing.T) {
			g := NewWithT(t)
			management := kubetest.Start(t, paused(kubeconfigOf(t, clusterAt(trap), user))...)
			dump := []string{"dump", "cluster", "--name=demo", "--artifact-dir", t.TempDir(), "--dump-guest-cluster"}
			said := runCLI(t, management, dump...)
			said += runCLI(t, management, "create", "kubeconfig", "--name=demo")
			g.Expect(ran).NotTo(BeAnExistingFile(), said)
			g.Expect(called).To(BeEmpty())
			g.Expect(said).NotTo(Or(ContainSubstring("exec:"), ContainSubstring("tokenFile:")))
		})
	}
	g.Expect(strings.Join(sent, "")).NotTo(ContainSubstring(loot))
}

// hostile starts the API server of a guest that a tenant controls.
func hostile(t *testing.T) []byte {
	t.Helper()
	answers := map[string]any{
		"/api":    metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}},
		"/apis":   metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}},
		"/api/v1": resourcesOf("pods", "..\x1b[2Jresource", "nodes"),
		"/api/v1/namespaces": corev1.NamespaceList{Items: []corev1.Namespace{
			{ObjectMeta: metav1.ObjectMeta{Name: "kube-/../../../../namespace"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "kube-\x1b]0;namespace\x07"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}},
		}},
		"/api/v1/namespaces/kube-system/pods": corev1.PodList{
			TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
			Items: []corev1.Pod{
				hostilePod("../../../../../pod", "main"), hostilePod("pod", "../../../../../container"),
				hostilePod("pod", "\x1b[2Jcontainer"), hostilePod("pod", "main"),
			},
		},
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/log") {
			fmt.Fprint(w, "log \x1b]0;title\x07 of http://user:"+loot+"@proxy:3128")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if answer, ok := answers[r.URL.Path]; ok {
			_ = json.NewEncoder(w).Encode(answer)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Code: http.StatusNotFound, Message: "\x1b[2Jgone\nall is well",
		})
	}))
	t.Cleanup(server.Close)
	return kubeconfigOf(t, clusterAt(server), &clientcmdapi.AuthInfo{Token: "t"})
}

func resourcesOf(names ...string) metav1.APIResourceList {
	kind := metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}
	list := metav1.APIResourceList{TypeMeta: kind, GroupVersion: "v1"}
	for _, name := range names {
		resource := metav1.APIResource{Name: name, Namespaced: name != "nodes", Kind: "Pod", Verbs: metav1.Verbs{"list"}}
		list.APIResources = append(list.APIResources, resource)
	}
	return list
}

func hostilePod(name, container string) corev1.Pod {
	return corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "../..", Name: name},
		Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: container}}},
	}
}

// TestDumpOfAHostileGuest checks that names lead to no file outside the dump, and that text does not control the
// terminal.
func TestDumpOfAHostileGuest(t *testing.T) {
	g, dir := NewWithT(t), t.TempDir()
	folder := filepath.Join(dir, "a", "b", "dump")
	g.Expect(os.MkdirAll(folder, 0o700)).To(Succeed())
	cluster := client.ObjectKey{Namespace: "clusters", Name: "demo"}
	management := kubetest.Start(t, append(paused(nil), kubetest.Hosted(cluster, hostile(t))...)...)
	said := runCLI(t, management, "dump", "cluster", "--name=demo", "--artifact-dir", folder, "--archive-dump=false",
		"--dump-guest-cluster")
	guest := filepath.Join(folder, "hypershift-dump", "hostedcluster-demo")
	g.Expect(filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		g.Expect(path).To(HavePrefix(filepath.Join(folder, "hypershift-dump") + "/"))
		text, err := os.ReadFile(path)
		g.Expect(string(text)).NotTo(ContainSubstring("\x1b"), path)
		return err
	})).To(Succeed())
	g.Expect(said).NotTo(ContainSubstring("\x1b"))
	log, err := os.ReadFile(filepath.Join(guest, "namespaces", "kube-system", "pods", "pod", "main.log"))
	g.Expect(err).NotTo(HaveOccurred(), said)
	g.Expect(string(log)).To(Equal(`log \x1b]0;title\x07 of http://redacted@proxy:3128`))
	index, err := os.ReadFile(filepath.Join(guest, "not-collected.txt"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{
		`..\x1b[2Jresource`, "kube-/../../../../namespace", `kube-\x1b]0;namespace\x07`,
		"../../../../../pod", "../../../../../container", `\x1b[2Jcontainer`,
	} {
		g.Expect(string(index)).To(ContainSubstring(name), "what is missing is told")
	}
	g.Expect(string(index)).NotTo(ContainSubstring("\nall is well"), "no line is forged")
}

// TestConditionsOfATenant checks that a tenant's text in a condition is printed, and does not control the terminal.
func TestConditionsOfATenant(t *testing.T) {
	g := NewWithT(t)
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}}
	management := kubetest.Start(t, hc)
	for _, args := range [][]string{
		{"create", "kubeconfig", "--name", "\x1b[2J\x1b]0;title\x07"},
		{"create", "etcd-backup", "--name", "demo", "--encryption-key", "k", "--pvc", "\u009b2J\u202e", "--wait",
			"--timeout", "1ms"},
		{"dump", "cluster", "--name", "\x1b[2J", "--artifact-dir", t.TempDir()},
	} {
		g.Expect(runCLI(t, management, args...)).NotTo(MatchRegexp("[\x1b\u009b\u202e]"))
	}
}
