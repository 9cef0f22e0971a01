// SPDX-License-Identifier: Apache-2.0

// Package health lists which status of each condition is good, and finds the first condition that is not good.
package health

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Expectation is the good status of a condition.
type Expectation struct {
	// Type is the type of the condition.
	Type string
	// Good is the good status. Empty means that each status is good.
	Good metav1.ConditionStatus
	// Progress is true for a condition that reports a change on its way: another status is no fault.
	Progress bool
	// Faults are reasons that are a fault, whatever the status.
	Faults []string
	// Normal are reasons that are good, whatever the status.
	Normal []string
}

// Finding is a condition that is not good.
type Finding struct {
	metav1.Condition
	// Progress is true if the condition reports a change on its way, and no fault.
	Progress bool
}

// First returns the first condition that is not good. Faults precede changes on their way. It returns nil if all
// conditions are good. A condition that does not exist is good.
func First(conditions []metav1.Condition, expected []Expectation) *Finding {
	var moving *Finding
	for _, e := range expected {
		got := meta.FindStatusCondition(conditions, e.Type)
		if got == nil || e.accepts(got) {
			continue
		}
		found := &Finding{Condition: *got, Progress: e.Progress && !slices.Contains(e.Faults, got.Reason)}
		if !found.Progress {
			return found
		}
		if moving == nil {
			moving = found
		}
	}
	return moving
}

// accepts reports whether a condition is good.
func (e Expectation) accepts(c *metav1.Condition) bool {
	switch {
	case slices.Contains(e.Faults, c.Reason):
		return false
	case slices.Contains(e.Normal, c.Reason):
		return true
	}
	return e.Good == "" || c.Status == e.Good
}

// FirstNotTrue returns the first condition that is not True: for kinds whose conditions are all good when True. first
// is the type that summarizes the others.
func FirstNotTrue(conditions []metav1.Condition, first string) *Finding {
	expected := []Expectation{{Type: first, Good: metav1.ConditionTrue}}
	for i := range conditions {
		expected = append(expected, Expectation{Type: conditions[i].Type, Good: metav1.ConditionTrue})
	}
	return First(conditions, expected)
}

// String describes the finding on one line.
func (f *Finding) String() string {
	text := f.Type + " is " + string(f.Status)
	if f.Reason != "" {
		text += " (" + f.Reason + ")"
	}
	if f.Message != "" {
		text += ": " + strings.Join(strings.Split(strings.TrimSpace(f.Message), "\n"), "; ")
	}
	return text
}
