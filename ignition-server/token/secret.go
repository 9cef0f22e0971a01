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
	// FormatAnnotation holds the format of the user-data that the token is in; absent for Ignition.
	FormatAnnotation = hyperv1.TokenSecretUserDataFormatAnnotation
	// ArchitectureAnnotation holds the architecture of the pool's machines; absent for amd64.
	ArchitectureAnnotation = hyperv1.TokenSecretArchitectureAnnotation
	// GeneratedAnnotation holds when the token was made (RFC3339Nano).
	GeneratedAnnotation = hyperv1.TokenSecretLastGenerationTimeAnnotation
	// ExpirationAnnotation holds when the Secret ends (RFC3339); absent means never.
	ExpirationAnnotation = hyperv1.IgnitionServerTokenExpirationTimestampAnnotation
	// MachineTokensAnnotation is set to "true" here, where tokens of single machines are taken.
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
	// PullSecretHashKey and the next two hold what the Secret was written for.
	PullSecretHashKey    = hyperv1.TokenSecretPullSecretHashKey
	TrustBundleHashKey   = hyperv1.TokenSecretAdditionalTrustBundleHashKey
	ConfigurationHashKey = hyperv1.TokenSecretHCConfigurationHashKey
	// PayloadKey holds the Ignition config, packed, of pools that are upgraded in place.
	PayloadKey = hyperv1.TokenSecretPayloadKey
	ReasonKey  = hyperv1.TokenSecretReasonKey
	MessageKey = hyperv1.TokenSecretMessageKey
)

const upgradeTypeInPlace = string(hyperv1.UpgradeTypeInPlace)

// IsTokenSecret tells token Secrets from all others.
func IsTokenSecret(annotations map[string]string) bool {
	return annotations[ConfigAnnotation] == "true"
}

// configHash is the end of the name of a pool's token Secret: token-<pool>-<hash>. Empty for one that is called otherwise.
func configHash(secret *corev1.Secret) string {
	_, pool, _ := strings.Cut(secret.Annotations[NodePoolAnnotation], "/")
	hash, ok := strings.CutPrefix(secret.Name, "token-"+pool+"-")
	if !ok {
		return ""
	}
	return hash
}

// expiration returns when the Secret ends. A time that cannot be read counts as passed, so that a damaged Secret is not
// served for ever.
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

// untilRotation is how long the token is still to be used; a time that cannot be read counts as long ago.
func untilRotation(secret *corev1.Secret, now time.Time) time.Duration {
	at, err := time.Parse(time.RFC3339Nano, secret.Annotations[GeneratedAnnotation])
	if err != nil {
		return 0
	}
	return max(at.Add(TTL/2).Sub(now), 0)
}
