// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// shapes holds one or more values of each JSON type.
var shapes = []string{
	`null`, `true`, `1`, `1.5`, `"a"`, `[]`, `{}`, `[null]`, `{"a":null}`, `[1]`, `["a"]`, `[{}]`, `{"a":1}`, `{"a":"a"}`,
	`{"a":{}}`,
}

// numbers holds numbers at the limits of Go's types, in each notation that JSON allows.
var numbers = []string{
	`0`, `-0`, `-1`, `1.0`, `1e3`, `1e-7`, `127`, `128`, `-129`, `255`, `256`, `32768`, `65536`, `2147483647`,
	`2147483648`, `-2147483648`, `-2147483649`,
	`4294967295`, `4294967296`, `9007199254740991`, `9007199254740992`, `9007199254740993`, `9223372036854774784`,
	`9223372036854775807`,
	`9223372036854775808`, `-9223372036854775808`, `-9223372036854775809`, `18446744073709551615`,
	`18446744073709551616`, `1e15`, `1e16`, `1e18`,
	`1e19`, `1e20`, `1e21`, `100000000000000000000000`, `1e39`, `1e300`, `-1e300`, `0.1`,
}

// forms holds texts for types with their own decoding: valid texts, and texts that a parser other than Go's accepts.
var forms = []string{
	"", " ", "a", "null", "true", "NaN", "Infinity", "0", "-0", "+0", "1", "-1", "+1", "2147483648",
	"9223372036854775808", "\u0000", "é", "１", "１h",
	// Durations.
	"0s", "1h", "-1h", "+1h", "1.5h", ".5h", "1.h", "1h30m", "30m1h", "1h ", " 1h", "1H", "1d", "1w", "1y", "1us",
	"1µs", "1μs", "1e3s", "0x1h", "1h-1m", "PT1H",
	"1 hour", "10 days", "2562047h", "2562047h47m16s", "2562047h47m17s", "2562048h", "-2562048h", "99999999999h",
	"999999999999999999999999h", "1000000h1000000h1000000h",
	"9223372036854775807ns", "9223372036854775808ns", "0.0000000000000000000000000000001h", "9223372036.854775808s",
	"99999.9h999999.9m99999999.9s999999999.9ms999999999.9us999999999.9ns", "999999999.9s999999999.9s999999999.9s",
	// Numbers or percentages.
	"0%", "100%", "101%", "-1%", "1.5%", "99999999999%", "%", "1 %",
	// Quantities.
	"1.", ".1", ".", "-.", "+.5", "1..1", "1k", "1K", "1Ki", "1Ei", "1Zi", "1E", "1e", "1e3", "1E3", "1e+3",
	"1e-3", "1e1.5", "1e.5", "1e99", "1e0000003",
	"1e99999999999999999999", "1e-99999999999999999999", "1n", "1u", "1m", "0.0000000001", "1mi", "1e3Ki", "1Gi ",
	"9223372036854775808Ei", "0x10",
	strings.Repeat("9", 40), strings.Repeat("9", 40) + "e9",
	// Times.
	"2024-01-02T03:04:05Z", "2024-01-02t03:04:05z", "2024-01-02t03:04:05Z", "2024-01-02T03:04:05z",
	"2024-01-02T03:04:05", "2024-01-02 03:04:05Z", "2024-01-02",
	"2024-01-02T03:04:05.5Z", "2024-01-02T03:04:05,5Z", "2024-01-02T03:04:05x5Z",
	"2024-01-02T03:04:05.1234567890123Z", "2024-01-02T03:04:05+01:00",
	"2024-01-02T03:04:05+24:00", "2024-01-02T03:04:05+25:00", "2024-01-02T03:04:05+99:99",
	"2024-01-02T03:04:05-00:60", "2024-01-02T03:04:05+00:61",
	"2024-01-02T03:04:05+0100", "2024-02-30T03:04:05Z", "2023-02-29T03:04:05Z", "2024-01-02T24:00:00Z",
	"2024-01-02T23:59:60Z", "0000-01-01T00:00:00Z",
	"9999-12-31T23:59:59Z", "10000-01-01T00:00:00Z", "2024-01-02T03:04:05Ztrailing", "2024-01-02T03:04:05ZT",
	"1700000000",
	// Base64.
	"YQ==", "YQ", "YQ=", "Y", "Y Q==", "YQ==\n", "Y\nQ==", "_-8=", "+/8=", "YR==", "!!!!", "====", "YWJj", "YQ==YQ==",
	// Networks and addresses.
	"10.0.0.0/16", "10.0.0.7/16", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/016", "10.0.0.0/+8", "10.0.0.0",
	"10.0.0/8", "010.0.0.0/8", "10.0.0.0/16 ", "fd00::/64", "::/0",
	"::ffff:10.0.0.1/120", "fe80::1%eth0/64", "::1", "0x0a.0.0.0/8", "https://example.com", "http://[::1%25eth0]/",
}

// long enables all values at each leaf.
var long = os.Getenv("HYPERSHIFT_TEST_LONG") == "1"

// values returns the values that the test sets at a node. Go decodes every text into a string, and no number into a
// string or a bool. The test therefore sets forms and numbers at such nodes only if long is set.
func (n node) values() []string {
	if !n.leaf() {
		return shapes
	}
	named := named(n.schema)
	switch kind := n.goType.Kind(); {
	case long, decodesItself(n.goType), kind == reflect.Slice, kind == reflect.Interface:
		return slices.Concat(shapes, numbers, texts(), named)
	case kind == reflect.String, kind == reflect.Bool:
		return slices.Concat(shapes, named)
	default:
		return slices.Concat(shapes, numbers, named)
	}
}

// texts returns the forms as JSON strings.
func texts() []string {
	var raw []string
	for _, text := range forms {
		written, err := json.Marshal(text)
		if err == nil {
			raw = append(raw, string(written))
		}
	}
	return raw
}

// named returns the enum and default values in a schema.
func named(schema *apiextensionsv1.JSONSchemaProps) []string {
	var raw []string
	for _, value := range schema.Enum {
		raw = append(raw, string(value.Raw))
	}
	if schema.Default != nil {
		raw = append(raw, string(schema.Default.Raw))
	}
	return raw
}
