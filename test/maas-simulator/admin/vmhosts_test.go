// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

func TestVMHostLevers(t *testing.T) {
	composed := func(t *testing.T) *simtest.Site {
		site := simtest.New(t, simtest.WithVMHost)
		NewWithT(t).Expect(site.Do("admin", "POST", "vm-hosts/7/?op=compose", "hostname", "vm", "skip_commissioning", "true").Code).To(Equal(200))
		return site
	}
	tests := map[string]struct {
		lever   string
		code    int
		compose int
	}{
		"a host goes offline":              {"vm-hosts/lxd-1/away", 204, 503},
		"a host that is online comes back": {"vm-hosts/lxd-1/back", 204, 200},
		"a storage pool is full":           {"vm-hosts/lxd-1/fill?text=default", 204, 500},
		"a missing storage pool is full":   {"vm-hosts/lxd-1/fill?text=fast", 409, 200},
		"there is no such host":            {"vm-hosts/lxd-9/away", 404, 200},
		"there is no such lever":           {"vm-hosts/lxd-1/paint", 404, 200},
		"a VM is deleted in LXD":           {"machines/vm/lose", 204, 200},
		"bare metal is deleted in LXD":     {"machines/one/lose", 409, 200},
	}
	for name, test := range tests {
		t.Run("When "+name+", the next compose request should show the effect", func(t *testing.T) {
			g := NewWithT(t)
			site := composed(t)
			code, body := send(site, "POST /"+test.lever, "")
			g.Expect(code).To(Equal(test.code), body)
			g.Expect(site.Do("admin", "POST", "vm-hosts/7/?op=compose").Code).To(Equal(test.compose))
		})
	}
	g := NewWithT(t)
	site := composed(t)
	send(site, "POST /vm-hosts/lxd-1/away", "")
	_, body := send(site, "GET /vm-hosts", "")
	g.Expect(body).To(MatchJSON(`[{"name": "lxd-1", "away": true, "machines": ["vm"]}]`))
	send(site, "POST /machines/vm/lose", "")
	send(site, "POST /vm-hosts/lxd-1/back", "")
	site.Settle(time.Minute)
	g.Expect(site.Do("admin", "POST", "vm-hosts/7/?op=refresh").Code).To(Equal(200))
	g.Expect(site.Machine("vm")).To(BeNil())
}
