// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// serveRoutes makes the management cluster serve Routes until the test ends.
func serveRoutes(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	g.Expect(err).NotTo(HaveOccurred())
	raw, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "route", "v1", "zz_generated.crd-manifests", "routes.crd.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	crd := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(yaml.Unmarshal(raw, crd)).To(Succeed())
	crd.Annotations["api-approved.kubernetes.io"] = "https://github.com/openshift/api"
	fixture.Install(t, crd)
}

// published returns a cluster of an OpenShift payload that publishes Ignition with a strategy, including the payload's
// ignition-server.
func published(t *testing.T, c client.WithWatch, namespace string, strategy hyperv1.ServicePublishingStrategy) *world {
	t.Helper()
	s := newWorld(t, c, namespace)
	hc := fixture.HostedCluster(namespace)
	hc.Spec.Release.Image = fixture.OCPImage
	hc.Spec.Services[3].ServicePublishingStrategy = strategy
	fixture.Create(t, c, append(fixture.Inputs(namespace), hc)...)
	s.mustPass()
	return s
}

// runIgnition creates what the payload's operator creates before the ignition-server is published.
func (s *world) runIgnition() {
	s.t.Helper()
	labels := map[string]string{"app": "ignition-server"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: "ignition-server"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "registry.example/i"}}}},
	}}
	fixture.Create(s.t, s.client, deployment)
	deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}
	s.Expect(s.client.Status().Update(s.t.Context(), deployment)).To(Succeed())
}

func (s *world) service(name string, kind corev1.ServiceType) {
	s.t.Helper()
	fixture.Create(s.t, s.client, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: name},
		Spec: corev1.ServiceSpec{Type: kind, Ports: []corev1.ServicePort{{Name: "https", Port: 443}}}})
}

func TestIgnitionByNodePort(t *testing.T) {
	c := fixture.Start(t)
	s := published(t, c, "ignition-nodeport", hyperv1.ServicePublishingStrategy{
		Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "192.0.2.7"}})
	t.Run("When the release has an ignition-server, the operator should not run its own", func(t *testing.T) {
		g := NewWithT(t)
		for _, obj := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}, &corev1.Secret{}, &corev1.ConfigMap{}, &corev1.ServiceAccount{}} {
			list := &metav1.PartialObjectMetadataList{}
			gvk, err := c.GroupVersionKindFor(obj)
			g.Expect(err).NotTo(HaveOccurred())
			list.SetGroupVersionKind(gvk)
			g.Expect(c.List(t.Context(), list, client.InNamespace(s.hosted()))).To(Succeed())
			for _, item := range list.Items {
				g.Expect(item.Name).NotTo(ContainSubstring("ignition"), gvk.Kind)
			}
		}
		g.Expect(s.condition(hyperv1.IgnitionEndpointAvailable).Reason).To(Equal("NotFound"))
	})
	t.Run("When the ignition-server has no node port yet, the condition should report what is missing", func(t *testing.T) {
		g := NewWithT(t)
		s.runIgnition()
		s.service("ignition-server", corev1.ServiceTypeClusterIP)
		s.mustPass()
		g.Expect(s.cluster().Status.IgnitionEndpoint).To(BeEmpty())
		got := s.condition(hyperv1.IgnitionEndpointAvailable)
		g.Expect(got.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(got.Message).To(ContainSubstring("neither of the Services ignition-server-proxy and ignition-server in namespace ignition-nodeport-demo has a node port"))
	})
	t.Run("When the proxy has a node port, machines should use it", func(t *testing.T) {
		g := NewWithT(t)
		s.service("ignition-server-proxy", corev1.ServiceTypeNodePort)
		s.mustPass()
		g.Expect(s.cluster().Status.IgnitionEndpoint).To(MatchRegexp(`^192\.0\.2\.7:3\d{4}$`))
		g.Expect(s.condition(hyperv1.IgnitionEndpointAvailable).Status).To(Equal(metav1.ConditionTrue))
	})
}

func TestIgnitionByLoadBalancer(t *testing.T) {
	t.Run("When Ignition is published in an unsupported way, the condition should name the supported ways", func(t *testing.T) {
		s := published(t, fixture.Start(t), "ignition-loadbalancer", hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer})
		s.runIgnition()
		s.mustPass()
		s.Expect(s.condition(hyperv1.IgnitionEndpointAvailable).Message).To(ContainSubstring(`spec.services cannot publish Ignition by "LoadBalancer"; use NodePort or Route`))
	})
}

func TestIgnitionByRoute(t *testing.T) {
	c := fixture.Start(t)
	byRoute := hyperv1.ServicePublishingStrategy{Type: hyperv1.Route}
	t.Run("When the management cluster has no Route API, a condition should report it without an error", func(t *testing.T) {
		s := published(t, c, "ignition-no-routes", byRoute)
		s.Expect(s.condition(hyperv1.ValidHostedClusterConfiguration).Message).To(ContainSubstring(
			"spec.services: Ignition is published by Route, which this management cluster does not have"))
		s.Expect(meta.IsNoMatchError(c.Get(t.Context(), client.ObjectKey{Namespace: s.hosted(), Name: "ignition-server"}, newRoute(s)))).To(BeTrue())
	})
	serveRoutes(t)
	fresh := fixture.Start(t)
	s := published(t, fresh, "ignition-route", byRoute)
	t.Run("When the Route does not exist yet, the condition should report it, and the operator should check again", func(t *testing.T) {
		g := NewWithT(t)
		s.runIgnition()
		s.mustPass()
		g.Expect(s.condition(hyperv1.IgnitionEndpointAvailable).Message).To(ContainSubstring("Route ignition-server in namespace ignition-route-demo is not there, or has no host"))
		result, err := s.pass()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(BeNumerically(">", 0))
		g.Expect(result.RequeueAfter).To(BeNumerically("<=", routePoll))
	})
	t.Run("When the Route has a host, machines should use it", func(t *testing.T) {
		g, route := NewWithT(t), newRoute(s)
		g.Expect(unstructured.SetNestedField(route.Object, "ignition.apps.example", "spec", "host")).To(Succeed())
		g.Expect(unstructured.SetNestedMap(route.Object, map[string]any{"kind": "Service", "name": "ignition-server-proxy"}, "spec", "to")).To(Succeed())
		g.Expect(fresh.Create(t.Context(), route)).To(Succeed())
		s.mustPass()
		g.Expect(s.cluster().Status.IgnitionEndpoint).To(Equal("ignition.apps.example"))
		g.Expect(s.condition(hyperv1.IgnitionEndpointAvailable).Status).To(Equal(metav1.ConditionTrue))
	})
	t.Run("When the user sets the hostname, it should take precedence over the Route", func(t *testing.T) {
		s := published(t, fresh, "ignition-hostname", hyperv1.ServicePublishingStrategy{Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: "ign.example"}})
		s.Expect(s.cluster().Status.IgnitionEndpoint).To(Equal("ign.example"))
	})
}

func newRoute(s *world) *unstructured.Unstructured {
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(routeKind)
	route.SetNamespace(s.hosted())
	route.SetName("ignition-server")
	return route
}

// TestObservedIgnition checks the reported address at which machines fetch their configuration.
func TestObservedIgnition(t *testing.T) {
	byPort := hyperv1.ServicePublishingStrategy{Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "192.0.2.7"}}
	byRoute, byName := hyperv1.ServicePublishingStrategy{Type: hyperv1.Route}, hyperv1.ServicePublishingStrategy{Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: "ign.example"}}
	server := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "ignition-server"}}
	proxied, plain := nodePortService("ignition-server-proxy", 31001), nodePortService("ignition-server", 31002)
	serves := func(hosts ...string) func(*scope) {
		return func(s *scope) {
			s.HCP = &hyperv1.HostedControlPlane{}
			for _, host := range hosts {
				s.HCP.Status.ServedAddresses = append(s.HCP.Status.ServedAddresses, hyperv1.ServedAddress{IgnitionHost: host})
			}
		}
	}
	for name, test := range map[string]struct {
		strategy hyperv1.ServicePublishingStrategy
		objects  []client.Object
		change   func(*scope)
		want     string
	}{
		"When there is no server or Service yet, it should return no address":                   {byPort, nil, nil, ""},
		"When there is a server but no Service, it should return no address":                    {byPort, []client.Object{server}, nil, ""},
		"When there is a proxy Service, it should return its port":                              {byPort, []client.Object{server, proxied, plain}, nil, "192.0.2.7:31001"},
		"When there is no proxy Service, it should return the port of the server":               {byPort, []client.Object{plain}, nil, "192.0.2.7:31002"},
		"When the proxy has no node port yet, it should return the port of the server":          {byPort, []client.Object{nodePortService("ignition-server-proxy", 0), plain}, nil, "192.0.2.7:31002"},
		"When the proxy has no ports, it should return the port of the server":                  {byPort, []client.Object{nodePortService("ignition-server-proxy"), plain}, nil, "192.0.2.7:31002"},
		"When the Service has several ports, it should return the first":                        {byPort, []client.Object{nodePortService("ignition-server", 31003, 31004)}, nil, "192.0.2.7:31003"},
		"When the spec has no address, it should return no address":                             {hyperv1.ServicePublishingStrategy{Type: hyperv1.NodePort}, []client.Object{plain}, nil, ""},
		"When the certificate has another address, it should return that address":               {byPort, []client.Object{plain}, serves("192.0.2.8", "192.0.2.9"), "192.0.2.8:31002"},
		"When the control plane reports no addresses yet, it should return the desired address": {byPort, []client.Object{plain}, serves(), "192.0.2.7:31002"},
		"When the control plane reports no ignition host, it should return the desired address": {byPort, []client.Object{plain}, serves(""), "192.0.2.7:31002"},
		"When Ignition is published by a Route without a host, it should return no address":     {byRoute, []client.Object{plain}, nil, ""},
		"When the user sets the hostname of the Route, it should return that hostname":          {byName, nil, nil, "ign.example"},
		"When Ignition is published in an unsupported way, it should return no address":         {hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}, []client.Object{plain}, nil, ""},
		"When the user sets no hostname for the Route, it should return the host of the Route":  {hyperv1.ServicePublishingStrategy{Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{}}, nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := withScope(func(s *scope) {
				s.HC.Spec.Services[3].ServicePublishingStrategy = test.strategy
				s.HC.Status.IgnitionEndpoint = "of before"
			})
			if test.change != nil {
				test.change(s)
			}
			g.Expect(newDesk(test.objects...).observeIgnition(t.Context(), s)).To(Succeed())
			g.Expect(s.ignitionEndpoint).To(Equal(test.want))
			g.Expect(s.ignitionServer != nil).To(Equal(len(test.objects) > 0 && test.objects[0] == client.Object(server)))
		})
	}
}

// TestRouteHost reads a Route, whose kind is not in the client's scheme.
func TestRouteHost(t *testing.T) {
	route := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"host": "ignition.apps.example"}}}
	route.SetGroupVersionKind(routeKind)
	route.SetNamespace("clusters-demo")
	route.SetName("ignition-server")
	d := newDesk(route)
	for name, test := range map[string]struct {
		refuse, name, host string
		fails              bool
	}{
		"When the Route has a host, it should return that host":                  {"", "ignition-server", "ignition.apps.example", false},
		"When the Route does not exist, it should return no host":                {"", "another", "", false},
		"When the Route cannot be read, it should return an error that names it": {"get Route clusters-demo/ignition-server", "ignition-server", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			d.Refuse = test.refuse
			host, err := d.routeHost(t.Context(), "clusters-demo", test.name)
			NewWithT(t).Expect(host).To(Equal(test.host))
			if test.fails {
				NewWithT(t).Expect(err).To(MatchError(errNotNow))
				return
			}
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
		})
	}
	t.Run("When the management cluster has no Route API, it should return no host", func(t *testing.T) {
		d := newDesk()
		d.LiveReader = interceptor.NewClient(d.Direct, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return &meta.NoKindMatchError{GroupKind: routeKind.GroupKind()}
		}})
		host, err := d.routeHost(t.Context(), "clusters-demo", "ignition-server")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(host).To(BeEmpty())
	})
}

func TestAwaitRoute(t *testing.T) {
	for name, test := range map[string]struct {
		by       hyperv1.PublishingStrategyType
		endpoint string
		want     time.Duration
	}{
		"When the host of the Route is unknown, it should requeue":                        {hyperv1.Route, "", 10 * time.Second},
		"When the host of the Route is known, it should not requeue":                      {hyperv1.Route, "a.example", 0},
		"When Ignition is published by NodePort, which is watched, it should not requeue": {hyperv1.NodePort, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := newDesk().awaitRoute(t.Context(), withScope(func(s *scope) {
				s.HC.Spec.Services[3].ServicePublishingStrategy.Type, s.HC.Status.IgnitionEndpoint = test.by, test.endpoint
			}))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(result.RequeueAfter).To(Equal(test.want))
		})
	}
}

func TestIgnitionAvailable(t *testing.T) {
	having := func(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus) *appsv1.Deployment {
		return &appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Type: kind, Status: status}}}}
	}
	for name, test := range map[string]struct {
		server   *appsv1.Deployment
		endpoint string
		by       hyperv1.PublishingStrategyType
		want     string
		says     string
	}{
		"there is no server, it should be False":                                              {nil, "a.example", hyperv1.NodePort, "False/NotFound", ""},
		"the address is not known yet, it should name the Services":                           {having("Available", "True"), "", hyperv1.NodePort, "False/WaitingForAvailable", "ignition-server-proxy and ignition-server in namespace clusters-demo"},
		"the Route has no host yet, it should name the Route":                                 {having("Available", "True"), "", hyperv1.Route, "False/WaitingForAvailable", "Route ignition-server in namespace clusters-demo"},
		"the server is published in an unsupported way, it should name the strategy":          {having("Available", "True"), "", hyperv1.S3, "False/WaitingForAvailable", `"S3"`},
		"the server is available, it should be True":                                          {having("Available", "True"), "a.example", hyperv1.NodePort, "True/AsExpected", ""},
		"the server is no longer available, it should be False":                               {having("Available", "False"), "a.example", hyperv1.NodePort, "False/WaitingForAvailable", ""},
		"the condition of the server is Progressing instead of Available, it should be False": {having("Progressing", "True"), "a.example", hyperv1.NodePort, "False/WaitingForAvailable", ""},
	} {
		t.Run("When "+name, func(t *testing.T) {
			c := ignitionAvailable(withScope(func(s *scope) {
				s.ignitionServer, s.ignitionEndpoint, s.HC.Spec.Services[3].ServicePublishingStrategy.Type = test.server, test.endpoint, test.by
			}))
			NewWithT(t).Expect(string(c.Status) + "/" + c.Reason).To(Equal(test.want))
			NewWithT(t).Expect(c.Type).To(Equal("IgnitionEndpointAvailable"))
			NewWithT(t).Expect(c.Message).To(ContainSubstring(test.says))
		})
	}
}
