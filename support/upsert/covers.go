// SPDX-License-Identifier: Apache-2.0

package upsert

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
)

// covers reports whether the live object contains the desired state. Additional content of live comes from defaults or
// other writers.
func covers(live, wanted any) bool {
	switch w := wanted.(type) {
	case map[string]any:
		return coversMap(live, w)
	case []any:
		l, _ := live.([]any)
		return coversList(l, w)
	case string:
		// The server omits an empty string, as a Go client does.
		return live == wanted || (w == "" && live == nil)
	default:
		return equality.Semantic.DeepEqual(live, wanted) || (live == nil && isZero(wanted))
	}
}

func coversMap(live any, wanted map[string]any) bool {
	l, ok := live.(map[string]any)
	// An empty block has a meaning if it is the only sign of a choice (emptyDir: {}), and none if the server fills it
	// (strategy: {}). Only the second kind may be missing.
	if !ok {
		return live == nil && len(wanted) == 0
	}
	for key, value := range wanted {
		if key == "finalizers" {
			value = within(l[key], value)
		}
		if !covers(l[key], value) {
			return false
		}
	}
	return true
}

// within returns the live finalizers if they contain all desired ones, and else the desired ones. Finalizers of other
// writers are ignored.
func within(live, wanted any) any {
	l, _ := live.([]any)
	w, _ := wanted.([]any)
	if slices.ContainsFunc(w, func(finalizer any) bool { return !slices.Contains(l, finalizer) }) {
		return wanted
	}
	return live
}

// coversList compares lists of named items by name, because other writers may add items. It compares all other lists
// item by item.
func coversList(live, wanted []any) bool {
	if byName, ok := named(wanted); ok {
		if liveByName, ok := named(live); ok {
			return coversMap(liveByName, byName)
		}
	}
	if len(live) != len(wanted) {
		return false
	}
	for i := range wanted {
		if !covers(live[i], wanted[i]) {
			return false
		}
	}
	return true
}

func named(items []any) (map[string]any, bool) {
	byName := map[string]any{}
	for _, item := range items {
		fields, _ := item.(map[string]any)
		name, ok := fields["name"].(string)
		if _, repeated := byName[name]; !ok || repeated {
			return nil, false
		}
		byName[name] = item
	}
	return byName, len(byName) > 0
}

func isZero(value any) bool {
	switch v := value.(type) {
	case bool:
		return !v
	case int64:
		return v == 0
	case float64:
		return v == 0
	default:
		return false
	}
}
