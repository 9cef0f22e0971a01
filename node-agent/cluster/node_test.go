// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/node-agent/cluster"
	"github.com/openshift/hypershift/node-agent/host"
	"github.com/openshift/hypershift/support/testenv"
)

const patient = 2 * time.Minute

// joined returns the Node of a machine that has the kubelet's files.
func joined(t *testing.T, config *rest.Config, name string) *cluster.Node {
	t.Helper()
	h := &host.Host{Root: t.TempDir()}
	const pki = "/var/lib/kubelet/pki/kubelet-client-current.pem"
	kubeconfig := fmt.Sprintf(`{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}],
  users: [{name: u, user: {client-certificate: %s, client-key: %s}}]}`, config.Host, base64.StdEncoding.EncodeToString(config.CAData), pki, pki)
	for path, content := range map[string][]byte{cluster.Kubeconfig: []byte(kubeconfig), pki: append(config.CertData, config.KeyData...)} {
		if err := os.MkdirAll(filepath.Dir(h.Path(path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(h.Path(path), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &cluster.Node{Host: h, Name: name}
}

// TestNode calls a real API server with the permissions of a kubelet.
func TestNode(t *testing.T) {
	g := NewWithT(t)
	config, users := testenv.StartNodes(t)
	admin, err := client.New(config, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	kubelet := users("system:node:worker-1", "system:nodes")
	own, theirs := joined(t, kubelet, "worker-1"), joined(t, kubelet, "worker-2")
	for _, name := range []string{"worker-1", "worker-2"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"kept": "yes"}}}
		g.Expect(admin.Create(t.Context(), node)).To(Succeed())
		node.Status.NodeInfo.KubeletVersion = "v1.36.3"
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Message: "it is posting ready status"}}
		g.Expect(admin.Status().Update(t.Context(), node)).To(Succeed())
	}
	renewed := metav1.NewMicroTime(time.Now().Truncate(time.Second))
	g.Eventually(func() error {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "worker-1"}, Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
		if err := admin.Create(t.Context(), lease); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	}).WithTimeout(patient).Should(Succeed(), "the namespace of leases is there soon")

	t.Run("When the status of its Node is requested, it should return readiness, version and Lease time", func(t *testing.T) {
		g := NewWithT(t)
		var status cluster.Status
		g.Eventually(func() (err error) { status, err = own.Status(t.Context()); return err }).WithTimeout(patient).Should(Succeed())
		g.Expect(status.Renewed.Equal(renewed.Time)).To(BeTrue(), "%s", status.Renewed)
		status.Renewed = time.Time{}
		g.Expect(status).To(Equal(cluster.Status{Ready: true, Reason: "it is posting ready status", Version: "v1.36.3"}))
	})
	t.Run("When it watches its Node, it should get the annotations and each change", func(t *testing.T) {
		g := NewWithT(t)
		ctx, cancel := context.WithCancel(t.Context())
		seen, ended := make(chan cluster.Annotations, 100), make(chan error, 1)
		go func() { ended <- own.Watch(ctx, func(a cluster.Annotations) { seen <- a }) }()
		g.Eventually(seen).WithTimeout(patient).Should(Receive(HaveKeyWithValue("kept", "yes")))
		g.Expect(own.Annotate(t.Context(), cluster.Annotations{"state": "Working"})).To(Succeed())
		g.Eventually(seen).WithTimeout(patient).Should(Receive(Equal(cluster.Annotations{"kept": "yes", "state": "Working"})))
		g.Expect(own.Annotate(t.Context(), cluster.Annotations{"state": "", "current": "0a1b"})).To(Succeed())
		g.Eventually(seen).WithTimeout(patient).Should(Receive(Equal(cluster.Annotations{"kept": "yes", "current": "0a1b"})))
		cancel()
		g.Eventually(ended).WithTimeout(patient).Should(Receive(BeNil()))
	})
	t.Run("When it accesses another Node, the API server should return 403", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(theirs.Annotate(t.Context(), cluster.Annotations{"state": "Working"})).To(MatchError(ContainSubstring("403")))
		g.Expect(theirs.Watch(t.Context(), func(cluster.Annotations) { t.Error("it was seen") })).To(MatchError(ContainSubstring("403")))
	})
	t.Run("When the machine has not joined, it should return an error", func(t *testing.T) {
		stranger := &cluster.Node{Host: &host.Host{Root: t.TempDir()}, Name: "worker-1"}
		NewWithT(t).Expect(stranger.Annotate(t.Context(), cluster.Annotations{"a": "b"})).To(MatchError(ContainSubstring("has not joined its cluster yet")))
	})
	t.Run("When the server's certificate is not trusted, it should return an error", func(t *testing.T) {
		g := NewWithT(t)
		other := *kubelet
		other.CAData = kubelet.CertData
		g.Expect(joined(t, &other, "worker-1").Annotate(t.Context(), cluster.Annotations{"a": "b"})).To(MatchError(ContainSubstring("certificate")))
	})
}
