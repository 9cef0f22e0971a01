// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"net/url"
	"strconv"
)

// params collects parameters; what is empty is left out, what is repeated is sent repeatedly.
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

// set sends a value also when it is empty, which for MAAS is not the same as leaving it out.
func (p params) set(key, value string) params {
	p[key] = []string{value}
	return p
}

func (p params) values() url.Values { return url.Values(p) }
