// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// whoami sends a request with a key of the form consumer:token:secret.
func whoami(site *simtest.Site, key string) simtest.Answer {
	r := httptest.NewRequest("GET", "/MAAS/api/2.0/users/?op=whoami", nil)
	r.Header.Set("Authorization", site.Authorization(key))
	return site.Send(r)
}

// TestKeys verifies that a user may have several keys, each valid until it is deleted.
func TestKeys(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	first := site.Key("alice")
	made := site.Do("alice", "POST", "account/?op=create_authorisation_token").Object()
	g.Expect(made).To(HaveKeyWithValue("name", "MAAS consumer"))
	second := fmt.Sprintf("%s:%s:%s", made["consumer_key"], made["token_key"], made["token_secret"])
	for _, key := range []string{first, second} {
		g.Expect(whoami(site, key).Object()).To(HaveKeyWithValue("username", "alice"))
	}
	token := fmt.Sprint(made["token_key"])
	story(t, site,
		ask("alice", "POST account/?op=update_token_name", "token", second, "name", "laptop").is(202, "Accepted"),
		ask("alice", "GET account/?op=list_authorisation_tokens").with("name=MAAS consumer laptop", "token="+first+" "+second),
		ask("alice", "POST account/?op=update_token_name", "token", token, "name", "desktop").is(202, "Accepted"),
		ask("alice", "GET account/?op=list_authorisation_tokens").with("name=MAAS consumer desktop"),
		ask("alice", "POST account/?op=update_token_name", "token", "a:b:c", "name", "x").is(404, "No Token matches the given query."),
		ask("bob", "POST account/?op=update_token_name", "token", token, "name", "x").is(404, ""),
		ask("bob", "POST account/?op=delete_authorisation_token", "token_key", token).is(204, ""),
		ask("alice", "POST account/?op=delete_authorisation_token").is(400, "No provided token_key!"),
	)
	g.Expect(whoami(site, second).Code).To(Equal(200), "nobody takes another's key")
	story(t, site, ask("alice", "POST account/?op=delete_authorisation_token", "token_key", token).is(204, ""))
	g.Expect(whoami(site, second).Code).To(Equal(401))
	g.Expect(whoami(site, first).Code).To(Equal(200))
	g.Expect(site.Key("alice")).To(Equal(first))
}

func TestUserForms(t *testing.T) {
	form := func(name, super string) []string {
		return []string{"username", name, "email", "c@example.com", "password", "x", "is_superuser", super}
	}
	site := simtest.New(t, simtest.Rack)
	story(t, site,
		ask("admin", "POST users/", form("no spaces", "0")...).is(400, `{"username": ["Enter a valid username."]}`),
		ask("admin", "POST users/", form("", "0")...).is(400, `{"username": ["Enter a valid username."]}`),
		ask("admin", "POST users/", form("alice", "0")...).is(400, `{"username": ["A user with that username already exists."]}`),
		ask("admin", "POST users/", form("c.a+r-o@l_", "1")...).with("is_superuser=true", "is_local=true", "email=c@example.com"),
		ask("c.a+r-o@l_", "POST zones/", "name", "hers").with("name=hers"),
		ask("alice", "GET users/c.a+r-o@l_/").with("username=c.a+r-o@l_"),
		ask("admin", "DELETE users/admin/").is(400, "An administrator cannot delete their own account."),
		ask("admin", "GET users/").with("username=admin alice bob c.a+r-o@l_"),
	)
	key := site.Key("c.a+r-o@l_")
	story(t, site, ask("admin", "DELETE users/c.a+r-o@l_/").is(204, ""))
	NewWithT(t).Expect(whoami(site, key).Code).To(Equal(401), "a key goes with its user")
}

func TestSSHKeys(t *testing.T) {
	const unknown = "No SSHKey matches the given query."
	site := simtest.New(t, simtest.Rack)
	story(t, site,
		ask("alice", "POST account/prefs/sshkeys/").is(400, `{"key": ["This field is required."]}`),
		ask("alice", "POST account/prefs/sshkeys/", "key", "  ").is(400, `{"key": ["This field is required."]}`),
		ask("alice", "POST account/prefs/sshkeys/", "key", " ecdsa-sha2-nistp256 AAAA me\n").is(201, "").with("id=1", "key=ecdsa-sha2-nistp256 AAAA me", "keysource=<nil>"),
		ask("alice", "POST account/prefs/sshkeys/", "key", "ssh-rsa BBBB me").is(201, "").with("id=2", "resource_uri=/MAAS/api/2.0/account/prefs/sshkeys/2/"),
		ask("bob", "POST account/prefs/sshkeys/", "key", "ssh-rsa BBBB me").is(201, "").with("id=3"),
		ask("alice", "GET account/prefs/sshkeys/").with("id=1 2"),
		ask("alice", "GET account/prefs/sshkeys/3/").is(404, unknown),
		ask("alice", "DELETE account/prefs/sshkeys/3/").is(404, unknown),
		ask("alice", "GET account/prefs/sshkeys/x/").is(404, unknown),
		ask("alice", "DELETE account/prefs/sshkeys/1/").is(204, ""),
		ask("alice", "GET account/prefs/sshkeys/").with("key=ssh-rsa BBBB me"),
		ask("bob", "GET account/prefs/sshkeys/").with("id=3"),
	)
}

// TestSettings verifies that a value has the type of its setting.
func TestSettings(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	set := func(name, value string) step {
		return ask("admin", "POST maas/?op=set_config", "name", name, "value", value)
	}
	get := func(name string) step { return ask("alice", "GET maas/?op=get_config&name="+name) }
	story(t, site,
		get("enable_disk_erasing_on_release").is(200, "false"), get("maas_name").is(200, `"maas"`), get("upstream_dns").is(200, `""`),
		ask("alice", "GET maas/?op=get_config&name=").is(400, ""),
		ask("admin", "POST maas/?op=set_config", "value", "1").is(400, "No provided name!"),
		set("nope", "1").is(400, ""),
		set("maas_name", "prod").is(200, "OK"), get("maas_name").is(200, `"prod"`),
		set("maas_name", "").is(200, "OK"), get("maas_name").is(200, `""`),
		set("http_proxy", "1").is(200, "OK"), get("http_proxy").is(200, `"1"`),
		set("node_timeout", "-1").is(200, "OK"), get("node_timeout").is(200, "-1"),
		set("node_timeout", "1.5").is(400, `{"node_timeout": ["Enter a whole number."]}`), get("node_timeout").is(200, "-1"),
	)
	for word, want := range map[string]string{"true": "true", "True": "true", "on": "true", "1": "true", "false": "false", "off": "false", "0": "false", "": "false"} {
		story(t, site, set("enable_http_proxy", word).is(200, "OK"), get("enable_http_proxy").is(200, want))
	}
}

// TestNamesOfPlaces verifies the valid names of zones, pools and tags. Hosts and machines follow a renamed zone or
// pool; a host of a deleted pool gets the default pool.
func TestNamesOfPlaces(t *testing.T) {
	site := simtest.New(t, simtest.WithVMHost)
	story(t, site,
		ask("admin", "POST resourcepools/", "name", "two words").with("name=two words", "id=2"),
		ask("admin", "POST resourcepools/", "name", "-x").is(400, `{"name": ["Enter a valid value."]}`),
		ask("admin", "POST resourcepools/").is(400, `{"name": ["This field is required."]}`),
		ask("admin", "PUT resourcepool/2/", "name", "blue").is(400, `{"name": ["Resource pool with this Name already exists."]}`),
		ask("admin", "PUT resourcepool/blue/", "name", "green").with("name=green", "id=1"),
		ask("alice", "GET machines/aaaaa2/").with("pool.name=green"),
		ask("alice", "GET resourcepool/blue/").is(404, "No ResourcePool matches the given query."),
		ask("admin", "PUT machines/aaaaa2/", "pool", "default"),
		ask("admin", "PUT machines/aaaaa3/", "pool", "default"),
		ask("admin", "DELETE resourcepool/green/").is(204, ""),
		ask("admin", "GET vm-hosts/7/").with("pool.name=default"),
		ask("admin", "PUT zones/north/", "name", "").is(400, `{"name": ["This field is required."]}`),
		ask("admin", "PUT zones/north/", "name", "arctic").with("name=arctic", "description=cold", "resource_uri=/MAAS/api/2.0/zones/arctic/"),
		ask("alice", "GET machines/?zone=arctic").with("hostname=two three", "zone.name=arctic arctic"),
		ask("admin", "PUT zones/default/", "description", "first").with("id=1", "name=default"),
		ask("alice", "GET zones/nowhere/").is(404, "No Zone matches the given query."),
		ask("admin", "PUT tags/gpu/", "name", "gfx").with("name=gfx", "comment=has a GPU"),
		ask("alice", "GET tags/").with("name=fast gfx"),
		ask("alice", "GET tags/gpu/").is(404, "No Tag matches the given query."),
		ask("alice", "GET machines/?tags=gfx").with("hostname=three five"),
		ask("admin", "PUT tags/gfx/", "name", "gfx", "kernel_opts", "quiet").with("kernel_opts=quiet", "comment=has a GPU"),
		ask("alice", "POST tags/gfx/?op=rebuild").is(403, ""),
		ask("alice", "GET tags/gfx/?op=rack_controllers").is(200, "[]"),
		ask("admin", "POST tags/gfx/?op=update_nodes", "add", "aaaaa3", "remove", "aaaaa1").is(200, `{"added":1,"removed":1}`),
		ask("alice", "GET tags/gfx/?op=machines").with("hostname=three five"),
	)
	for expression, taken := range map[string]bool{
		`//node[@id="a'b"]`: true, `//node[contains(@x, ')')]`: true, `//node(`: false, `//node]`: false, `//node["`: false, `//node/`: false, `//[`: false,
		`a[b(c])`: false, "": true, `count(//node) > 2`: true,
	} {
		code := map[bool]int{true: 200, false: 400}[taken]
		story(t, site, ask("admin", "PUT tags/gfx/", "definition", expression).is(code, ""))
	}
}
