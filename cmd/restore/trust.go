// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/support/bundle"
	"github.com/openshift/hypershift/support/hosted"
)

// trust rejects a bundle of unknown origin. Anyone who knows the recipients' public keys can encrypt a bundle, and its
// store may belong to a tenant.
func (r *restoring) trust(ctx context.Context) error {
	if r.sha256 != "" {
		return r.checkSum()
	}
	key, err := r.authority(ctx)
	if err != nil {
		return err
	}
	switch err := r.contents.Verify(key); {
	case errors.Is(err, bundle.ErrUnsigned):
		return fmt.Errorf("--from %s: %w, so its origin is unknown; give its checksum with --bundle-sha256, "+
			"as status.sha256 of the HCPEtcdBackup has it", r.from, err)
	case err != nil && r.verificationKey != "":
		return fmt.Errorf("--from %s: the key of --verification-key %s did not sign this backup of HostedCluster %s/%s; "+
			"give the key of the management cluster that made it, or its checksum with --bundle-sha256",
			r.from, r.verificationKey, r.contents.Header.Namespace, r.contents.Header.Name)
	case err != nil:
		return fmt.Errorf("--from %s: %w; give its checksum with --bundle-sha256, "+
			"or the key of the management cluster that made it with --verification-key", r.from, err)
	}
	header := r.contents.Header
	if own := kube.HostedNamespace(header.Namespace, header.Name); own != header.HostedNamespace {
		return fmt.Errorf("--from %s: the backup is signed for HostedCluster %s/%s, and claims to be of namespace %s instead of %s; "+
			"take another backup", r.from, header.Namespace, header.Name, header.HostedNamespace, own)
	}
	r.report.Printf("the backup is signed for HostedCluster %s/%s", header.Namespace, header.Name)
	return nil
}

// checkSum compares the file with the checksum that the user passed.
func (r *restoring) checkSum() error {
	file, err := os.Open(r.file)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("--from %s: %w", r.from, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); !strings.EqualFold(got, strings.TrimSpace(r.sha256)) {
		return fmt.Errorf("--from %s: the backup has the SHA-256 %s, and --bundle-sha256 is %s; "+
			"this is not the backup that you mean", r.from, got, r.sha256)
	}
	r.report.Printf("the backup has the checksum of --bundle-sha256")
	return nil
}

// authority returns the public key that verifies bundles. It is nil, which disables the verification, if this
// management cluster has no key.
func (r *restoring) authority(ctx context.Context) (ed25519.PublicKey, error) {
	if r.verificationKey != "" {
		text, err := os.ReadFile(r.verificationKey)
		if err != nil {
			return nil, fmt.Errorf("--verification-key: %w", err)
		}
		key, err := bundle.ParseVerificationKey(text)
		if err != nil {
			return nil, fmt.Errorf("--verification-key %s: %w", r.verificationKey, err)
		}
		return key, nil
	}
	secret := &corev1.Secret{}
	name := client.ObjectKey{Namespace: r.operatorNamespace, Name: hosted.BackupAuthority}
	err := r.client.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s, which backups are verified with: %w", name, err)
	}
	key, err := bundle.ParseVerificationKey(secret.Data[bundle.VerificationKey])
	if err != nil {
		return nil, fmt.Errorf("read Secret %s, which backups are verified with: key %q: %w",
			name, bundle.VerificationKey, err)
	}
	return key, nil
}
