// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
)

// TestMemory checks that the reconciler drops its data about a deleted MaasCluster, and keeps its data about other
// MaasClusters. Otherwise its memory would grow without limit.
func TestMemory(t *testing.T) {
	g := NewWithT(t)
	r := &Reconciler{
		young:   map[types.UID]map[string]time.Time{"gone": {"mole01": {}}, "there": {"rat001": {}}},
		surveys: map[types.UID]time.Time{"gone": {}, "there": {}},
	}
	_, err := r.leaveNothing(t.Context(), &scope{infra: &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{UID: "gone"}}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.young).To(And(HaveLen(1), HaveKey(types.UID("there"))))
	g.Expect(r.surveys).To(And(HaveLen(1), HaveKey(types.UID("there"))))
	g.Expect(r.mu.TryLock()).To(BeTrue(), "the next one needs it")
}
