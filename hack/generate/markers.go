// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"regexp"
	"strings"
)

// markers are the lines of a comment that begin with "+", without the "+".
type markers []string

// splitComment splits a comment into documentation and markers.
func splitComment(groups ...*ast.CommentGroup) (string, markers) {
	var doc []string
	var found markers
	for _, group := range groups {
		if group == nil {
			continue
		}
		for line := range strings.SplitSeq(group.Text(), "\n") {
			line = strings.TrimSpace(line)
			if marker, ok := strings.CutPrefix(line, "+"); ok {
				found = append(found, marker)
			} else if line != "" {
				doc = append(doc, line)
			}
		}
	}
	return strings.Join(doc, " "), found
}

func (m markers) has(name string) bool {
	for _, marker := range m {
		if marker == name {
			return true
		}
	}
	return false
}

// text returns the text after the first of the prefixes that exists.
func (m markers) text(prefixes ...string) string {
	for _, prefix := range prefixes {
		for _, marker := range m {
			if value, ok := strings.CutPrefix(marker, prefix); ok && !strings.HasPrefix(value, "=") {
				return strings.TrimPrefix(value, "=")
			}
		}
	}
	return ""
}

// value returns one argument of a marker that has several.
func (m markers) value(prefix, argument string) string {
	for part := range strings.SplitSeq(m.text(prefix), ",") {
		if value, ok := strings.CutPrefix(part, argument+"="); ok {
			return value
		}
	}
	return ""
}

var message = regexp.MustCompile("message=(?:`([^`]*)`|\"((?:[^\"\\\\]|\\\\.)*)\")")

// rules returns the messages of the CEL rules.
func (m markers) rules() []string {
	var messages []string
	for _, marker := range m {
		if !strings.HasPrefix(marker, "kubebuilder:validation:XValidation:") {
			continue
		}
		if match := message.FindStringSubmatch(marker); match != nil {
			messages = append(messages, match[1]+strings.ReplaceAll(match[2], `\"`, `"`))
		}
	}
	return messages
}

// bounds describes lengths and limits in words.
func (m markers) bounds() string {
	var parts []string
	for _, bound := range []struct{ marker, before, after string }{
		{"Minimum", "at least ", ""}, {"Maximum", "at most ", ""},
		{"MinLength", "at least ", " characters"}, {"MaxLength", "at most ", " characters"},
		{"MinItems", "at least ", " items"}, {"MaxItems", "at most ", " items"},
		{"MinProperties", "at least ", " entries"}, {"MaxProperties", "at most ", " entries"},
	} {
		if value := m.text("kubebuilder:validation:" + bound.marker + "="); value != "" {
			parts = append(parts, bound.before+value+bound.after)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	text := strings.Join(parts, ", ") + "."
	return strings.ToUpper(text[:1]) + text[1:]
}
