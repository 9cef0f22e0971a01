// SPDX-License-Identifier: Apache-2.0

package maas_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/maas"
)

// requests returns the client's methods by the request that each sends: method, path with op, and parameters.
func requests() map[string]func(context.Context, *maas.Client) error {
	one := 1
	return map[string]func(context.Context, *maas.Client) error{
		"GET machines/ id=a&id=b&hostname=h&mac_address=m&domain=d&agent_name=k&status=ready&status=failed_deployment&zone=z&not_in_zone=nz&pool=p&not_in_pool=np&tags=t1&tags=t2&not_tags=nt&arch=amd64&owner=me&power_state=on&pod=vh&cpu_count=2&mem=1024": func(ctx context.Context, c *maas.Client) error {
			_, err := c.ListMachines(ctx, maas.MachineFilter{SystemIDs: []string{"a", "b"}, Hostnames: []string{"h"}, MACAddresses: []string{"m"}, Domains: []string{"d"},
				AgentNames: []string{"k"}, Statuses: []maas.Status{maas.StatusReady, maas.StatusFailedDeployment}, Zones: []string{"z"}, NotZones: []string{"nz"},
				Pools: []string{"p"}, NotPools: []string{"np"}, Tags: []string{"t1", "t2"}, NotTags: []string{"nt"}, Architectures: []string{"amd64"},
				Owners: []string{"me"}, PowerStates: []string{"on"}, VMHosts: []string{"vh"}, CPUCount: 2, MemoryMiB: 1024})
			return err
		},
		"POST machines/?op=allocate name=n&system_id=s&arch=arm64&cpu_count=1&mem=2&tags=a&tags=b&not_tags=c&zone=z&pool=p&not_in_zone=nz&not_in_pool=np&storage=root:8&interfaces=i&subnets=x&not_pod_type=lxd&agent_name=k&comment=c&dry_run=true": func(ctx context.Context, c *maas.Client) error {
			_, err := c.AllocateMachine(ctx, maas.AllocateRequest{Name: "n", SystemID: "s", Architecture: "arm64", CPUCount: 1, MemoryMiB: 2, Tags: []string{"a", "b"},
				NotTags: []string{"c"}, Zone: "z", Pool: "p", NotZones: []string{"nz"}, NotPools: []string{"np"}, Storage: "root:8", Interfaces: "i", Subnets: []string{"x"},
				NotPodTypes: []string{"lxd"}, AgentName: "k", Comment: "c", DryRun: true})
			return err
		},
		"POST machines/w/?op=deploy distro_series=custom/x&comment=c&hwe_kernel=k&user_data=" + base64.StdEncoding.EncodeToString([]byte("a\x00b")) + "&ephemeral_deploy=true": func(ctx context.Context, c *maas.Client) error {
			_, err := c.DeployMachine(ctx, "w", maas.DeployRequest{DistroSeries: "custom/x", UserData: []byte("a\x00b"), Comment: "c", Ephemeral: true, HWEKernel: "k"})
			return err
		},
		"POST machines/w/?op=release comment=c&erase=true&secure_erase=true&force=true": func(ctx context.Context, c *maas.Client) error {
			_, err := c.ReleaseMachine(ctx, "w", maas.ReleaseRequest{Comment: "c", SecureErase: true, Force: true})
			return err
		},
		"POST machines/w/?op=release ": func(ctx context.Context, c *maas.Client) error {
			_, err := c.ReleaseMachine(ctx, "w", maas.ReleaseRequest{})
			return err
		},
		"POST machines/w/?op=abort comment=c": only(func(ctx context.Context, c *maas.Client) (*maas.Machine, error) { return c.AbortMachine(ctx, "w", "c") }),
		"POST machines/w/?op=power_on comment=c": only(func(ctx context.Context, c *maas.Client) (*maas.Machine, error) {
			return c.PowerOnMachine(ctx, "w", "c")
		}),
		"POST machines/w/?op=power_off stop_mode=soft": only(func(ctx context.Context, c *maas.Client) (*maas.Machine, error) {
			return c.PowerOffMachine(ctx, "w", false, "")
		}),
		"POST machines/w/?op=power_off stop_mode=hard": only(func(ctx context.Context, c *maas.Client) (*maas.Machine, error) {
			return c.PowerOffMachine(ctx, "w", true, "")
		}),
		"POST machines/w/?op=mark_broken comment=fan": only(func(ctx context.Context, c *maas.Client) (*maas.Machine, error) {
			return c.MarkMachineBroken(ctx, "w", "fan")
		}),
		"POST machines/w/?op=mark_fixed comment=ok": only(func(ctx context.Context, c *maas.Client) (*maas.Machine, error) {
			return c.MarkMachineFixed(ctx, "w", "ok")
		}),
		"POST machines/w/?op=set_workload_annotations a=b&gone=": only(func(ctx context.Context, c *maas.Client) (*maas.Machine, error) {
			return c.SetWorkloadAnnotations(ctx, "w", map[string]string{"a": "b", "gone": ""})
		}),
		"PUT machines/w/ swap_size=0": only(func(ctx context.Context, c *maas.Client) (*maas.Machine, error) {
			return c.UpdateMachine(ctx, "w", map[string]string{"swap_size": "0"})
		}),
		"GET machines/w/ ":                      only(func(ctx context.Context, c *maas.Client) (*maas.Machine, error) { return c.GetMachine(ctx, "w") }),
		"GET machines/..%2Fusers/ ":             only(func(ctx context.Context, c *maas.Client) (*maas.Machine, error) { return c.GetMachine(ctx, "../users") }),
		"GET machines/w/?op=query_power_state ": only(func(ctx context.Context, c *maas.Client) (maas.PowerState, error) { return c.QueryPowerState(ctx, "w") }),
		"GET machines/w/?op=power_parameters ": only(func(ctx context.Context, c *maas.Client) (maas.PowerParameters, error) {
			return c.GetPowerParameters(ctx, "w")
		}),
		"DELETE machines/w/ ":   func(ctx context.Context, c *maas.Client) error { return c.DeleteMachine(ctx, "w") },
		"GET users/?op=whoami ": only(func(ctx context.Context, c *maas.Client) (maas.User, error) { return c.WhoAmI(ctx) }),
		"GET boot-resources/ type=uploaded": func(ctx context.Context, c *maas.Client) error {
			_, err := c.ListBootResources(ctx, maas.ImagesUploaded)
			return err
		},
		"GET events/?op=query id=w&hostname=h&level=WARNING&limit=5": only(func(ctx context.Context, c *maas.Client) (maas.EventPage, error) {
			return c.ListEvents(ctx, maas.EventFilter{SystemIDs: []string{"w"}, Hostnames: []string{"h"}, Level: "WARNING", Limit: 5})
		}),
		"POST tags/t/?op=update_nodes add=a&add=b&remove=c": only(func(ctx context.Context, c *maas.Client) (maas.TagUpdate, error) {
			return c.UpdateTagMachines(ctx, "t", []string{"a", "b"}, []string{"c"})
		}),
		"POST vm-hosts/7/?op=compose hostname=h&cores=2&memory=2048&storage=8&interfaces=i&architecture=amd64&domain=1&zone=1&pool=1&pinned_cores=3&skip_commissioning=true": only(func(ctx context.Context, c *maas.Client) (*maas.Machine, error) {
			return c.ComposeMachine(ctx, 7, maas.ComposeRequest{Hostname: "h", Cores: 2, MemoryMiB: 2048, Storage: "8", Interfaces: "i", Architecture: "amd64", Domain: &one, Zone: &one, Pool: &one, Pinned: "3", SkipCommissioning: true})
		}),
		"POST vm-hosts/ type=lxd&name=n": only(func(ctx context.Context, c *maas.Client) (maas.VMHost, error) {
			return c.CreateVMHost(ctx, map[string]string{"type": "lxd", "name": "n"})
		}),
		"PUT vm-hosts/7/ tags=": only(func(ctx context.Context, c *maas.Client) (maas.VMHost, error) {
			return c.UpdateVMHost(ctx, 7, map[string]string{"tags": ""})
		}),
		"POST vm-hosts/7/?op=refresh ":          only(func(ctx context.Context, c *maas.Client) (maas.VMHost, error) { return c.RefreshVMHost(ctx, 7) }),
		"POST vm-hosts/7/?op=add_tag tag=drain": only(func(ctx context.Context, c *maas.Client) (maas.VMHost, error) { return c.AddVMHostTag(ctx, 7, "drain") }),
		"POST vm-hosts/7/?op=remove_tag tag=drain": only(func(ctx context.Context, c *maas.Client) (maas.VMHost, error) {
			return c.RemoveVMHostTag(ctx, 7, "drain")
		}),
		"GET vm-hosts/7/?op=parameters ": only(func(ctx context.Context, c *maas.Client) (maas.VMHostParameters, error) {
			return c.GetVMHostParameters(ctx, 7)
		}),
		"POST machines/w/?op=deploy register_vmhost=true": only(func(ctx context.Context, c *maas.Client) (*maas.Machine, error) {
			return c.DeployMachine(ctx, "w", maas.DeployRequest{RegisterVMHost: true})
		}),
		"DELETE vm-hosts/7/ decompose=true": func(ctx context.Context, c *maas.Client) error { return c.DeleteVMHost(ctx, 7, true) },
		"POST dnsresources/ fqdn=a.b&address_ttl=10&ip_addresses=": only(func(ctx context.Context, c *maas.Client) (maas.DNSResource, error) {
			return c.CreateDNSResource(ctx, "a.b", 10, nil)
		}),
		"PUT dnsresources/3/ ip_addresses=1.2.3.4 5.6.7.8": only(func(ctx context.Context, c *maas.Client) (maas.DNSResource, error) {
			return c.SetDNSResourceIPs(ctx, 3, []string{"1.2.3.4", "5.6.7.8"})
		}),
		"POST ipaddresses/?op=reserve subnet=s&ip=i&hostname=h": only(func(ctx context.Context, c *maas.Client) (maas.IPAddress, error) {
			return c.ReserveIPAddress(ctx, "s", "i", "h")
		}),
		"POST ipaddresses/?op=release ip=i": func(ctx context.Context, c *maas.Client) error { return c.ReleaseIPAddress(ctx, "i") },
		"POST nodes/w/interfaces/?op=create_bridge name=br0&parent=4": only(func(ctx context.Context, c *maas.Client) (maas.Interface, error) {
			return c.CreateBridge(ctx, "w", "br0", 4)
		}),
		"POST nodes/w/interfaces/4/?op=link_subnet mode=STATIC&subnet=s&ip_address=i&default_gateway=true": only(func(ctx context.Context, c *maas.Client) (maas.Interface, error) {
			return c.LinkSubnet(ctx, "w", 4, maas.LinkRequest{Mode: "STATIC", Subnet: "s", IPAddress: "i", DefaultGateway: true})
		}),
		"POST nodes/w/interfaces/4/?op=unlink_subnet id=9": only(func(ctx context.Context, c *maas.Client) (maas.Interface, error) {
			return c.UnlinkSubnet(ctx, "w", 4, 9)
		}),
		"GET ipranges/ ": only(func(ctx context.Context, c *maas.Client) ([]maas.AddressRange, error) {
			return c.ListAddressRanges(ctx)
		}),
		"GET subnets/3/?op=ip_addresses ": only(func(ctx context.Context, c *maas.Client) ([]maas.HeldAddress, error) {
			return c.ListHeldAddresses(ctx, 3)
		}),
		"GET subnets/cidr:10.0.0.0%2F24/ ": only(func(ctx context.Context, c *maas.Client) (maas.Subnet, error) {
			return c.GetSubnet(ctx, "cidr:10.0.0.0/24")
		}),
		"GET dnsresources/ fqdn=a.b": only(func(ctx context.Context, c *maas.Client) ([]maas.DNSResource, error) {
			return c.ListDNSResources(ctx, "a.b")
		}),
		"DELETE dnsresources/3/ ": func(ctx context.Context, c *maas.Client) error { return c.DeleteDNSResource(ctx, 3) },
		"POST tags/ name=t&comment=why": only(func(ctx context.Context, c *maas.Client) (maas.Tag, error) {
			return c.CreateTag(ctx, "t", "why")
		}),
		"DELETE tags/a%2Fb/ ":      func(ctx context.Context, c *maas.Client) error { return c.DeleteTag(ctx, "a/b") },
		"GET tags/t/?op=machines ": only(func(ctx context.Context, c *maas.Client) ([]maas.Machine, error) { return c.ListTagMachines(ctx, "t") }),
		"GET vm-hosts/7/ ":         only(func(ctx context.Context, c *maas.Client) (maas.VMHost, error) { return c.GetVMHost(ctx, 7) }),
		"GET subnets/3/?op=unreserved_ip_ranges ": only(func(ctx context.Context, c *maas.Client) ([]maas.IPRange, error) {
			return c.ListUnreservedIPRanges(ctx, 3)
		}),
		"GET nodes/w/interfaces/ ": only(func(ctx context.Context, c *maas.Client) ([]maas.Interface, error) {
			return c.ListInterfaces(ctx, "w")
		}),
		"POST machines/w/?op=release comment=c&erase=true&quick_erase=true": func(ctx context.Context, c *maas.Client) error {
			_, err := c.ReleaseMachine(ctx, "w", maas.ReleaseRequest{Comment: "c", QuickErase: true})
			return err
		},
		"DELETE vm-hosts/8/ ":            func(ctx context.Context, c *maas.Client) error { return c.DeleteVMHost(ctx, 8, false) },
		"GET maas/?op=get_config name=x": only(func(ctx context.Context, c *maas.Client) (maas.ConfigValue, error) { return c.GetConfig(ctx, "x") }),
	}
}

func TestRequests(t *testing.T) {
	for want, call := range requests() {
		t.Run(want, func(t *testing.T) {
			g := NewWithT(t)
			got, header := "", http.Header{}
			var params url.Values
			var calls atomic.Int32
			c := newClient(t, maas.Config{Endpoint: answers(t, &calls, func(w http.ResponseWriter, r *http.Request) {
				g.Expect(r.ParseForm()).To(Succeed())
				got, params, header = r.Method+" "+strings.TrimPrefix(r.URL.EscapedPath(), "/MAAS/api/2.0/"), r.Form, r.Header
				if op := params.Get("op"); op != "" {
					got += "?op=" + op
				}
				params.Del("op")
				_, _ = w.Write([]byte(`{"system_id": "w"}`))
			})})
			g.Expect(ignoreShape(call(t.Context(), c))).To(Succeed())
			request, query, _ := strings.Cut(want[strings.Index(want, " ")+1:], " ")
			g.Expect(got).To(Equal(want[:strings.Index(want, " ")] + " " + request))
			wanted := url.Values{}
			for pair := range strings.SplitSeq(query, "&") {
				if key, value, ok := strings.Cut(pair, "="); ok {
					wanted.Add(key, value)
				}
			}
			g.Expect(params).To(Equal(wanted))
			g.Expect(header.Get("Authorization")).To(MatchRegexp(`^OAuth oauth_version="1.0", oauth_signature_method="PLAINTEXT", oauth_consumer_key="consumerkey", oauth_token="tokenkey01", oauth_signature="%26tokensecret", oauth_nonce="[0-9a-f]{32}", oauth_timestamp="[0-9]+"$`))
		})
	}
}

// only discards the result of a call and returns its error.
func only[T any](call func(context.Context, *maas.Client) (T, error)) func(context.Context, *maas.Client) error {
	return func(ctx context.Context, c *maas.Client) error {
		_, err := call(ctx, c)
		return err
	}
}

// ignoreShape ignores the error for an object in place of a list, which the test's server sends.
func ignoreShape(err error) error {
	if err != nil && strings.Contains(err.Error(), "cannot unmarshal object") {
		return nil
	}
	return err
}

func TestHostileAnswers(t *testing.T) {
	for name, text := range map[string]string{
		"When the answer is null, it should not panic":            "null",
		"When a list holds null, it should not panic":             "[null, {}]",
		"When fields have other types, it should be an error":     `[{"status": "Ready"}]`,
		"When the answer is deeply nested, it should be an error": strings.Repeat("[", 20000),
		"When the answer is empty, it should be an error":         "",
		"When the answer has trailing data, it should ignore it":  "[] trailing",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var calls atomic.Int32
			c := newClient(t, maas.Config{Endpoint: answers(t, &calls, body(text)), Retry: maas.RetryPolicy{Attempts: -1}})
			_, err := c.ListMachines(t.Context(), maas.MachineFilter{})
			g.Expect(err != nil).To(Equal(strings.Contains(name, "should be an error")), "%v", err)
		})
	}
}
