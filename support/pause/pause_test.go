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
		{"When pausedUntil is not set, it should not pause", nil, State{}},
		{"When pausedUntil is empty, it should not pause", ptr.To(""), State{}},
		{"When pausedUntil is false, it should not pause", ptr.To("false"), State{Text: "spec.pausedUntil is removed"}},
		{"When pausedUntil is true, it should pause indefinitely", ptr.To("true"), State{Paused: true, Text: "spec.pausedUntil is removed"}},
		{"When pausedUntil is True with a capital, it should pause, too", ptr.To("True"), State{Paused: true, Text: "spec.pausedUntil is removed"}},
		{"When pausedUntil is in the future, it should pause until then", ptr.To("2026-11-20T12:30:00Z"),
			State{Paused: true, For: 30 * time.Minute, Text: "2026-11-20T12:30:00Z"}},
		{"When pausedUntil is in the past, it should not pause", ptr.To("2026-11-20T11:30:00Z"), State{}},
		{"When pausedUntil is now, it should not pause", ptr.To("2026-11-20T12:00:00Z"), State{}},
		{"When pausedUntil cannot be parsed, it should be invalid and not pause", ptr.To("tomorrow"), State{Invalid: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(Until(tc.value, now)).To(Equal(tc.want))
		})
	}
}
