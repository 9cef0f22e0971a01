// SPDX-License-Identifier: Apache-2.0

// Package render converts inventory rows to the JSON objects of MAAS's REST API.
package render

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/url"
	"strconv"
	"time"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
)

// Root is the path of the API.
const Root = "/MAAS/api/2.0/"

// Object is a JSON object of a response.
type Object = map[string]any

// Printer renders rows for a version of MAAS. Its methods may be called only inside View and Update of the DB.
type Printer struct {
	DB      *inventory.DB
	Version Version
}

// Moment formats a time like most of the API.
func Moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000") }

// EventTime formats a time like the events of the API.
func EventTime(t time.Time) string { return t.UTC().Format("Mon, 02 Jan. 2006 15:04:05") }

func uri(parts ...any) string {
	path := Root
	for _, part := range parts {
		switch p := part.(type) {
		case int:
			path += strconv.Itoa(p) + "/"
		case string:
			path += url.PathEscape(p) + "/"
		}
	}
	return path
}

// over returns the fields of a seed, overridden by the typed fields.
func over(extra map[string]any, typed Object) Object {
	out := make(Object, len(extra)+len(typed))
	maps.Copy(out, extra)
	maps.Copy(out, typed)
	return out
}

// under adds defaults for missing fields.
func under(out Object, defaults Object) Object {
	for key, value := range defaults {
		if _, said := out[key]; !said {
			out[key] = value
		}
	}
	return out
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func pointer[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// list replaces nil with an empty list, so that it is never null in JSON.
func list[T any](in []T) []T {
	if in == nil {
		return []T{}
	}
	return in
}

// Zone renders a physical zone.
func (p *Printer) Zone(z *inventory.Zone) Object {
	return Object{"id": z.ID, "name": z.Name, "description": z.Description, "resource_uri": uri("zones", z.Name)}
}

// Pool renders a resource pool. Its resource_uri has the singular path.
func (p *Printer) Pool(r *inventory.Pool) Object {
	return Object{"id": r.ID, "name": r.Name, "description": r.Description, "resource_uri": uri("resourcepool", r.ID)}
}

// Tag renders a tag.
func (p *Printer) Tag(t *inventory.Tag) Object {
	return Object{
		"name": t.Name, "definition": t.Definition, "comment": t.Comment, "kernel_opts": t.KernelOpts,
		"resource_uri": uri("tags", t.Name),
	}
}

// User renders a user without the API keys.
func (p *Printer) User(u *inventory.User) Object {
	return Object{
		"username": u.Name, "email": u.Email, "is_superuser": u.Superuser, "is_local": u.Local,
		"resource_uri": uri("users", u.Name),
	}
}

func (p *Printer) userByName(name string) any {
	if u := p.DB.Users.Get(name); u != nil {
		return p.User(u)
	}
	return nil
}

// Event renders an event of a node.
func (p *Printer) Event(e *inventory.Event) Object {
	return Object{
		"username": e.Username, "node": e.SystemID, "hostname": e.Hostname, "id": e.ID, "level": e.Level,
		"created": EventTime(e.Created), "type": e.Type, "description": e.Description,
	}
}

// BootResource renders an image as in a list.
func (p *Printer) BootResource(r *inventory.BootResource) Object {
	out := over(r.Extra, Object{
		"id": r.ID, "type": r.Type, "name": r.Name, "architecture": r.Architecture, "subarches": r.Subarches, "title": r.Title,
		"resource_uri": uri("boot-resources", r.ID),
	})
	if r.BaseImage != "" {
		out["base_image"] = r.BaseImage
	}
	if p.Version.AtLeast(3, 4) {
		out["last_deployed"] = nil
		if r.LastDeployed != nil {
			out["last_deployed"] = Moment(*r.LastDeployed)
		}
	}
	return out
}

// BootResourceItem renders an image with its sets of files.
func (p *Printer) BootResourceItem(r *inventory.BootResource) Object {
	out := p.BootResource(r)
	out["sets"] = r.Sets
	if r.Sets == nil {
		out["sets"] = madeUpSets(r)
	}
	return out
}

// SetVersion is the name of the set of files of images whose seed has none. It is a date, as in MAAS, but constant.
const SetVersion = "20260101"

// madeUpSets returns generated sets of files for an image that has none in the seed.
func madeUpSets(r *inventory.BootResource) Object {
	kinds := []string{"boot-kernel", "boot-initrd", "squashfs"}
	label := "stable"
	if r.Type != "Synced" {
		kinds, label = []string{"root-tgz"}, "uploaded"
	}
	files, size := Object{}, 0
	for _, kind := range kinds {
		const fileSize = 64 << 20
		sum := sha256.Sum256([]byte(r.Name + r.Architecture + kind))
		files[kind] = Object{"filename": kind, "filetype": kind, "sha256": hex.EncodeToString(sum[:]), "size": fileSize, "complete": true}
		size += fileSize
	}
	return Object{SetVersion: Object{"version": SetVersion, "label": label, "size": size, "complete": true, "files": files}}
}
