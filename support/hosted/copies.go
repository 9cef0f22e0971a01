// SPDX-License-Identifier: Apache-2.0

package hosted

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// CopyPrefix is the prefix of the names of all copies of users' objects.
const CopyPrefix = "user-"

const (
	// copyHash is the number of hex digits at the end of a copy's name. Names of other objects may end in a hash of 8
	// digits.
	copyHash = 20
	// copyCut is the maximum number of characters of the source's name in a copy's name, so that the copy's name is a DNS
	// label.
	copyCut = 63 - len(CopyPrefix) - 1 - copyHash
)

// Use is the purpose of a copy. Copies of one object for different uses have different names. Each copy has only what
// its use needs, and a use that refuses an object does not find another use's copy.
type Use string

// Uses of copies.
const (
	// UseConfiguration is a Secret or ConfigMap that spec.configuration names. The copy holds all keys.
	UseConfiguration Use = "configuration"
	// UseTokenWebhook is the kubeconfig of the webhook that authenticates tokens.
	UseTokenWebhook Use = "token-webhook"
	// UseAuditWebhook is the kubeconfig of the audit webhook.
	UseAuditWebhook Use = "audit-webhook"
	// UseEncryptionKey is a key that encrypts Secrets.
	UseEncryptionKey Use = "encryption-key"
	// UseKMSCredentials are the credentials of a key management service or its plugin.
	UseKMSCredentials Use = "kms-credentials"
	// UseEtcdClient is the client certificate for an etcd that the user runs.
	UseEtcdClient Use = "etcd-client"
	// UseBackupKey holds the public keys that backups are encrypted to.
	UseBackupKey Use = "backup-key"
	// UseBackupStorage are the credentials of the storage of backups.
	UseBackupStorage Use = "backup-storage"
	// UsePlatform are the credentials of the platform.
	UsePlatform Use = "platform"
)

// CopyName returns the name of the copy of a user's Secret or ConfigMap in the hosted namespace; empty for an empty
// name. No other object of a hosted namespace has a name of this form. A user who chooses the source's name therefore
// cannot select an object of the control plane.
func CopyName(use Use, source string) string {
	if source == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(string(use) + "/" + source))
	kept := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, source)
	kept = strings.Trim(kept[:min(len(kept), copyCut)], "-")
	return CopyPrefix + kept + "-" + hex.EncodeToString(sum[:])[:copyHash]
}

var copyName = regexp.MustCompile(fmt.Sprintf(`^%s[a-z0-9-]*-[0-9a-f]{%d}$`, CopyPrefix, copyHash))

// IsCopyName reports whether a name has the form of CopyName.
func IsCopyName(name string) bool { return copyName.MatchString(name) }

// IsCopy reports whether an object of a hosted namespace is a copy of a user's object.
func IsCopy(obj client.Object) bool {
	return obj.GetLabels()[hyperv1.UserCopyLabel] != "" || IsCopyName(obj.GetName())
}

// MarkCopy marks an object as a copy of a user's object that is in use.
func MarkCopy(obj client.Object, source string) {
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[hyperv1.UserCopyLabel] = "true"
	delete(labels, hyperv1.OperatorObjectLabel)
	annotations[hyperv1.UserCopySourceAnnotation] = source
	delete(annotations, hyperv1.UserCopyUnusedSinceAnnotation)
	obj.SetLabels(labels)
	obj.SetAnnotations(annotations)
}

// MarkOperatorObject marks an object whose name the hypershift-operator chooses.
func MarkOperatorObject(obj client.Object) {
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[hyperv1.OperatorObjectLabel] = "true"
	obj.SetLabels(labels)
}

// ReadTrusted reads an object of the control plane by its name. It returns an error if the object is not Trusted.
func ReadTrusted(ctx context.Context, reader client.Reader, key client.ObjectKey, obj client.Object) error {
	if err := reader.Get(ctx, key, obj); err != nil {
		return err
	}
	return Trusted(obj)
}

// Trusted returns an error for an object of a hosted namespace whose content may come from a user. Such an object is a
// copy, or the operator of version 0.1.0 wrote it: users chose the names of that version's copies. Every program that
// reads an object of the control plane by its name calls Trusted before it uses the content. An object that does not
// exist is trusted.
func Trusted(obj client.Object) error {
	owned := obj.GetAnnotations()[hyperv1.HostedClusterAnnotation] != "" &&
		obj.GetLabels()[hyperv1.OperatorObjectLabel] == ""
	if !owned && !IsCopy(obj) {
		return nil
	}
	return fmt.Errorf("%T %s is refused: it may be a copy of an object that a user wrote; delete it, and the operator creates it again",
		obj, client.ObjectKeyFromObject(obj))
}
