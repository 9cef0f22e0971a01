// SPDX-License-Identifier: Apache-2.0

// Package tlsprofile translates the hosted cluster's TLS security profile into settings of Kubernetes servers and etcd.
package tlsprofile

import (
	"crypto/tls"
	"slices"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Profile holds the minimum TLS settings of the control plane's servers.
type Profile struct {
	// MinVersion is in Kubernetes' spelling: VersionTLS12.
	MinVersion string
	// Ciphers are IANA names; empty means the server's default, as with TLS 1.3, whose ciphers are not configurable.
	Ciphers []string
}

// openSSLNames maps the cipher suites' names in TLS profiles to Go's constants, for the suites that Go supports.
var openSSLNames = map[string]uint16{
	"ECDHE-ECDSA-AES128-GCM-SHA256": tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-RSA-AES128-GCM-SHA256":   tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-ECDSA-AES256-GCM-SHA384": tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-RSA-AES256-GCM-SHA384":   tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-ECDSA-CHACHA20-POLY1305": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	"ECDHE-RSA-CHACHA20-POLY1305":   tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	"ECDHE-ECDSA-AES128-SHA256":     tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256,
	"ECDHE-RSA-AES128-SHA256":       tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256,
	"ECDHE-ECDSA-AES128-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA,
	"ECDHE-RSA-AES128-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
	"ECDHE-ECDSA-AES256-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA,
	"ECDHE-RSA-AES256-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,
	"AES128-GCM-SHA256":             tls.TLS_RSA_WITH_AES_128_GCM_SHA256,
	"AES256-GCM-SHA384":             tls.TLS_RSA_WITH_AES_256_GCM_SHA384,
	"AES128-SHA256":                 tls.TLS_RSA_WITH_AES_128_CBC_SHA256,
	"AES128-SHA":                    tls.TLS_RSA_WITH_AES_128_CBC_SHA,
	"AES256-SHA":                    tls.TLS_RSA_WITH_AES_256_CBC_SHA,
}

// Of returns the profile of a hosted cluster; Intermediate if none is set.
func Of(hcp *hyperv1.HostedControlPlane) Profile {
	spec := specOf(hcp)
	profile := Profile{MinVersion: string(spec.MinTLSVersion)}
	if profile.MinVersion == string(configv1.VersionTLS13) {
		return profile
	}
	for _, name := range spec.Ciphers {
		if id, ok := openSSLNames[name]; ok {
			profile.Ciphers = append(profile.Ciphers, tls.CipherSuiteName(id))
		}
	}
	slices.Sort(profile.Ciphers)
	return profile
}

func specOf(hcp *hyperv1.HostedControlPlane) configv1.TLSProfileSpec {
	fallback := *configv1.TLSProfiles[configv1.TLSProfileIntermediateType]
	config := hcp.Spec.Configuration
	if config == nil || config.APIServer == nil || config.APIServer.TLSSecurityProfile == nil {
		return fallback
	}
	chosen := config.APIServer.TLSSecurityProfile
	if chosen.Type == configv1.TLSProfileCustomType && chosen.Custom != nil {
		return chosen.Custom.TLSProfileSpec
	}
	if spec, ok := configv1.TLSProfiles[chosen.Type]; ok {
		return *spec
	}
	return fallback
}

// EtcdMinVersion returns the minimum version in etcd's spelling; etcd supports TLS 1.2 and 1.3 only.
func (p Profile) EtcdMinVersion() string {
	if p.MinVersion == string(configv1.VersionTLS13) {
		return "TLS1.3"
	}
	return "TLS1.2"
}
