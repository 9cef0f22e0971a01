// SPDX-License-Identifier: Apache-2.0

// Package ini writes the INI dialect of AWS's client libraries. The libraries differ in how they read quotes, comments
// and spaces. Names and values therefore contain only the characters of regions, ARNs, file paths and keys, which all
// of them read alike.
package ini

import (
	"cmp"
	"strings"

	"github.com/openshift/hypershift/support/syntax"
)

// Pair is a key and its value.
type Pair struct {
	// Field names the value in errors; empty means the key.
	Field string
	// Key is a key that the client libraries know.
	Key string
	// Value is written unchanged.
	Value string
}

// Section writes a section with its pairs, in their order.
func Section(name string, pairs ...Pair) ([]byte, error) {
	if err := only(letters, "section name", name); err != nil {
		return nil, err
	}
	var text strings.Builder
	text.WriteString("[" + name + "]\n")
	for _, pair := range pairs {
		field := cmp.Or(pair.Field, pair.Key)
		if err := only(letters, "key", pair.Key); err != nil {
			return nil, err
		}
		if err := only(letters+others, field, pair.Value); err != nil {
			return nil, err
		}
		text.WriteString(pair.Key + " = " + pair.Value + "\n")
	}
	return []byte(text.String()), nil
}

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	others  = ".:/+=@,~"
)

// only returns an error if the text is empty or has other characters than allowed.
func only(allowed, field, text string) error {
	if text == "" {
		return syntax.Refuse(field, "is empty")
	}
	for i, r := range text {
		if !strings.ContainsRune(allowed, r) {
			return syntax.Refuse(field, "has a character at byte %d that is none of letters, digits and %s", i, allowed[52+10:])
		}
	}
	return nil
}
