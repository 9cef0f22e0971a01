// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/upsert"
)

// rememberRelease notes which digest spec names, and which was the pool's first.
func (r *Reconciler) rememberRelease(ctx context.Context, s *scope) error {
	digest := s.release.Digest()
	if digest == "" {
		return nil
	}
	return upsert.Patch(ctx, r.Client, s.pool, func() {
		annotate(s.pool, hyperv1.NodePoolResolvedReleaseAnnotation, s.pool.Spec.Release.Image+" "+s.release.Pinned())
		if s.pool.Annotations[hyperv1.NodePoolFirstReleaseAnnotation] == "" {
			annotate(s.pool, hyperv1.NodePoolFirstReleaseAnnotation, digest)
		}
	})
}

// releaseIdentity is what of the release replaces machines: its version, and its digest unless it is the pool's first release.
// A pool from before digests counted keeps the hash that it had.
func (s *scope) releaseIdentity() string {
	digest := s.release.Digest()
	if digest == s.pool.Annotations[hyperv1.NodePoolFirstReleaseAnnotation] {
		digest = ""
	}
	return s.release.Version() + digest
}

// otherRelease tells that the machines came to another release than the wanted one, be it of the same version.
func (s *scope) otherRelease() bool {
	current := s.pool.Annotations[hyperv1.NodePoolCurrentReleaseAnnotation]
	if current == "" || s.release.Digest() == "" {
		return s.pool.Status.Version != s.release.Version()
	}
	return current != s.release.Digest()
}
