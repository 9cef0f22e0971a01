// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/addressguard"
	"github.com/openshift/hypershift/support/kubeconfig"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/managementnetwork"
	"github.com/openshift/hypershift/support/objectstore"
)

// callers returns the programs that call a server which a tenant names, each as its pod sets it up. NetworkPolicies and
// not this guard restrict the API server of a control plane, which calls webhooks and issuers.
func callers(t *testing.T) map[string]func(endpoint string) error {
	t.Helper()
	guard, err := addressguard.New("", "")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return map[string]func(string) error{
		"the object store of backups": func(endpoint string) error {
			store, err := storage(t, endpoint, storeKeys)
			if err != nil {
				return err
			}
			return store.Put(ctx, "clusters-demo/x", strings.NewReader("backup"))
		},
		"MAAS": func(endpoint string) error {
			guard, err := maas.NewGuard("", "")
			if err != nil {
				return err
			}
			c, err := maas.NewClient(maas.Config{Endpoint: endpoint, APIKey: "a:b:c", Guard: guard,
				Retry: maas.RetryPolicy{Attempts: -1}})
			if err != nil {
				return err
			}
			_, err = c.WhoAmI(ctx)
			return err
		},
		"the cluster for virtual machines": func(endpoint string) error {
			access := &kubeconfig.Access{Server: endpoint, Token: "t"}
			config, err := access.Config(kubeconfig.Options{Guard: guard})
			if err != nil {
				return err
			}
			caller, err := rest.HTTPClientFor(config)
			if err != nil {
				return err
			}
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
			if err != nil {
				return err
			}
			response, err := caller.Do(request)
			if err == nil {
				err = response.Body.Close()
			}
			return err
		},
	}
}

// TestAddressesOfATenant checks every client whose server a tenant names against every kind of address that a tenant
// cannot reach. Names are checked when they are resolved for a connection, so that a name which resolves to another
// address later gains nothing.
func TestAddressesOfATenant(t *testing.T) {
	url, reached := inner(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	file := filepath.Join(t.TempDir(), managementnetwork.Key)
	stored := &corev1.ConfigMap{}
	g := NewWithT(t)
	g.Expect(managementnetwork.Write(&managementnetwork.Addresses{
		API: []netip.AddrPort{netip.MustParseAddrPort("198.51.100.1:6443")}, APIPorts: []uint16{6443},
		Nodes:    []netip.Addr{netip.MustParseAddr("198.51.100.20"), netip.MustParseAddr("2001:db8::20")},
		Pods:     []netip.Prefix{netip.MustParsePrefix("10.244.0.0/24")},
		Services: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
	}, stored)).To(Succeed())
	g.Expect(os.WriteFile(file, []byte(stored.Data[managementnetwork.Key]), 0o600)).To(Succeed())
	t.Setenv(addressguard.EnvFile, file)
	t.Setenv("KUBERNETES_SERVICE_HOST", "172.30.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	for name, endpoint := range map[string]string{
		"loopback":                       url,
		"a loopback name":                strings.Replace(url, "127.0.0.1", "localhost", 1),
		"loopback, mapped into IPv6":     strings.Replace(url, "127.0.0.1", "[::ffff:127.0.0.1]", 1),
		"this host":                      strings.Replace(url, "127.0.0.1", "0.0.0.0", 1),
		"a metadata service":             "http://169.254.169.254",
		"a metadata service over IPv6":   "http://[fd00:ec2::254]",
		"the API server by its Service":  "https://172.30.0.1",
		"the API server by its endpoint": "https://198.51.100.1:6443",
		"the API port on a node":         "https://198.51.100.20:6443",
		"a kubelet":                      "https://198.51.100.20:10250",
		"etcd, by IPv6":                  "https://[2001:db8::20]:2379",
		"a pod":                          "http://10.244.0.9:8080",
		"a Service":                      "http://10.96.7.7",
	} {
		for caller, call := range callers(t) {
			t.Run(caller+" at "+name, func(t *testing.T) {
				NewWithT(t).Expect(call(endpoint)).To(MatchError(ContainSubstring("blocked by the address policy")))
			})
		}
	}
	t.Run("blocks every call when the addresses cannot be read", func(t *testing.T) {
		t.Setenv(addressguard.EnvFile, file+".missing")
		for _, call := range callers(t) {
			NewWithT(t).Expect(call("https://203.0.113.1")).To(MatchError(ContainSubstring("blocked by the address policy")))
		}
	})
	g.Expect(reached.Load()).To(BeZero())
}

// TestObjectStoreInsideTheManagementNetwork checks the ranges of the administrator, and the node of the backup pod.
func TestObjectStoreInsideTheManagementNetwork(t *testing.T) {
	url, reached := inner(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	t.Setenv(objectstore.EnvRefuseCIDRs, "10.0.0.0/8")
	t.Setenv(objectstore.EnvHostIP, "192.0.2.7")
	put := func(g *WithT, endpoint string) error {
		store, err := storage(t, endpoint, storeKeys)
		g.Expect(err).NotTo(HaveOccurred())
		return store.Put(t.Context(), "clusters-demo/x", strings.NewReader("backup"))
	}
	for _, endpoint := range []string{"https://10.1.2.3", "https://192.0.2.7:6443"} {
		t.Run("does not call "+endpoint, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(put(g, endpoint)).To(MatchError(And(ContainSubstring("blocked by the address policy"),
				ContainSubstring("--object-store-allow-cidrs"))))
		})
	}
	t.Run("calls an address that an administrator allows", func(t *testing.T) {
		t.Setenv(objectstore.EnvAllowCIDRs, "127.0.0.0/8")
		g := NewWithT(t)
		g.Expect(put(g, url)).NotTo(Succeed())
		g.Expect(reached.Load()).NotTo(BeZero())
	})
}

// TestProgramsKnowTheManagementNetwork checks that the operator passes the addresses of the management cluster to the
// programs of a hosted namespace, which may not read nodes.
func TestProgramsKnowTheManagementNetwork(t *testing.T) {
	o := newOperator(t, "knows-network")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "knows-network"}, Spec: corev1.NodeSpec{
		PodCIDR: "10.201.0.0/24", PodCIDRs: []string{"10.201.0.0/24"}}}
	o.Expect(o.client.Create(t.Context(), node)).To(Succeed())
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.77"}}
	o.Expect(o.client.Status().Update(t.Context(), node)).To(Succeed())
	hc := fixture.HostedCluster(o.tenant)
	fixture.Create(t, o.client, append(fixture.Inputs(o.tenant), hc)...)
	cluster, _ := o.pass()
	o.Expect(cluster).NotTo(HaveOccurred())
	known, err := managementnetwork.Stored(t.Context(), o.client, o.hosted())
	o.Expect(err).NotTo(HaveOccurred())
	api, port := o.api()
	for _, at := range []netip.AddrPort{
		netip.MustParseAddrPort("10.201.0.7:80"), netip.MustParseAddrPort("192.0.2.77:10250"),
		netip.AddrPortFrom(netip.MustParseAddr(api), uint16(port)),
	} {
		o.Expect(known.Contains(at)).To(BeTrue(), at.String())
	}
	provider := o.pods()[platform.ProviderName]
	o.Expect(provider.Spec.Containers[0].Env).To(ContainElement(HaveField("Name", addressguard.EnvFile)))
	o.Expect(provider.Spec.Volumes).To(ContainElement(HaveField("ConfigMap.Name", managementnetwork.ConfigMap)))
}
