// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/support/upsert"
)

// rememberRelease records the digest that the spec's image resolves to, and the pool's first digest. It writes the
// status at once, because the next reconcile may resolve the image to a different digest. Machines must not be created
// before that.
func (r *Reconciler) rememberRelease(ctx context.Context, s *reconciliation) error {
	digest := s.Release.Digest()
	if digest == "" {
		return nil
	}
	image, pinned := s.Pool.Spec.Release.Image, s.Release.Pinned()
	err := upsert.Status(ctx, r.Client, s.Pool, func() {
		s.Pool.Status.ResolvedRelease = &hyperv1.NodePoolResolvedRelease{Image: image, PinnedImage: pinned}
	})
	if err != nil {
		return err
	}
	return upsert.Patch(ctx, r.Client, s.Pool, func() {
		scope.Annotate(s.Pool, hyperv1.NodePoolResolvedReleaseAnnotation, image+" "+pinned)
		if s.Pool.Annotations[hyperv1.NodePoolFirstReleaseAnnotation] == "" {
			scope.Annotate(s.Pool, hyperv1.NodePoolFirstReleaseAnnotation, digest)
		}
	})
}

// releaseIdentity returns the part of the release whose change replaces machines. That is its version, and its digest
// unless it is the pool's first release. A pool that is older than the use of digests keeps its hash.
func (s *reconciliation) releaseIdentity() string {
	digest := s.Release.Digest()
	if digest == s.Pool.Annotations[hyperv1.NodePoolFirstReleaseAnnotation] {
		digest = ""
	}
	return s.Release.Version() + digest
}

// otherRelease reports whether the machines run a release other than the desired one, even if both have the same
// version.
func (s *reconciliation) otherRelease() bool {
	current := s.Pool.Annotations[hyperv1.NodePoolCurrentReleaseAnnotation]
	if current == "" || s.Release.Digest() == "" {
		return s.Pool.Status.Version != s.Release.Version()
	}
	return current != s.Release.Digest()
}
