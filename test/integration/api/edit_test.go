// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
)

var step = regexp.MustCompile(`([^.\[\]]+)|\[(\d+)\]`)

// set sets the value at a path such as "spec.services[0].service"; nil removes it. It creates missing mappings in the
// path.
func set(object map[string]any, path string, value any) error {
	steps := step.FindAllStringSubmatch(path, -1)
	var at any = object
	for i, s := range steps {
		last := i == len(steps)-1
		var err error
		if s[2] == "" {
			at, err = setKey(at, s[1], value, last)
		} else {
			at, err = setIndex(at, s[2], value, last)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func setKey(at any, key string, value any, last bool) (any, error) {
	mapping, ok := at.(map[string]any)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s: there is no mapping to put it in", key)
	case !last:
		if mapping[key] == nil {
			mapping[key] = map[string]any{}
		}
		return mapping[key], nil
	case value == nil:
		delete(mapping, key)
	default:
		mapping[key] = value
	}
	return nil, nil
}

func setIndex(at any, index string, value any, last bool) (any, error) {
	list, ok := at.([]any)
	i, err := strconv.Atoi(index)
	if !ok || err != nil || i >= len(list) {
		return nil, fmt.Errorf("[%s]: there is no such item", index)
	}
	if last {
		list[i] = value
	}
	return list[i], nil
}

func TestSet(t *testing.T) {
	t.Run("When the path goes through lists and missing maps, it should set the field", func(t *testing.T) {
		g := NewWithT(t)
		object := map[string]any{"a": []any{map[string]any{"b": 1, "c": 2}}}
		g.Expect(set(object, "a[0].b", 3)).To(Succeed())
		g.Expect(set(object, "a[0].c", nil)).To(Succeed())
		g.Expect(set(object, "x.y", "new")).To(Succeed())
		g.Expect(object).To(Equal(map[string]any{
			"a": []any{map[string]any{"b": 3}},
			"x": map[string]any{"y": "new"},
		}))
	})
	t.Run("When the path does not exist and cannot be created, it should return an error", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(set(map[string]any{"a": []any{}}, "a[0].b", 3)).To(MatchError(ContainSubstring("a[0].b")))
		g.Expect(set(map[string]any{"a": "text"}, "a.b", 3)).To(MatchError(ContainSubstring("a.b")))
	})
}
