// SPDX-License-Identifier: Apache-2.0

// Package config describes the configuration of a NodePool's nodes.
package config

import hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"

// Config is the configuration of a pool's nodes.
type Config struct {
	// Raw contains all documents, sorted by their text.
	Raw string
	// A change of Hash replaces the pool's machines. HashWithoutVersion does not include the version of the release: it
	// shows whether the configuration or only the version has changed.
	Hash, HashWithoutVersion string
	// Format is the format in which machines read their first-boot configuration.
	Format hyperv1.UserDataFormat
	// TrustBundle is an input of the hashes. The token Secret needs it too.
	TrustBundle string
}
