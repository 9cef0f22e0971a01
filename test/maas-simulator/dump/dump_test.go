// SPDX-License-Identifier: Apache-2.0

package dump_test

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/dump"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// live returns a site that uses the real clock and has objects of many kinds, and its source.
func live(t *testing.T) (*simtest.Site, dump.Source) {
	site := simtest.New(t, simtest.WithVMHost)
	for _, steps := range [][]string{
		{"POST", "dnsresources/", "fqdn", "api.lab.example", "ip_addresses", "10.9.0.50", "address_ttl", "10"},
		{"POST", "dnsresourcerecords/", "fqdn", "txt.lab.example", "rrtype", "TXT", "rrdata", "hi"},
		{"POST", "ipaddresses/?op=reserve", "ip", "10.9.0.99"},
		{"POST", "machines/aaaaa1/?op=deploy"},
		{"POST", "machines/?op=allocate", "name", "two"},
		{"POST", "vm-hosts/7/?op=compose", "hostname", "vm1", "skip_commissioning", "true"},
		{"POST", "maas/?op=set_config", "name", "default_distro_series", "value", "noble"},
	} {
		if answer := site.Do("admin", steps[0], steps[1], steps[2:]...); answer.Code != 200 {
			t.Fatalf("%v: %s", steps, answer.Body)
		}
	}
	site.Settle(time.Hour)
	site.Clock.SetTime(time.Now())
	server := httptest.NewServer(site)
	t.Cleanup(server.Close)
	return site, dump.Source{URL: server.URL + "/MAAS", APIKey: site.Key("admin") + "\n", Timeout: time.Minute, Warn: &bytes.Buffer{}}
}

func TestDump(t *testing.T) {
	g := NewWithT(t)
	site, source := live(t)
	var seed bytes.Buffer
	g.Expect(dump.Dump(t.Context(), source, &seed)).To(Succeed())
	g.Expect(source.Warn.(*bytes.Buffer).String()).To(BeEmpty())
	g.Expect(seed.String()).NotTo(ContainSubstring("power_pass"), "no secrets")

	copied := simtest.New(t, seed.String())
	for _, path := range []string{
		"machines/", "zones/", "resourcepools/", "tags/", "domains/", "dnsresources/", "dnsresourcerecords/", "subnets/", "fabrics/", "spaces/",
		"ipranges/", "ipaddresses/?all=true", "boot-resources/", "vm-hosts/", "users/", "nodes/", "maas/?op=get_config&name=default_distro_series",
		"subnets/1/?op=statistics", "dnsresources/?all=true",
	} {
		want, got := normal(site.Do("admin", "GET", path).Body), normal(copied.Do("admin", "GET", path).Body)
		g.Expect(got).To(MatchJSON(want), path)
	}
	g.Expect(copied.Do("admin", "POST", "machines/?op=allocate", "name", "none-such").Code).To(Equal(200), "a copied VM host composes")
}

// normal removes data that a copy cannot contain: the times of address assignments.
func normal(body string) string {
	var v any
	if json.Unmarshal([]byte(body), &v) != nil {
		return body
	}
	drop(v)
	out, _ := json.Marshal(v)
	return string(out)
}

func drop(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "created")
		for _, each := range v {
			drop(each)
		}
	case []any:
		for _, each := range v {
			drop(each)
		}
	}
}

func TestDumpTrouble(t *testing.T) {
	t.Run("When the user may not read something, it should be omitted with a warning", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.Rack, func(o *simulator.Options) { o.Version = "main" })
		site.Clock.SetTime(time.Now())
		server := httptest.NewServer(site)
		defer server.Close()
		warnings := &bytes.Buffer{}
		var seed bytes.Buffer
		g.Expect(dump.Dump(t.Context(), dump.Source{URL: server.URL + "/MAAS/", APIKey: site.Key("alice"), Timeout: time.Minute, Warn: warnings}, &seed)).To(Succeed())
		g.Expect(warnings.String()).To(And(ContainSubstring("left out vm_hosts: reading vm-hosts/: MAAS says 410"), ContainSubstring("left out ipaddresses")))
		g.Expect(seed.String()).To(ContainSubstring(`"machines"`))
	})
	t.Run("When the key is wrong, the error should say so", func(t *testing.T) {
		g := NewWithT(t)
		_, source := live(t)
		source.APIKey = "a:b:c"
		g.Expect(dump.Dump(t.Context(), source, &bytes.Buffer{})).To(MatchError(ContainSubstring("reading machines/: MAAS says 401")))
		source.APIKey = "a"
		g.Expect(dump.Dump(t.Context(), source, &bytes.Buffer{})).To(MatchError(ContainSubstring("consumer:token:secret")))
	})
	t.Run("When the server does not answer, it should return an error", func(t *testing.T) {
		err := dump.Dump(t.Context(), dump.Source{URL: "http://127.0.0.1:1/MAAS", APIKey: "a:b:c", Timeout: time.Second, Warn: &bytes.Buffer{}}, &bytes.Buffer{})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("reading machines/")))
	})
}
