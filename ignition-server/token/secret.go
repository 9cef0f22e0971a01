package token

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Annotations of a token Secret.
const (
	// ConfigAnnotation marks a token Secret with "true".
	ConfigAnnotation = "hypershift.openshift.io/ignition-config"
	// NodePoolAnnotation holds <namespace>/<name> of the pool.
	NodePoolAnnotation = "hypershift.openshift.io/nodePool"
	// UpgradeTypeAnnotation holds the pool's upgrade type.
	UpgradeTypeAnnotation = "hypershift.openshift.io/node-pool-upgrade-type"
	// GeneratedAnnotation holds when the token was made (RFC3339Nano).
	GeneratedAnnotation = "hypershift.openshift.io/last-token-generation-time"
	// ExpirationAnnotation holds when the Secret ends (RFC3339); absent means never.
	ExpirationAnnotation = "hypershift.openshift.io/ignition-token-expiration-timestamp"
	// ReachedAnnotation is set to "True" once a machine has fetched its configuration.
	ReachedAnnotation = "hypershift.openshift.io/ignition-reached"
)

// Keys of a token Secret's data.
const (
	TokenKey    = "token"
	OldTokenKey = "old_token"
	ReleaseKey  = "release"
	ConfigKey   = "config"
	// PullSecretHashKey and the next two hold what the Secret was written for.
	PullSecretHashKey    = "pull-secret-hash"
	TrustBundleHashKey   = "additional-trust-bundle-hash"
	ConfigurationHashKey = "hc-configuration-hash"
	// PayloadKey holds the Ignition config, packed, of pools that are upgraded in place.
	PayloadKey = "payload"
	ReasonKey  = "reason"
	MessageKey = "message"
)

const upgradeTypeInPlace = "InPlace"

// IsTokenSecret tells token Secrets from all others.
func IsTokenSecret(annotations map[string]string) bool {
	return annotations[ConfigAnnotation] == "true"
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
