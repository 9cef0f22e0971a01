// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/openshift/hypershift/support/quantity"
)

const validations = "x-kubernetes-validations"

const (
	// dateTimePattern accepts the times that time.Time decodes. The format date-time also accepts lower case letters and
	// offsets that do not exist.
	dateTimePattern = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?` +
		`(Z|[+-]([01][0-9]|2[0-4]):([0-5][0-9]|60))$`
	// durationPattern accepts up to nine parts with so few digits that no sum of them exceeds a time.Duration. It
	// accepts up to 999999 hours as the first part, and the longest duration as Go writes it. CEL's duration()
	// accepts every duration, but a rule with it fails for invalid text. The API server would then reject each update
	// of an object that was stored with such text, even an update of its finalizers.
	durationPattern = `^[+-]?(0|(0*[0-9]{1,5}(\.[0-9]*)?h|0*[0-9]{1,7}(\.[0-9]*)?m|0*[0-9]{1,9}(\.[0-9]*)?s` +
		`|0*[0-9]{1,12}(\.[0-9]*)?ms|0*[0-9]{1,15}(\.[0-9]*)?(us|µs|μs)|0*[0-9]{1,18}(\.[0-9]*)?ns` +
		`|\.[0-9]+(h|m|s|ms|us|µs|μs|ns)){1,9}` +
		`|0*[0-9]{6}(\.[0-9]*)?h([0-9]{1,7}(\.[0-9]*)?m)?([0-9]{1,9}(\.[0-9]*)?s)?|2562047h47m16\.854775807s)$`
	// durationLength limits the cost of a rule for a duration. Go writes at most 24 characters.
	durationLength = 64
	// base64Pattern accepts what encoding/base64 decodes.
	base64Pattern = `^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`
)

// refuseArrays rejects all arrays, which the API server accepts instead of strings that have a format.
func refuseArrays(s object) {
	s["minItems"], s["maxItems"] = 1, 0
}

// boundNetwork accepts networks in CIDR form.
func boundNetwork(s object, _ string) {
	rules, _ := s[validations].([]any)
	for _, rule := range rules {
		if r, ok := rule.(object); ok && strings.Contains(fmt.Sprint(r["rule"]), "isCIDR(self)") {
			return
		}
	}
	addRule(s, `self == '' || isCIDR(self)`, "must be a network in CIDR form, such as 10.0.0.0/16")
}

// boundDuration accepts the durations that Go decodes.
func boundDuration(s object, path string) {
	boundText(s, path, durationPattern, durationLength,
		"self.matches(r'%s')", "a duration of at most 999999h, such as 30m or 1h30m")
}

// boundQuantity accepts the quantities that Go decodes in a short time. Each integer is a quantity.
func boundQuantity(s object, path string) {
	delete(s, "pattern") // Remove Kubernetes' own pattern.
	boundText(s, path, quantity.Pattern, quantity.MaxLength,
		"type(self) == int || self.matches(r'%s')", "a quantity such as 8Gi")
}

// boundText bounds a string with a rule whose message describes the valid form. For a pattern, the API server reports
// only the pattern. A field with its own rule keeps it: the tests of support/kinds prove that Go decodes what that rule
// accepts. A field in a list gets a pattern, since rules for each item cost too much. So does a field with a format,
// which CEL may have parsed.
func boundText(s object, path, pattern string, length int, rule, form string) {
	if s["maxLength"] == nil {
		s["maxLength"] = length
	}
	switch name := path[strings.LastIndex(path, ".")+1:]; {
	case hasForm(s):
	case strings.ContainsAny(path, "[{"), s["format"] != nil:
		boundPattern(pattern)(s, path)
	default:
		addRule(s, fmt.Sprintf(rule, pattern), fmt.Sprintf("%s must be %s", name, form))
	}
}

// hasForm reports whether a rule of a schema bounds its text.
func hasForm(s object) bool {
	rules, _ := s[validations].([]any)
	return slices.ContainsFunc(rules, func(rule any) bool {
		r, _ := rule.(object)
		text := fmt.Sprint(r["rule"])
		return !strings.Contains(text, "oldSelf") &&
			(strings.Contains(text, "self.matches(r'^") || strings.Contains(text, "string(self).matches(r'^"))
	})
}

// boundPattern returns a decoder of a type whose text has a pattern. If the field already has a different pattern, the
// new one becomes a rule.
func boundPattern(pattern string) decoder {
	return func(s object, _ string) {
		if before, ok := s["pattern"]; ok && before != pattern {
			addRule(s, fmt.Sprintf("self.matches(r'%s')", pattern), "must match "+pattern)
			return
		}
		s["pattern"] = pattern
	}
}

// boundInteger returns a decoder of integers in a range. Tighter bounds of the field stay. Strings in place of a number
// are not affected.
func boundInteger(low, high float64) decoder {
	return func(s object, _ string) {
		boundAtLeast(s, low)
		if s["format"] == "int32" { // This includes uint32: the API server rejects a limit that is not an int32.
			high = min(high, math.MaxInt32)
		}
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

// addRule adds a CEL rule to a schema.
func addRule(s object, rule, message string) {
	rules, _ := s[validations].([]any)
	for _, now := range rules {
		if r, ok := now.(object); ok && r["rule"] == rule {
			return
		}
	}
	s[validations] = append(rules, object{"rule": rule, "message": message})
}
