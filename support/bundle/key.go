// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
)

// The keys of the Secret with which a backup is encrypted. A writer needs only the recipients. Secrets stolen from a
// management cluster then do not decrypt a backup. `age-keygen` creates both.
const (
	// RecipientsKey holds public keys of age ("age1..."), one per line. The private key of any of them opens a bundle.
	RecipientsKey = "recipients"
	// IdentityKey holds private keys of age ("AGE-SECRET-KEY-1..."), one per line.
	IdentityKey = "identity"
)

// Recipients returns the recipients for whom a bundle is encrypted. If a Secret has no RecipientsKey, Recipients uses
// the public keys of its IdentityKey.
func Recipients(secret *corev1.Secret) ([]age.Recipient, error) {
	text, ok := secret.Data[RecipientsKey]
	if !ok && len(secret.Data[IdentityKey]) > 0 {
		return public(secret)
	}
	recipients, err := age.ParseRecipients(strings.NewReader(string(text)))
	if err != nil {
		// Do not wrap the library's error: it may quote the line, and a user may have put the private key there.
		return nil, fmt.Errorf("key %q of Secret %s has no public keys of age (\"age1...\", one a line, as age-keygen -y prints them)", RecipientsKey, secret.Name)
	}
	return recipients, nil
}

// Identities returns the identities that open a bundle.
func Identities(secret *corev1.Secret) ([]age.Identity, error) {
	return ParseIdentities(string(secret.Data[IdentityKey]), fmt.Sprintf("key %q of Secret %s", IdentityKey, secret.Name))
}

// ParseIdentities parses private keys as age-keygen writes them. An error names source, and contains no key.
func ParseIdentities(text, source string) ([]age.Identity, error) {
	identities, err := age.ParseIdentities(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s has no private keys of age (\"AGE-SECRET-KEY-1...\", one a line, as age-keygen writes them)", source)
	}
	return identities, nil
}

func public(secret *corev1.Secret) ([]age.Recipient, error) {
	identities, err := Identities(secret)
	if err != nil {
		return nil, err
	}
	var recipients []age.Recipient
	for _, identity := range identities {
		switch key := identity.(type) {
		case *age.X25519Identity:
			recipients = append(recipients, key.Recipient())
		case *age.HybridIdentity:
			recipients = append(recipients, key.Recipient())
		default:
			return nil, errors.New("the private key is of a kind that has no public key")
		}
	}
	return recipients, nil
}
