// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// maxMoves is how many migrations the status lists.
const maxMoves = 5

// WantedKey returns the key in the cluster's spec, without its content. It is nil if the key cannot be read, which the
// component reports.
func WantedKey(ctx context.Context, c client.Reader, hcp *hyperv1.HostedControlPlane) *hyperv1.SecretEncryptionKeyStatus {
	encryption := hcp.Spec.SecretEncryption
	if encryption == nil || ValidateEncryption(hcp) != nil {
		return nil
	}
	if plugin := wantedPlugin(hcp); plugin != nil {
		return &hyperv1.SecretEncryptionKeyStatus{
			Provider: hyperv1.SecretEncryptionProviderPlugin, Plugin: hyperv1.KMSPluginKeyStatus{Name: plugin.Name},
		}
	}
	name := encryption.AESCBC.ActiveKey.Name
	key, err := readKey(ctx, c, hcp.Namespace, name)
	if err != nil {
		return nil
	}
	return &hyperv1.SecretEncryptionKeyStatus{
		Provider: hyperv1.SecretEncryptionProviderAESCBC,
		AESCBC:   hyperv1.AESCBCKeyStatus{Secret: hyperv1.AESCBCKeySecretReference{Name: name}, DataHash: keyReference(key).Fingerprint},
	}
}

// keyReference identifies the key of a provider: by its content or, if only a plugin knows that, by the plugin's name.
func keyReference(key provider) hyperv1.EncryptionKeyReference {
	if key.Kind == kms {
		return fingerprint(hyperv1.SecretEncryptionKeyStatus{
			Provider: hyperv1.SecretEncryptionProviderPlugin, Plugin: hyperv1.KMSPluginKeyStatus{Name: key.Name},
		})
	}
	raw, _ := base64.StdEncoding.DecodeString(key.Secret)
	return hyperv1.EncryptionKeyReference{Provider: hyperv1.SecretEncryptionProviderAESCBC, Fingerprint: sha256Hex(raw)}
}

// fingerprint returns the same as keyReference, for a key of the status; empty without a key.
func fingerprint(key hyperv1.SecretEncryptionKeyStatus) hyperv1.EncryptionKeyReference {
	if key.Provider == hyperv1.SecretEncryptionProviderPlugin {
		return hyperv1.EncryptionKeyReference{Provider: key.Provider, Fingerprint: sha256Hex([]byte(key.Plugin.Name))}
	}
	return hyperv1.EncryptionKeyReference{Provider: key.Provider, Fingerprint: key.AESCBC.DataHash}
}

func sha256Hex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// EncryptionStatus returns the key that encrypts, and the key to which the data is migrated. It reads the configuration
// that API servers run. last is the previous status, and `wanted` the key in the cluster's spec.
func EncryptionStatus(last hyperv1.SecretEncryptionStatus, live *corev1.Secret, wanted hyperv1.SecretEncryptionKeyStatus, now time.Time) hyperv1.SecretEncryptionStatus {
	next := *last.DeepCopy()
	stage := stageOf(live, fingerprint(wanted))
	next.History = history(next, stage, fingerprint(wanted), now)
	if stage == hyperv1.EncryptionMigrationCompleted {
		next.ActiveKey, next.TargetKey = wanted, hyperv1.SecretEncryptionKeyStatus{}
		return next
	}
	next.TargetKey = wanted
	return next
}

// stageOf returns the stage of the API servers in the migration to a key.
func stageOf(live *corev1.Secret, wanted hyperv1.EncryptionKeyReference) hyperv1.EncryptionMigrationState {
	stage := hyperv1.EncryptionMigrationState(live.Annotations[EncryptionStage])
	providers, err := parseProviders(live.Data[encryptionKey])
	if stage == hyperv1.EncryptionMigrationCompleted && (err != nil || keyReference(providers[0]) != wanted) {
		return hyperv1.EncryptionMigrationReadOnlyDeploy
	}
	return stage
}

// history returns an entry for each migration from one key to another, newest first. The first encryption has no
// previous key.
func history(last hyperv1.SecretEncryptionStatus, stage hyperv1.EncryptionMigrationState, to hyperv1.EncryptionKeyReference, now time.Time) []hyperv1.EncryptionMigrationHistory {
	moves, from := slices.Clone(last.History), fingerprint(last.ActiveKey)
	open := len(moves) > 0 && moves[0].CompletionTime.IsZero()
	if open && moves[0].To != to {
		moves[0].State, moves[0].CompletionTime = hyperv1.EncryptionMigrationInterrupted, metav1.NewTime(now)
		open = false
	}
	if !open && stage != hyperv1.EncryptionMigrationCompleted && from.Fingerprint != "" && from != to {
		moves = append([]hyperv1.EncryptionMigrationHistory{{From: from, To: to, StartedTime: metav1.NewTime(now)}}, moves...)
		open = true
	}
	if open {
		moves[0].State = stage
		if stage == hyperv1.EncryptionMigrationCompleted {
			moves[0].CompletionTime = metav1.NewTime(now)
		}
	}
	return moves[:min(len(moves), maxMoves)]
}
