// SPDX-License-Identifier: Apache-2.0

package nodeinput

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Proxy holds the proxy settings by which a node reaches hosts outside of its cluster.
type Proxy struct {
	HTTP, HTTPS string
	// NoProxy is the comma-separated list of hosts and networks that are reached directly; empty without a proxy.
	NoProxy string
}

// IsZero reports whether there is no proxy.
func (p Proxy) IsZero() bool { return p == Proxy{} }

// ReadProxy reads the cluster's proxy (nil for none). direct lists hosts that are reached directly, in addition to the
// cluster's networks and spec.noProxy.
func ReadProxy(spec *configv1.ProxySpec, networking hyperv1.ClusterNetworking, direct ...string) Proxy {
	if spec == nil || spec.HTTPProxy == "" && spec.HTTPSProxy == "" {
		return Proxy{}
	}
	return Proxy{HTTP: spec.HTTPProxy, HTTPS: spec.HTTPSProxy, NoProxy: noProxy(spec.NoProxy, networking, direct)}
}

// Check rejects settings that programs on a node cannot use. Its errors omit the URLs, which may contain a password.
func (p Proxy) Check() error {
	return errors.Join(checkProxyURL("httpProxy", p.HTTP), checkProxyURL("httpsProxy", p.HTTPS), checkNoProxy(p.NoProxy))
}

func checkProxyURL(field, text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || hasLineBreak(text) {
		return fmt.Errorf("spec.configuration.proxy.%s is not a proxy URL; write http://host:port or https://host:port", field)
	}
	return nil
}

func checkNoProxy(text string) error {
	if hasLineBreak(text) {
		return errors.New("spec.configuration.proxy.noProxy has a line break: write hosts and networks in one line, separated by commas")
	}
	return nil
}

// hasLineBreak reports whether the text would end a line of the file from which a node reads the proxy settings.
func hasLineBreak(text string) bool { return strings.ContainsAny(text, "\n\r\x00") }

func noProxy(fromUser string, networking hyperv1.ClusterNetworking, direct []string) string {
	entries := map[string]bool{"127.0.0.1": true, "localhost": true, ".svc": true, ".cluster.local": true, ".hypershift.local": true}
	for _, n := range networking.MachineNetwork {
		entries[n.CIDR.String()] = true
	}
	for _, n := range networking.ClusterNetwork {
		entries[n.CIDR.String()] = true
	}
	for _, n := range networking.ServiceNetwork {
		entries[n.CIDR.String()] = true
	}
	for _, entry := range append(strings.Split(fromUser, ","), direct...) {
		entry = strings.TrimSpace(entry)
		if entry == "*" {
			return "*"
		}
		if entry != "" {
			entries[entry] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(entries)), ",")
}
