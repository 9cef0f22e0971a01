// SPDX-License-Identifier: Apache-2.0

// Package condition builds and reads status conditions with pure functions.
package condition

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The maximum lengths of a condition's fields in the API server's schema, in bytes.
const (
	MaxReason  = 1024
	MaxMessage = 32768
)

// True returns a condition with status True.
func True(conditionType, reason, message string) metav1.Condition {
	return build(conditionType, metav1.ConditionTrue, reason, message)
}

// False returns a condition with status False.
func False(conditionType, reason, message string) metav1.Condition {
	return build(conditionType, metav1.ConditionFalse, reason, message)
}

// Unknown returns a condition with status Unknown.
func Unknown(conditionType, reason, message string) metav1.Condition {
	return build(conditionType, metav1.ConditionUnknown, reason, message)
}

func build(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type:    conditionType,
		Status:  status,
		Reason:  Shorten(reason, MaxReason),
		Message: Shorten(Stable(message), MaxMessage),
	}
}

// Merge returns a copy of existing in which the given conditions are set for the observed generation. A condition that
// keeps its status keeps its transition time. Merge applies Stable to the given messages. Conditions that are not given
// do not change. Merge does not change existing.
func Merge(existing []metav1.Condition, generation int64, wanted ...metav1.Condition) []metav1.Condition {
	merged := append([]metav1.Condition(nil), existing...)
	for _, c := range wanted {
		c.ObservedGeneration, c.Message = generation, Stable(c.Message)
		meta.SetStatusCondition(&merged, c)
	}
	return merged
}

// Copy returns conditionType from the conditions of another object. If it is not there, Copy returns an unknown
// condition with unknownReason.
func Copy(from []metav1.Condition, conditionType, unknownReason string) metav1.Condition {
	c := meta.FindStatusCondition(from, conditionType)
	if c == nil {
		return Unknown(conditionType, unknownReason, "Not reported yet")
	}
	return build(conditionType, c.Status, c.Reason, c.Message)
}

// IsTrue reports whether conditionType is present and true.
func IsTrue(conditions []metav1.Condition, conditionType string) bool {
	return meta.IsStatusConditionTrue(conditions, conditionType)
}

// Count formats a number and a noun whose plural ends in s: "1 machine", "2 machines".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Shorten truncates text to limit bytes without splitting a rune, and ends truncated text with "...".
func Shorten(text string, limit int) string {
	const mark = "..."
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}
