// SPDX-License-Identifier: Apache-2.0

// Package quantity parses the quantities that tenants write. resource.ParseQuantity accepts exponents of ten digits. To
// compare such a quantity, or to parse a very small one, a program computes a number of that many digits.
package quantity

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Pattern accepts the text that resource.Quantity decodes, with exponents of at most three digits. Kubernetes' own
// pattern also accepts exponents that do not fit an int64 and exponents with a fraction.
const Pattern = `^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?0*[0-9]{1,3})?$`

// MaxLength bounds the time that a program needs to decode a quantity.
const MaxLength = 256

var pattern = regexp.MustCompile(Pattern)

// Parse parses a quantity as resource.ParseQuantity does. It returns an error for text that does not match Pattern or
// is longer than MaxLength bytes.
func Parse(text string) (resource.Quantity, error) {
	if len(text) > MaxLength || !pattern.MatchString(text) {
		return resource.Quantity{}, fmt.Errorf(
			"%.20q is not a quantity; write a number with a unit, such as 500m or 8Gi", text)
	}
	return resource.ParseQuantity(text)
}
