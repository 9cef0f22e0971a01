// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Doc is a JSON object as in a response of MAAS.
type Doc map[string]any

// Number returns the value of a JSON number, or the ID of a JSON object.
func Number(v any) (int, bool) {
	switch n := v.(type) {
	case float64:
		return int(math.Round(n)), true
	case int:
		return n, true
	case int64:
		return int(n), true
	case json.Number:
		f, err := n.Float64()
		return int(math.Round(f)), err == nil
	case map[string]any:
		return Number(n["id"])
	}
	return 0, false
}

// take removes and returns a value.
func (d Doc) take(key string) any {
	v := d[key]
	delete(d, key)
	return v
}

func (d Doc) str(key string) string {
	s, _ := d.take(key).(string)
	return s
}

func (d Doc) strPtr(key string) *string {
	s, ok := d.take(key).(string)
	if !ok {
		return nil
	}
	return &s
}

func (d Doc) boolean(key string, fallback bool) bool {
	b, ok := d.take(key).(bool)
	if !ok {
		return fallback
	}
	return b
}

func (d Doc) integer(key string, fallback int) int {
	if n, ok := Number(d.take(key)); ok {
		return n
	}
	return fallback
}

func (d Doc) float(key string, fallback float64) float64 {
	f, ok := d.take(key).(float64)
	if !ok {
		return fallback
	}
	return f
}

func (d Doc) intPtr(key string) *int {
	if n, ok := Number(d.take(key)); ok {
		return &n
	}
	return nil
}

func (d Doc) object(key string) Doc {
	o, _ := d.take(key).(map[string]any)
	return o
}

func (d Doc) list(key string) []any {
	l, _ := d.take(key).([]any)
	return l
}

func (d Doc) strs(key string) []string {
	out := []string{}
	for _, v := range d.list(key) {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// saidStrs is like strs, but returns nil if the key is missing.
func (d Doc) saidStrs(key string) []string {
	if _, said := d[key]; !said {
		return nil
	}
	return d.strs(key)
}

func (d Doc) docs(key string) []Doc {
	var out []Doc
	for _, v := range d.list(key) {
		if o, ok := v.(map[string]any); ok {
			out = append(out, Doc(o))
		}
	}
	return out
}

// named returns the name of a reference, which is an object with a name or the name itself.
func (d Doc) named(key string) string {
	switch v := d.take(key).(type) {
	case string:
		return v
	case map[string]any:
		name, _ := v["name"].(string)
		return name
	}
	return ""
}

func (d Doc) stringMap(key string) map[string]string {
	out := map[string]string{}
	for k, v := range d.object(key) {
		out[k] = fmt.Sprint(v)
	}
	return out
}

// drop removes fields that the simulator derives from others.
func (d Doc) drop(keys ...string) {
	for _, key := range keys {
		delete(d, key)
	}
}

// timeLayouts are the time formats of the MAAS API.
var timeLayouts = []string{"2006-01-02T15:04:05.000", "2006-01-02T15:04:05", time.RFC3339Nano}

func (d Doc) moment(key string) time.Time {
	s := d.str(key)
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t
		}
	}
	return time.Time{}
}
