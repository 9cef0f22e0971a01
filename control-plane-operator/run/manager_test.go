// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// bare is a manager that implements only the methods that the options use.
type bare struct {
	manager.Manager
	client client.Client
	mapper meta.RESTMapper
	config *rest.Config
}

func (b bare) GetClient() client.Client       { return b.client }
func (b bare) GetRESTMapper() meta.RESTMapper { return b.mapper }
func (b bare) GetConfig() *rest.Config        { return b.config }

// managing returns a manager of a management cluster of some version; routes reports whether it has Routes.
func managing(t *testing.T, minor int, routes bool) bare {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"major": "1", "minor": "%d", "gitVersion": "v1.%d.0"}`, minor, minor)
	}))
	t.Cleanup(server.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	if routes {
		mapper.Add(routev1.GroupVersion.WithKind("Route"), meta.RESTScopeNamespace)
	}
	return bare{client: fake.NewClientBuilder().WithScheme(Scheme()).Build(), mapper: mapper, config: &rest.Config{Host: server.URL}}
}

func started(t *testing.T, environment map[string]string, args ...string) *options {
	t.Helper()
	all := map[string]string{"MY_NAMESPACE": "clusters-demo", "CONTROL_PLANE_OPERATOR_IMAGE": "op"}
	for name, value := range environment {
		all[name] = value
	}
	o, err := parse(t, all, args...)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestReconcilerIsMadeOfOptions(t *testing.T) {
	t.Run("When options are set, the components should receive them", func(t *testing.T) {
		g := NewWithT(t)
		r, err := started(t, map[string]string{
			"OPERATE_ON_RELEASE_IMAGE": "release:7", "DEFAULT_INGRESS_DOMAIN": "apps.example.com", "METRICS_SET": "SRE", "DEFAULT_SECURITY_CONTEXT_UID": "1042",
			"CERTIFICATE_VALIDITY": "24h", "HTTP_PROXY": "http://proxy", "OPENSHIFT_IMG_OVERRIDES": "a.example=b.example", "HOSTED_CLUSTER_CONFIG_OPERATOR_IMAGE": "config:1",
		}, "--registry-overrides=c.example=d.example").reconciler(managing(t, 36, true))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(r.OperateOnReleaseImage).To(Equal("release:7"))
		g.Expect(r.Infra.IngressDomain).To(Equal("apps.example.com"))
		g.Expect(r.Infra.HasRoutes).To(BeTrue())
		g.Expect(r.MetricsSet).To(Equal("SRE"))
		g.Expect(r.PodUID).To(Equal(ptr.To[int64](1042)))
		g.Expect(r.PKI.Lifetime.Validity).To(Equal(24 * time.Hour))
		g.Expect(r.Components.ConfigOperatorImage).To(Equal("config:1"))
		g.Expect(r.Components.RegistryOverrides).To(Equal("c.example=d.example"))
		g.Expect(r.Components.ImageOverrides).To(Equal("a.example=b.example"))
		g.Expect(r.Components.Inherited).To(ConsistOf(HaveField("Name", "HTTP_PROXY")))
		g.Expect(r.StaticImages).To(HaveKeyWithValue("hosted-cluster-config-operator", "config:1"))
		for name, asked := range map[string]bool{
			"Health": r.Health != nil, "Plugins": r.Plugins != nil, "Shows": r.Shows != nil, "OwnEtcd": r.OwnEtcd != nil, "Clock": r.Clock != nil && r.PKI.Clock != nil,
		} {
			g.Expect(asked).To(BeTrue(), name)
		}
	})
	t.Run("When no option is set, it should run its own image", func(t *testing.T) {
		g := NewWithT(t)
		r, err := started(t, nil).reconciler(managing(t, 36, false))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(r.Components.ConfigOperatorImage).To(Equal("op"))
		g.Expect(r.Infra.HasRoutes).To(BeFalse(), "its cache would wait for ever for a kind that is not there")
		g.Expect(r.PodUID).To(BeNil())
	})
	for minor, want := range map[int]bool{34: false, 35: true, 36: true} {
		t.Run(fmt.Sprintf("When the management cluster is 1.%d it should be known whether Services can prefer a node", minor), func(t *testing.T) {
			g := NewWithT(t)
			r, err := started(t, nil).reconciler(managing(t, minor, false))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(r.Infra.SameNode).To(Equal(want))
		})
	}
	t.Run("When the management cluster does not report its capabilities, it should return an error", func(t *testing.T) {
		g, mgr := NewWithT(t), managing(t, 36, false)
		mgr.mapper = broken{}
		_, err := started(t, nil).reconciler(mgr)
		g.Expect(err).To(MatchError(ContainSubstring("kind Route: connection refused")))
		mgr = managing(t, 36, false)
		gone := httptest.NewServer(http.NotFoundHandler())
		gone.Close()
		mgr.config = &rest.Config{Host: gone.URL}
		_, err = started(t, nil).reconciler(mgr)
		g.Expect(err).To(MatchError(ContainSubstring("connection refused")))
		_, err = started(t, nil, "--registry-overrides=none").reconciler(managing(t, 36, false))
		g.Expect(err).To(MatchError(ContainSubstring("--registry-overrides: ")))
	})
}

// TestWhatNobodyCanAskFor checks that a controller is skipped if its kind is not served: its watch would end the
// operator.
func TestWhatNobodyCanAskFor(t *testing.T) {
	for name, add := range map[string]func(manager.Manager) error{"break-glass certificates": started(t, nil).breakGlass, "backups": started(t, nil).backUp} {
		t.Run("When the management cluster has no kind for "+name+" it should skip them", func(t *testing.T) {
			NewWithT(t).Expect(add(bare{mapper: meta.NewDefaultRESTMapper(nil)})).To(Succeed())
		})
		t.Run("When the management cluster does not answer, "+name+" should not be skipped", func(t *testing.T) {
			NewWithT(t).Expect(add(bare{mapper: broken{}})).To(MatchError(ContainSubstring("connection refused")))
		})
	}
}

func TestCommand(t *testing.T) {
	for _, name := range []string{"MY_NAMESPACE", "CONTROL_PLANE_OPERATOR_IMAGE"} {
		t.Setenv(name, "")
	}
	command := NewCommand()
	command.SetArgs([]string{"--namespace="})
	command.SilenceUsage, command.SilenceErrors = true, true
	g := NewWithT(t)
	g.Expect(command.ExecuteContext(t.Context())).To(MatchError(ContainSubstring("--namespace is missing")))
	command.SetArgs([]string{"unexpected"})
	g.Expect(command.ExecuteContext(t.Context())).NotTo(Succeed())
}
