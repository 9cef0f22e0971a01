package api_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/simulator"
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

func TestVMHosts(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.WithVMHost)
	story(t, site,
		ask("alice", "GET vm-hosts/").with("name=lxd-1"),
		ask("alice", "GET pods/7/").with("name=lxd-1", "total.cores=16", "used.cores=2", "available.memory=61440", "zone.name=north", "pool.name=blue", "host.system_id=<nil>"),
		ask("alice", "GET vm-hosts/9/").is(404, "No Pod matches the given query."),
		ask("alice", "GET vm-hosts/lxd-1/").is(500, ""),
		ask("alice", "POST vm-hosts/7/?op=compose").is(403, ""),
		ask("admin", "POST vm-hosts/7/?op=compose", "hostname", "vm1", "cores", "4", "memory", "8192", "storage", "root:20,data:30", "zone", "3", "skip_commissioning", "true"),
		ask("admin", "GET machines/?pod=lxd-1").with("hostname=vm1", "status_name=Ready", "cpu_count=4"),
		ask("admin", "GET vm-hosts/7/").with("used.cores=6", "used.memory=12288", "used.local_storage=6e+10"),
		ask("admin", "POST vm-hosts/7/?op=compose", "hostname", "vm1").is(400, `{"hostname": ["Node with hostname \"vm1\" already exists"]}`),
		ask("admin", "POST vm-hosts/7/?op=compose", "cores", "99", "memory", "1", "zone", "north").is(400, `{"cores": ["Ensure this value is less than or equal to 16."], `+
			`"memory": ["Ensure this value is greater than or equal to 1024."], "zone": ["Select a valid choice. That choice is not one of the available choices."]}`),
		ask("admin", "POST vm-hosts/7/?op=compose", "cores", "12").is(503, ""),
		ask("admin", "POST vm-hosts/7/?op=compose", "memory", "60000").is(503, ""),
		ask("admin", "POST vm-hosts/7/?op=compose", "storage", "900").is(503, ""),
		ask("admin", "POST vm-hosts/7/?op=compose", "storage", "lots").is(400, `{"storage": ["Malformed storage constraint, \"lots\"."]}`),
		ask("admin", "POST vm-hosts/7/?op=compose", "interfaces", "eth0:subnet=1").is(400, "This pod does not match the specified networks."),
		ask("admin", "POST vm-hosts/7/?op=compose", "hostname", "vm2"),
		ask("admin", "GET machines/?hostname=vm2").with("status_name=Commissioning", "power_type=lxd"),
		ask("admin", "POST vm-hosts/7/?op=add_tag", "tag", "big").with("tags=[virtual big]"),
		ask("admin", "POST vm-hosts/7/?op=remove_tag", "tag", "big").with("tags=[virtual]"),
		ask("alice", "GET vm-hosts/7/?op=parameters").is(403, ""),
		ask("admin", "GET vm-hosts/7/?op=parameters").is(200, "{}"),
		ask("admin", "POST vm-hosts/7/?op=refresh").with("name=lxd-1"),
		ask("admin", "PUT vm-hosts/7/", "cpu_over_commit_ratio", "2", "zone", "south").with("cpu_over_commit_ratio=2", "zone.name=south"),
		ask("admin", "PUT vm-hosts/7/", "cpu_over_commit_ratio", "20").is(400, `{"cpu_over_commit_ratio": ["Ensure this value is less than or equal to 10."]}`),
		ask("admin", "POST vm-hosts/7/?op=compose", "cores", "12"),
		ask("alice", "POST vm-hosts/", "type", "lxd").is(403, adminOnly),
		ask("admin", "POST vm-hosts/", "type", "xen").is(400, `{"power_address": ["This field is required."], "type": ["Select a valid choice. xen is not one of the available choices."]}`),
		ask("admin", "POST vm-hosts/", "type", "lxd", "name", "lxd-2", "power_address", "https://192.0.2.9:8443", "zone", "north").with("name=lxd-2", "zone.name=north"),
		ask("admin", "POST vm-hosts/", "type", "lxd", "name", "lxd-2", "power_address", "https://192.0.2.9:8443").is(400, ""),
		ask("admin", "DELETE vm-hosts/7/").is(204, ""),
		ask("admin", "GET machines/").with("hostname=one two three four five"),
		ask("admin", "DELETE vm-hosts/7/").is(404, ""),
	)
	g.Expect(site.Do("admin", "GET", "vm-hosts/8/?op=parameters").Object()).To(HaveKeyWithValue("power_address", "https://192.0.2.9:8443"))
}

func TestComposeOnAllocate(t *testing.T) {
	t.Run("When nothing fits a VM host should compose a machine that is gone with its release", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.WithVMHost)
		answer := site.Do("alice", "POST", "machines/?op=allocate", "name", "wanted", "pool", "default", "cpu_count", "3", "mem", "3000")
		g.Expect(answer.Code).To(Equal(200), answer.Body)
		vm := answer.Object()
		g.Expect(vm).To(And(HaveKeyWithValue("cpu_count", 3.0), HaveKeyWithValue("memory", 3000.0), HaveKeyWithValue("status_name", "Allocated")))
		g.Expect(vm["hostname"]).NotTo(Equal("wanted"))
		g.Expect(vm["zone"]).To(HaveKeyWithValue("name", "default"))
		g.Expect(vm["pool"]).To(HaveKeyWithValue("name", "blue"))
		g.Expect(vm["pod"]).To(HaveKeyWithValue("name", "lxd-1"))
		id := vm["system_id"].(string)
		story(t, site,
			ask("alice", "POST machines/"+id+"/?op=release"),
			ask("alice", "GET machines/"+id+"/").is(404, "No Machine matches the given query."),
		)
	})
	t.Run("When an id is asked for, or tags that no VM has, it should not compose", func(t *testing.T) {
		site := simtest.New(t, simtest.WithVMHost)
		story(t, site,
			ask("alice", "POST machines/?op=allocate", "system_id", "zzzzzz").is(409, "No machine with system ID zzzzzz available."),
			ask("alice", "POST machines/?op=allocate", "tags", "gpu", "zone", "default").is(409, ""),
			ask("alice", "POST machines/?op=allocate", "mem", "999999").is(409, ""),
			ask("alice", "GET machines/").with("hostname=one two three four five"),
		)
	})
	t.Run("When it is a dry run it should leave nothing behind", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.WithVMHost)
		g.Expect(site.Do("alice", "POST", "machines/?op=allocate", "name", "x", "dry_run", "1").Code).To(Equal(200))
		g.Expect(site.Machines()).To(HaveLen(5))
	})
	t.Run("When the version is main there should be no VM hosts to compose on", func(t *testing.T) {
		site := simtest.New(t, simtest.WithVMHost, func(o *simulator.Options) { o.Version = "main" })
		story(t, site, ask("alice", "POST machines/?op=allocate", "name", "x").is(409, ""))
	})
}
