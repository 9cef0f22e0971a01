// SPDX-License-Identifier: Apache-2.0

// Package systemd writes files that systemd reads.
package systemd

import (
	"cmp"
	"strings"

	"github.com/openshift/hypershift/support/syntax"
)

// Variable is an environment variable.
type Variable struct {
	// Field names the value in errors; empty means the name.
	Field string
	// Name is the name of the variable.
	Name string
	// Value is the value as systemd reads it.
	Value string
}

// quoted escapes the special characters between double quotes in an EnvironmentFile.
var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`)

// EnvironmentFile writes a file for EnvironmentFile=, in the order of the variables.
func EnvironmentFile(variables ...Variable) ([]byte, error) {
	var text strings.Builder
	for _, v := range variables {
		if !isName(v.Name) {
			return nil, syntax.Refuse(v.Name, "is not the name of an environment variable")
		}
		if err := syntax.Printable(cmp.Or(v.Field, v.Name), v.Value); err != nil {
			return nil, err
		}
		text.WriteString(v.Name + `="` + quoted.Replace(v.Value) + "\"\n")
	}
	return []byte(text.String()), nil
}

func isName(text string) bool {
	for i, r := range text {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return text != ""
}
