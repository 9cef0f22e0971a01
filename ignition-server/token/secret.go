// SPDX-License-Identifier: Apache-2.0

package token

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Annotations of a token Secret.
const (
	// ConfigAnnotation marks a token Secret with "true".
	ConfigAnnotation = hyperv1.IgnitionConfigAnnotation
	// NodePoolAnnotation holds <namespace>/<name> of the pool.
	NodePoolAnnotation = hyperv1.NodePoolAnnotation
	// UpgradeTypeAnnotation holds the pool's upgrade type.
	UpgradeTypeAnnotation = hyperv1.TokenSecretNodePoolUpgradeTypeAnnotation
	// FormatAnnotation holds the format of the user-data that contains the token; absent for Ignition.
	FormatAnnotation = hyperv1.TokenSecretUserDataFormatAnnotation
	// ArchitectureAnnotation holds the architecture of the pool's machines; absent for amd64.
	ArchitectureAnnotation = hyperv1.TokenSecretArchitectureAnnotation
	// GeneratedAnnotation holds the creation time of the token (RFC3339Nano).
	GeneratedAnnotation = hyperv1.TokenSecretLastGenerationTimeAnnotation
	// ExpirationAnnotation holds the time when the Secret expires (RFC3339); absent means never.
	ExpirationAnnotation = hyperv1.IgnitionServerTokenExpirationTimestampAnnotation
	// MachineTokensAnnotation is set to "true" by this server, because it accepts tokens of single machines.
	MachineTokensAnnotation = hyperv1.MachineTokensAnnotation
	// ReachedAnnotation is set to "True" once a machine has fetched its configuration.
	ReachedAnnotation = hyperv1.TokenSecretIgnitionReachedAnnotation
)

// Keys of a token Secret's data.
const (
	TokenKey    = hyperv1.TokenSecretTokenKey
	OldTokenKey = hyperv1.TokenSecretOldTokenKey
	ReleaseKey  = hyperv1.TokenSecretReleaseKey
	ConfigKey   = hyperv1.TokenSecretConfigKey
	// PullSecretHashKey and the next two keys hold the hashes of the inputs for which the Secret was written.
	PullSecretHashKey    = hyperv1.TokenSecretPullSecretHashKey
	TrustBundleHashKey   = hyperv1.TokenSecretAdditionalTrustBundleHashKey
	ConfigurationHashKey = hyperv1.TokenSecretHCConfigurationHashKey
	// PayloadKey holds the Ignition config, packed, for pools that are upgraded in place.
	PayloadKey = hyperv1.TokenSecretPayloadKey
	ReasonKey  = hyperv1.TokenSecretReasonKey
	MessageKey = hyperv1.TokenSecretMessageKey
)

const upgradeTypeInPlace = string(hyperv1.UpgradeTypeInPlace)

// IsTokenSecret reports whether a Secret with these annotations is a token Secret.
func IsTokenSecret(annotations map[string]string) bool {
	return annotations[ConfigAnnotation] == "true"
}

// configHash returns the hash from the name of a pool's token Secret: token-<pool>-<hash>. It is empty if the name has
// a different format.
func configHash(secret *corev1.Secret) string {
	_, pool, _ := strings.Cut(secret.Annotations[NodePoolAnnotation], "/")
	hash, ok := strings.CutPrefix(secret.Name, "token-"+pool+"-")
	if !ok {
		return ""
	}
	return hash
}

// expiration returns when the Secret expires. An unreadable time counts as passed, so that a damaged Secret is not
// served indefinitely.
func expiration(secret *corev1.Secret) (at time.Time, set bool) {
	text, set := secret.Annotations[ExpirationAnnotation]
	if !set {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, true
	}
	return at, true
}

// untilRotation returns the time until the token must be rotated. An unreadable time counts as long ago.
func untilRotation(secret *corev1.Secret, now time.Time) time.Duration {
	at, err := time.Parse(time.RFC3339Nano, secret.Annotations[GeneratedAnnotation])
	if err != nil {
		return 0
	}
	return max(at.Add(TTL/2).Sub(now), 0)
}
