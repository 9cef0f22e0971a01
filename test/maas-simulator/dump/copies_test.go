// SPDX-License-Identifier: Apache-2.0

package dump_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/dump"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// staffed is a seed with objects that simtest's other seeds lack: controllers, devices, spaces without VLANs and users.
const staffed = `{"users": [{"username": "carol", "email": "carol@lab.example", "is_superuser": true, "is_local": false}],
 "spaces": [{"id": 4, "name": "empty", "description": "d"}], "fabrics": [{"id": 3, "name": "spare", "class_type": "10g"}],
 "subnets": [{"id": 9, "name": "lone", "cidr": "10.3.0.0/24", "vlan": {"id": 8, "vid": 12, "fabric_id": 3, "space": "empty"}}],
 "resourcepools": [{"id": 6, "name": "p6", "description": "six"}],
 "rackcontrollers": [{"system_id": "rrrrr1", "hostname": "rack", "description": "r", "version": "3.4.9"}],
 "regioncontrollers": [{"system_id": "ggggg1", "hostname": "region1"}],
 "devices": [{"system_id": "ddddd1", "hostname": "printer"}],
 "config": {"default_distro_series": "jammy", "node_timeout": 77, "enable_disk_erasing_on_release": true},
 "boot_resources": [{"id": 5, "type": "Synced", "name": "ubuntu/jammy", "architecture": "amd64/ga-22.04"}], "machines": [{"system_id": "aaaaa1", "hostname": "one"}]}`

// source serves a site that uses the real clock, and returns it as a source with the output of its warnings.
func source(t *testing.T, handler http.Handler, key string) (dump.Source, *bytes.Buffer) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	warnings := &bytes.Buffer{}
	return dump.Source{URL: server.URL + "/MAAS/", APIKey: key, Timeout: time.Minute, Warn: warnings}, warnings
}

// TestEveryList verifies that a copy contains all lists of the site, including controllers and settings, and responds
// like the site.
func TestEveryList(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, staffed)
	site.Clock.SetTime(time.Now())
	from, warnings := source(t, site, site.Key("admin"))
	var seed bytes.Buffer
	g.Expect(dump.Dump(t.Context(), from, &seed)).To(Succeed())
	g.Expect(warnings.String()).To(BeEmpty())
	copied := simtest.New(t, seed.String())
	for _, path := range []string{
		"users/", "spaces/", "fabrics/", "subnets/", "resourcepools/", "rackcontrollers/", "regioncontrollers/", "devices/", "nodes/", "vlans/8/",
		"maas/?op=get_config&name=default_distro_series", "maas/?op=get_config&name=commissioning_distro_series", "maas/?op=get_config&name=node_timeout",
		"maas/?op=get_config&name=enable_disk_erasing_on_release",
	} {
		want := site.Do("admin", "GET", path)
		g.Expect(want.Code).To(Equal(200), path)
		g.Expect(copied.Do("admin", "GET", path).Body).To(MatchJSON(want.Body), path)
	}
	g.Expect(seed.String()).To(HavePrefix("{\n \""), "people read it, and edit it")
	for _, key := range []string{site.Key("admin"), site.Key("alice")} {
		g.Expect(seed.String()).NotTo(ContainSubstring(strings.Split(key, ":")[2]))
	}
}

// answering returns the site's handler, except that `instead` serves the requests whose path begins with path.
func answering(site *simtest.Site, path string, instead http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.RequestURI(), "/MAAS/api/2.0/"+path) {
			instead(w, r)
			return
		}
		site.ServeHTTP(w, r)
	})
}

// TestListsThatFail verifies that lists that cannot be read are reported and omitted. Without the machines, Dump fails.
func TestListsThatFail(t *testing.T) {
	broken := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }
	short := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = w.Write([]byte("half"))
	}
	long := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(" " + strings.Repeat("x", 500)))
	}
	tests := map[string]struct {
		path    string
		instead http.HandlerFunc
		warns   string
		fails   string
	}{
		"a list that is not JSON":                {"zones/", broken, "left out zones: decoding zones/: invalid character '<'", ""},
		"an error response that is cut off":      {"tags/", short, "left out tags: reading tags/: unexpected EOF", ""},
		"a long error response":                  {"users/", long, "left out users: reading users/: MAAS says 500 Internal Server Error: " + strings.Repeat("x", 199) + "\n", ""},
		"a setting":                              {"maas/?op=get_config&name=node_timeout", broken, "left out setting node_timeout: decoding maas/?op=get_config&name=node_timeout", ""},
		"the list of machines":                   {"machines/", broken, "", "decoding machines/: invalid character '<'"},
		"the list of machines with a long error": {"machines/", long, "", "reading machines/: MAAS says 500 Internal Server Error: x"},
		"the list of machines cut off":           {"machines/", short, "", "reading machines/: unexpected EOF"},
	}
	for name, test := range tests {
		t.Run("When the broken response is "+name+", an error or a warning should name it", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, staffed)
			site.Clock.SetTime(time.Now())
			from, warnings := source(t, answering(site, test.path, test.instead), site.Key("admin"))
			var out bytes.Buffer
			err := dump.Dump(t.Context(), from, &out)
			if test.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.fails)))
				g.Expect(out.String()).To(BeEmpty(), "half a site is none")
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(warnings.String()).To(ContainSubstring(test.warns))
			g.Expect(strings.Count(warnings.String(), "\n")).To(Equal(1), "all else is there")
			var seed map[string]any
			g.Expect(json.Unmarshal(out.Bytes(), &seed)).To(Succeed())
			g.Expect(seed).NotTo(HaveKey(strings.TrimSuffix(test.path, "/")))
			g.Expect(seed["config"]).To(HaveKey("default_distro_series"))
			_, kept := seed["config"].(map[string]any)["node_timeout"]
			g.Expect(kept).To(Equal(!strings.HasSuffix(test.path, "node_timeout")))
		})
	}
}

// full is a file on a full disk.
type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWhereItCannotBeWritten(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, staffed, func(o *simulator.Options) { o.Version = "3.6" })
	site.Clock.SetTime(time.Now())
	from, _ := source(t, site, site.Key("admin"))
	g.Expect(dump.Dump(t.Context(), from, full{})).To(MatchError(errFull))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(dump.Dump(ended, from, &bytes.Buffer{})).To(MatchError(context.Canceled))
	from.URL = "http://[::1"
	g.Expect(dump.Dump(t.Context(), from, &bytes.Buffer{})).To(MatchError(ContainSubstring("reading machines/")))
	for _, key := range []string{"", "a:b", "a:b:c:d"} {
		from.APIKey = key
		g.Expect(dump.Dump(t.Context(), from, &bytes.Buffer{})).To(MatchError(ContainSubstring("consumer:token:secret")))
	}
}
