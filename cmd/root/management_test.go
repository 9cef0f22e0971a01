// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/support/management"
	"github.com/openshift/hypershift/support/testenv"
)

// installed is the part of an installation that depends on the management cluster.
type installed struct {
	groups                        []string
	user                          *int64
	monitors, platform, trust     bool
	proxy, trustDirs, clusterFlag string
}

func (u *user) installed() installed {
	u.t.Helper()
	var i installed
	role := &rbacv1.ClusterRole{}
	u.Expect(u.gets(role, "", "hypershift-operator")).To(Succeed())
	for _, rule := range role.Rules {
		if rule.APIGroups[0] == management.Routes {
			i.groups = append(i.groups, rule.APIGroups[0])
		}
	}
	deployment := &appsv1.Deployment{}
	u.Expect(u.gets(deployment, "hypershift", "operator")).To(Succeed())
	pod := deployment.Spec.Template.Spec
	i.user = pod.SecurityContext.RunAsUser
	for _, env := range pod.Containers[0].Env {
		switch env.Name {
		case "HTTPS_PROXY":
			i.proxy = env.Value
		case "SSL_CERT_DIR":
			i.trustDirs = env.Value
		}
	}
	for _, arg := range pod.Containers[0].Args {
		if strings.HasPrefix(arg, "--enable-ocp") {
			i.clusterFlag = arg
		}
	}
	monitor, rules := u.gets(&monitoringv1.ServiceMonitor{}, "hypershift", "operator"), u.gets(&monitoringv1.PrometheusRule{}, "hypershift", "metrics")
	u.Expect(monitor == nil).To(Equal(rules == nil))
	i.monitors = monitor == nil
	namespace, binding := &corev1.Namespace{}, &rbacv1.RoleBinding{}
	u.Expect(u.gets(namespace, "", "hypershift")).To(Succeed())
	i.platform = namespace.Labels["openshift.io/cluster-monitoring"] == "true"
	u.Expect(u.gets(binding, "hypershift", "hypershift-prometheus") == nil).To(Equal(i.platform), "the label and the right go together")
	i.trust = u.gets(&corev1.ConfigMap{}, "hypershift", "openshift-config-managed-trusted-ca-bundle") == nil
	return i
}

// TestManagementAPIs installs on plain Kubernetes, on Kubernetes that gets a Prometheus operator, and on OpenShift.
func TestManagementAPIs(t *testing.T) {
	u := newUser(t)
	t.Setenv("HYPERSHIFT_IMAGE", "registry.example/hypershift:1")
	config, err := clientcmd.BuildConfigFromFlags("", u.kubeconfig)
	u.Expect(err).NotTo(HaveOccurred())
	plain := func(t *testing.T, flags ...string) {
		t.Helper()
		u.succeeds("", append([]string{"install", "--install-scope", "resources"}, flags...)...)
	}
	thousand := int64(1000)
	t.Run("When the management cluster is plain Kubernetes, it should use no OpenShift API", func(t *testing.T) {
		plain(t)
		NewWithT(t).Expect(u.installed()).To(Equal(installed{user: &thousand}))
	})
	t.Run("When a Prometheus operator is installed, it should create a ServiceMonitor and recording rules", func(t *testing.T) {
		testenv.Serve(u.t, config, management.Monitoring)
		plain(t)
		NewWithT(t).Expect(u.installed()).To(Equal(installed{user: &thousand, monitors: true}))
	})
	t.Run("When the management cluster is OpenShift, it should use its Routes, users, proxy, CAs and monitoring", func(t *testing.T) {
		g := NewWithT(t)
		testenv.Serve(u.t, config, management.Configuration, management.Routes, management.Security)
		g.Expect(u.client.Create(t.Context(), clusterProxy("http://proxy.example:3128"))).To(Succeed())
		want := installed{
			groups: []string{management.Routes}, monitors: true, trust: true, proxy: "http://proxy.example:3128",
			trustDirs: "/etc/ssl/certs:/etc/hypershift/platform-trust",
		}
		plain(t)
		g.Expect(u.installed()).To(Equal(want))

		plain(t, "--platform-monitoring", "OperatorOnly")
		want.platform = true
		g.Expect(u.installed()).To(Equal(want))

		plain(t, "--platform-monitoring", "All")
		want.clusterFlag = "--enable-ocp-cluster-monitoring"
		g.Expect(u.installed()).To(Equal(want))

		plain(t, "--additional-operator-env-vars", "HTTPS_PROXY=http://other.example")
		want.proxy, want.platform, want.clusterFlag = "http://other.example", false, ""
		g.Expect(u.installed()).To(Equal(want), "what the administrator says wins, and what is not asked for any more goes")

		plain(t, "--management-apis", management.Monitoring)
		g.Expect(u.installed()).To(Equal(installed{user: &thousand, monitors: true, trust: true}), "the flag decides; objects that are there stay")
	})
	t.Run("When the rendered objects are deleted, nothing of the installation should be left", func(t *testing.T) {
		plain(t, "--platform-monitoring", "All")
		u.uninstalls(t, "--platform-monitoring", "All", "--management-apis", strings.Join(management.Groups(), ","))
	})
}

func clusterProxy(address string) *unstructured.Unstructured {
	proxy := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"httpsProxy": address}}}
	proxy.SetGroupVersionKind(schema.GroupVersionKind{Group: management.Configuration, Version: "v1", Kind: "Proxy"})
	proxy.SetName("cluster")
	return proxy
}

// uninstalls deletes the objects that render prints, as `kubectl delete -f` does, and checks that nothing is left.
func (u *user) uninstalls(t *testing.T, flags ...string) {
	t.Helper()
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "all.yaml")
	o := hypershift(t.Context(), "", append([]string{"install", "render", "--outputs", "resources", "--render-sensitive", "--output-file", file}, flags...)...)
	g.Expect(o.code).To(BeZero(), o.stderr)
	text, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	for _, document := range strings.Split(string(text), "---\n") {
		obj := &unstructured.Unstructured{}
		g.Expect(yaml.Unmarshal([]byte(document), &obj.Object)).To(Succeed())
		if obj.Object != nil {
			g.Expect(u.client.Delete(t.Context(), obj)).To(Succeed(), "%s %s", obj.GetKind(), obj.GetName())
		}
	}
	for _, list := range []schema.GroupVersionKind{
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleList"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBindingList"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBindingList"}, {Group: management.Monitoring, Version: "v1", Kind: "ServiceMonitorList"},
		{Group: management.Monitoring, Version: "v1", Kind: "PrometheusRuleList"}, {Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClassList"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyList"},
	} {
		left := &unstructured.UnstructuredList{}
		left.SetGroupVersionKind(list)
		g.Expect(u.client.List(t.Context(), left)).To(Succeed())
		for i := range left.Items {
			g.Expect(left.Items[i].GetName()).NotTo(HavePrefix("hypershift"), "%s", list.Kind)
			g.Expect(left.Items[i].GetNamespace()).NotTo(Equal("hypershift"), "%s", list.Kind)
		}
	}
}

func TestManagementFlags(t *testing.T) {
	t.Setenv("HYPERSHIFT_IMAGE", "registry.example/hypershift:1")
	for _, tc := range []struct {
		name, says string
		args       []string
	}{
		{"When an optional API is unknown, it should list the known ones", "config.openshift.io, monitoring.coreos.com", []string{"--management-apis", "example.com"}},
		{"When the platform monitoring value is unknown, it should list the valid values", "None, OperatorOnly, All", []string{"--platform-monitoring", "Some"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := hypershift(t.Context(), "", append([]string{"install", "render"}, tc.args...)...)
			NewWithT(t).Expect(o.code).NotTo(BeZero())
			NewWithT(t).Expect(o.stderr).To(ContainSubstring(tc.says))
		})
	}
	t.Run("When no management API is set, it should render for plain Kubernetes", func(t *testing.T) {
		o := hypershift(t.Context(), "", "install", "render", "--outputs", "resources")
		NewWithT(t).Expect(o.stdout).To(And(ContainSubstring("kind: Deployment"), Not(ContainSubstring("kind: ServiceMonitor")), Not(ContainSubstring(management.Routes))))
	})
}
