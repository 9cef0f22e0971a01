// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

func TestDeploy(t *testing.T) {
	t.Run("When a machine is deployed, it should go through the states of an installation", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.Rack)
		story(t, site,
			ask("alice", "POST machines/?op=allocate", "name", "two").with("status_name=Allocated", "power_state=off"),
			ask("alice", "POST machines/aaaaa2/?op=deploy", "distro_series", "custom/node", "user_data", base64.StdEncoding.EncodeToString([]byte("#cloud-config\n"))).
				with("status_name=Deploying", "status_message=Deploying", "osystem=custom", "distro_series=node", "hwe_kernel=ga-22.04", "ip_addresses=[]"),
			ask("alice", "GET machines/aaaaa2/").with("status_name=Deploying", "ip_addresses=[10.9.0.251]", "power_state=off"),
		)
		seen := []string{}
		for range 120 {
			if message := *site.Has("two").StatusMessage; len(seen) == 0 || seen[len(seen)-1] != message {
				seen = append(seen, message)
			}
			site.Pass(time.Second)
		}
		g.Expect(seen).To(Equal([]string{
			"Deploying", "Performing PXE boot", "Loading ephemeral", "Configuring storage", "Installing OS", "Configuring OS",
			"Loading deployed OS", "Deployed",
		}))
		g.Expect(string(site.Has("two").UserData)).To(Equal("#cloud-config\n"))
		story(t, site,
			ask("alice", "GET machines/aaaaa2/").with("status_name=Deployed", "power_state=on", "netboot=false", "owner=alice"),
			ask("alice", "GET machines/aaaaa2/?op=query_power_state").is(200, `{"state":"on"}`),
			ask("alice", "POST machines/aaaaa2/?op=release", "comment", "done").with("status_name=Releasing", "owner=alice", "osystem=", "ip_addresses=[10.9.0.251]",
				"current_installation_result_id=<nil>"),
			ask("alice", "POST machines/aaaaa2/?op=release").with("status_name=Releasing"),
			ask("alice", "POST machines/aaaaa2/?op=deploy").is(409, "Can't deploy a machine that is in the 'Releasing' state"),
		)
		site.Pass(2 * time.Second)
		story(t, site, ask("alice", "GET machines/aaaaa2/").with("status_name=Ready", "power_state=off", "owner=<nil>", "status_message=Released", "ip_addresses=[]",
			"current_installation_result_id=<nil>"))
	})

	refusals := map[string]struct {
		prepare func(*simtest.Site)
		form    []string
		code    int
		says    string
	}{
		"the series is unknown": {nil, []string{"distro_series", "bogus"}, 400,
			`{"distro_series": ["'bogus' is not a valid distro_series.  It should be one of: '', 'custom/disk', 'custom/node', 'ubuntu/jammy', 'ubuntu/noble'."]}`},
		"the kernel is unknown": {nil, []string{"distro_series", "jammy", "hwe_kernel", "ga-1"}, 400, `{"hwe_kernel": ["ga-1 is not available for ubuntu/jammy on amd64/generic."]}`},
		"there is no network": {func(s *simtest.Site) {
			s.Change("aaaaa1", func(m *inventory.Machine) { m.Interfaces = nil })
		}, nil, 400, `{"network": ["Node must be configured to use a network"]}`},
		"the machine belongs to another user": {func(s *simtest.Site) {
			s.Change("aaaaa1", func(m *inventory.Machine) { m.Status, m.Owner = status.Allocated, "bob" })
		}, nil, 403, ""},
		"the image has no build for the architecture": {func(s *simtest.Site) {
			s.Change("aaaaa1", func(m *inventory.Machine) { m.Architecture = "arm64/generic" })
		}, []string{"distro_series", "jammy"}, 400, "Deployment operating system ubuntu jammy is unavailable for architecture arm64."},
		"memory cannot hold the image":  {nil, []string{"distro_series", "custom/node", "ephemeral_deploy", "true"}, 400, "Deployment to memory not supported for custom/node on amd64/generic"},
		"a VM host would run in memory": {nil, []string{"ephemeral_deploy", "true", "install_kvm", "true"}, 403, ""},
		"a rack controller is requested": {nil, []string{"install_rackd", "true"}, 400,
			"Installing rackd on a deployed machine is not supported."},
		"a Boolean parameter is invalid": {nil, []string{"ephemeral_deploy", "banana"}, 400, "Invalid ephemeral_deploy: Value should be 'true' or 'false'"},
	}
	for name, test := range refusals {
		t.Run("When "+name+", the request should be rejected and the machine unchanged", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack)
			if test.prepare != nil {
				test.prepare(site)
			}
			before := site.Has("one").Status
			story(t, site, ask("alice", "POST machines/aaaaa1/?op=deploy", test.form...).is(test.code, test.says))
			g.Expect(site.Has("one").Status).To(Equal(before))
		})
	}

	series := map[string]string{
		"": "ubuntu/jammy", "jammy": "ubuntu/jammy", "ubuntu/noble": "ubuntu/noble", "ubuntu": "ubuntu/noble", "node": "custom/node",
		"custom/node": "custom/node", "no": "custom/node",
	}
	for given, want := range series {
		t.Run("When the series is "+given+", the matching release should be deployed", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack)
			answer := site.Do("alice", "POST", "machines/aaaaa1/?op=deploy", "distro_series", given)
			g.Expect(answer.Code).To(Equal(200), answer.Body)
			g.Expect(fmt.Sprint(answer.Object()["osystem"], "/", answer.Object()["distro_series"])).To(Equal(want))
		})
	}
	t.Run("When the version is 3.6, it should accept release numbers and deploy custom images to memory", func(t *testing.T) {
		site := simtest.New(t, simtest.Rack, func(o *simulator.Options) { o.Version = "3.6" })
		story(t, site,
			ask("alice", "POST machines/aaaaa1/?op=deploy", "distro_series", "24.04").with("distro_series=noble"),
			ask("alice", "POST machines/aaaaa2/?op=deploy", "distro_series", "custom/node", "ephemeral_deploy", "true").with("ephemeral_deploy=true"),
			ask("alice", "POST machines/aaaaa3/?op=deploy", "distro_series", "custom/disk", "ephemeral_deploy", "banana").
				is(400, "Deployment to memory not supported for custom/disk on amd64/generic"),
			ask("admin", "POST machines/aaaaa3/?op=deploy", "register_vmhost", "1", "ephemeral_deploy", "1").
				is(400, "A machine can not be a VM host if it is deployed to memory."),
		)
	})
	t.Run("When a machine has no disks, it should be deployed to memory", func(t *testing.T) {
		site := simtest.New(t, simtest.Rack)
		site.Change("aaaaa1", func(m *inventory.Machine) { m.Disks = nil })
		story(t, site,
			ask("alice", "POST machines/aaaaa1/?op=deploy").with("status_name=Deploying"),
			ask("alice", "GET machines/aaaaa1/").with("ephemeral_deploy=true"),
		)
	})
	t.Run("When no address is free, the machine should go back to Allocated", func(t *testing.T) {
		site := simtest.New(t, simtest.Rack)
		story(t, site, ask("admin", "POST machines/aaaaa3/?op=deploy").with("status_name=Deploying"))
		for range 13 {
			story(t, site, ask("admin", "POST ipaddresses/?op=reserve", "subnet", "2"))
		}
		story(t, site,
			ask("admin", "POST ipaddresses/?op=reserve", "subnet", "2").is(503, "No more IPs available in subnet: 10.8.0.0/28."),
			ask("admin", "POST nodes/aaaaa2/interfaces/?op=create_physical", "name", "eth9", "mac_address", "52:54:00:00:09:09", "vlan", "2").with("name=eth9"),
			ask("admin", "POST nodes/aaaaa2/interfaces/eth9/?op=link_subnet", "mode", "AUTO", "subnet", "2").with("name=eth9"),
			ask("admin", "POST machines/aaaaa2/?op=deploy").is(503, "No more IPs available in subnet: 10.8.0.0/28."),
			ask("admin", "GET machines/aaaaa2/").with("status_name=Allocated", "owner=admin", "ip_addresses=[]"),
		)
	})
	t.Run("When the user-data is not base64, it should be stored unchanged", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.Rack)
		site.Do("alice", "POST", "machines/aaaaa1/?op=deploy", "user_data", "#!not base64")
		g.Expect(string(site.Has("one").UserData)).To(Equal("#!not base64"))
	})
}

func TestAbortAndPower(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	story(t, site,
		ask("alice", "POST machines/aaaaa1/?op=power_on").is(409, "Can't start node: it hasn't been allocated."),
		ask("alice", "POST machines/aaaaa1/?op=deploy").with("status_name=Deploying"),
	)
	site.Pass(2 * time.Second)
	story(t, site,
		ask("alice", "POST machines/aaaaa1/?op=abort", "comment", "no").with("status_name=Deploying", "status_message=Aborted deployment"),
		ask("alice", "GET machines/aaaaa1/").with("status_name=Allocated", "power_state=on", "ip_addresses=[10.9.0.251]"),
		ask("alice", "POST machines/aaaaa1/?op=abort").is(409, "Cannot abort in current state: node aaaaa1 is in state Allocated."),
	)
	site.Pass(2 * time.Second)
	story(t, site,
		ask("alice", "GET machines/aaaaa1/").with("power_state=off", "ip_addresses=[]", "owner=alice"),
		ask("alice", "POST machines/aaaaa1/?op=power_on", "user_data", "eHg=").with("status_name=Allocated"),
	)
	site.Pass(2 * time.Second)
	story(t, site,
		ask("alice", "GET machines/aaaaa1/").with("power_state=on"),
		ask("alice", "POST machines/aaaaa1/?op=power_off", "stop_mode", "hard").with("status_name=Allocated"),
		ask("alice", "POST machines/aaaaa4/?op=power_off").is(200, "null"),
		ask("alice", "GET machines/aaaaa4/?op=query_power_state").is(200, `{"state":"unknown"}`),
	)
	site.Pass(2 * time.Second)
	story(t, site, ask("alice", "GET machines/aaaaa1/").with("power_state=off"))
	if token := site.Do("alice", "GET", "machines/aaaaa1/?op=get_token").Object(); token["token_key"] != site.Has("one").Token.Key {
		t.Errorf("get_token answers %v", token)
	}
	story(t, site,
		ask("alice", "GET machines/aaaaa1/?op=get_curtin_config").is(400, "Machine aaaaa1 is not in a deployment state."),
		ask("alice", "POST machines/aaaaa1/?op=deploy"),
		ask("alice", "GET machines/aaaaa1/?op=get_curtin_config"),
		ask("alice", "GET machines/aaaaa1/?op=details"),
	)
}

func TestMachineFaults(t *testing.T) {
	tests := map[string]struct {
		rule    faults.Rule
		do      []step
		settled status.Status
		message string
	}{
		"the installation fails": {
			faults.Rule{Kind: faults.DeployFails, Machine: "one", Message: "disk on fire"},
			[]step{ask("alice", "POST machines/aaaaa1/?op=deploy")}, status.FailedDeployment, "Marking node failed - disk on fire",
		},
		"the power controller fails during a deployment": {
			faults.Rule{Kind: faults.PowerError, Machine: "aaaaa1"},
			[]step{ask("alice", "POST machines/aaaaa1/?op=deploy")}, status.FailedDeployment,
			"Marking node failed - Failed to power on node - Power controller did not answer",
		},
		"the system never reports": {
			faults.Rule{Kind: faults.BootHangs},
			[]step{ask("alice", "POST machines/aaaaa1/?op=deploy")}, status.FailedDeployment,
			"Marking node failed - Machine operation 'Deploying' timed out after 1h0m0s.",
		},
		"the machine breaks while it deploys": {
			faults.Rule{Kind: faults.BrokenOnDeploy, Message: "smoke"},
			[]step{ask("alice", "POST machines/aaaaa1/?op=deploy")}, status.Broken, "Marking node broken - smoke",
		},
		"the release fails": {
			faults.Rule{Kind: faults.ReleaseFails, Message: "stuck"},
			[]step{ask("admin", "POST machines/aaaaa1/?op=test"), ask("admin", "POST machines/aaaaa1/?op=abort")}, status.Ready, "",
		},
		"commissioning fails": {
			faults.Rule{Kind: faults.CommissionFails},
			[]step{ask("admin", "POST machines/aaaaa1/?op=commission")}, status.FailedCommissioning, "Marking node failed - Commissioning scripts failed",
		},
		"tests fail": {
			faults.Rule{Kind: faults.TestFails},
			[]step{ask("admin", "POST machines/aaaaa1/?op=test")}, status.FailedTesting, "Marking node failed - Tests failed",
		},
	}
	for name, test := range tests {
		t.Run("When "+name+", the machine should have the status and message of MAAS", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack)
			_, err := site.Faults.Add(test.rule)
			g.Expect(err).NotTo(HaveOccurred())
			story(t, site, test.do...)
			site.Settle(2 * time.Hour)
			m := site.Has("one")
			g.Expect(m.Status).To(Equal(test.settled))
			if test.message != "" {
				g.Expect(*m.StatusMessage).To(Equal(test.message))
			}
		})
	}
	t.Run("When releases fail or are slow, the status of the machine should show it", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.Rack)
		add := func(r faults.Rule) {
			_, err := site.Faults.Add(r)
			g.Expect(err).NotTo(HaveOccurred())
		}
		deployed := func() {
			site.Change("aaaaa1", func(m *inventory.Machine) {
				m.Status, m.Owner, m.PowerState = status.Deployed, "alice", "on"
			})
		}
		deployed()
		add(faults.Rule{Kind: faults.ReleaseFails, Count: 1, Message: "stuck"})
		story(t, site, ask("alice", "POST machines/aaaaa1/?op=release").with("status_name=Releasing"))
		site.Settle(time.Minute)
		g.Expect(site.Has("one")).To(And(HaveField("Status", status.FailedReleasing), HaveField("Owner", "alice")))

		add(faults.Rule{Kind: faults.SlowRelease, Delay: faults.Duration(time.Minute)})
		story(t, site, ask("alice", "POST machines/aaaaa1/?op=release").with("status_name=Releasing"))
		site.Pass(30 * time.Second)
		g.Expect(site.Has("one").Status).To(Equal(status.Releasing))
		site.Pass(40 * time.Second)
		g.Expect(site.Has("one").Status).To(Equal(status.Ready))

		deployed()
		add(faults.Rule{Kind: faults.EraseFails, Count: 1})
		story(t, site, ask("alice", "POST machines/aaaaa1/?op=release", "erase", "true").with("status_name=Disk erasing"))
		site.Settle(10 * time.Minute)
		g.Expect(site.Has("one").Status).To(Equal(status.FailedDiskErasing))

		site.Faults.Clear()
		add(faults.Rule{Kind: faults.PowerError, Message: "no route"})
		story(t, site,
			ask("alice", "GET machines/aaaaa1/?op=query_power_state").is(503, "Failed to power query node - no route"),
			ask("alice", "GET machines/aaaaa1/").with("power_state=error"),
			ask("alice", "POST machines/aaaaa1/?op=power_off").is(503, "Failed to power off node - no route"),
			ask("alice", "POST machines/aaaaa1/?op=power_on").is(503, "Failed to power on node - no route"),
		)

		site.Faults.Clear()
		add(faults.Rule{Kind: faults.PowerError, Machines: 1})
		story(t, site, ask("alice", "GET machines/aaaaa1/?op=query_power_state").is(200, ""))
		g.Expect(site.Faults.List()).To(HaveExactElements(HaveField("Hit", BeEmpty())), "a machine that was looked at is the one that fails")
		story(t, site,
			ask("alice", "POST machines/aaaaa1/?op=power_on").is(503, "Failed to power on node - Power controller did not answer"),
			ask("alice", "GET machines/aaaaa1/?op=query_power_state").is(503, "Failed to power query node - Power controller did not answer"),
		)
	})
}

// metal is a backend that records its calls.
type metal struct {
	boot.None
	mu    sync.Mutex
	calls []string
	spec  boot.Spec
	fails error
}

func (m *metal) note(what string, spec boot.Spec) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, what)
	if spec.SystemID != "" {
		m.spec = spec
	}
}

func (m *metal) Install(_ context.Context, spec boot.Spec) error {
	m.note("install", spec)
	return m.fails
}

func (m *metal) PowerOn(ctx context.Context, spec boot.Spec) error {
	m.note("on", spec)
	return m.None.PowerOn(ctx, spec)
}

func (m *metal) PowerOff(ctx context.Context, id string) error {
	m.note("off", boot.Spec{})
	return m.None.PowerOff(ctx, id)
}

func (m *metal) Erase(context.Context, string) error {
	m.note("erase", boot.Spec{})
	return nil
}

func onMetal(t *testing.T) (*simtest.Site, *metal) {
	m := &metal{}
	return simtest.New(t, simtest.Rack, func(o *simulator.Options) {
		o.Backend = m
		o.Durations.Deploy = 0
	}), m
}

func TestMetal(t *testing.T) {
	t.Run("When machines really boot, they should install, start, wait for the system and release everything", func(t *testing.T) {
		g := NewWithT(t)
		site, m := onMetal(t)
		story(t, site, ask("alice", "POST machines/aaaaa3/?op=deploy", "distro_series", "custom/node", "user_data", "eHg="))
		site.Pass(10 * time.Second)
		g.Expect(m.calls).To(Equal([]string{"install", "off", "on"}))
		g.Expect(m.spec).To(And(
			HaveField("SystemID", "aaaaa3"), HaveField("Hostname", "three"), HaveField("Domain", "maas"), HaveField("Zone", "north"),
			HaveField("MAC", "52:54:00:00:00:03"), HaveField("OSystem", "custom"), HaveField("Series", "node"), HaveField("CPUs", 8),
			HaveField("MemoryMiB", int64(16384)), HaveField("MetadataURL", "http://192.0.2.1:5240/MAAS/metadata/"),
			HaveField("Gateway", netip.MustParseAddr("10.9.0.1")), HaveField("Nameservers", ConsistOf(netip.MustParseAddr("10.9.0.2"))),
			HaveField("Addresses", HaveExactElements(netip.MustParsePrefix("10.9.0.251/24"), netip.MustParsePrefix("10.8.0.1/28"))),
			HaveField("Disks", HaveExactElements(boot.Disk{Name: "sda", Bytes: 120e9}, boot.Disk{Name: "sdb", Bytes: 1e12})),
			HaveField("TokenKey", site.Has("three").Token.Key),
		))
		site.Pass(10 * time.Minute)
		g.Expect(site.Has("three").Status).To(Equal(status.Deploying), "only the system itself can say that it is up")

		story(t, site, ask("alice", "POST machines/aaaaa3/?op=release"))
		site.Settle(time.Minute)
		g.Expect(site.Has("three").Status).To(Equal(status.Ready))
		g.Expect(m.calls[3:]).To(Equal([]string{"off", "erase"}))
	})
	t.Run("When the installation fails, the status message should give the reason", func(t *testing.T) {
		g := NewWithT(t)
		site, m := onMetal(t)
		m.fails = errors.New("no space left")
		story(t, site, ask("alice", "POST machines/aaaaa1/?op=deploy"))
		site.Settle(time.Minute)
		g.Expect(site.Has("one").Status).To(Equal(status.FailedDeployment))
		g.Expect(*site.Has("one").StatusMessage).To(ContainSubstring("installing ubuntu/jammy failed: no space left"))
	})
	t.Run("When the disk of a deployed machine is wiped, it should boot without a system until it is redeployed", func(t *testing.T) {
		g := NewWithT(t)
		site, m := onMetal(t)
		simtest.Fault(t, site.Simulator, faults.Rule{Kind: faults.DiskEmpty, Machine: "one"})
		story(t, site, ask("alice", "POST machines/aaaaa1/?op=deploy"))
		site.Pass(10 * time.Second)
		g.Expect(m.spec.Blank).To(BeFalse(), "it was just installed")
		site.Change("aaaaa1", func(m *inventory.Machine) { m.Task, m.Status, m.PowerState = nil, status.Deployed, "off" })
		g.Expect(m.None.PowerOff(t.Context(), "aaaaa1")).To(Succeed())
		story(t, site, ask("alice", "POST machines/aaaaa1/?op=power_on"))
		site.Pass(10 * time.Second)
		g.Expect(m.spec.Blank).To(BeTrue())
		story(t, site, ask("alice", "GET machines/aaaaa1/").with("power_state=on", "status_name=Deployed"))
	})
	t.Run("When a machine was switched off manually, a power query should report it", func(t *testing.T) {
		site, _ := onMetal(t)
		site.Change("aaaaa1", func(m *inventory.Machine) { m.Status, m.Owner, m.PowerState = status.Deployed, "alice", "on" })
		story(t, site,
			ask("alice", "GET machines/aaaaa1/?op=query_power_state").is(200, `{"state":"off"}`),
			ask("alice", "GET machines/aaaaa1/").with("power_state=off"),
		)
	})
}

func TestPowerFailuresByVersion(t *testing.T) {
	for version, code := range map[string]int{"3.4": 200, "3.5": 500, "3.6": 200} {
		t.Run("When the version is "+version+", a power failure should end the request or the operation as in that version", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack, func(o *simulator.Options) { o.Version = version })
			_, err := site.Faults.Add(faults.Rule{Kind: faults.PowerError, Message: "no BMC"})
			g.Expect(err).NotTo(HaveOccurred())
			site.Change("aaaaa2", func(m *inventory.Machine) { m.Status, m.Owner, m.PowerState = status.Deployed, "alice", "on" })
			for _, request := range []string{"machines/aaaaa1/?op=deploy", "machines/aaaaa2/?op=release"} {
				answer := site.Do("alice", "POST", request)
				g.Expect(answer.Code).To(Equal(code), answer.Body)
				if code == 500 {
					g.Expect(answer.Body).To(HaveSuffix("node - no BMC"))
				}
			}
			site.Settle(time.Hour)
			want := []status.Status{status.FailedDeployment, status.FailedReleasing}
			if code == 500 {
				want = []status.Status{status.Ready, status.Deployed}
			}
			g.Expect([]status.Status{site.Has("one").Status, site.Has("two").Status}).To(Equal(want))
		})
	}
}
