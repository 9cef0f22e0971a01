// SPDX-License-Identifier: Apache-2.0

package machinetoken

import (
	"encoding/base64"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const (
	pool  = "11111111-2222-3333-4444-555555555555"
	other = "99999999-2222-3333-4444-555555555555"
)

func TestVerify(t *testing.T) {
	token := Derive([]byte(pool), "workers-a")
	for name, tt := range map[string]struct {
		token, pool string
		want        bool
	}{
		"it is the machine's own token":          {token, pool, true},
		"it was derived from another pool token": {token, other, false},
		"it names another machine":               {strings.Replace(token, "workers-a", "workers-b", 1), pool, false},
		"its digest was changed":                 {token[:len(token)-1] + "x", pool, false},
		"its digest was cut":                     {token[:len(token)-2], pool, false},
		"it has no digest":                       {"machine:workers-a:", pool, false},
		"it names no machine":                    {Derive([]byte(pool), ""), pool, false},
		"it is the pool token itself":            {pool, pool, false},
		"it has an extra character":              {token + ":", pool, false},
		"the pool has no token":                  {Derive(nil, "workers-a"), "", false},
		"it is written in upper case":            {strings.ToUpper(token), pool, false},
	} {
		t.Run("When a machine's token is verified and "+name+", Verify should accept only the machine's own token", func(t *testing.T) {
			NewWithT(t).Expect(Verify(tt.token, []byte(tt.pool))).To(Equal(tt.want))
		})
	}
}

func TestPersonalize(t *testing.T) {
	g := NewWithT(t)
	userData := []byte(`{"a":"Bearer ` + base64.StdEncoding.EncodeToString([]byte(pool)) + `","b":"Bearer somebody's"}`)
	mine := string(Personalize(userData, []byte(pool), "workers-a"))
	g.Expect(mine).NotTo(ContainSubstring(base64.StdEncoding.EncodeToString([]byte(pool))))
	g.Expect(mine).To(Equal(`{"a":"Bearer ` + base64.StdEncoding.EncodeToString([]byte(Derive([]byte(pool), "workers-a"))) + `","b":"Bearer somebody's"}`))
	g.Expect(Personalize(userData, nil, "workers-a")).To(Equal(userData), "without a token of the pool nothing is replaced")
	g.Expect(mine).NotTo(Equal(string(Personalize(userData, []byte(pool), "workers-b"))))
}

// FuzzVerify checks arbitrary tokens. Verify accepts only tokens that were derived from the pool's token for their
// machine.
func FuzzVerify(f *testing.F) {
	f.Add(Derive([]byte(pool), "workers-a"))
	f.Add(Derive([]byte(other), "workers-a"))
	f.Add("machine::")
	f.Add("machine:a:b:c")
	f.Add(pool)
	f.Fuzz(func(t *testing.T, token string) {
		machine, ok := Machine(token)
		verified := Verify(token, []byte(pool))
		if verified && (!ok || token != Derive([]byte(pool), machine)) {
			t.Errorf("%q is taken for the token of machine %q", token, machine)
		}
		if ok && !Verify(Derive([]byte(pool), machine), []byte(pool)) {
			t.Errorf("the token that is made for machine %q is not taken", machine)
		}
	})
}
