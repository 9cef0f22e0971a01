// SPDX-License-Identifier: Apache-2.0

// Package condition builds and reads status conditions by pure functions.
package condition

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limits of the API server's schema for a condition, in bytes.
const (
	MaxReason  = 1024
	MaxMessage = 32768
)

// True is a condition that holds.
func True(conditionType, reason, message string) metav1.Condition {
	return build(conditionType, metav1.ConditionTrue, reason, message)
}

// False is a condition that does not hold.
func False(conditionType, reason, message string) metav1.Condition {
	return build(conditionType, metav1.ConditionFalse, reason, message)
}

// Unknown is a condition that nobody has set yet.
func Unknown(conditionType, reason, message string) metav1.Condition {
	return build(conditionType, metav1.ConditionUnknown, reason, message)
}

func build(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type:    conditionType,
		Status:  status,
		Reason:  Shorten(reason, MaxReason),
		Message: Shorten(message, MaxMessage),
	}
}

// Merge returns existing with each of wanted in it, marked with the generation that it was observed at. A condition that
// keeps its status keeps its transition time, and conditions that wanted does not name stay as they are. existing is not
// changed.
func Merge(existing []metav1.Condition, generation int64, wanted ...metav1.Condition) []metav1.Condition {
	merged := append([]metav1.Condition(nil), existing...)
	for _, c := range wanted {
		c.ObservedGeneration = generation
		meta.SetStatusCondition(&merged, c)
	}
	return merged
}

// Copy takes conditionType from the conditions of another object, or says that it is not known yet.
func Copy(from []metav1.Condition, conditionType, unknownReason string) metav1.Condition {
	c := meta.FindStatusCondition(from, conditionType)
	if c == nil {
		return Unknown(conditionType, unknownReason, "Not reported yet")
	}
	return build(conditionType, c.Status, c.Reason, c.Message)
}

// IsTrue tells whether conditionType is there and true.
func IsTrue(conditions []metav1.Condition, conditionType string) bool {
	return meta.IsStatusConditionTrue(conditions, conditionType)
}

// Count says how many there are of what a noun names, whose plural ends in s: "1 machine", "2 machines".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Shorten cuts text to limit bytes at a rune's start and marks the cut.
func Shorten(text string, limit int) string {
	const mark = "..."
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}
