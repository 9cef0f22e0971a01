// SPDX-License-Identifier: Apache-2.0

// Package dump reads the inventory of a live MAAS and writes it as a seed of the simulator.
package dump

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Source is the MAAS to read from.
type Source struct {
	// URL is the URL of MAAS, up to /MAAS.
	URL string
	// APIKey has the form consumer:token:secret.
	APIKey string
	// Timeout is the timeout of a request.
	Timeout time.Duration
	// Warn receives warnings about data that could not be read.
	Warn io.Writer
}

// lists are the endpoints of the lists in a seed, with their names in the seed.
var lists = []struct{ name, path string }{
	{"version", "version/"},
	{"users", "users/"},
	{"zones", "zones/"},
	{"resourcepools", "resourcepools/"},
	{"tags", "tags/"},
	{"domains", "domains/"},
	{"spaces", "spaces/"},
	{"fabrics", "fabrics/"},
	{"subnets", "subnets/"},
	{"ipranges", "ipranges/"},
	{"ipaddresses", "ipaddresses/?all=true"},
	{"dnsresources", "dnsresources/"},
	{"boot_resources", "boot-resources/"},
	{"vm_hosts", "vm-hosts/"},
	{"rackcontrollers", "rackcontrollers/"},
	{"regioncontrollers", "regioncontrollers/"},
	{"devices", "devices/"},
	{"machines", "machines/"},
}

// configured are the settings that change the behavior of the API.
var configured = []string{"default_distro_series", "commissioning_distro_series", "enable_disk_erasing_on_release", "node_timeout"}

// Dump writes the seed to out. It omits what the user of the key has no permission to read, with a warning. It reads no
// secrets, such as power parameters and keys.
func Dump(ctx context.Context, source Source, out io.Writer) error {
	parts := strings.Split(strings.TrimSpace(source.APIKey), ":")
	if len(parts) != 3 {
		return fmt.Errorf("the API key must have the form consumer:token:secret")
	}
	r := reader{Source: source, key: parts, client: &http.Client{Timeout: source.Timeout}}
	seed := map[string]any{}
	for _, list := range lists {
		value, err := r.get(ctx, list.path)
		if err != nil && list.name == "machines" {
			return err
		}
		if err != nil {
			fmt.Fprintf(source.Warn, "left out %s: %v\n", list.name, err)
			continue
		}
		seed[list.name] = value
	}
	seed["config"] = r.config(ctx)
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", " ")
	return encoder.Encode(seed)
}

type reader struct {
	Source
	key    []string
	client *http.Client
}

func (r reader) config(ctx context.Context) map[string]any {
	out := map[string]any{}
	for _, name := range configured {
		value, err := r.get(ctx, "maas/?op=get_config&name="+name)
		if err != nil {
			fmt.Fprintf(r.Warn, "left out setting %s: %v\n", name, err)
			continue
		}
		out[name] = value
	}
	return out
}

func (r reader) get(ctx context.Context, path string) (any, error) {
	target := strings.TrimRight(r.URL, "/") + "/api/2.0/" + path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	req.Header.Set("Authorization", r.authorization())
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(resp.Body, 200))
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		return nil, fmt.Errorf("reading %s: MAAS says %s: %s", path, resp.Status, strings.TrimSpace(string(text)))
	}
	var value any
	if err := json.NewDecoder(resp.Body).Decode(&value); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", path, err)
	}
	return value, nil
}

func (r reader) authorization() string {
	return fmt.Sprintf(`OAuth oauth_version="1.0", oauth_signature_method="PLAINTEXT", oauth_consumer_key="%s", oauth_token="%s", `+
		`oauth_signature="%%26%s", oauth_nonce="%s", oauth_timestamp="%d"`,
		url.QueryEscape(r.key[0]), url.QueryEscape(r.key[1]), url.QueryEscape(r.key[2]), rand.Text(), time.Now().Unix())
}
