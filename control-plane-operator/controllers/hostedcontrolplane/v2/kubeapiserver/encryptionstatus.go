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

// maxMoves is how many moves the status remembers.
const maxMoves = 5

// WantedKey is the key that a cluster asks for, without its content; nil while it cannot be read, which the component says.
func WantedKey(ctx context.Context, c client.Reader, hcp *hyperv1.HostedControlPlane) *hyperv1.AESCBCKeyStatus {
	encryption := hcp.Spec.SecretEncryption
	if encryption == nil || ValidateEncryption(hcp) != nil {
		return nil
	}
	name := encryption.AESCBC.ActiveKey.Name
	key, err := readKey(ctx, c, hcp.Namespace, name)
	if err != nil {
		return nil
	}
	return &hyperv1.AESCBCKeyStatus{Secret: hyperv1.AESCBCKeySecretReference{Name: name}, DataHash: dataHash(key)}
}

func dataHash(key provider) string {
	raw, _ := base64.StdEncoding.DecodeString(key.Secret)
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// EncryptionStatus says which key encrypts and which one is moved to, by the configuration that API servers run: last is what
// was said before, and wanted the key that the cluster asks for.
func EncryptionStatus(last hyperv1.SecretEncryptionStatus, live *corev1.Secret, wanted hyperv1.AESCBCKeyStatus, now time.Time) hyperv1.SecretEncryptionStatus {
	next := *last.DeepCopy()
	key := hyperv1.SecretEncryptionKeyStatus{Provider: hyperv1.SecretEncryptionProviderAESCBC, AESCBC: wanted}
	stage := stageOf(live, wanted)
	next.History = history(next, stage, wanted.DataHash, now)
	if stage == hyperv1.EncryptionMigrationCompleted {
		next.ActiveKey, next.TargetKey = key, hyperv1.SecretEncryptionKeyStatus{}
		return next
	}
	next.TargetKey = key
	return next
}

// stageOf is how far the API servers are on the way to a key.
func stageOf(live *corev1.Secret, wanted hyperv1.AESCBCKeyStatus) hyperv1.EncryptionMigrationState {
	stage := hyperv1.EncryptionMigrationState(live.Annotations[EncryptionStage])
	providers, err := parseProviders(live.Data[encryptionKey])
	if stage == hyperv1.EncryptionMigrationCompleted && (err != nil || dataHash(providers[0]) != wanted.DataHash) {
		return hyperv1.EncryptionMigrationReadOnlyDeploy
	}
	return stage
}

// history has an entry for each move from one key to another, newest first. The first encryption comes from no key.
func history(last hyperv1.SecretEncryptionStatus, stage hyperv1.EncryptionMigrationState, to string, now time.Time) []hyperv1.EncryptionMigrationHistory {
	moves, from := slices.Clone(last.History), last.ActiveKey.AESCBC.DataHash
	open := len(moves) > 0 && moves[0].CompletionTime.IsZero()
	if open && moves[0].To.Fingerprint != to {
		moves[0].State, moves[0].CompletionTime = hyperv1.EncryptionMigrationInterrupted, metav1.NewTime(now)
		open = false
	}
	if !open && stage != hyperv1.EncryptionMigrationCompleted && from != "" && from != to {
		moves = append([]hyperv1.EncryptionMigrationHistory{{From: keyReference(from), To: keyReference(to), StartedTime: metav1.NewTime(now)}}, moves...)
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

func keyReference(fingerprint string) hyperv1.EncryptionKeyReference {
	return hyperv1.EncryptionKeyReference{Provider: hyperv1.SecretEncryptionProviderAESCBC, Fingerprint: fingerprint}
}
