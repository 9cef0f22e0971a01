// SPDX-License-Identifier: Apache-2.0

package version

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube/kubetest"
	"github.com/openshift/hypershift/support/skew"
	"github.com/openshift/hypershift/support/supportedversions"
)

func prints(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := NewCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out strings.Builder
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append([]string{}, args...)) // Cobra replaces nil with the arguments of the test binary.
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// TestClient checks that every output format contains the program's revision.
func TestClient(t *testing.T) {
	g := NewWithT(t)
	text, err := prints(t, "--client-only")
	g.Expect(err).NotTo(HaveOccurred())
	revision, err := prints(t, "--commit-only")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(text).To(Equal("Client Version: " + revision))
	g.Expect(strings.TrimSpace(revision)).NotTo(BeEmpty())
}

func TestServer(t *testing.T) {
	configMap := func(data map[string]string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "hypershift", Name: supportedversions.Name}, Data: data}
	}
	const both, one = `{"versions":["4.20","4.19"]}`, `{"versions":["1.36"]}`
	for _, tt := range []struct {
		name string
		data map[string]string
		want string
	}{
		{
			"When the operator supports OpenShift and Kubernetes, it should print the versions of both", map[string]string{"server-version": "abc", supportedversions.OpenShift: both, supportedversions.Kubernetes: one, supportedversions.Release: skew.Version},
			"Server Version: abc\nClient Release: " + skew.Version + "\nServer Release: " + skew.Version + "\nServer Supports OCP Versions: 4.20, 4.19\nServer Supports Kubernetes Versions: 1.36\n",
		},
		{
			"When the operator publishes no version number, it should be the first release", map[string]string{"server-version": "abc", supportedversions.OpenShift: both, supportedversions.Kubernetes: one},
			"Server Release: 0.1.0\n",
		},
		{
			"When the operator is older and works with the program, it should say how to upgrade it", map[string]string{"server-version": "abc", supportedversions.OpenShift: both, supportedversions.Kubernetes: one},
			"Note: version " + skew.Version + " of the command line works with version 0.1.0 of the operator; run hypershift install of the newer version to have one version\n",
		},
		{
			"When the operator does not work with the program, it should say what to use", map[string]string{"server-version": "abc", supportedversions.OpenShift: both, supportedversions.Kubernetes: one, supportedversions.Release: "99.0.0"},
			"Note: version " + skew.Version + " of the command line does not work with version 99.0.0 of the operator; use the command line of the operator's version\n",
		},
		{
			"When the operator supports only OpenShift, it should print only those versions", map[string]string{"server-version": "abc", supportedversions.OpenShift: both},
			"Server Version: abc\nServer Supports OCP Versions: 4.20, 4.19\n",
		},
		{"When the ConfigMap is empty, it should name the missing key", nil, "Server Version: unknown: ConfigMap hypershift/supported-versions holds no list of versions under supported-versions: "},
		{
			"When a version list is malformed, it should name the key", map[string]string{supportedversions.OpenShift: both, supportedversions.Kubernetes: "1.36"},
			"Server Version: unknown: ConfigMap hypershift/supported-versions holds no list of versions under supported-kubernetes-versions: ",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, s := NewWithT(t), kubetest.Start(t, configMap(tt.data))
			out, err := prints(t, "--kubeconfig", s.Kubeconfig)
			g.Expect(err).NotTo(HaveOccurred(), "a version is known without an operator")
			g.Expect(out).To(HavePrefix("Client Version: "))
			g.Expect(out).To(ContainSubstring(tt.want))
		})
	}
	t.Run("When the operator has this version, it should print no note", func(t *testing.T) {
		g, s := NewWithT(t), kubetest.Start(t, configMap(map[string]string{supportedversions.OpenShift: both, supportedversions.Kubernetes: one, supportedversions.Release: skew.Version}))
		out, err := prints(t, "--kubeconfig", s.Kubeconfig)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).NotTo(ContainSubstring("Note:"))
	})
	t.Run("When another namespace is set, it should read the ConfigMap there", func(t *testing.T) {
		g, s := NewWithT(t), kubetest.Start(t, configMap(map[string]string{"server-version": "abc", supportedversions.OpenShift: both}))
		out, err := prints(t, "--kubeconfig", s.Kubeconfig, "--namespace=other")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(ContainSubstring("Server Version: unknown: read ConfigMap other/supported-versions: "))
	})
	t.Run("When only the client version is requested, it should not contact the cluster", func(t *testing.T) {
		g, s, asked := NewWithT(t), kubetest.Start(t), false
		s.Refuse(func(*http.Request) bool { asked = true; return false })
		for _, flag := range []string{"--client-only", "--commit-only"} {
			_, err := prints(t, "--kubeconfig", s.Kubeconfig, flag)
			g.Expect(err).NotTo(HaveOccurred())
		}
		g.Expect(asked).To(BeFalse())
	})
	t.Run("When only the commit is requested, it should print only the commit", func(t *testing.T) {
		out, err := prints(t, "--commit-only", "-o", "json")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(strings.Fields(out)).To(HaveLen(1))
	})
	t.Run("When the output format is unknown, it should return a usage error", func(t *testing.T) {
		out, err := prints(t, "--client-only", "--output=xml")
		NewWithT(t).Expect(err).To(MatchError(`--output "xml": use json or yaml`))
		NewWithT(t).Expect(exit.Code(err)).To(Equal(exit.Usage))
		NewWithT(t).Expect(out).To(BeEmpty())
	})
}
