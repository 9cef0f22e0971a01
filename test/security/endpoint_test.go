// SPDX-License-Identifier: Apache-2.0

package security

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform/maas"
	maasapi "github.com/openshift/hypershift/support/maas"
)

// loot is a response of a service in the management network that no tenant may read.
const loot = "s3cret-of-the-management-network"

// inner starts a service of the management network, here on loopback, that counts requests.
func inner(t *testing.T, answer http.HandlerFunc) (url string, reached *atomic.Int32) {
	t.Helper()
	reached = &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, reached
}

// pointAt creates a tenant's cluster whose credentials point to a URL, and returns the resulting status.
func (o *operator) pointAt(endpoint string, guard *maasapi.Guard) (status string) {
	o.t.Helper()
	o.clusters.Platforms = fixture.PlatformsWith(&maas.Options{Guard: guard, Clock: o.clusters.Clock})
	inputs := fixture.Inputs(o.tenant)
	for _, obj := range inputs {
		if secret, ok := obj.(*corev1.Secret); ok && secret.Name == fixture.Credentials {
			secret.Data["MAAS_ENDPOINT"] = []byte(endpoint)
		}
	}
	fixture.Create(o.t, o.client, append(inputs, fixture.HostedCluster(o.tenant))...)
	o.pass()
	hc := &hyperv1.HostedCluster{}
	o.Expect(o.client.Get(o.t.Context(), client.ObjectKey{Namespace: o.tenant, Name: fixture.ClusterName}, hc)).To(Succeed())
	return fmt.Sprint(hc.Status)
}

func TestEndpointInsideTheManagementNetwork(t *testing.T) {
	url, reached := inner(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, loot) })
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for tenant, endpoint := range map[string]string{
		"ssrf-loopback": url, "ssrf-name": "http://localhost:" + port, "ssrf-mapped": "http://[::ffff:127.0.0.1]:" + port,
		"ssrf-metadata": "http://169.254.169.254/latest", "ssrf-any": "http://0.0.0.0:" + port,
	} {
		t.Run("When a tenant points at "+endpoint+", it should not be called, nor handed to the provider", func(t *testing.T) {
			o := newOperator(t, tenant)
			o.pointAt(endpoint, nil)
			o.Expect(o.condition(hyperv1.PlatformCredentialsFound).Message).To(ContainSubstring("blocked by the address policy"))
			o.Expect(reached.Load()).To(BeZero())
			err := o.client.Get(t.Context(), fixture.CredentialsCopy(o.tenant), &corev1.Secret{})
			o.Expect(apierrors.IsNotFound(err)).To(BeTrue())
		})
	}
}

func TestAnswersOfOthers(t *testing.T) {
	elsewhere, reached := inner(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, loot) })
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	go func() {
		for {
			connection, err := raw.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(connection, loot+"\r\n\r\n")
			connection.Close()
		}
	}()
	says := func(status int, body string) string {
		url, _ := inner(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", elsewhere)
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		})
		return url
	}
	allowed := &maasapi.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	for tenant, endpoint := range map[string]string{
		"echo-ok": says(200, loot), "echo-json": says(200, `{"`+loot+`": 1}`), "echo-redirect": says(307, loot), "echo-not-found": says(404, loot),
		"echo-unauthorized": says(401, loot), "echo-forbidden": says(403, loot), "echo-error": says(500, loot), "echo-raw": "http://" + raw.Addr().String(),
	} {
		t.Run("When "+tenant+" points at what is no MAAS, no word of its answer should be told", func(t *testing.T) {
			o := newOperator(t, tenant)
			o.Expect(o.pointAt(endpoint, allowed)).NotTo(ContainSubstring("s3cret"))
			o.Expect(o.condition(hyperv1.PlatformCredentialsFound)).NotTo(HaveField("Status", BeEquivalentTo("True")))
		})
	}
	NewWithT(t).Expect(reached.Load()).To(BeZero(), "a redirect was followed")
}

func TestManyEndpoints(t *testing.T) {
	t.Run("When a tenant keeps changing the endpoint, the operator should limit the rate of its calls", func(t *testing.T) {
		url, reached := inner(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
		o := newOperator(t, "scanner")
		o.pointAt(url, &maasapi.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
		for i := range 15 {
			secret := &corev1.Secret{}
			o.Expect(o.client.Get(t.Context(), client.ObjectKey{Namespace: o.tenant, Name: fixture.Credentials}, secret)).To(Succeed())
			secret.Data["MAAS_ENDPOINT"] = fmt.Appendf(nil, "%s/%d", url, i)
			o.Expect(o.client.Update(t.Context(), secret)).To(Succeed())
			o.pass()
		}
		o.Expect(reached.Load()).To(BeNumerically("==", 10))
	})
}
