// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// encryption is a cluster whose API servers always have the latest configuration, and its previous status.
type encryption struct {
	t      *testing.T
	hcp    *hyperv1.HostedControlPlane
	live   *corev1.Secret
	status hyperv1.SecretEncryptionStatus
	now    time.Time
}

func keySecret(name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name},
		Data:       map[string][]byte{"key": bytes.Repeat([]byte(name[:1]), keyLength)},
	}
}

// step takes the next step towards the key in a Secret, and returns the status in short form.
func (e *encryption) step(key string) string {
	e.t.Helper()
	g := NewWithT(e.t)
	c := hostedClient(keySecret("a-key"), keySecret("b-key"), keySecret("c-key"))
	e.hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{
		Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: key}},
	}
	wanted, err := readKey(e.t.Context(), c, "clusters-demo", key)
	g.Expect(err).NotTo(HaveOccurred())
	wanted.Kind = secretbox
	m, err := currentMove(e.live, wanted, fleet{exists: true, encrypts: len(e.live.Data) > 0})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.advance(wanted, true, migrated(e.live)).write(e.live, nil)).To(Succeed())
	if e.live.Annotations[EncryptionStage] == string(hyperv1.EncryptionMigrationMigrating) {
		e.live.Annotations[EncryptionMigrated] = e.live.Annotations[EncryptionMove]
	}
	e.now = e.now.Add(time.Minute)
	e.status = EncryptionStatus(e.status, e.live, *WantedKey(e.t.Context(), c, e.hcp), e.now)
	text := "active " + e.status.ActiveKey.AESCBC.Secret.Name + " target " + e.status.TargetKey.AESCBC.Secret.Name
	for _, entry := range e.status.History {
		text += fmt.Sprintf(", %s after %s", entry.State, entry.CompletionTime.Sub(entry.StartedTime.Time))
	}
	return text
}

func TestEncryptionStatus(t *testing.T) {
	g := NewWithT(t)
	e := &encryption{
		t: t, hcp: &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo"}}, live: &corev1.Secret{}, now: time.Unix(0, 0),
	}
	// A running cluster without encryption gets a key.
	for _, want := range []string{
		"active  target a-key", "active  target a-key", "active  target a-key", "active a-key target ", "active a-key target ",
	} {
		g.Expect(e.step("a-key")).To(Equal(want))
	}
	g.Expect(e.status.ActiveKey.Provider).To(Equal(hyperv1.SecretEncryptionProviderAESCBC))
	g.Expect(e.status.ActiveKey.AESCBC.DataHash).To(HaveLen(64))
	// Then the user sets a second key and, before that migration has finished, a third.
	g.Expect(e.step("b-key")).To(HavePrefix("active a-key target b-key, ReadOnlyDeploy"))
	g.Expect(e.step("b-key")).To(HavePrefix("active a-key target b-key, WritePromote"))
	g.Expect(e.step("c-key")).To(And(HavePrefix("active a-key target c-key, ReadOnlyDeploy"), HaveSuffix(", Interrupted after 2m0s")))
	for range 4 {
		e.step("c-key")
	}
	g.Expect(e.step("c-key")).To(Equal("active c-key target , Completed after 3m0s, Interrupted after 2m0s"))
	g.Expect(e.status.History[0].From.Fingerprint).NotTo(Equal(e.status.History[0].To.Fingerprint))
	g.Expect(e.status.History[0].To.Fingerprint).To(Equal(e.status.ActiveKey.AESCBC.DataHash))
	for i := range 6 {
		for range 5 {
			e.step([]string{"a-key", "b-key"}[i%2])
		}
	}
	g.Expect(e.status.History).To(HaveLen(5), "the API takes no more")
}
