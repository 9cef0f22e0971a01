// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"fmt"
	"math"
	"strings"
)

const validations = "x-kubernetes-validations"

const (
	// dateTimePattern accepts the times that time.Time decodes. The format date-time also accepts lower case letters
	// and offsets that do not exist.
	dateTimePattern = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?` +
		`(Z|[+-]([01][0-9]|2[0-4]):([0-5][0-9]|60))$`
	// quantityPattern accepts the text that resource.Quantity decodes. Kubernetes' own pattern also accepts exponents
	// that are no int64 and exponents with a fraction. An exponent of many digits would make a program that compares
	// the quantity allocate a number of that many digits.
	quantityPattern = `^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?0*[0-9]{1,3})?$`
	// quantityLength bounds the time that a program needs to decode a quantity.
	quantityLength = 256
	// durationPattern accepts the syntax of time.ParseDuration.
	durationPattern = `^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	// base64Pattern accepts what encoding/base64 decodes.
	base64Pattern = `^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`
)

// refuseArrays refuses each array, which the API server accepts in the place of text that has a format.
func refuseArrays(s object) {
	s["minItems"], s["maxItems"] = 1, 0
}

// boundDuration accepts the durations that Go decodes: CEL parses them in the same way. The format duration has a
// syntax of its own, and CEL then gets a value that is parsed already.
func boundDuration(s object) {
	if s["format"] == "duration" {
		boundPattern(durationPattern)(s)
	}
	addRule(s, `duration(self) >= duration('-2562047h')`,
		"must be a duration from -2562047h to 2562047h (292 years), such as 30m or 1h30m")
}

// boundNetwork accepts networks in CIDR form.
func boundNetwork(s object) {
	rules, _ := s[validations].([]any)
	for _, rule := range rules {
		if r, ok := rule.(object); ok && strings.Contains(fmt.Sprint(r["rule"]), "isCIDR(self)") {
			return
		}
	}
	addRule(s, `self == '' || isCIDR(self)`, "must be a network in CIDR form, such as 10.0.0.0/16")
}

// boundQuantity accepts the quantities that Go decodes soon. The pattern applies to text, and each integer is a
// quantity.
func boundQuantity(s object) {
	s["pattern"] = quantityPattern
	if s["maxLength"] == nil {
		s["maxLength"] = quantityLength
	}
}

// boundPattern returns a decoder of a type whose text has a pattern. A field with another pattern has that one as a
// rule.
func boundPattern(pattern string) decoder {
	return func(s object) {
		if before, ok := s["pattern"]; ok && before != pattern {
			addRule(s, fmt.Sprintf("self.matches(r'%s')", pattern), "must match "+pattern)
			return
		}
		s["pattern"] = pattern
	}
}

// boundInteger returns a decoder of integers in a range. Tighter bounds of the field stay. Text in the place of a
// number is not affected.
func boundInteger(low, high float64) decoder {
	return func(s object) {
		boundAtLeast(s, low)
		if now, ok := number(s["maximum"]); !ok || now > high {
			s["maximum"] = int64(high)
			delete(s, "exclusiveMaximum")
		}
	}
}

func boundAtLeast(s object, low float64) {
	if now, ok := number(s["minimum"]); !ok || now < low {
		s["minimum"] = int64(low)
		delete(s, "exclusiveMinimum")
	}
}

// number reads a number of a YAML document.
func number(value any) (float64, bool) {
	switch n := value.(type) {
	case float64:
		return n, true
	case int64:
		return float64(n), true
	case int:
		return float64(n), true
	}
	return math.NaN(), false
}

// addRule adds a CEL rule to those of a schema.
func addRule(s object, rule, message string) {
	rules, _ := s[validations].([]any)
	for _, now := range rules {
		if r, ok := now.(object); ok && r["rule"] == rule {
			return
		}
	}
	s[validations] = append(rules, object{"rule": rule, "message": message})
}
