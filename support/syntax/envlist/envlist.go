// SPDX-License-Identifier: Apache-2.0

// Package envlist writes comma-separated lists, such as NO_PROXY and values of command line flags, and lists of
// key=value pairs. Neither format has escapes.
package envlist

import (
	"strings"

	"github.com/openshift/hypershift/support/syntax"
)

// Pair is a key and its value.
type Pair struct{ Key, Value string }

// Join writes a list. It refuses items that would be read as several items, as no item or as another item.
func Join(field string, items ...string) (string, error) {
	for _, item := range items {
		if err := check(field, item); err != nil {
			return "", err
		}
	}
	return strings.Join(items, ","), nil
}

// JoinPairs writes a list of key=value pairs.
func JoinPairs(field string, pairs ...Pair) (string, error) {
	items := make([]string, 0, len(pairs))
	for _, pair := range pairs {
		for _, part := range []string{pair.Key, pair.Value} {
			if err := check(field, part); err != nil {
				return "", err
			}
			if strings.Contains(part, "=") {
				return "", syntax.Refuse(field, "has an entry with an equals sign; remove it")
			}
		}
		items = append(items, pair.Key+"="+pair.Value)
	}
	return strings.Join(items, ","), nil
}

func check(field, item string) error {
	if err := syntax.Printable(field, item); err != nil {
		return err
	}
	switch {
	case item == "" || strings.TrimSpace(item) != item:
		return syntax.Refuse(field, "has an entry that is empty, or begins or ends with a space")
	case strings.Contains(item, ","):
		return syntax.Refuse(field, "has an entry with a comma; write each as an entry of its own")
	}
	return nil
}
