// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

func read(name, what, path string) call {
	return call{name: name, what: what, method: http.MethodGet, path: path}
}

func fetch[T any](ctx context.Context, c *Client, request call) (T, error) {
	var answer T
	err := c.do(ctx, request, &answer)
	return answer, err
}

// GetVersion returns the version of MAAS. MAAS requires no authentication for it, so success does not prove that the
// API key is valid.
func (c *Client) GetVersion(ctx context.Context) (Version, error) {
	return fetch[Version](ctx, c, read("version", "read the version", "version/"))
}

// WhoAmI returns the user of the API key.
func (c *Client) WhoAmI(ctx context.Context) (User, error) {
	request := read("users.whoami", "check the API key", "users/")
	request.op = "whoami"
	return fetch[User](ctx, c, request)
}

// GetConfig returns a setting of MAAS, such as default_distro_series.
func (c *Client) GetConfig(ctx context.Context, name string) (ConfigValue, error) {
	request := read("maas.get_config", "read setting "+name, "maas/")
	request.op, request.params = "get_config", params{}.set("name", name).values()
	return fetch[json.RawMessage](ctx, c, request)
}

// ListZones returns the availability zones.
func (c *Client) ListZones(ctx context.Context) ([]Zone, error) {
	return fetch[[]Zone](ctx, c, read("zones.list", "list zones", "zones/"))
}

// ListPools returns the resource pools that the user may see.
func (c *Client) ListPools(ctx context.Context) ([]Pool, error) {
	return fetch[[]Pool](ctx, c, read("pools.list", "list resource pools", "resourcepools/"))
}

// ListTags returns the tags.
func (c *Client) ListTags(ctx context.Context) ([]Tag, error) {
	return fetch[[]Tag](ctx, c, read("tags.list", "list tags", "tags/"))
}

// CreateTag creates a tag without a definition. It requires an administrator.
func (c *Client) CreateTag(ctx context.Context, name, comment string) (Tag, error) {
	return fetch[Tag](ctx, c, call{name: "tags.create", what: "create tag " + name, method: http.MethodPost, path: "tags/",
		params: params{}.add("name", name).add("comment", comment).values()})
}

// DeleteTag deletes a tag. It requires an administrator.
func (c *Client) DeleteTag(ctx context.Context, name string) error {
	return c.do(ctx, call{name: "tags.delete", what: "delete tag " + name, method: http.MethodDelete, path: tagPath(name)}, nil)
}

// ListTagMachines returns the machines with the given tag.
func (c *Client) ListTagMachines(ctx context.Context, name string) ([]Machine, error) {
	request := read("tags.machines", "list machines of tag "+name, tagPath(name))
	request.op = "machines"
	return fetch[[]Machine](ctx, c, request)
}

// UpdateTagMachines adds and removes a tag's machines by system ID. It requires an administrator.
func (c *Client) UpdateTagMachines(ctx context.Context, name string, add, remove []string) (TagUpdate, error) {
	return fetch[TagUpdate](ctx, c, call{name: "tags.update_nodes", what: "change the machines of tag " + name, method: http.MethodPost,
		path: tagPath(name), op: "update_nodes", params: params{}.add("add", add...).add("remove", remove...).values()})
}

func tagPath(name string) string { return "tags/" + url.PathEscape(name) + "/" }

// ImageType selects boot resources.
type ImageType string

// The types of boot resources.
const (
	ImagesAll      ImageType = ""
	ImagesSynced   ImageType = "synced"
	ImagesUploaded ImageType = "uploaded"
)

// ListBootResources returns the images in MAAS.
func (c *Client) ListBootResources(ctx context.Context, kind ImageType) ([]BootResource, error) {
	request := read("boot-resources.list", "list images", "boot-resources/")
	request.params = params{}.add("type", string(kind)).values()
	return fetch[[]BootResource](ctx, c, request)
}

// EventFilter selects entries of the event log.
type EventFilter struct {
	SystemIDs, Hostnames []string
	// Level is the lowest level to return: DEBUG, INFO, WARNING, ERROR. Empty means INFO.
	Level string
	// Limit is the maximum number of entries in the page, at most 1000. Zero means 100.
	Limit int
}

// ListEvents returns the newest entries of the event log.
func (c *Client) ListEvents(ctx context.Context, filter EventFilter) (EventPage, error) {
	request := read("events.query", "read events", "events/")
	request.op = "query"
	request.params = params{}.add("id", filter.SystemIDs...).add("hostname", filter.Hostnames...).
		add("level", filter.Level).number("limit", filter.Limit).values()
	return fetch[EventPage](ctx, c, request)
}
