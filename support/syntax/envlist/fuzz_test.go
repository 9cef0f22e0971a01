// SPDX-License-Identifier: Apache-2.0

package envlist_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/syntax/envlist"
)

func FuzzJoin(f *testing.F) {
	f.Add("a", "b")
	f.Add("a,b", "c")
	f.Add("", "c")
	f.Add(" a", "c\n")
	f.Fuzz(func(t *testing.T, a, b string) {
		text, err := envlist.Join("spec.list", a, b)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "spec.list ") {
				t.Errorf("the error names no field: %v", err)
			}
			return
		}
		NewWithT(t).Expect(strings.Split(text, ",")).To(Equal([]string{a, b}))
	})
}

func FuzzJoinPairs(f *testing.F) {
	f.Add("quay.io/okd", "mirror.example/okd")
	f.Add("a=evil.example,quay.io", "mirror.example")
	f.Add("quay.io", "mirror.example,b=c")
	f.Fuzz(func(t *testing.T, key, value string) {
		text, err := envlist.JoinPairs("spec.list", envlist.Pair{Key: key, Value: value},
			envlist.Pair{Key: "last", Value: "1"})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "spec.list ") {
				t.Errorf("the error names no field: %v", err)
			}
			return
		}
		items := strings.Split(text, ",")
		g := NewWithT(t)
		g.Expect(items).To(HaveLen(2))
		g.Expect(strings.Split(items[0], "=")).To(Equal([]string{key, value}))
		g.Expect(items[1]).To(Equal("last=1"))
	})
}
