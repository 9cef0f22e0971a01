// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

func TestRememberRelease(t *testing.T) {
	const first, resolved = hyperv1.NodePoolFirstReleaseAnnotation, hyperv1.NodePoolResolvedReleaseAnnotation
	named := "registry.example/release:second"
	for name, test := range map[string]struct{ digest, before, first, resolved string }{
		"When the digest is unknown, it should record nothing":                            {"", "", "", ""},
		"When the release is the first of the NodePool, it should record the release":     {"sha256:2", "", "sha256:2", named + " registry.example/release@sha256:2"},
		"When another release is used, it should keep the recorded first release":         {"sha256:2", "sha256:1", "sha256:1", named + " registry.example/release@sha256:2"},
		"When the first release is used again, it should keep the recorded first release": {"sha256:1", "sha256:1", "sha256:1", named + " registry.example/release@sha256:1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := inMemory(t)
			_, s := gated()
			s.Release = build(named, "1.36.3", test.digest)
			if test.before != "" {
				scope.Annotate(s.Pool, first, test.before)
			}
			fixture.Create(t, w.client, s.Pool)
			w.Expect(w.rememberRelease(t.Context(), s)).To(Succeed())
			w.Expect(w.pool().Annotations[first]).To(Equal(test.first))
			w.Expect(w.pool().Annotations[resolved]).To(Equal(test.resolved))
			if image, pinned, ok := strings.Cut(test.resolved, " "); ok {
				w.Expect(w.pool().Status.ResolvedRelease).To(Equal(&hyperv1.NodePoolResolvedRelease{Image: image,
					PinnedImage: pinned}))
			} else {
				w.Expect(w.pool().Status.ResolvedRelease).To(BeNil())
			}
		})
	}
}

// TestRememberRefused checks that the reconcile fails if the first release cannot be recorded. Otherwise that release
// would later count as a different one.
func TestRememberRefused(t *testing.T) {
	w := inMemory(t)
	_, s := gated()
	fixture.Create(t, w.client, s.Pool)
	w.Reconciler.Client = testenv.NewGrudging(w.client)
	w.Expect(w.rememberRelease(t.Context(), s)).To(MatchError(testenv.ErrRefused))
}

func TestReleaseIdentity(t *testing.T) {
	for name, test := range map[string]struct{ digest, first, want string }{
		"When the release is the first of the NodePool, its identity should be the version": {"sha256:1", "sha256:1", "1.36.3"},
		"When the release is another build, its identity should include the digest":         {"sha256:2", "sha256:1", "1.36.3sha256:2"},
		"When the first release is unknown, its identity should include the digest":         {"sha256:2", "", "1.36.3sha256:2"},
		"When the digest is unknown, its identity should be the version":                    {"", "sha256:1", "1.36.3"},
	} {
		t.Run(name, func(t *testing.T) {
			_, s := gated()
			s.Release = build("r", "1.36.3", test.digest)
			scope.Annotate(s.Pool, hyperv1.NodePoolFirstReleaseAnnotation, test.first)
			NewWithT(t).Expect(s.releaseIdentity()).To(Equal(test.want))
		})
	}
}

func TestOtherRelease(t *testing.T) {
	for name, test := range map[string]struct {
		digest, current, version string
		want                     bool
	}{
		"When the machines have the build, it should report no other release":                                      {"sha256:1", "sha256:1", "1.36.3", false},
		"When the machines have the build and the version is not recorded, it should report no other release":      {"sha256:1", "sha256:1", "", false},
		"When the machines have another build of the version, it should report another release":                    {"sha256:2", "sha256:1", "1.36.3", true},
		"When the build of the machines is unknown and the version is the same, it should report no other release": {"sha256:2", "", "1.36.3", false},
		"When the build of the machines is unknown and the version differs, it should report another release":      {"sha256:2", "", "1.36.2", true},
		"When the desired build is unknown and the version is the same, it should report no other release":         {"", "sha256:1", "1.36.3", false},
		"When the desired build is unknown and the version differs, it should report another release":              {"", "sha256:1", "1.36.2", true},
	} {
		t.Run(name, func(t *testing.T) {
			_, s := gated()
			s.Release, s.Pool.Status.Version = build("r", "1.36.3", test.digest), test.version
			scope.Annotate(s.Pool, hyperv1.NodePoolCurrentReleaseAnnotation, test.current)
			NewWithT(t).Expect(s.otherRelease()).To(Equal(test.want))
		})
	}
}
