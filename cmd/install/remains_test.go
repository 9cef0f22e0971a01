// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/support/management"
	"github.com/openshift/hypershift/support/operatorwebhook"
)

var errNoRights = errors.New("no rights")

// cluster returns a management cluster with objects, in which funcs intercept calls.
func cluster(funcs interceptor.Funcs, objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
}

var nothingIsDeleted = interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
	return errNoRights
}}

var nothingIsRead = interceptor.Funcs{
	Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errNoRights
	},
	List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errNoRights
	},
}

func exists(t *testing.T, c client.Client, obj client.Object) bool {
	t.Helper()
	return c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj) == nil
}

// TestDropWebhook checks that a webhook without a server is removed: the API server would call it for each write.
func TestDropWebhook(t *testing.T) {
	webhook := func() *admissionv1.MutatingWebhookConfiguration {
		return &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: operatorwebhook.Name}}
	}
	for _, tt := range []struct {
		name string
		args []string
		left bool
	}{
		{"When the operator serves the webhook, it should keep the configuration", nil, true},
		{"When the webhook is disabled, it should delete the configuration", []string{"--enable-defaulting-webhook=false"}, false},
		{"When there is no operator Pod, it should delete the configuration", []string{"--development"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			i := &install{Options: *installation(t, tt.args...)}
			c := cluster(interceptor.Funcs{}, webhook())
			for range 2 {
				g.Expect(i.dropWebhook(t.Context(), c)).To(Succeed())
			}
			g.Expect(exists(t, c, webhook())).To(Equal(tt.left))
			err := i.dropWebhook(t.Context(), cluster(nothingIsDeleted, webhook()))
			if tt.left {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError("delete MutatingWebhookConfiguration " + operatorwebhook.Name + ": no rights"))
		})
	}
}

// TestDropMonitors checks that the platform's Prometheus loses its permissions when monitoring is not requested any
// more.
func TestDropMonitors(t *testing.T) {
	for flag, left := range map[string]bool{monitorNothing: false, monitorOperator: true, monitorAll: true} {
		t.Run("When platform monitoring is "+flag+" its right should be there only where it needs it", func(t *testing.T) {
			g := NewWithT(t)
			i := &install{Options: *installation(t, "--platform-monitoring", flag)}
			binding := func() *rbacv1.RoleBinding { return i.prometheusBinding() }
			c := cluster(interceptor.Funcs{}, binding())
			for range 2 {
				g.Expect(i.dropMonitors(t.Context(), c)).To(Succeed())
			}
			g.Expect(exists(t, c, binding())).To(Equal(left))
			g.Expect(i.ownNamespace().Labels[hyperv1.ClusterMonitoringLabel] == "true").To(Equal(left), "the label and the right go together")
			if !left {
				g.Expect(i.dropMonitors(t.Context(), cluster(nothingIsDeleted, binding()))).To(MatchError(And(HavePrefix("delete RoleBinding hypershift/"), HaveSuffix(": no rights"))))
			}
		})
	}
}

// held returns what an earlier installation announced.
func held(labels map[string]string) []client.Object {
	name := "hypershift-virtual-ip"
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: virtualIPName, Annotations: map[string]string{hyperv1.APIVirtualIPAnnotation: "10.0.0.5,fd00::5"}}},
	}
}

func TestDropVirtualIP(t *testing.T) {
	ours := map[string]string{componentLabel: virtualIPName}
	for _, tt := range []struct {
		name   string
		args   []string
		labels map[string]string
		left   bool
	}{
		{"When a virtual IP is still set, it should keep the namespace and the role binding", []string{"--api-virtual-ip=10.0.0.5"}, ours, true},
		{"When no virtual IP is set, it should delete the namespace and the role binding", nil, ours, false},
		{"When the namespace belongs to another user, it should keep it", nil, map[string]string{"mine": "yes"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			i, objs := &install{Options: *installation(t, tt.args...)}, held(tt.labels)
			c := cluster(interceptor.Funcs{}, objs...)
			for range 2 {
				g.Expect(i.dropVirtualIP(t.Context(), c)).To(Succeed())
			}
			g.Expect(exists(t, c, objs[0])).To(Equal(tt.left))
			g.Expect(exists(t, c, objs[1])).To(Equal(tt.left))
		})
	}
	i := &install{Options: *installation(t)}
	t.Run("When deleting the namespace fails, the next run should delete it", func(t *testing.T) {
		g, objs, dies := NewWithT(t), held(ours), true
		c := cluster(interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, options ...client.DeleteOption) error {
			if _, namespace := obj.(*corev1.Namespace); namespace && dies {
				return errNoRights
			}
			return c.Delete(ctx, obj, options...)
		}}, objs...)
		g.Expect(i.dropVirtualIP(t.Context(), c)).To(MatchError("delete Namespace hypershift-virtual-ip: no rights"))
		dies = false
		g.Expect(i.dropVirtualIP(t.Context(), c)).To(Succeed())
		g.Expect(exists(t, c, objs[0]) || exists(t, c, objs[1])).To(BeFalse())
	})
	t.Run("When the objects cannot be read, it should return the error", func(t *testing.T) {
		NewWithT(t).Expect(i.dropVirtualIP(t.Context(), cluster(nothingIsRead))).To(MatchError(errNoRights))
	})
}

func TestCheckVirtualIP(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: "a"}, {Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeInternalIP, Address: "fd00::1"},
	}}}
	for _, tt := range []struct {
		name  string
		args  []string
		told  bool
		funcs interceptor.Funcs
		have  []client.Object
		says  string
	}{
		{name: "When there was no virtual IP and none is set, it should succeed"},
		{name: "When there was a virtual IP and the flag is omitted, it should say how to keep or remove it", have: held(nil),
			says: "the management cluster holds the virtual IP 10.0.0.5,fd00::5: keep it with --api-virtual-ip 10.0.0.5,fd00::5, or remove it with --api-virtual-ip ''"},
		{name: "When there was a virtual IP and the flag is empty, it should succeed", have: held(nil), told: true},
		{name: "When only CRDs are installed, it should not read the cluster", args: []string{"--install-scope=crds"}, funcs: nothingIsRead},
		{name: "When an earlier virtual IP cannot be looked up, it should return the error", funcs: nothingIsRead, says: "look for a virtual IP of an earlier installation: no rights"},
		{name: "When the virtual IP is not in use, it should succeed", args: []string{"--api-virtual-ip=10.0.0.5"}, told: true, have: []client.Object{node}},
		{name: "When the virtual IP is a node's address, it should name the node", args: []string{"--api-virtual-ip=10.0.0.5,10.0.0.1"}, told: true, have: []client.Object{node},
			says: "--api-virtual-ip 10.0.0.1 is the address of node a"},
		{name: "When the virtual IP is a node's address in another notation, it should name the node", args: []string{"--api-virtual-ip=FD00:0::1"}, told: true, have: []client.Object{node},
			says: "--api-virtual-ip fd00::1 is the address of node a"},
		{name: "When an IPv4 virtual IP is written as IPv6, it should match the node's IPv4 address", args: []string{"--api-virtual-ip=::ffff:10.0.0.1"}, told: true, have: []client.Object{node},
			says: "--api-virtual-ip 10.0.0.1 is the address of node a"},
		{name: "When nodes cannot be listed, it should return an error with the flag", args: []string{"--api-virtual-ip=10.0.0.5"}, told: true, funcs: nothingIsRead,
			says: "list the management cluster's nodes to check --api-virtual-ip: no rights"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			i := &install{Options: *installation(t, tt.args...)}
			err := i.checkVirtualIP(t.Context(), cluster(tt.funcs, tt.have...), tt.told)
			if tt.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
		})
	}
}

// served returns a management cluster that serves optional API groups, with this proxy configuration.
func served(proxy map[string]any, funcs interceptor.Funcs, kinds map[string]string) client.Client {
	var groups []schema.GroupVersion
	for group := range kinds {
		groups = append(groups, schema.GroupVersion{Group: group, Version: "v1"})
	}
	mapper := meta.NewDefaultRESTMapper(groups)
	for group, kind := range kinds {
		mapper.Add(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, meta.RESTScopeRoot)
	}
	builder := fake.NewClientBuilder().WithScheme(kube.Scheme).WithRESTMapper(mapper).WithInterceptorFuncs(funcs)
	if proxy != nil {
		u := &unstructured.Unstructured{Object: proxy}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: management.Configuration, Version: "v1", Kind: "Proxy"})
		u.SetName("cluster")
		builder = builder.WithObjects(u)
	}
	return builder.Build()
}

func TestDiscover(t *testing.T) {
	openshift := map[string]string{management.Configuration: "Proxy", management.Routes: "Route"}
	proxy := func(status map[string]any) map[string]any {
		return map[string]any{"status": status, "spec": map[string]any{"httpProxy": "http://wanted.example"}}
	}
	for _, tt := range []struct {
		name   string
		told   management.APIs
		client client.Client
		apis   management.APIs
		proxy  map[string]string
		says   string
	}{
		{name: "When the cluster is plain Kubernetes, it should find no APIs and not read a proxy", client: served(nil, nothingIsRead, nil)},
		{name: "When the cluster is OpenShift without a proxy, it should find its APIs", client: served(nil, interceptor.Funcs{}, openshift), apis: management.APIs{management.Configuration, management.Routes}},
		{
			name:   "When the cluster uses a proxy, the operator should use the one in the proxy's status, not its spec",
			client: served(proxy(map[string]any{"httpProxy": "http://a", "httpsProxy": "http://b", "noProxy": ".svc"}), interceptor.Funcs{}, openshift),
			apis:   management.APIs{management.Configuration, management.Routes}, proxy: map[string]string{"HTTP_PROXY": "http://a", "HTTPS_PROXY": "http://b", "NO_PROXY": ".svc"},
		},
		{
			name: "When the proxy status omits a setting, it should not set that variable", client: served(proxy(map[string]any{"httpsProxy": "http://b"}), interceptor.Funcs{}, openshift),
			apis: management.APIs{management.Configuration, management.Routes}, proxy: map[string]string{"HTTPS_PROXY": "http://b"},
		},
		{
			name: "When the proxy status has an unexpected type, it should set no proxy variables", client: served(proxy(map[string]any{"httpsProxy": true}), interceptor.Funcs{}, openshift),
			apis: management.APIs{management.Configuration, management.Routes}, proxy: map[string]string{},
		},
		{
			name: "When the user sets the APIs, it should not discover them", told: management.APIs{management.Monitoring},
			client: served(nil, nothingIsRead, openshift), apis: management.APIs{management.Monitoring},
		},
		{name: "When the proxy cannot be read, it should return an error", client: served(nil, nothingIsRead, openshift), says: "read the management cluster's Proxy: no rights"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			i := &install{Options: Options{apis: tt.told}}
			err := i.discover(t.Context(), tt.client, tt.told != nil)
			if tt.says != "" {
				g.Expect(err).To(MatchError(tt.says))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(i.apis).To(Equal(tt.apis))
			if len(tt.proxy) == 0 {
				g.Expect(i.platformEnv).To(BeEmpty())
				return
			}
			g.Expect(i.platformEnv).To(Equal(tt.proxy))
		})
	}
}

// TestDiscoverIngressDomain uses a management cluster with a domain for Routes.
func TestDiscoverIngressDomain(t *testing.T) {
	g := NewWithT(t)
	version := schema.GroupVersion{Group: management.Configuration, Version: "v1"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{version})
	for _, kind := range []string{"Proxy", "Ingress"} {
		mapper.Add(version.WithKind(kind), meta.RESTScopeRoot)
	}
	ingress := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"domain": "apps.example"}}}
	ingress.SetGroupVersionKind(version.WithKind("Ingress"))
	ingress.SetName("cluster")
	c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithRESTMapper(mapper).WithObjects(ingress).Build()
	i := &install{}
	g.Expect(i.discover(t.Context(), c, false)).To(Succeed())
	g.Expect(i.platformEnv).To(Equal(map[string]string{"DEFAULT_INGRESS_DOMAIN": "apps.example"}))
	g.Expect(i.environment()).To(ContainElement(corev1.EnvVar{Name: "DEFAULT_INGRESS_DOMAIN", Value: "apps.example"}))
}
