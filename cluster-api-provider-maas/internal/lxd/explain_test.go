// SPDX-License-Identifier: Apache-2.0

package lxd_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/support/maas"
)

// told returns the reason of the refusal, and the part of its message after "asked for ...; ".
func told(t *testing.T, request lxd.Request, hosts []lxd.Host, peers ...lxd.Peer) (reason, text string) {
	t.Helper()
	choice, refusal := lxd.Select(request, hosts, now, peers, nil)
	if choice != nil {
		t.Fatalf("it goes to %s", choice.Host.Name)
	}
	_, text, found := strings.Cut(refusal.Message, "; ")
	if !found {
		t.Fatalf("it says only %q", refusal.Message)
	}
	return refusal.Reason, text
}

// TestWhatIsWrongWithHosts checks that each missing requirement has its own text, in the singular and the plural, and
// its reason.
func TestWhatIsWrongWithHosts(t *testing.T) {
	t.Parallel()
	projected := func(hosts []lxd.Host) {
		for i := range hosts {
			hosts[i].Project = "default"
		}
	}
	drained := func(h *maas.VMHost) { h.Tags = []string{maas.DrainTag} }
	pools := stores(map[string]int64{"default": 1e12, "hdd": 1e12})
	const maasProfile = "MAAS composes with LXD profile maas, or default if the project has no profile maas: remove the profile from the request, and choose a project whose profile maas has the desired settings"
	for name, tc := range map[string]struct {
		request func(*lxd.Request)
		host    func(*maas.VMHost)
		reason  string
		one     string
		many    string
	}{
		"another name": {func(w *lxd.Request) { w.VMHost = "z" }, nil, lxd.ReasonHostUnavailable, "is not named z; there are: a", "are not named z; there are: a, b"},
		"another project": {func(w *lxd.Request) { w.Project = "p" }, nil, lxd.ReasonProjectNotFound,
			`is in LXD project "default"; register the host with MAAS in that project, or name another`,
			`are in LXD project "default"; register the host with MAAS in that project, or name another`},
		"a profile that MAAS cannot select": {func(w *lxd.Request) { w.Profile = "gpu" }, nil, lxd.ReasonProfileNotFound,
			"is without support for choosing profile gpu; " + maasProfile, "are without support for choosing profile gpu; " + maasProfile},
		"another zone":         {func(w *lxd.Request) { w.Zones = []string{"az8", "az9"} }, nil, lxd.ReasonHostUnavailable, "is in zone az1", "are in zone az1"},
		"another pool":         {func(w *lxd.Request) { w.ResourcePool = "gold" }, nil, lxd.ReasonHostUnavailable, "is in resource pool default", "are in resource pool default"},
		"another architecture": {func(w *lxd.Request) { w.Architecture = "amd64/hwe" }, nil, lxd.ReasonHostUnavailable, "is of architecture amd64/generic", "are of architecture amd64/generic"},
		"an architecture that only starts with the requested name": {func(w *lxd.Request) { w.Architecture = "amd" }, nil, lxd.ReasonHostUnavailable, "is of architecture amd64/generic", "are of architecture amd64/generic"},
		"a drain":       {func(*lxd.Request) {}, drained, lxd.ReasonHostUnavailable, "is being drained (tag hypershift-drain)", "are being drained (tag hypershift-drain)"},
		"a missing tag": {func(w *lxd.Request) { w.Tags = []string{"ssd"} }, nil, lxd.ReasonHostUnavailable, "lacks tag ssd", "lack tag ssd"},
		"an unwanted tag": {func(w *lxd.Request) { w.NotTags = []string{"slow"} }, func(h *maas.VMHost) { h.Tags = []string{"slow"} }, lxd.ReasonHostUnavailable,
			"has the unwanted tag slow", "have the unwanted tag slow"},
		"no such storage pool": {func(w *lxd.Request) { w.Store = "nvme" }, pools, lxd.ReasonStoragePoolNotFound,
			"has no storage pool nvme; there are: default, hdd", "have no storage pool nvme; there are: default, hdd"},
		"too few cores":     {func(w *lxd.Request) { w.Cores = 17 }, nil, lxd.ReasonInsufficientResources, "lacks 17 cores", "lack 17 cores"},
		"too little memory": {func(w *lxd.Request) { w.MemoryMiB = 65537 }, nil, lxd.ReasonInsufficientResources, "lacks 65537 MiB of memory", "lack 65537 MiB of memory"},
		"too little disk":   {func(w *lxd.Request) { w.DiskGB = 1001 }, nil, lxd.ReasonInsufficientResources, "lacks 1001 GB of disk", "lack 1001 GB of disk"},
		"a full storage pool": {func(w *lxd.Request) { w.DiskGB, w.Store = 1001, "hdd" }, pools, lxd.ReasonInsufficientResources,
			"lacks 1001 GB of disk in storage pool hdd", "lack 1001 GB of disk in storage pool hdd"},
	} {
		for names, want := range map[string]string{"a": "1 host: 1 " + tc.one, "a b": "2 hosts: 2 " + tc.many} {
			t.Run("When hosts "+names+" have "+name+", the message should name the problem", func(t *testing.T) {
				t.Parallel()
				var listed []maas.VMHost
				for _, name := range strings.Fields(names) {
					h := host(name)
					if tc.host != nil {
						tc.host(&h)
					}
					listed = append(listed, h)
				}
				hosts := lxd.Available(listed)
				projected(hosts)
				reason, text := told(t, with(small, tc.request), hosts)
				if reason != tc.reason {
					t.Errorf("the reason is %s", reason)
				}
				if diff := cmp.Diff(want, text); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		}
	}
}

// TestSuits checks that a matching host is found even if other hosts do not match.
func TestSuits(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]func(*lxd.Request){
		"the request names the host":                        func(w *lxd.Request) { w.VMHost = "good" },
		"the request names the project":                     func(w *lxd.Request) { w.Project = "p" },
		"the request names the project and profile maas":    func(w *lxd.Request) { w.Project, w.Profile = "p", "maas" },
		"the request names the host and profile default":    func(w *lxd.Request) { w.VMHost, w.Profile = "good", "default" },
		"the request requires a tag of the host":            func(w *lxd.Request) { w.Tags = []string{"ssd"} },
		"the request excludes a tag of another host":        func(w *lxd.Request) { w.NotTags = []string{"slow", "nobody's"} },
		"the request requires all tags of the host":         func(w *lxd.Request) { w.Tags = []string{"ssd", "rack7"} },
		"the request names a storage pool of the host":      func(w *lxd.Request) { w.Store = "nvme" },
		"the request names an architecture of the host":     func(w *lxd.Request) { w.Architecture = "arm64/generic" },
		"siblings must be apart":                            func(w *lxd.Request) { w.Apart = true },
		"the last of the allowed zones is that of the host": func(w *lxd.Request) { w.Zones = []string{"az7", "az2"} },
		"the request requires and excludes tags":            func(w *lxd.Request) { w.Tags, w.NotTags = []string{"rack7"}, []string{"slow"} },
	} {
		t.Run("When "+name+", that host should be selected", func(t *testing.T) {
			t.Parallel()
			good := host("good", in("az2"), using(12, 0), stores(map[string]int64{"nvme": 1e12}))
			good.Tags, good.Architectures = []string{"rack7", "ssd"}, []string{"amd64/generic", "arm64/generic"}
			bad := host("bad", stores(map[string]int64{"default": 1e12}))
			bad.Tags = []string{"slow", "ssd2"}
			hosts := lxd.Available([]maas.VMHost{bad, good})
			hosts[1].Project = "p"
			choice, refusal := lxd.Select(with(small, request), hosts, now, []lxd.Peer{peer("1", "bad", "az1")}, nil)
			if choice == nil || choice.Host.Name != "good" {
				t.Errorf("it is %+v; %s", choice, refusal.Message)
			}
		})
	}
}

// TestLeftAfter checks that the free share after placing the machine decides, not the share before. A large host may
// have more left than an emptier small one.
func TestLeftAfter(t *testing.T) {
	t.Parallel()
	large := host("large", func(h *maas.VMHost) { h.Total.Cores, h.Available.Cores = 100, 50 })
	little := host("little", func(h *maas.VMHost) { h.Total.Cores, h.Available.Cores = 10, 6 })
	choice, refusal := lxd.Select(cores(4), lxd.Available([]maas.VMHost{little, large}), now, nil, nil)
	if choice == nil || choice.Host.Name != "large" {
		t.Errorf("it goes to %+v; %s", choice, refusal.Message)
	}
	large.Total, large.Available = maas.Resources{Cores: 16, Memory: 100000, LocalStorage: 1e12}, maas.Resources{Cores: 16, Memory: 50000, LocalStorage: 1e12}
	little.Total, little.Available = maas.Resources{Cores: 16, Memory: 10000, LocalStorage: 1e12}, maas.Resources{Cores: 16, Memory: 6000, LocalStorage: 1e12}
	choice, refusal = lxd.Select(small, lxd.Available([]maas.VMHost{little, large}), now, nil, nil)
	if choice == nil || choice.Host.Name != "large" {
		t.Errorf("by memory it goes to %+v; %s", choice, refusal.Message)
	}
}

// TestReasonOfTheClosest checks that the reason is the problem of the host that meets the most constraints, which is
// the easiest to fix.
func TestReasonOfTheClosest(t *testing.T) {
	t.Parallel()
	hosts := lxd.Available([]maas.VMHost{host("d", in("az8")), host("c", in("az9")), host("a", using(15, 0)), host("b", in("az9"))})
	request := with(small, func(w *lxd.Request) { w.Zones = []string{"az1"} })
	reason, text := told(t, request, hosts)
	if reason != lxd.ReasonInsufficientResources {
		t.Errorf("the reason is %s", reason)
	}
	if diff := cmp.Diff("4 hosts: 2 are in zone az9, 1 lacks 2 cores, 1 is in zone az8", text); diff != "" {
		t.Errorf("what most hosts lack comes first (-want +got):\n%s", diff)
	}
}

// TestNamedHostThatIsThere checks that the existing hosts are listed only if the requested name does not exist.
func TestNamedHostThatIsThere(t *testing.T) {
	t.Parallel()
	hosts := lxd.Available([]maas.VMHost{host("a"), host("b")})
	_, text := told(t, with(small, func(w *lxd.Request) { w.Zones = []string{"az9"} }), hosts)
	if diff := cmp.Diff("2 hosts: 2 are in zone az1", text); diff != "" {
		t.Error(diff)
	}
}

// TestApart covers anti-affinity when every host has a sibling: the machine waits until one is gone. A sibling that is
// being deleted does not count.
func TestApart(t *testing.T) {
	t.Parallel()
	apart := with(small, func(w *lxd.Request) { w.Apart = true })
	hosts := lxd.Available([]maas.VMHost{host("a"), host("b")})
	siblings := []lxd.Peer{peer("1", "a", "az1"), peer("2", "b", "az1")}
	reason, text := told(t, apart, hosts, siblings...)
	if diff := cmp.Diff([]string{lxd.ReasonInsufficientResources, "2 hosts: 2 have a machine of the pool"}, []string{reason, text}); diff != "" {
		t.Error(diff)
	}
	for name, change := range map[string]func(*lxd.Peer){
		"leaves":             func(p *lxd.Peer) { p.Leaving = true },
		"is of another pool": func(p *lxd.Peer) { p.Group = "q" },
	} {
		choice, refusal := lxd.Select(apart, hosts, now, []lxd.Peer{siblings[0], peer("2", "b", "az1", change)}, nil)
		if choice == nil || choice.Host.Name != "b" {
			t.Errorf("beside one that %s: %+v %s", name, choice, refusal.Message)
		}
	}
	if choice, refusal := lxd.Select(small, hosts, now, siblings, nil); choice == nil {
		t.Errorf("who need not be apart has a place: %s", refusal.Message)
	}
}

// TestRequestMessage checks that the message names each requirement that narrows the choice.
func TestRequestMessage(t *testing.T) {
	t.Parallel()
	request := lxd.Request{Cores: 1, MemoryMiB: 1024, DiskGB: 8, VMHost: "h", Project: "p", Zones: []string{"az1", "az2"}, ResourcePool: "gold", Tags: []string{"ssd", "rack7"}}
	want := "1 core, 1024 MiB of memory and a disk of 8 GB on host h in LXD project p in zone az1 or az2 in resource pool gold on hosts with tags ssd, rack7"
	if diff := cmp.Diff(want, request.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
