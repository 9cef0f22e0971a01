// SPDX-License-Identifier: Apache-2.0

package maas_test

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/maas"
)

func ranges(t *testing.T, text string) []netip.Prefix {
	t.Helper()
	prefixes, err := maas.ParsePrefixes(text)
	if err != nil {
		t.Fatal(err)
	}
	return prefixes
}

// TestGuardRefuses checks addresses that only the calling host can reach. With such an address as the MAAS endpoint, a
// tenant could read data without permission.
func TestGuardRefuses(t *testing.T) {
	for name, address := range map[string]string{
		"the host itself":                                        "127.0.0.1:5240",
		"another address of the host":                            "127.8.8.8:80",
		"the unspecified address":                                "0.0.0.0:80",
		"a cloud metadata service":                               "169.254.169.254:80",
		"a multicast group":                                      "224.0.0.1:80",
		"everybody on the link":                                  "255.255.255.255:80",
		"the metadata service of Alibaba Cloud":                  "100.100.100.200:80",
		"the metadata service of Oracle Cloud":                   "192.0.0.192:80",
		"the host itself, over IPv6":                             "[::1]:5240",
		"the unspecified address, over IPv6":                     "[::]:80",
		"a link-local address, over IPv6":                        "[fe80::1]:80",
		"a link-local address with a zone":                       "[fe80::1%eth0]:80",
		"a multicast group, over IPv6":                           "[ff02::1]:80",
		"the metadata service of AWS, over IPv6":                 "[fd00:ec2::254]:80",
		"the metadata service of Google, over IPv6":              "[fd20:ce::254]:80",
		"the host itself, as an IPv4-mapped address":             "[::ffff:127.0.0.1]:80",
		"a cloud metadata service, as an IPv4-mapped address":    "[::ffff:a9fe:a9fe]:80",
		"a cloud metadata service, through NAT64":                "[64:ff9b::a9fe:a9fe]:80",
		"the host itself, as an IPv4-compatible address":         "[::7f00:1]:80",
		"the host itself, as an IPv4-mapped address with a zone": "[::ffff:127.0.0.1%eth0]:80",
		"what is no address, as after a change of net":           "maas.example.com:80",
		"an address without a port":                              "10.0.0.1",
		"nothing":                                                "",
	} {
		t.Run("When the endpoint is "+name+", it should be blocked", func(t *testing.T) {
			var refused *maas.RefusedAddressError
			err := (&maas.Guard{}).Control("tcp", address, nil)
			NewWithT(t).Expect(errors.As(err, &refused)).To(BeTrue(), "%s: %v", address, err)
		})
	}
}

func TestGuardAllows(t *testing.T) {
	for _, address := range []string{
		"10.0.0.5:5240", "172.16.0.1:5240", "192.168.1.1:443", "100.64.0.1:443", "203.0.113.7:443", "[fd00:1::5]:443", "[2001:db8::5]:443",
		// The addresses next to the blocked ranges.
		"1.0.0.1:80", "126.255.255.255:80", "128.0.0.1:80", "169.253.255.255:80", "169.255.0.1:80", "223.255.255.255:80",
		"100.100.100.199:80", "100.100.100.201:80", "192.0.0.191:80", "192.0.0.193:80",
		"[fd00:ec2::253]:80", "[fd20:ce::255]:80", "[fec0::1]:80", "[64:ff9b::a00:5]:443", "[::ffff:10.0.0.5]:443",
	} {
		t.Run("When the endpoint is at "+address+", it should be allowed", func(t *testing.T) {
			NewWithT(t).Expect((&maas.Guard{}).Control("tcp", address, nil)).To(Succeed())
		})
	}
	t.Run("When there is no guard, it should allow every address", func(t *testing.T) {
		NewWithT(t).Expect((*maas.Guard)(nil).Control("tcp", "127.0.0.1:80", nil)).To(Succeed())
	})
}

func TestGuardOfAnAdministrator(t *testing.T) {
	for name, tc := range map[string]struct {
		guard   maas.Guard
		address string
		refused bool
	}{
		"When the management network is refused, it should block addresses in it": {
			maas.Guard{Refuse: ranges(t, "10.1.0.0/16")}, "10.1.2.3:6443", true},
		"When the management network is refused, it should allow other networks": {
			maas.Guard{Refuse: ranges(t, "10.1.0.0/16")}, "10.2.2.3:5240", false},
		"When the management network is refused, it should block its NAT64 form, too": {
			maas.Guard{Refuse: ranges(t, "10.1.0.0/16")}, "[64:ff9b::a01:203]:6443", true},
		"When one address in a refused network is allowed, it should allow that address": {
			maas.Guard{Refuse: ranges(t, "10.1.0.0/16"), Allow: ranges(t, "10.1.2.3/32")}, "10.1.2.3:5240", false},
		"When one address in a refused network is allowed, it should block its neighbour": {
			maas.Guard{Refuse: ranges(t, "10.1.0.0/16"), Allow: ranges(t, "10.1.2.3/32")}, "10.1.2.4:5240", true},
		"When the host itself is allowed, it should allow its address": {
			maas.Guard{Allow: ranges(t, "127.0.0.0/8")}, "127.0.0.1:5240", false},
		"When the host itself is allowed over IPv4, it should block it over IPv6": {
			maas.Guard{Allow: ranges(t, "127.0.0.0/8")}, "[::1]:5240", true},
		"When an IPv6 range is allowed, it should not apply to IPv4 addresses": {
			maas.Guard{Allow: ranges(t, "::/0")}, "127.0.0.1:5240", true},
		"When the cluster's API server is refused, it should block it": {
			maas.Guard{RefuseAt: []netip.AddrPort{netip.MustParseAddrPort("10.96.0.1:443")}}, "10.96.0.1:443", true},
		"When the cluster's API server is refused, it should block its IPv4-mapped form, too": {
			maas.Guard{RefuseAt: []netip.AddrPort{netip.MustParseAddrPort("10.96.0.1:443")}}, "[::ffff:10.96.0.1]:443", true},
		"When the IPv4-mapped form of the cluster's API server is refused, it should block its IPv4 address": {
			maas.Guard{RefuseAt: []netip.AddrPort{netip.MustParseAddrPort("[::ffff:10.96.0.1]:443")}}, "10.96.0.1:443", true},
		"When the cluster's API server is refused, it should allow other ports of its address": {
			maas.Guard{RefuseAt: []netip.AddrPort{netip.MustParseAddrPort("10.96.0.1:443")}}, "10.96.0.1:5240", false},
		"When the cluster's API server is refused, it should allow its port on other addresses": {
			maas.Guard{RefuseAt: []netip.AddrPort{netip.MustParseAddrPort("10.96.0.1:443")}}, "10.96.0.2:443", false},
		"When the cluster's API server is both refused and allowed, it should allow it": {
			maas.Guard{RefuseAt: []netip.AddrPort{netip.MustParseAddrPort("10.96.0.1:443")}, Allow: ranges(t, "10.96.0.0/24")}, "10.96.0.1:443", false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(tc.guard.Control("tcp", tc.address, nil) != nil).To(Equal(tc.refused))
		})
	}
}

func TestNewGuard(t *testing.T) {
	inPod := func(t *testing.T, host, port string) {
		t.Helper()
		t.Setenv("KUBERNETES_SERVICE_HOST", host)
		t.Setenv("KUBERNETES_SERVICE_PORT", port)
	}
	t.Run("When it runs in a Pod, it should block the API server of the Pod's cluster", func(t *testing.T) {
		g := NewWithT(t)
		inPod(t, "10.96.0.1", "443")
		guard, err := maas.NewGuard("", "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(guard.Control("tcp", "10.96.0.1:443", nil)).NotTo(Succeed())
		g.Expect(guard.Control("tcp", "10.96.0.1:5240", nil)).To(Succeed())
	})
	t.Run("When the Pod's cluster uses IPv6, it should block its API server, too", func(t *testing.T) {
		g := NewWithT(t)
		inPod(t, "fd00:96::1", "443")
		guard, err := maas.NewGuard("", "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(guard.Control("tcp", "[fd00:96::1]:443", nil)).NotTo(Succeed())
	})
	t.Run("When it does not run in a Pod, it should still create the guard", func(t *testing.T) {
		g := NewWithT(t)
		inPod(t, "", "")
		guard, err := maas.NewGuard("", "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(guard.RefuseAt).To(BeEmpty())
	})
	t.Run("When the operator lists addresses, it should block each at its port only", func(t *testing.T) {
		g := NewWithT(t)
		inPod(t, "10.96.0.1", "443")
		t.Setenv(maas.EnvRefuseAddresses, "10.0.0.5:6443, [fd00::5]:6443,")
		guard, err := maas.NewGuard("", "")
		g.Expect(err).NotTo(HaveOccurred())
		for address, called := range map[string]bool{"10.0.0.5:6443": false, "[fd00::5]:6443": false, "10.96.0.1:443": false,
			"10.0.0.5:5240": true} {
			g.Expect(guard.Control("tcp", address, nil) == nil).To(Equal(called), address)
		}
		t.Setenv(maas.EnvRefuseAddresses, "10.0.0.5")
		_, err = maas.NewGuard("", "")
		g.Expect(err).To(MatchError(And(ContainSubstring("MAAS_REFUSE_ADDRESSES"), ContainSubstring("10.0.0.5:6443"))))
	})
	t.Run("When it gets both allowed and refused ranges, it should keep them apart", func(t *testing.T) {
		g := NewWithT(t)
		inPod(t, "", "")
		guard, err := maas.NewGuard("127.0.0.0/8", "10.0.0.0/8, fd00::/8,")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(guard.Control("tcp", "127.0.0.1:80", nil)).To(Succeed())
		g.Expect(guard.Control("tcp", "10.0.0.1:80", nil)).NotTo(Succeed())
		g.Expect(guard.Control("tcp", "[fd00::1]:80", nil)).NotTo(Succeed())
		g.Expect(guard.Control("tcp", "11.0.0.1:80", nil)).To(Succeed())
	})
	for name, lists := range map[string][2]string{
		"the allowed range is invalid": {"10.0.0.1", ""}, "the refused range is invalid": {"10.0.0.0/8", "10.0.0.0/8,ten"},
	} {
		t.Run("When "+name+", it should return an error and no guard", func(t *testing.T) {
			g := NewWithT(t)
			guard, err := maas.NewGuard(lists[0], lists[1])
			g.Expect(err).To(MatchError(ContainSubstring("is not a range")))
			g.Expect(guard).To(BeNil())
		})
	}
}

func TestParsePrefixes(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ranges(t, " , ")).To(BeEmpty())
	g.Expect(ranges(t, "10.1.2.3/8")).To(Equal([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}), "bits behind the mask count for nothing")
	g.Expect(ranges(t, " 10.0.0.0/8 ,,fd00::/8")).To(HaveLen(2))
	_, err := maas.ParsePrefixes("10.0.0.0/8,10.0.0.0/33")
	g.Expect(err).To(MatchError(And(ContainSubstring(`"10.0.0.0/33"`), ContainSubstring("10.0.0.0/8"))))
}

// TestGuardStopsCalls tests the complete call, by address and by name. For a name, the guard checks the resolved
// address.
func TestGuardStopsCalls(t *testing.T) {
	var calls atomic.Int32
	endpoint := answers(t, &calls, body(`{"version": "3.6.5"}`))
	for name, at := range map[string]string{"an address": endpoint, "a name": strings.Replace(endpoint, "127.0.0.1", "localhost", 1)} {
		t.Run("When a tenant names the host by "+name+", it should send nothing", func(t *testing.T) {
			g := NewWithT(t)
			_, err := newClient(t, maas.Config{Endpoint: at, Guard: &maas.Guard{}}).DeployMachine(t.Context(), "wq4h8c", maas.DeployRequest{})
			var refused *maas.RefusedAddressError
			g.Expect(errors.As(err, &refused)).To(BeTrue(), "%v", err)
			g.Expect(maas.IsUnreachable(err)).To(BeTrue())
			g.Expect(maas.IsUncertain(err)).To(BeFalse(), "nothing was done")
			g.Expect(err).To(MatchError(ContainSubstring("--maas-allow-cidrs")), "it says who can allow it")
			g.Expect(calls.Load()).To(BeZero())
		})
	}
	t.Run("When an administrator allows the host, it should call it", func(t *testing.T) {
		g := NewWithT(t)
		_, err := newClient(t, maas.Config{Endpoint: endpoint, Guard: &maas.Guard{Allow: ranges(t, "127.0.0.0/8")}}).GetVersion(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("When an allowed server redirects the call, it should not follow the redirect", func(t *testing.T) {
		g := NewWithT(t)
		var led, followed atomic.Int32
		elsewhere := answers(t, &followed, body("{}"))
		at := answers(t, &led, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		})
		_, err := newClient(t, maas.Config{Endpoint: at}).GetVersion(t.Context())
		g.Expect(err).To(MatchError(ContainSubstring("redirects to another URL")))
		g.Expect(led.Load()).To(BeEquivalentTo(1), "asking again would end as it did")
		g.Expect(followed.Load()).To(BeZero(), "a redirect would carry the API key to another host")
	})
}
