// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"regexp"
	"strings"
)

// thirdParty describes a provider image that is not the product's own.
type thirdParty struct {
	// name is the version in messages and documentation.
	name string
	// tag matches the tags of the version's images; nil matches all.
	tag *regexp.Regexp
	// probes says that the manager serves /healthz and /readyz with --webhook-port=0.
	probes bool
	// zones says that the manager writes status.failureDomains as the list of our CRDs. The map of older versions is
	// refused, and they cannot read a list.
	zones bool
}

// thirdParties are the known versions, and at the end all others. The documents' image is v4.7.0-spectro of CAPMAAS.
var thirdParties = []thirdParty{
	{name: "v0.9", tag: regexp.MustCompile(`^v?0\.9\.\d+$`), probes: true, zones: true},
	{name: "v0.8", tag: regexp.MustCompile(`^v?0\.8\.\d+$`), probes: true},
	{name: "v0.6.1-spectro-4.7.0", tag: regexp.MustCompile(`^v?(0\.6\.1-spectro-4\.7\.\d+|4\.7\.\d+-spectro)$`)},
	{name: "unknown"},
}

// thirdPartyOf returns the version of an image, by its tag.
func thirdPartyOf(image string) thirdParty {
	image, _, _ = strings.Cut(image, "@")
	tag := ""
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		tag = image[i+1:]
	}
	for _, version := range thirdParties {
		if version.tag == nil || version.tag.MatchString(tag) {
			return version
		}
	}
	return thirdParty{}
}
