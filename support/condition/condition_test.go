// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/hypershift/support/condition"
)

func TestMerge(t *testing.T) {
	long := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	existing := []metav1.Condition{
		{Type: "Available", Status: metav1.ConditionTrue, Reason: "AsExpected", LastTransitionTime: long},
		{Type: "Foreign", Status: metav1.ConditionTrue, Reason: "Theirs", LastTransitionTime: long},
	}
	t.Run("When the status does not change, it should keep the transition time and set the new message", func(t *testing.T) {
		g := NewWithT(t)
		got := condition.Merge(existing, 7, condition.True("Available", "AsExpected", "All is well"))
		g.Expect(got[0].LastTransitionTime).To(Equal(long))
		g.Expect(got[0].Message).To(Equal("All is well"))
		g.Expect(got[0].ObservedGeneration).To(BeEquivalentTo(7))
	})
	t.Run("When the status changes, it should update the transition time and keep the other conditions", func(t *testing.T) {
		g := NewWithT(t)
		got := condition.Merge(existing, 7, condition.False("Available", "Broken", ""))
		g.Expect(got[0].LastTransitionTime).NotTo(Equal(long))
		g.Expect(got[1]).To(Equal(existing[1]))
	})
	t.Run("When it merges conditions, it should not change its input", func(t *testing.T) {
		g := NewWithT(t)
		condition.Merge(existing, 7, condition.False("Available", "Broken", ""))
		g.Expect(existing[0].Status).To(Equal(metav1.ConditionTrue))
	})
}

func TestCopy(t *testing.T) {
	g := NewWithT(t)
	from := []metav1.Condition{condition.False("EtcdAvailable", "NoQuorum", "1 of 3 members")}
	g.Expect(condition.Copy(from, "EtcdAvailable", "StatusUnknown")).To(Equal(from[0]))
	g.Expect(condition.Copy(nil, "EtcdAvailable", "StatusUnknown").Status).To(Equal(metav1.ConditionUnknown))
	g.Expect(condition.Copy(nil, "EtcdAvailable", "StatusUnknown").Reason).To(Equal("StatusUnknown"))
}

func TestShorten(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"When the text fits, it should not change it":                  {"abc", 3, "abc"},
		"When the text is too long, it should truncate and mark it":    {"abcdef", 5, "ab..."},
		"When the limit falls inside a rune, it should drop that rune": {strings.Repeat("é", 4), 6, "é..."},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := condition.Shorten(tc.text, tc.limit)
			g.Expect(got).To(Equal(tc.want))
			g.Expect(utf8.ValidString(got)).To(BeTrue())
		})
	}
}

func TestCount(t *testing.T) {
	for want, n := range map[string]int{"0 machines": 0, "1 machine": 1, "2 machines": 2} {
		t.Run("When there are "+want+", it should return that text", func(t *testing.T) {
			NewWithT(t).Expect(condition.Count(n, "machine")).To(Equal(want))
		})
	}
}
