// SPDX-License-Identifier: Apache-2.0

package pause

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"k8s.io/utils/ptr"
)

func TestUntil(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name  string
		value *string
		want  State
	}{
		{"When it is not set it should not pause", nil, State{}},
		{"When it is empty it should not pause", ptr.To(""), State{}},
		{"When it is false it should not pause", ptr.To("false"), State{Text: "spec.pausedUntil is removed"}},
		{"When it is true it should pause without end", ptr.To("true"), State{Paused: true, Text: "spec.pausedUntil is removed"}},
		{"When true is written large it should pause too", ptr.To("True"), State{Paused: true, Text: "spec.pausedUntil is removed"}},
		{"When it is a later time it should pause that long", ptr.To("2026-11-20T12:30:00Z"),
			State{Paused: true, For: 30 * time.Minute, Text: "2026-11-20T12:30:00Z"}},
		{"When it is an earlier time it should not pause", ptr.To("2026-11-20T11:30:00Z"), State{}},
		{"When it is this moment it should not pause", ptr.To("2026-11-20T12:00:00Z"), State{}},
		{"When it is nonsense it should be invalid and not pause", ptr.To("tomorrow"), State{Invalid: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(Until(tc.value, now)).To(Equal(tc.want))
		})
	}
}
