// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Annotations of EncryptionSecret. Together with its content they are the state of a key migration.
const (
	// EncryptionStage is the stage of the migration, a value of EncryptionMigrationState.
	EncryptionStage = "hypershift.openshift.io/encryption-stage"
	// EncryptionMove is the number of the migration.
	EncryptionMove = "hypershift.openshift.io/encryption-move"
	// EncryptionMigrated is the number of the last migration for which all stored data was rewritten. The
	// hosted-cluster-config-operator, which rewrites the data, sets it.
	EncryptionMigrated = "hypershift.openshift.io/encryption-migrated"
	// EncryptionKeyID is the hash of the ID of the plugin's key for which all stored data was last rewritten. The
	// hosted-cluster-config-operator sets it.
	EncryptionKeyID = "hypershift.openshift.io/encryption-key-id"
)

// move is the migration from one key to another:
//
//	ReadOnlyDeploy   old key writes, the new one reads      -- on all API servers -->
//	WritePromote     new key writes, the old one reads      -- on all API servers -->
//	Migrating        all stored data is rewritten           -- done -->
//	Completed        the old key is dropped
//
// At each boundary two API servers differ by at most one step, so that each reads what the other writes.
type move struct {
	number    int
	stage     hyperv1.EncryptionMigrationState
	providers []provider
}

// currentMove reads the state. A control plane that has not run yet has stored nothing, and needs no migration. If a
// running one has lost its Secret, all known keys are used for reading.
func currentMove(live *corev1.Secret, wanted provider, f fleet) (move, error) {
	raw := live.Data[encryptionKey]
	if len(raw) == 0 {
		switch {
		case !f.exists:
			return move{stage: hyperv1.EncryptionMigrationCompleted, providers: []provider{wanted}}, nil
		case f.encrypts:
			return move{stage: hyperv1.EncryptionMigrationWritePromote, number: 1, providers: bothKinds(wanted)}, nil
		default:
			return move{stage: hyperv1.EncryptionMigrationCompleted, providers: []provider{{Kind: identity}}}, nil
		}
	}
	providers, err := parseProviders(raw)
	if err != nil {
		return move{}, err
	}
	number, _ := strconv.Atoi(live.Annotations[EncryptionMove])
	stage := hyperv1.EncryptionMigrationState(live.Annotations[EncryptionStage])
	if stage == "" {
		// An earlier version of the operator, which took all steps at once, wrote the Secret.
		stage = hyperv1.EncryptionMigrationCompleted
	}
	return move{number: number, stage: stage, providers: withoutLast(providers)}, nil
}

// withoutLast removes the identity provider that write appends, and never the provider that encrypts.
func withoutLast(providers []provider) []provider {
	if last := len(providers) - 1; last > 0 && providers[last].Kind == identity {
		return providers[:last]
	}
	return providers
}

// advance returns the next state, or the same state. rolled reports that all API servers run the configuration of this
// state, and migrated is the last migration for which all stored data was rewritten.
func (m move) advance(wanted provider, rolled bool, migrated int) move {
	at := slices.Index(m.providers, wanted)
	switch {
	case at < 0:
		return m.start(slices.Insert(slices.Clone(m.providers), 1, wanted))
	case at > 0 && m.stage != hyperv1.EncryptionMigrationReadOnlyDeploy:
		return m.start(m.providers)
	case at > 0 && rolled:
		others := slices.Delete(slices.Clone(m.providers), at, at+1)
		m.providers, m.stage = append([]provider{wanted}, others...), hyperv1.EncryptionMigrationWritePromote
	case at == 0:
		return m.settle(wanted, rolled, migrated)
	}
	return m
}

// settle returns the next state if the desired key already encrypts.
func (m move) settle(wanted provider, rolled bool, migrated int) move {
	switch m.stage {
	case hyperv1.EncryptionMigrationReadOnlyDeploy:
		// The user changed the spec back to the key that still encrypts.
		m.stage = hyperv1.EncryptionMigrationWritePromote
	case hyperv1.EncryptionMigrationWritePromote:
		if rolled {
			m.stage = hyperv1.EncryptionMigrationMigrating
		}
	case hyperv1.EncryptionMigrationMigrating:
		if migrated == m.number {
			m.providers, m.stage = []provider{wanted}, hyperv1.EncryptionMigrationCompleted
		}
	case hyperv1.EncryptionMigrationCompleted:
		// A spare key that the user removes is not in use and can be dropped.
		m.providers = []provider{wanted}
	}
	return m
}

func (m move) start(providers []provider) move {
	return move{number: m.number + 1, stage: hyperv1.EncryptionMigrationReadOnlyDeploy, providers: providers}
}

// write renders the state. Spare keys and unencrypted data are readable at every stage.
func (m move) write(secret *corev1.Secret, spare []provider) error {
	providers := slices.Clone(m.providers)
	for _, p := range append(slices.Clone(spare), provider{Kind: identity}) {
		if !slices.Contains(providers, p) {
			providers = append(providers, p)
		}
	}
	raw, err := renderProviders(providers)
	if err != nil {
		return err
	}
	secret.Data = map[string][]byte{encryptionKey: raw}
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	secret.Annotations[EncryptionStage] = string(m.stage)
	secret.Annotations[EncryptionMove] = strconv.Itoa(m.number)
	return nil
}

// migrated returns the number of the last migration whose data was rewritten; -1 if there is none.
func migrated(live *corev1.Secret) int {
	number, err := strconv.Atoi(live.Annotations[EncryptionMigrated])
	if err != nil {
		return -1
	}
	return number
}

// encryptionHash identifies a configuration without revealing its content.
func encryptionHash(live *corev1.Secret) string {
	sum := sha256.Sum256(live.Data[encryptionKey])
	return hex.EncodeToString(sum[:])[:16]
}

// writerOf describes the key or plugin that encrypts, for messages. It names the type of a key as the spec and the
// status do.
func writerOf(live *corev1.Secret) string {
	if plugin := WritingPlugin(live); plugin != "" {
		return "plugin " + plugin
	}
	return string(secretbox) + ", with a key of type aescbc"
}

// WritingPlugin returns the name of the plugin that encrypts; empty if no plugin does.
func WritingPlugin(live *corev1.Secret) string {
	providers, err := parseProviders(live.Data[encryptionKey])
	if err != nil || providers[0].Kind != kms {
		return ""
	}
	return providers[0].Name
}

// EncryptionStageOf returns the progress of a migration for messages, and whether it is done.
func EncryptionStageOf(live *corev1.Secret) (reason, message string, done bool) {
	move := live.Annotations[EncryptionMove]
	switch stage := hyperv1.EncryptionMigrationState(live.Annotations[EncryptionStage]); stage {
	case hyperv1.EncryptionMigrationReadOnlyDeploy:
		return "ReadOnlyRolloutInProgress", fmt.Sprintf("Migration %s: all API servers are getting the new key for reading", move), false
	case hyperv1.EncryptionMigrationWritePromote:
		return "WritePromotionInProgress", fmt.Sprintf("Migration %s: all API servers are switching to the new key for writing", move), false
	case hyperv1.EncryptionMigrationMigrating:
		return "ReEncryptionInProgress", fmt.Sprintf("Migration %s: all Secrets are being rewritten with the new key", move), false
	default:
		return "ReEncryptionCompleted", "All Secrets are encrypted with the active key, by " + writerOf(live), true
	}
}
