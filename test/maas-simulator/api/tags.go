// SPDX-License-Identifier: Apache-2.0

package api

import (
	"regexp"
	"slices"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/render"
)

var tagPattern = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

func tagsResource() resource {
	return resource{name: "tags", ops: ops{
		"GET": {read: func(c *call) (any, error) {
			out := []any{}
			for _, t := range c.DB.Tags.All() {
				out = append(out, c.print.Tag(t))
			}
			return out, nil
		}},
		"POST": {write: func(c *call) (any, error) {
			if err := c.silentAdmin(); err != nil {
				return nil, err
			}
			return c.saveTag(nil)
		}},
	}}
}

func tagResource() resource {
	return resource{name: "tag", ops: ops{
		"GET":                    {read: withTag(func(c *call, t *inventory.Tag) (any, error) { return c.print.Tag(t), nil })},
		"GET machines":           {read: withTag(taggedMachines)},
		"GET nodes":              {read: withTag(taggedMachines)},
		"GET devices":            {read: withTag(none)},
		"GET rack_controllers":   {read: withTag(none)},
		"GET region_controllers": {read: withTag(none)},
		"PUT": {write: withTag(func(c *call, t *inventory.Tag) (any, error) {
			if err := c.silentAdmin(); err != nil {
				return nil, err
			}
			return c.saveTag(t)
		})},
		"DELETE": {write: withTag(func(c *call, t *inventory.Tag) (any, error) {
			if err := c.silentAdmin(); err != nil {
				return nil, err
			}
			c.retag(t.Name, "")
			c.DB.Tags.Delete(t.Name)
			return noContent, nil
		})},
		"POST update_nodes": {write: withTag(updateTagged)},
		"POST rebuild": {write: withTag(func(c *call, t *inventory.Tag) (any, error) {
			if err := c.silentAdmin(); err != nil {
				return nil, err
			}
			return render.Object{"rebuilding": t.Name}, nil
		})},
	}}
}

func withTag(do func(*call, *inventory.Tag) (any, error)) func(*call) (any, error) {
	return func(c *call) (any, error) {
		t := c.DB.Tags.Get(c.path[0])
		if t == nil {
			return nil, problem.NotFound("Tag")
		}
		return do(c, t)
	}
}

func none(*call, *inventory.Tag) (any, error) { return []any{}, nil }

func taggedMachines(c *call, t *inventory.Tag) (any, error) {
	return c.visible(func(m *inventory.Machine) bool { return m.HasTags(t.Name) })
}

// saveTag creates a tag, or changes the given one.
func (c *call) saveTag(old *inventory.Tag) (any, error) {
	f := problem.Fields{}
	t := &inventory.Tag{}
	if old != nil {
		*t = *old
	}
	name, given := checkName(c, old == nil, tagPattern, "Tag", func(name string) bool {
		return c.DB.Tags.Get(name) != nil && (old == nil || name != old.Name)
	}, f)
	if c.form.Has("definition") {
		t.Definition = c.form.Get("definition")
		if !plausibleXPath(t.Definition) {
			f.Add("definition", "Invalid xpath expression: Invalid expression")
		}
	}
	if err := f.Problem(); err != nil {
		return nil, err
	}
	for key, field := range map[string]*string{"comment": &t.Comment, "kernel_opts": &t.KernelOpts} {
		if c.form.Has(key) {
			*field = c.form.Get(key)
		}
	}
	if old == nil {
		t.ID = c.DB.Next("tags")
	} else if given && name != old.Name {
		c.retag(old.Name, name)
		c.DB.Tags.Delete(old.Name)
	}
	if given {
		t.Name = name
	}
	c.DB.Tags.Put(t)
	return c.print.Tag(t), nil
}

// plausibleXPath reports whether an expression may be valid XPath. It rejects open brackets and quotes, and incomplete
// paths.
func plausibleXPath(expression string) bool {
	var open []rune
	closers := map[rune]rune{'[': ']', '(': ')'}
	for _, r := range expression {
		switch top := len(open) - 1; {
		case top >= 0 && (open[top] == '\'' || open[top] == '"'):
			if r == open[top] {
				open = open[:top]
			}
		case r == '\'' || r == '"':
			open = append(open, r)
		case closers[r] != 0:
			open = append(open, closers[r])
		case r == ']' || r == ')':
			if top < 0 || open[top] != r {
				return false
			}
			open = open[:top]
		}
	}
	trimmed := strings.TrimSpace(expression)
	return len(open) == 0 && !strings.HasSuffix(trimmed, "/") && !strings.Contains(trimmed, "/[")
}

// retag renames a tag on its machines, or removes it if to is empty.
func (c *call) retag(from, to string) {
	for _, m := range c.DB.Machines.All() {
		if !m.HasTags(from) {
			continue
		}
		edited := c.DB.Machines.Edit(m.SystemID)
		at := slices.Index(edited.Tags, from)
		if to == "" {
			edited.Tags = slices.Delete(edited.Tags, at, at+1)
		} else {
			edited.Tags[at] = to
		}
	}
}

// updateTagged adds a tag to machines and removes it from others. It ignores unknown IDs.
func updateTagged(c *call, t *inventory.Tag) (any, error) {
	if !c.user.Superuser {
		return nil, problem.Text(403, "Must be a superuser or supply a rack_controller")
	}
	if c.form.Has("definition") && c.form.Get("definition") != t.Definition {
		return nil, problem.Conflict("Definition supplied '%s' doesn't match current definition '%s'", c.form.Get("definition"), t.Definition)
	}
	added, removed := 0, 0
	for _, id := range c.form.All("add") {
		if m := c.DB.Machines.Get(id); m != nil {
			added++
			if !m.HasTags(t.Name) {
				edited := c.DB.Machines.Edit(id)
				edited.Tags = append(edited.Tags, t.Name)
			}
		}
	}
	for _, id := range c.form.All("remove") {
		if m := c.DB.Machines.Get(id); m != nil {
			removed++
			if at := slices.Index(m.Tags, t.Name); at >= 0 {
				edited := c.DB.Machines.Edit(id)
				edited.Tags = slices.Delete(edited.Tags, at, at+1)
			}
		}
	}
	return render.Object{"added": added, "removed": removed}, nil
}
