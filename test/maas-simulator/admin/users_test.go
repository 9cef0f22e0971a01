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

	// A request is counted after its answer is written.
	g.Eventually(func() string {
		_, answer := send(site, "GET /requests?user=carol", "")
		return answer
	}).Should(ContainSubstring("whoami"))
	_, answer := send(site, "GET /requests?user=alice", "")
	g.Expect(answer).To(MatchJSON(`[]`))

	code, answer := send(site, "PUT /users/dave", `{"key": "only:two"}`)
	g.Expect(code).To(Equal(400))
	g.Expect(answer).To(ContainSubstring("consumer:token:secret"))
}
