// SPDX-License-Identifier: Apache-2.0

package api

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/form"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/render"
)

func bootResourcesResource() resource {
	return resource{name: "boot-resources", ops: ops{
		"GET":              {read: listImages},
		"POST":             {write: createImage},
		"POST import":      {write: adminText("Import of boot resources started")},
		"POST stop_import": {write: adminText("Import of boot resources is being stopped")},
		"GET is_importing": {read: func(*call) (any, error) { return false, nil }},
	}}
}

func bootResourceResource() resource {
	return resource{name: "boot-resource", ops: ops{
		"GET": {read: func(c *call) (any, error) {
			r := c.image()
			if r == nil {
				return nil, problem.NotFound("BootResource")
			}
			return c.print.BootResourceItem(r), nil
		}},
		"DELETE": {write: func(c *call) (any, error) {
			if err := c.admin(); err != nil {
				return nil, err
			}
			r := c.image()
			if r == nil {
				return nil, problem.NotFound("BootResource")
			}
			c.DB.BootResources.Delete(r.ID)
			return noContent, nil
		}},
	}}
}

func adminText(words string) func(*call) (any, error) {
	return func(c *call) (any, error) {
		if err := c.admin(); err != nil {
			return nil, err
		}
		return text(200, words), nil
	}
}

func (c *call) image() *inventory.BootResource {
	id, err := strconv.Atoi(c.path[0])
	if err != nil {
		return nil
	}
	return c.DB.BootResources.Get(id)
}

func listImages(c *call) (any, error) {
	kind := c.form.Get("type")
	if kind != "" && kind != "all" && !slices.Contains([]string{"synced", "generated", "uploaded"}, kind) {
		return nil, problem.Text(400, "'%s' is not a valid boot resource type. Available types: ['synced', 'generated', 'uploaded']", kind)
	}
	var chosen []*inventory.BootResource
	for _, r := range c.DB.BootResources.All() {
		if kind == "" || kind == "all" || strings.EqualFold(kind, r.Type) {
			chosen = append(chosen, r)
		}
	}
	sort.SliceStable(chosen, func(i, j int) bool {
		a, b := chosen[i], chosen[j]
		return a.Type < b.Type || a.Type == b.Type && (a.Name < b.Name || a.Name == b.Name && a.Architecture < b.Architecture)
	})
	out := []any{}
	for _, r := range chosen {
		out = append(out, c.print.BootResource(r))
	}
	return out, nil
}

var (
	osPrefixes = []string{"ubuntu", "ubuntu-core", "centos", "custom", "esxi", "ol", "rhel", "suse", "windows"}
	fileTypes  = []string{"tgz", "tbz", "txz", "ddtgz", "ddtbz", "ddtxz", "ddtar", "ddbz2", "ddgz", "ddxz", "ddraw"}
)

// createImage creates an image. Its content may follow in chunks.
func createImage(c *call) (any, error) {
	if err := c.admin(); err != nil {
		return nil, err
	}
	f := problem.Fields{}
	r := &inventory.BootResource{
		Type: "Uploaded", Name: c.form.Get("name"), Architecture: c.form.Get("architecture"), Title: c.form.Get("title"),
		BaseImage: c.form.Get("base_image"), FileType: c.form.Get("filetype"), Subarches: "generic",
	}
	checkImage(r, f)
	if err := f.Problem(); err != nil {
		return nil, err
	}
	if old := c.DB.BootResources.Find(func(o *inventory.BootResource) bool {
		return o.Name == r.Name && o.Architecture == r.Architecture && o.Type == r.Type
	}); old != nil {
		r.ID = old.ID
	} else {
		r.ID = c.DB.Next("bootresources")
	}
	r.Sets = imageSets(r, c.form)
	c.DB.BootResources.Put(r)
	out := c.print.BootResourceItem(r)
	return created(out)
}

func checkImage(r *inventory.BootResource, f problem.Fields) {
	if r.FileType == "" {
		r.FileType = "tgz"
	}
	if !slices.Contains(fileTypes, r.FileType) {
		f.Add("filetype", "Select a valid choice. %s is not one of the available choices.", r.FileType)
	}
	if r.Name == "" {
		f.Add("name", "This field is required.")
	}
	if prefix, name, ok := strings.Cut(r.Name, "/"); ok {
		if !slices.Contains(osPrefixes, prefix) {
			f.Add("name", "Unsupported operating system %s, supported operating systems: %v", prefix, osPrefixes)
		}
		if prefix == "custom" {
			r.Name = name
		}
	}
	if slices.Contains(osPrefixes, r.Name) {
		f.Add("name", "%s is a reserved name", r.Name)
	}
	if r.Architecture == "" {
		f.Add("architecture", "This field is required.")
	}
}

func imageSets(r *inventory.BootResource, values form.Values) map[string]any {
	name := "root-" + r.FileType
	size, _ := strconv.ParseInt(values.Get("size"), 10, 64)
	content, complete := values.Get("content"), false
	digest := values.Get("sha256")
	if content != "" {
		sum := sha256.Sum256([]byte(content))
		digest, size, complete = hex.EncodeToString(sum[:]), int64(len(content)), true
	}
	file := map[string]any{"filename": name, "filetype": name, "sha256": digest, "size": size, "complete": complete}
	if !complete {
		file["progress"] = 0.0
		file["upload_uri"] = fmt.Sprintf("%sboot-resources/%d/upload/1/", render.Root, r.ID)
	}
	return map[string]any{render.SetVersion: map[string]any{
		"version": render.SetVersion, "label": "uploaded", "size": size, "complete": complete, "files": map[string]any{name: file},
	}}
}

func uploadResource() resource {
	return resource{name: "upload", ops: ops{"PUT": {outside: uploadChunk}}}
}

// uploadChunk counts the bytes of an upload. The content is not stored.
func uploadChunk(c *call) (any, error) {
	if err := c.admin(); err != nil {
		return nil, err
	}
	n, err := io.Copy(io.Discard, io.LimitReader(c.request.Body, form.MaxBody))
	if err != nil {
		return nil, fmt.Errorf("reading a chunk: %w", err)
	}
	return text(200, ""), c.DB.Update(func() error {
		old := c.image()
		if old == nil || old.Sets == nil {
			return problem.NotFound("BootResource")
		}
		c.DB.BootResources.Edit(old.ID).Sets = withProgress(old.Sets, n)
		return nil
	})
}

// withProgress returns a copy of the sets with n more bytes uploaded.
func withProgress(sets map[string]any, n int64) map[string]any {
	out := map[string]any{}
	for version, set := range sets {
		copied := copyMap(set)
		files := map[string]any{}
		for name, file := range copyMap(copied["files"]) {
			f := copyMap(file)
			size, _ := inventory.Number(f["size"])
			done, _ := inventory.Number(f["received"])
			f["received"] = done + int(n)
			if complete := done+int(n) >= size; complete {
				f["complete"], copied["complete"] = true, true
				delete(f, "upload_uri")
				delete(f, "progress")
				delete(f, "received")
			}
			files[name] = f
		}
		copied["files"] = files
		out[version] = copied
	}
	return out
}

func copyMap(v any) map[string]any {
	in, _ := v.(map[string]any)
	out := map[string]any{}
	for key, value := range in {
		out[key] = value
	}
	return out
}
