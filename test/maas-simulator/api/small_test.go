// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

const adminOnly = "This method is reserved for admin users."

func TestZonesAndPools(t *testing.T) {
	site := simtest.New(t, simtest.WithVMHost)
	story(t, site,
		ask("alice", "GET zones/").with("name=default north south"),
		ask("alice", "GET zones/north/").is(200, `{"description":"cold","id":2,"name":"north","resource_uri":"/MAAS/api/2.0/zones/north/"}`),
		ask("", "GET zones/").is(401, "Forbidden"),
		ask("alice", "POST zones/", "name", "x").is(403, adminOnly),
		ask("admin", "POST zones/", "name", "west", "description", "d").with("id=4", "name=west"),
		ask("admin", "POST zones/", "name", "west").is(400, `{"name": ["Physical zone with this Name already exists."]}`),
		ask("admin", "POST zones/").is(400, `{"name": ["This field is required."]}`),
		ask("admin", "POST zones/", "name", "no way").is(400, `{"name": ["Enter a valid value."]}`),
		ask("admin", "PUT zones/west/", "name", "north").is(400, `{"name": ["Physical zone with this Name already exists."]}`),
		ask("admin", "PUT zones/west/", "name", "west", "description", "e").with("description=e"),
		ask("alice", "PUT zones/west/", "name", "x").is(403, adminOnly),
		ask("admin", "PUT zones/nowhere/", "name", "x").is(404, "No Zone matches the given query."),
		ask("admin", "DELETE zones/west/").is(204, ""),
		ask("admin", "DELETE zones/west/").is(204, ""),
		ask("admin", "DELETE zones/default/").is(400, "This zone is the default zone, it cannot be deleted."),
		ask("alice", "DELETE zones/north/").is(403, adminOnly),
		ask("admin", "DELETE zones/north/").is(204, ""),
		ask("admin", "GET machines/aaaaa2/").with("zone.name=default"),
		ask("admin", "GET vm-hosts/7/").with("zone.name=default"),

		ask("alice", "GET resourcepools/").with("name=default blue"),
		ask("alice", "GET resourcepool/blue/").with("id=1", "resource_uri=/MAAS/api/2.0/resourcepool/1/"),
		ask("alice", "GET resourcepools/0/").is(404, "Unknown API endpoint: /MAAS/api/2.0/resourcepools/0/."),
		ask("alice", "POST resourcepools/", "name", "x").is(403, ""),
		ask("admin", "POST resourcepools/", "name", "red").with("id=2"),
		ask("admin", "POST resourcepools/", "name", "red").is(400, `{"name": ["Resource pool with this Name already exists."]}`),
		ask("admin", "PUT resourcepool/2/", "description", "hot").with("name=red", "description=hot"),
		ask("alice", "PUT resourcepool/2/").is(403, ""),
		ask("alice", "DELETE resourcepool/2/").is(403, ""),
		ask("admin", "DELETE resourcepool/2/").is(204, ""),
		ask("admin", "DELETE resourcepool/2/").is(404, "No ResourcePool matches the given query."),
		ask("admin", "PUT resourcepool/2/").is(404, "No ResourcePool matches the given query."),
		ask("admin", "DELETE resourcepool/0/").is(400, "This is the default pool, it cannot be deleted."),
		ask("admin", "DELETE resourcepool/blue/").is(400, "Pool has machines in it, it cannot be deleted."),
	)
}

func TestTags(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	story(t, site,
		ask("alice", "GET tags/").with("name=fast gpu"),
		ask("alice", "GET tags/gpu/").with("comment=has a GPU", "definition="),
		ask("alice", "GET tags/x/").is(404, "No Tag matches the given query."),
		ask("alice", "POST tags/", "name", "x").is(403, ""),
		ask("admin", "POST tags/", "name", "new", "comment", "c", "kernel_opts", "quiet").with("name=new", "kernel_opts=quiet"),
		ask("admin", "POST tags/", "name", "new").is(400, `{"name": ["Tag with this Name already exists."]}`),
		ask("admin", "POST tags/", "name", "a b").is(400, `{"name": ["Enter a valid value."]}`),
		ask("admin", "POST tags/", "name", "x1", "definition", "//node[@id='a']").with("definition=//node[@id='a']"),
		ask("admin", "POST tags/", "name", "x2", "definition", "//[").is(400, `{"definition": ["Invalid xpath expression: Invalid expression"]}`),
		ask("admin", "POST tags/", "name", "x3", "definition", "//a)").is(400, `{"definition": ["Invalid xpath expression: Invalid expression"]}`),
		ask("admin", "POST tags/new/?op=update_nodes", "add", "aaaaa1", "add", "aaaaa2", "add", "zzzzzz").is(200, `{"added":2,"removed":0}`),
		ask("alice", "GET tags/new/?op=machines").with("hostname=one two"),
		ask("alice", "GET tags/new/?op=nodes").with("hostname=one two"),
		ask("alice", "GET tags/new/?op=devices").is(200, "[]"),
		ask("admin", "POST tags/new/?op=update_nodes", "remove", "aaaaa1").is(200, `{"added":0,"removed":1}`),
		ask("admin", "POST tags/new/?op=update_nodes", "definition", "x").is(409, "Definition supplied 'x' doesn't match current definition ''"),
		ask("alice", "POST tags/new/?op=update_nodes", "add", "aaaaa1").is(403, "Must be a superuser or supply a rack_controller"),
		ask("admin", "POST tags/new/?op=rebuild").is(200, `{"rebuilding":"new"}`),
		ask("admin", "PUT tags/new/", "name", "newer", "comment", "d").with("name=newer", "comment=d"),
		ask("admin", "PUT tags/newer/", "name", "gpu").is(400, `{"name": ["Tag with this Name already exists."]}`),
		ask("alice", "PUT tags/newer/").is(403, ""),
		ask("admin", "GET machines/aaaaa2/").with("tag_names=[fast newer]"),
		ask("alice", "DELETE tags/newer/").is(403, ""),
		ask("admin", "DELETE tags/newer/").is(204, ""),
		ask("admin", "GET machines/aaaaa2/").with("tag_names=[fast]"),
		ask("admin", "GET tags/newer/").is(404, ""),
	)
}

func TestUsersAndConfig(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEexample someone@example.com"
	story(t, site,
		ask("alice", "GET users/?op=whoami").is(200, `{"email":"alice@example.com","is_local":true,"is_superuser":false,"resource_uri":"/MAAS/api/2.0/users/alice/","username":"alice"}`),
		ask("alice", "GET users/").with("username=admin alice bob"),
		ask("alice", "GET users/nobody/").is(404, "No User matches the given query."),
		ask("alice", "POST users/").is(403, adminOnly),
		ask("admin", "POST users/", "username", "carol").is(400, "No provided email!"),
		ask("admin", "POST users/", "username", "carol", "email", "c@example.com", "password", "x", "is_superuser", "0").with("username=carol", "is_superuser=false"),
		ask("admin", "POST users/", "username", "carol", "email", "c@example.com", "password", "x", "is_superuser", "0").is(400, `{"username": ["A user with that username already exists."]}`),
		ask("carol", "GET users/?op=whoami").with("username=carol"),
		ask("carol", "POST machines/?op=allocate").with("owner=carol"),
		ask("admin", "DELETE users/carol/").is(400, "User carol cannot be deleted: it owns machine one."),
		ask("admin", "DELETE users/bob/").is(204, ""),
		ask("alice", "DELETE users/carol/").is(403, adminOnly),
		ask("alice", "POST account/?op=create_authorisation_token", "name", "ci").with("name=ci"),
		ask("alice", "GET account/?op=list_authorisation_tokens").with("name=MAAS consumer ci"),
		ask("alice", "GET account/prefs/sshkeys/").is(200, "[]"),
		ask("alice", "POST account/prefs/sshkeys/", "key", "rubbish").is(400, `{"key": ["Invalid SSH public key."]}`),
		ask("alice", "POST account/prefs/sshkeys/", "key", key).is(201, "").with("id=1", "key="+key),
		ask("alice", "POST account/prefs/sshkeys/", "key", key).is(400, `{"__all__": ["This key has already been added for this user."]}`),
		ask("alice", "GET account/prefs/sshkeys/1/").with("id=1"),
		ask("alice", "DELETE account/prefs/sshkeys/1/").is(204, ""),
		ask("alice", "DELETE account/prefs/sshkeys/1/").is(404, "No SSHKey matches the given query."),

		ask("alice", "GET maas/?op=get_config&name=default_distro_series").is(200, `"jammy"`),
		ask("alice", "GET maas/?op=get_config&name=node_timeout").is(200, "30"),
		ask("alice", "GET maas/?op=get_config").is(400, "No provided name!"),
		ask("alice", "POST maas/?op=set_config", "name", "node_timeout", "value", "1").is(403, adminOnly),
		ask("admin", "POST maas/?op=set_config", "name", "node_timeout", "value", "x").is(400, `{"node_timeout": ["Enter a whole number."]}`),
		ask("admin", "POST maas/?op=set_config", "name", "node_timeout").is(400, "No provided value!"),
		ask("admin", "POST maas/?op=set_config", "name", "node_timeout", "value", "45").is(200, "OK"),
		ask("alice", "GET maas/?op=get_config&name=node_timeout").is(200, "45"),
		ask("admin", "POST maas/?op=set_config", "name", "default_distro_series", "value", "x").is(400, `{"default_distro_series": ["'x' is not a valid release.  It should be one of: 'jammy', 'noble'."]}`),
		ask("admin", "POST maas/?op=set_config", "name", "default_distro_series", "value", "noble").is(200, "OK"),
		ask("alice", "POST machines/aaaaa2/?op=deploy").with("distro_series=noble"),
		ask("admin", "POST maas/?op=set_config", "name", "enable_disk_erasing_on_release", "value", "true").is(200, "OK"),
		ask("alice", "POST machines/aaaaa2/?op=release").with("status_name=Disk erasing"),
	)
	answer := site.Do("admin", "GET", "maas/?op=get_config&name=nope")
	g.Expect(answer.Code).To(Equal(400))
	g.Expect(answer.Body).To(HavePrefix(`{"nope": ["nope is not a valid config setting (valid settings are: maas_name, theme,`))

	token := site.Has("two").Token
	g.Expect(token.Secret).To(HaveLen(32))
	old := site.Key("alice")
	story(t, site, ask("alice", "POST account/?op=delete_authorisation_token", "token_key", strings.Split(old, ":")[1]).is(204, ""))
	g.Expect(site.Key("alice")).NotTo(Equal(old))
}

func TestImages(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	story(t, site,
		ask("alice", "GET boot-resources/").with("name=ubuntu/jammy ubuntu/jammy ubuntu/noble disk node"),
		ask("alice", "GET boot-resources/?type=uploaded").with("name=disk node"),
		ask("alice", "GET boot-resources/?type=synced").with("name=ubuntu/jammy ubuntu/jammy ubuntu/noble"),
		ask("alice", "GET boot-resources/?type=x").is(400, "'x' is not a valid boot resource type. Available types: ['synced', 'generated', 'uploaded']"),
		ask("alice", "GET boot-resources/4/").with("name=node", "base_image=ubuntu/jammy"),
		ask("alice", "GET boot-resources/99/").is(404, "No BootResource matches the given query."),
		ask("alice", "GET boot-resources/?op=is_importing").is(200, "false"),
		ask("alice", "POST boot-resources/?op=import").is(403, adminOnly),
		ask("admin", "POST boot-resources/?op=import").is(200, "Import of boot resources started"),
		ask("alice", "POST boot-resources/").is(403, adminOnly),
		ask("admin", "POST boot-resources/", "name", "custom/mine", "architecture", "amd64/generic", "content", "data", "title", "Mine").is(201, "").with("name=mine", "type=Uploaded"),
		ask("admin", "POST boot-resources/", "name", "plan9/mine", "architecture", "amd64/generic", "filetype", "iso").is(400, ""),
		ask("admin", "POST boot-resources/", "name", "custom").is(400, `{"architecture": ["This field is required."], "name": ["custom is a reserved name"]}`),
		ask("admin", "POST boot-resources/", "name", "custom/large", "architecture", "amd64/generic", "filetype", "ddgz", "sha256", "00", "size", "10").is(201, "").with("name=large"),
		ask("admin", "PUT boot-resources/7/upload/1/").is(200, ""),
		ask("admin", "PUT boot-resources/99/upload/1/").is(404, ""),
		ask("alice", "POST machines/aaaaa1/?op=deploy", "distro_series", "custom/mine").with("osystem=custom", "distro_series=mine"),
		ask("alice", "DELETE boot-resources/6/").is(403, adminOnly),
		ask("admin", "DELETE boot-resources/6/").is(204, ""),
		ask("admin", "DELETE boot-resources/6/").is(404, ""),
	)
}

func TestEvents(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	story(t, site,
		ask("alice", "POST machines/?op=allocate", "name", "one", "comment", "for me"),
		ask("alice", "POST machines/aaaaa1/?op=deploy", "comment", "go"),
	)
	site.Settle(10 * 60 * 1e9)
	events := func(query string) []any {
		answer := site.Do("alice", "GET", "events/?op=query"+query)
		g.Expect(answer.Code).To(Equal(200), answer.Body)
		return answer.Object()["events"].([]any)
	}
	field := func(list []any, key string) []any {
		var out []any
		for _, e := range list {
			out = append(out, e.(map[string]any)[key])
		}
		return out
	}
	g.Expect(field(events("&limit=2"), "type")).To(Equal([]any{"Deployed", "Image Deployed"}))
	g.Expect(field(events("&hostname=one&level=DEBUG"), "description")).To(ContainElements("(alice) - for me", "(alice) - go"))
	g.Expect(field(events(""), "type")).NotTo(ContainElement("User acquiring node"), "debug events show only when asked for")
	g.Expect(events("&hostname=two")).To(BeEmpty())
	g.Expect(events("&id=aaaaa1&zone=default&domain=maas&mac_address=52:54:00:00:00:01&limit=1")).To(HaveLen(1))
	g.Expect(events("&level=ERROR")).To(BeEmpty())

	first := site.Do("alice", "GET", "events/?op=query&limit=2").Object()
	g.Expect(first["count"]).To(Equal(2.0))
	older := site.Do("alice", "GET", first["prev_uri"].(string)[len("/MAAS/api/2.0/"):]).Object()
	g.Expect(field(older["events"].([]any), "type")).To(Equal([]any{"Loading deployed OS", "Rebooting"}))
	newer := site.Do("alice", "GET", older["next_uri"].(string)[len("/MAAS/api/2.0/"):]).Object()
	g.Expect(field(newer["events"].([]any), "type")).To(Equal([]any{"Deployed", "Image Deployed"}))
	story(t, site,
		ask("alice", "GET events/?op=query&limit=1001").is(400, "Requested number of events 1001 is greater than limit: 1000"),
		ask("alice", "GET events/?op=query&limit=x").is(400, "Invalid limit: Please enter an integer value"),
		ask("alice", "GET events/?op=query&level=LOUD").is(400, "Unrecognised log level: LOUD"),
	)
	g.Expect(field(events("&level=INFO"), "created")[0]).To(MatchRegexp(`^\w{3}, \d{2} \w{3}\. \d{4} \d{2}:\d{2}:\d{2}$`))
}
