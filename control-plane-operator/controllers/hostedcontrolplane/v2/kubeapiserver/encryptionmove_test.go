// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func box(name string) provider { return provider{Kind: secretbox, Name: name, Secret: name} }

func cbc(name string) provider { return provider{Kind: aescbc, Name: name, Secret: name} }

var plain = provider{Kind: identity}

// walk advances a state until nothing changes, and returns all states. The pods always roll out.
func walk(t *testing.T, live *corev1.Secret, wanted provider, spare ...provider) []move {
	t.Helper()
	g := NewWithT(t)
	var states []move
	for range 10 {
		m, err := currentMove(live, wanted, fleet{exists: true, encrypts: len(live.Data) > 0})
		g.Expect(err).NotTo(HaveOccurred())
		next := m.advance(wanted, true, migrated(live))
		before := live.DeepCopy()
		g.Expect(next.write(live, spare)).To(Succeed())
		providers, err := parseProviders(live.Data[encryptionKey])
		g.Expect(err).NotTo(HaveOccurred())
		states = append(states, move{number: next.number, stage: next.stage, providers: providers})
		if next.stage == hyperv1.EncryptionMigrationMigrating {
			live.Annotations[EncryptionMigrated] = live.Annotations[EncryptionMove]
		}
		if slices.Equal(before.Data[encryptionKey], live.Data[encryptionKey]) && before.Annotations[EncryptionStage] == live.Annotations[EncryptionStage] {
			return states
		}
	}
	t.Fatalf("it does not settle: %v", states)
	return nil
}

// stored returns a Secret that contains the given state.
func stored(t *testing.T, m move) *corev1.Secret {
	t.Helper()
	live := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
	NewWithT(t).Expect(m.write(live, nil)).To(Succeed())
	return live
}

func TestMove(t *testing.T) {
	completed := hyperv1.EncryptionMigrationCompleted
	legacy := stored(t, move{providers: []provider{cbc("a")}})
	legacy.Annotations = map[string]string{}
	for _, tc := range []struct {
		name   string
		live   *corev1.Secret
		wanted provider
		spare  []provider
		want   [][]provider
	}{
		{"encryption is enabled on a cluster that runs", &corev1.Secret{}, box("a"), nil, [][]provider{
			{plain, box("a")}, {box("a"), plain}, {box("a"), plain}, {box("a"), plain}, {box("a"), plain},
		}},
		{"the key changes", stored(t, move{stage: completed, providers: []provider{box("a")}}), box("b"), nil, [][]provider{
			{box("a"), box("b"), plain}, {box("b"), box("a"), plain}, {box("b"), box("a"), plain}, {box("b"), plain}, {box("b"), plain},
		}},
		{"an older operator encrypted with AES-CBC", legacy, box("a"), nil, [][]provider{
			{cbc("a"), box("a"), plain}, {box("a"), cbc("a"), plain}, {box("a"), cbc("a"), plain}, {box("a"), plain}, {box("a"), plain},
		}},
		{"the user changes the key again during a migration",
			stored(t, move{number: 1, stage: hyperv1.EncryptionMigrationMigrating, providers: []provider{box("b"), box("a")}}), box("c"), nil, [][]provider{
				{box("b"), box("c"), box("a"), plain}, {box("c"), box("b"), box("a"), plain}, {box("c"), box("b"), box("a"), plain}, {box("c"), plain}, {box("c"), plain},
			}},
		{"the user goes back before the new key encrypts",
			stored(t, move{number: 1, stage: hyperv1.EncryptionMigrationReadOnlyDeploy, providers: []provider{box("a"), box("b")}}), box("a"), nil, [][]provider{
				{box("a"), box("b"), plain}, {box("a"), box("b"), plain}, {box("a"), plain}, {box("a"), plain},
			}},
		{"active and backup key are exchanged", stored(t, move{stage: completed, providers: []provider{box("a"), box("b"), cbc("b")}}), box("b"), bothKinds(box("a")), [][]provider{
			{box("a"), box("b"), cbc("b"), cbc("a"), plain}, {box("b"), box("a"), cbc("b"), cbc("a"), plain},
			{box("b"), box("a"), cbc("b"), cbc("a"), plain}, {box("b"), box("a"), cbc("a"), plain}, {box("b"), box("a"), cbc("a"), plain},
		}},
	} {
		t.Run("When "+tc.name+" it should take these steps in order", func(t *testing.T) {
			g := NewWithT(t)
			before, err := parseProviders(tc.live.Data[encryptionKey])
			if len(tc.live.Data) == 0 {
				before, err = []provider{plain}, nil
			}
			g.Expect(err).NotTo(HaveOccurred())
			var got [][]provider
			for _, state := range walk(t, tc.live, tc.wanted, tc.spare...) {
				g.Expect(before).To(ContainElement(state.providers[0]), "a server of the step before must read what this one writes")
				g.Expect(state.providers).To(ContainElement(before[0]), "and the other way round")
				before = state.providers
				got = append(got, state.providers)
			}
			g.Expect(got).To(Equal(tc.want))
			g.Expect(tc.live.Annotations[EncryptionStage]).To(Equal(string(completed)))
		})
	}
}

func TestMoveWaits(t *testing.T) {
	at := func(stage hyperv1.EncryptionMigrationState, providers ...provider) move {
		return move{number: 3, stage: stage, providers: providers}
	}
	readOnly := at(hyperv1.EncryptionMigrationReadOnlyDeploy, box("a"), box("b"))
	promoted := at(hyperv1.EncryptionMigrationWritePromote, box("b"), box("a"))
	migrating := at(hyperv1.EncryptionMigrationMigrating, box("b"), box("a"))
	t.Run("When an API server lacks a step, it should not take the next step", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(readOnly.advance(box("b"), false, -1)).To(Equal(readOnly))
		g.Expect(promoted.advance(box("b"), false, -1)).To(Equal(promoted))
	})
	t.Run("When only an earlier migration is completed, it should keep the old key", func(t *testing.T) {
		NewWithT(t).Expect(migrating.advance(box("b"), true, 2)).To(Equal(migrating))
	})
	t.Run("When a control plane is new, it should start with the key", func(t *testing.T) {
		g := NewWithT(t)
		m, err := currentMove(&corev1.Secret{}, box("a"), fleet{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.advance(box("a"), false, -1)).To(Equal(move{stage: hyperv1.EncryptionMigrationCompleted, providers: []provider{box("a")}}))
	})
	t.Run("When a terminating API server still runs the previous step, it should wait until it stops", func(t *testing.T) {
		g := NewWithT(t)
		live := stored(t, readOnly)
		now := encryptionHash(live)
		g.Expect(fleet{settled: true, hashes: []string{now, now}}.runs(live)).To(BeTrue())
		g.Expect(fleet{settled: true, hashes: []string{now, now, "before"}}.runs(live)).To(BeFalse())
		g.Expect(fleet{settled: false, hashes: []string{now}}.runs(live)).To(BeFalse())
		g.Expect(fleet{settled: true}.runs(live)).To(BeFalse())
	})
}
