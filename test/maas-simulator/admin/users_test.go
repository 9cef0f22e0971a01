// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

func TestUsers(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	ensure := func(name, body string) string {
		code, answer := send(site, "PUT /users/"+name, body)
		g.Expect(code).To(Equal(200), answer)
		var user struct{ Key string }
		g.Expect(json.Unmarshal([]byte(answer), &user)).To(Succeed())
		return user.Key
	}
	key := ensure("carol", `{"admin": true}`)
	g.Expect(ensure("carol", `{}`)).To(Equal(key), "the user is there already")

	g.Expect(site.Key("carol")).To(Equal(key))
	me := site.Do("carol", "GET", "users/?op=whoami").Object()
	g.Expect(me).To(And(HaveKeyWithValue("username", "carol"), HaveKeyWithValue("is_superuser", true)))

	code, answer := send(site, "GET /requests?user=carol", "")
	g.Expect(code).To(Equal(200))
	g.Expect(answer).To(ContainSubstring("whoami"))
	_, answer = send(site, "GET /requests?user=alice", "")
	g.Expect(answer).To(MatchJSON(`[]`))

	code, answer = send(site, "PUT /users/dave", `{"key": "only:two"}`)
	g.Expect(code).To(Equal(400))
	g.Expect(answer).To(ContainSubstring("consumer:token:secret"))
}

// TestFaultOfAUser verifies that a fault of one user does not affect requests of other users.
func TestFaultOfAUser(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	code, answer := send(site, "POST /faults",
		`{"kind": "error", "operation": "zones.read", "status": 502, "user": "alice"}`)
	g.Expect(code).To(Equal(201), answer)
	g.Expect(site.Do("alice", "GET", "zones/").Code).To(Equal(502))
	g.Expect(site.Do("bob", "GET", "zones/").Code).To(Equal(200))
	g.Expect(site.Do("", "GET", "zones/").Code).To(Equal(401))
}
