// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	kubevirtv1 "github.com/openshift/hypershift/api/kubevirt/v1alpha1"
	"github.com/openshift/hypershift/api/util/contract"
	"github.com/openshift/hypershift/support/maas"
)

// infraServer is as much of an API server as says versions.
func infraServer(t *testing.T, answers map[string]string) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		if !known {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	return server
}

func kubeconfigOf(server *httptest.Server) string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],
		"clusters":[{"name":"a","cluster":{"server":%q,"certificate-authority-data":%q}}],"users":[{"name":"a","user":{"token":"SECRET"}}]}`,
		server.URL, base64.StdEncoding.EncodeToString(ca))
}

func versions(kubernetes, kubeVirt string) map[string]string {
	return map[string]string{
		"/version":                                  fmt.Sprintf(`{"gitVersion":%q}`, kubernetes),
		"/apis/subresources.kubevirt.io":            `{"kind":"APIGroup","preferredVersion":{"groupVersion":"subresources.kubevirt.io/v1"}}`,
		"/apis/subresources.kubevirt.io/v1/version": fmt.Sprintf(`{"gitVersion":%q}`, kubeVirt),
	}
}

// local lets the operator call servers of this test.
func local() *maas.Guard {
	return &maas.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
}

func TestClusterElsewhere(t *testing.T) {
	for _, tc := range []struct {
		name    string
		answers map[string]string
		reason  string
		says    string
	}{
		{"When all is new enough, it should be accepted", versions("v1.27.0-rc.1+abc", "v1.0.0-alpha.0"), "AsExpected", ""},
		{"When Kubernetes is older, it should say so", versions("v1.26.9", "v1.2.0"), "InfraClusterVersionUnsupported", "Kubernetes 1.26.9: it must be 1.27.0 or newer"},
		{"When KubeVirt is older, it should say so", versions("v1.31.0", "v0.59.0"), "InfraClusterVersionUnsupported", "KubeVirt 0.59.0: it must be 1.0.0 or newer"},
		{"When it has no version, it should be no cluster for virtual machines", versions("v1.31.0", "?"), "InfraClusterVersionUnsupported", "KubeVirt"},
		{"When KubeVirt is not there, it should say what to install", map[string]string{"/version": `{"gitVersion":"v1.31.0"}`}, "InfraClusterVersionUnsupported", "install KubeVirt"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, server := NewWithT(t), infraServer(t, tc.answers)
			credentials, err := (&Platform{infra: infraClusters{guard: local()}}).ReconcileCredentials(t.Context(), testClient(t, userSecret("config", kubeconfigOf(server))), testCluster(elsewhere()))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(credentials.Condition.Reason).To(Equal(tc.reason))
			g.Expect(credentials.Condition.Message).To(And(ContainSubstring(tc.says), Not(ContainSubstring("SECRET"))))
			g.Expect(credentials.Hash).NotTo(BeEmpty(), "the provider tries too")
			g.Expect(credentials.CheckAgain).To(BeNumerically(">", 0))
		})
	}
}

func TestClusterThatCannotBeUsed(t *testing.T) {
	server := infraServer(t, versions("v1.31.0", "v1.2.0"))
	gone := infraServer(t, nil)
	gone.Close()
	unending := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(append(append([]byte(`{"gitVersion":"v1.31.0","more":"`), bytes.Repeat([]byte("1"), mostAnswer)...), `"}`...))
	}))
	t.Cleanup(unending.Close)
	for _, tc := range []struct {
		name, kubeconfig string
		guard            *maas.Guard
		reason, says     string
	}{
		{"When it is at an address that only the operator reaches, it should not be called", kubeconfigOf(server), nil, "InfraClusterAddressRefused", "--kubevirt-allow-cidrs"},
		{"When nobody answers, it should say so without the address", kubeconfigOf(gone), local(), "InfraClusterUnreachable", "does not answer"},
		{"When somebody else answers, it should say so", fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],
			"clusters":[{"name":"a","cluster":{"server":%q}}],"users":[{"name":"a","user":{"token":"SECRET"}}]}`, server.URL), local(), "InfraClusterUnreachable", "vouches"},
		{"When it goes on for ever, it should be cut off", kubeconfigOf(unending), local(), "InfraClusterVersionUnsupported", "no version of Kubernetes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, p := NewWithT(t), &Platform{}
			p.infra.guard = tc.guard
			credentials, err := p.ReconcileCredentials(t.Context(), testClient(t, userSecret("config", tc.kubeconfig)), testCluster(elsewhere()))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(credentials.Condition.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(credentials.Condition.Reason).To(Equal(tc.reason))
			g.Expect(credentials.Condition.Message).To(And(ContainSubstring(tc.says), Not(ContainSubstring("127.0.0.1")), Not(ContainSubstring("SECRET"))))
		})
	}
}

func TestParallelCalls(t *testing.T) {
	g, clusters := NewWithT(t), &infraClusters{}
	cluster := &infraCluster{}
	for range parallelCalls {
		g.Expect(clusters.begin(cluster)).To(Succeed())
	}
	var busy *infraError
	g.Expect(errors.As(clusters.begin(cluster), &busy)).To(BeTrue())
	g.Expect(busy.reason).To(Equal(reasonBusy))
	g.Expect(clusters.end(cluster, nil)).To(Succeed())
	g.Expect(clusters.begin(cluster)).To(Succeed())
}

func TestLiveMigratable(t *testing.T) {
	machine := func(name string, status metav1.ConditionStatus) client.Object {
		return &kubevirtv1.KubevirtMachine{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: kubevirtv1.KubevirtMachineStatus{
			Conditions: []contract.Condition{{Type: "VMLiveMigratable", Status: status, Reason: "DisksNotLiveMigratable", Message: "PVC is not shared"}}}}
	}
	pool := func(name string, conditions ...metav1.Condition) *hyperv1.NodePool {
		pool := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name}, Spec: hyperv1.NodePoolSpec{ClusterName: "demo"}}
		for _, c := range conditions {
			pool.Status.Conditions = append(pool.Status.Conditions, hyperv1.NodePoolCondition{Type: c.Type, Status: corev1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message})
		}
		return pool
	}
	for _, tc := range []struct {
		name     string
		machines []client.Object
		status   metav1.ConditionStatus
		reason   string
	}{
		{"When all machines can move, pool and cluster should say so", []client.Object{machine("a", "True"), machine("b", "True")}, metav1.ConditionTrue, ""},
		{"When one cannot, pool and cluster should name it", []client.Object{machine("a", "True"), machine("b", "False")}, metav1.ConditionFalse, "DisksNotLiveMigratable"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			said := (&Platform{}).MachineConditions(tc.machines)
			g.Expect(said).To(HaveLen(1))
			g.Expect(said[0].Status).To(Equal(tc.status))
			connection, err := migratable(t.Context(), testClient(t, pool("one", said...), pool("new")), testCluster(nil).HostedCluster)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(connection.Conditions).To(HaveLen(1))
			g.Expect(connection.Conditions[0]).To(And(HaveField("Type", "KubeVirtNodesLiveMigratable"), HaveField("Status", tc.status)))
			if tc.reason != "" {
				g.Expect(said[0].Reason).To(Equal(tc.reason))
				g.Expect(connection.Conditions[0].Reason).To(Equal("KubeVirtNodesNotLiveMigratable"))
				g.Expect(connection.Conditions[0].Message).To(And(ContainSubstring("NodePool one"), ContainSubstring("Machine b")))
			}
		})
	}
	t.Run("When no pool says anything, the cluster should not either", func(t *testing.T) {
		g := NewWithT(t)
		connection, err := migratable(t.Context(), testClient(t, pool("new")), testCluster(nil).HostedCluster)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(connection.Conditions).To(BeEmpty())
		g.Expect(connection.Gone).To(ConsistOf(hyperv1.KubeVirtNodesLiveMigratable))
	})
}
