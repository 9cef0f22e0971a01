// SPDX-License-Identifier: Apache-2.0

package maas_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/metrics/metricstest"
)

// operationOf returns the name of a request in metrics: the kind of object, and MAAS's name of the operation, or the
// verb.
func operationOf(request string) string {
	method, rest, _ := strings.Cut(request, " ")
	rest, _, _ = strings.Cut(rest, " ")
	path, op, _ := strings.Cut(rest, "?op=")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "nodes" {
		parts = parts[2:]
	}
	if op == "" {
		op = map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodDelete: "delete", http.MethodGet: "get"}[method]
		if op == "get" && len(parts) == 1 {
			op = "list"
		}
	}
	return parts[0] + "." + op
}

// TestOperations checks that metrics have the operation of each request, and that errors name the object.
func TestOperations(t *testing.T) {
	for request, call := range requests() {
		t.Run("When MAAS refuses "+request+", it should name the operation and the object", func(t *testing.T) {
			g := NewWithT(t)
			var calls atomic.Int32
			counted := maas.NewMetrics(prometheus.NewRegistry())
			c := newClient(t, maas.Config{Endpoint: answers(t, &calls, says(409, "text/plain", "No.")), Metrics: counted})
			err := call(t.Context(), c)
			g.Expect(maas.IsConflict(err)).To(BeTrue(), "%v", err)
			g.Expect(err.Error()).To(MatchRegexp(`^cannot [a-z].*: No\. \(HTTP 409\)$`))
			g.Expect(metricstest.Of(t, counted.Collectors()...)).To(HaveKeyWithValue(
				`maas_client_request_duration_seconds_count{code="409",operation="`+operationOf(request)+`"}`, 1.0))
			for _, named := range objectsOf(request) {
				g.Expect(strings.Fields(strings.TrimSuffix(err.Error(), ": No. (HTTP 409)"))).To(ContainElement(named))
			}
		})
	}
}

// objectsOf returns the object ID in the path of a request, which is its second part. For an interface, it is the
// machine's ID.
func objectsOf(request string) []string {
	path, _, _ := strings.Cut(strings.Split(request, " ")[1], "?")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) < 2 {
		return nil
	}
	id, err := url.PathUnescape(parts[1])
	if err != nil {
		return nil
	}
	return []string{id}
}

func TestObjectsWithoutIDAreNamed(t *testing.T) {
	for request, want := range map[string]string{
		"POST tags/ name=t&comment=why":                            "cannot create tag t: ",
		"POST dnsresources/ fqdn=a.b&address_ttl=10&ip_addresses=": "cannot create DNS resource a.b: ",
		"POST vm-hosts/ type=lxd&name=n":                           "cannot register VM host n: ",
		"POST ipaddresses/?op=reserve subnet=s&ip=i&hostname=h":    "cannot reserve IP address i in s: ",
		"POST ipaddresses/?op=release ip=i":                        "cannot release IP address i: ",
		"GET maas/?op=get_config name=x":                           "cannot read setting x: ",
		"POST machines/w/?op=mark_broken comment=fan":              "cannot mark as broken machine w: ",
		"POST machines/w/?op=power_on comment=c":                   "cannot power on machine w: ",
	} {
		t.Run("When MAAS refuses "+request+", it should name the object", func(t *testing.T) {
			var calls atomic.Int32
			c := newClient(t, maas.Config{Endpoint: answers(t, &calls, says(409, "text/plain", "No."))})
			NewWithT(t).Expect(requests()[request](t.Context(), c)).To(MatchError(HavePrefix(want)))
		})
	}
}
