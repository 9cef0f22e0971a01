// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cmd/capacity"
	"github.com/openshift/hypershift/cmd/console"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/kube/kubetest"
	"github.com/openshift/hypershift/cmd/platform"
)

const secretText = "consumer:token:sesame"

// served is a console of a management cluster.
type served struct {
	client           client.WithWatch
	url, base, token string
}

func serve(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *served {
	t.Helper()
	return serveSite(t, platform.Console(), funcs, objects...)
}

func serveSite(t *testing.T, part console.Part, funcs interceptor.Funcs, objects ...client.Object) *served {
	t.Helper()
	c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	live := console.NewLive(c, part, platform.Hardware(), "")
	server := console.NewServer(listener, live)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go live.Run(ctx)
	go func() { defer close(done); _ = server.Serve(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	base, token, _ := strings.Cut(server.URL(), "#")
	return &served{client: c, url: server.URL(), base: base, token: token}
}

// get requests a path. Headers come in pairs; Host sets the host of the request.
func (s *served) get(t *testing.T, method, path string, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// stream returns a function that reads the stream until a picture has a property.
func (s *served) stream(t *testing.T) func(has func(*console.Picture) bool) *console.Picture {
	t.Helper()
	response := s.get(t, http.MethodGet, "api/events", "Authorization", "Bearer "+s.token)
	lines := bufio.NewReader(response.Body)
	return func(has func(*console.Picture) bool) *console.Picture {
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("the stream ended: %v", err)
			}
			data, ok := strings.CutPrefix(line, "data: ")
			if !ok {
				continue
			}
			p := &console.Picture{}
			if err := json.Unmarshal([]byte(data), p); err != nil {
				t.Fatal(err)
			}
			if !p.Loading && has(p) {
				return p
			}
		}
	}
}

// siteOf is MAAS with a fixed report for one cluster; for all clusters if cluster is empty.
type siteOf struct {
	console.Part
	cluster string
	report  *capacity.Report
}

func (s siteOf) Report(
	_ context.Context, _ client.Client, hc *hyperv1.HostedCluster, _ []hyperv1.NodePool, _ map[string]string,
) (*capacity.Report, error) {
	if hc.Name == s.cluster || s.cluster == "" {
		return s.report, nil
	}
	return nil, fmt.Errorf("no right to read the Secret")
}

func machines(count int) func(*console.Picture) bool {
	return func(p *console.Picture) bool { return len(p.Machines) == count }
}

func credentials() client.Object {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "pull-secret"}, Data: map[string][]byte{"MAAS_API_KEY": []byte(secretText)},
	}
}

func TestPicture(t *testing.T) {
	t.Run("shows clusters, machines and the first condition", func(t *testing.T) {
		g := NewWithT(t)
		quarantine := &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo", Annotations: map[string]string{
			"failed-machine.infrastructure.cluster.x-k8s.io/bad001": `{"quarantined":true}`,
		}}}
		p := serve(t, interceptor.Funcs{}, append(kubetest.Fleet(), quarantine, credentials())...).stream(t)(machines(3))
		g.Expect(p.Clusters).To(HaveLen(2))
		g.Expect(p.Clusters[0].Key).To(Equal("clusters/demo"))
		g.Expect(p.Clusters[0].Pools).To(HaveLen(2))
		g.Expect(p.Clusters[1].Finding.Text).To(ContainSubstring(`Secret \x1b[31mmaas\x1b[0m does not exist`))
		byName := map[string]console.Machine{}
		for _, m := range p.Machines {
			byName[m.Name] = m
		}
		g.Expect(byName["calm-ant"]).To(HaveField("Tone", console.Good))
		g.Expect(byName["calm-ant"]).To(HaveField("NodePool", "clusters/workers"))
		g.Expect(byName["calm-ant"]).To(HaveField("Zone", "az1"))
		g.Expect(byName["workers-b"].Finding.Text).To(ContainSubstring("no machine has 64 cores"))
		g.Expect(byName["bad001"]).To(HaveField("Quarantined", true))
	})
	t.Run("counts the machines that an upgrade has replaced", func(t *testing.T) {
		g := NewWithT(t)
		objects := kubetest.Fleet()
		for _, object := range objects {
			switch o := object.(type) {
			case *hyperv1.HostedCluster:
				if o.Name == "demo" {
					o.Status.Version.Desired.Version = "1.36.3"
				}
			case *hyperv1.NodePool:
				for i := range o.Status.Conditions {
					if o.Status.Conditions[i].Type == hyperv1.NodePoolUpdatingVersionConditionType {
						o.Status.Conditions[i].Status = corev1.ConditionTrue
					}
				}
			case *clusterv1.Machine:
				o.Spec.Version = map[string]string{"workers-a": "v1.36.3", "workers-b": "v1.35.4"}[o.Name]
			}
		}
		p := serve(t, interceptor.Funcs{}, objects...).stream(t)(machines(2))
		g.Expect(p.Clusters[0].Desired).To(Equal("1.36.3"))
		g.Expect(p.Clusters[0].Pools[1].Upgrade).To(Equal(&console.Upgrade{To: "1.36.3", Done: 1, Total: 2}))
	})
	t.Run("shows a change on the stream", func(t *testing.T) {
		g := NewWithT(t)
		s := serve(t, interceptor.Funcs{}, kubetest.Fleet()...)
		next := s.stream(t)
		next(machines(2))
		m := &clusterv1.Machine{}
		g.Expect(s.client.Get(t.Context(), client.ObjectKey{Namespace: "clusters-demo", Name: "workers-b"}, m)).To(Succeed())
		g.Expect(s.client.Delete(t.Context(), m)).To(Succeed())
		next(machines(1))
	})
	t.Run("reads hosted namespaces if the user may not list all machines", func(t *testing.T) {
		g := NewWithT(t)
		forbid := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			options := (&client.ListOptions{}).ApplyOptions(opts)
			_, open := list.(*hyperv1.HostedClusterList)
			_, pools := list.(*hyperv1.NodePoolList)
			if options.Namespace == "" && !open && !pools || options.Namespace == "team-young" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "", fmt.Errorf("no rights"))
			}
			return c.List(ctx, list, opts...)
		}}
		p := serve(t, forbid, kubetest.Fleet()...).stream(t)(machines(2))
		g.Expect(p.Notes).To(ContainElement(ContainSubstring("you have no right to list them in namespace team-young")))
	})
	t.Run("says what it cannot read of MAAS", func(t *testing.T) {
		objects := kubetest.Fleet()
		serve(t, interceptor.Funcs{}, objects...).stream(t)(func(p *console.Picture) bool {
			return strings.Contains(strings.Join(p.Notes, "\n"), "not shown for cluster clusters/demo: HostedCluster clusters/demo has no settings of MAAS")
		})
	})
	t.Run("shows machines of MAAS that no cluster has, capacity and links", func(t *testing.T) {
		g := NewWithT(t)
		report := &capacity.Report{
			Endpoint: "https://maas.example:5443/MAAS",
			Needs:    []capacity.Need{{NodePool: "clusters/workers", Nodes: "1/2", Fit: 1, Reason: "1 of 3 fits"}},
			Machines: []capacity.Machine{
				{Hostname: "calm-ant", SystemID: "wq4h8c", Zone: "az1", Pool: "blue", State: capacity.Taken, Tags: []string{"ssd"}},
				{Hostname: "idle-bee", SystemID: "aaa111", Zone: "az1", Pool: "blue", State: capacity.Fit, Status: "Ready"},
				{Hostname: "sick-cat", SystemID: "bbb222", Zone: "az2", Pool: "blue", State: capacity.Quarantined, Status: "Ready"},
			},
		}
		site := siteOf{platform.Console(), "demo", report}
		p := serveSite(t, site, interceptor.Funcs{}, kubetest.Fleet()...).stream(t)(machines(4))
		byName := map[string]console.Machine{}
		for _, m := range p.Machines {
			byName[m.Name] = m
		}
		g.Expect(byName["calm-ant"]).To(HaveField("Pool", "blue"))
		g.Expect(byName["calm-ant"]).To(HaveField("Link", "https://maas.example:5443/MAAS/r/machine/wq4h8c/summary"))
		g.Expect(byName["idle-bee"]).To(HaveField("Tone", console.Spare))
		g.Expect(byName["sick-cat"]).To(HaveField("Quarantined", true))
		g.Expect(p.Capacity).To(ConsistOf(console.Need{NodePool: "clusters/workers", Nodes: "1/2", Fit: 1, Reason: "1 of 3 fits"}))
		g.Expect(p.Notes).To(ContainElement(ContainSubstring("not shown for cluster team/young: no right to read the Secret")))
	})
	t.Run("links to HTTP addresses only", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(platform.Console().Link("javascript:alert(1)//x", "a")).To(BeEmpty())
		g.Expect(platform.Console().Link("http://user:sesame@maas.example/MAAS?x", "../../a")).To(
			Equal("http://maas.example/MAAS/r/machine/..%2F..%2Fa/summary"))
	})
	t.Run("has no Secrets, annotations or control characters", func(t *testing.T) {
		g := NewWithT(t)
		objects := append(kubetest.Fleet(), credentials())
		hostile := "<script>alert(1)</script>\x1b]0;x\x07\u202e"
		for _, object := range objects {
			if m, ok := object.(*infrav1.MaasMachine); ok {
				m.Status.Hostname = &hostile
			}
			if _, ok := object.(*hyperv1.HostedCluster); ok {
				object.SetAnnotations(map[string]string{"note": secretText})
			}
		}
		s := serve(t, interceptor.Funcs{}, objects...)
		s.stream(t)(machines(2))
		body, err := io.ReadAll(s.get(t, http.MethodGet, "api/picture", "Authorization", "Bearer "+s.token).Body)
		g.Expect(err).NotTo(HaveOccurred())
		p := &console.Picture{}
		g.Expect(json.Unmarshal(body, p)).To(Succeed())
		g.Expect(p.Machines[0].Name).To(Equal(`<script>alert(1)</script>\x1b]0;x\x07\u202e`))
		g.Expect(string(body)).NotTo(Or(ContainSubstring("sesame"), ContainSubstring("pull-secret"), ContainSubstring(s.token)))
	})
}

func TestServer(t *testing.T) {
	s := serve(t, interceptor.Funcs{}, kubetest.Fleet()...)
	authorization := []string{"Authorization", "Bearer " + s.token}
	port := s.base[strings.LastIndex(s.base, ":"):]
	for name, tc := range map[string]struct {
		method, path string
		headers      []string
		code         int
	}{
		"serves the page without the token":         {"GET", "", nil, 200},
		"serves data with the token":                {"GET", "api/picture", authorization, 200},
		"refuses data without the token":            {"GET", "api/picture", nil, 401},
		"refuses the stream without the token":      {"GET", "api/events", nil, 401},
		"refuses another token":                     {"GET", "api/picture", []string{"Authorization", "Bearer x"}, 401},
		"refuses another host":                      {"GET", "api/picture", append([]string{"Host", "evil.example" + port}, authorization...), 403},
		"refuses another host for the page":         {"GET", "", []string{"Host", "evil.example"}, 403},
		"refuses another port":                      {"GET", "", []string{"Host", "127.0.0.1:1"}, 403},
		"refuses another origin":                    {"GET", "api/picture", append([]string{"Origin", "http://evil.example"}, authorization...), 403},
		"refuses the origin of a file":              {"GET", "api/picture", append([]string{"Origin", "null"}, authorization...), 403},
		"refuses scripts of another site":           {"GET", "api/picture", append([]string{"Sec-Fetch-Site", "cross-site"}, authorization...), 403},
		"refuses POST":                              {"POST", "api/picture", authorization, 405},
		"refuses OPTIONS":                           {"OPTIONS", "api/picture", authorization, 405},
		"has no file outside the page":              {"GET", "../console.go", nil, 404},
		"accepts the origin of the page":            {"GET", "api/picture", append([]string{"Origin", strings.TrimSuffix(s.base, "/")}, authorization...), 200},
		"accepts localhost as the name of loopback": {"GET", "", []string{"Host", "localhost" + strings.TrimSuffix(port, "/")}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			response := s.get(t, tc.method, tc.path, tc.headers...)
			g.Expect(response.StatusCode).To(Equal(tc.code))
			g.Expect(response.Header.Get("Content-Security-Policy")).To(HavePrefix("default-src 'none'; script-src 'self';"))
			g.Expect(response.Header.Get("Access-Control-Allow-Origin")).To(BeEmpty())
			if tc.code == http.StatusOK {
				g.Expect(response.Header.Get("Cache-Control")).To(Equal("no-store"))
			}
		})
	}
}
