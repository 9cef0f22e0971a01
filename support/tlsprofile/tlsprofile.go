// SPDX-License-Identifier: Apache-2.0

// Package tlsprofile turns the hosted cluster's TLS security profile into what servers of Kubernetes and etcd understand.
package tlsprofile

import (
	"crypto/tls"
	"slices"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Profile is the least that servers of the control plane accept.
type Profile struct {
	// MinVersion is spelled as Kubernetes does: VersionTLS12.
	MinVersion string
	// Ciphers are IANA names; empty means the server's default, as with TLS 1.3, where they cannot be chosen.
	Ciphers []string
}

// openSSLNames maps the spelling of TLS profiles to that of Go for the suites that Go has.
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

// Of returns the profile of a hosted cluster; Intermediate unless it chooses.
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

// EtcdMinVersion is the minimum version in etcd's spelling; etcd knows TLS 1.2 and 1.3 only.
func (p Profile) EtcdMinVersion() string {
	if p.MinVersion == string(configv1.VersionTLS13) {
		return "TLS1.3"
	}
	return "TLS1.2"
}
