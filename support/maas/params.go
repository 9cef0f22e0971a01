// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"net/url"
	"strconv"
)

// params collects parameters. It omits empty values, and sends repeated keys repeatedly.
type params url.Values

func (p params) add(key string, values ...string) params {
	for _, value := range values {
		if value != "" {
			p[key] = append(p[key], value)
		}
	}
	return p
}

func (p params) number(key string, value int) params {
	if value != 0 {
		p[key] = append(p[key], strconv.Itoa(value))
	}
	return p
}

func (p params) flag(key string, value bool) params {
	if value {
		p[key] = append(p[key], "true")
	}
	return p
}

// set also sends an empty value, which MAAS does not treat like an omitted one.
func (p params) set(key, value string) params {
	p[key] = []string{value}
	return p
}

func (p params) values() url.Values { return url.Values(p) }
