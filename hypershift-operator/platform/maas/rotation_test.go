// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/maas"
)

// TestNewCredentials checks what the provider gets when the user changes the credentials in the Secret.
func TestNewCredentials(t *testing.T) {
	const before, after = "good:before:key", "new:after:key"
	held := &infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "m1", Annotations: map[string]string{infrav1.OwnerAnnotation: "alice"}}}
	systemID := "wq4h8c"
	held.Spec.SystemID = &systemID
	never := held.DeepCopy()
	never.Spec.SystemID = nil
	for name, tc := range map[string]struct {
		machines []client.Object
		endpoint string
		user     string
		err      error
		gets     string
		reason   string
		says     string
	}{
		"When MAAS accepts the new key, it should pass the key to the provider": {user: "alice", machines: []client.Object{held}, gets: after, reason: "AsExpected"},
		"When MAAS rejects the new key, it should keep the last valid key": {err: &maas.Error{Operation: "check the API key", StatusCode: 401}, gets: before, reason: "MAASUnauthorized",
			says: "The machines keep using the last valid credentials"},
		"When MAAS is unreachable, it should keep the last valid key": {err: &maas.UnreachableError{Operation: "check the API key", Endpoint: "h", Err: errors.New("refused")}, gets: before,
			reason: "MAASUnreachable", says: "keep using the last valid credentials"},
		"When the key belongs to another user, it should keep the key of the machines' owner": {user: "bob", machines: []client.Object{held}, gets: before, reason: "CredentialsOfAnotherUser",
			says: "belongs to the MAAS user bob, but machine wq4h8c of MaasMachine m1 belongs to the user alice; use a key of that user"},
		"When endpoint and key change together, it should keep the key of the machines' owner": {user: "alice", endpoint: "http://other/MAAS", machines: []client.Object{held}, gets: before,
			reason: "CredentialsOfAnotherUser", says: "endpoint and API key changed at once"},
		"When endpoint and key change and no machine is allocated, it should pass the key to the provider": {user: "alice", endpoint: "http://other/MAAS", machines: []client.Object{never}, gets: after, reason: "AsExpected"},
		"When the key's user changes and no machine is allocated, it should pass the key to the provider":  {user: "bob", machines: []client.Object{never}, gets: after, reason: "AsExpected"},
	} {
		t.Run(name, func(t *testing.T) {
			g, clock := NewWithT(t), testingclock.NewFakeClock(time.Now())
			s := &server{user: "alice"}
			p := New(Options{WhoAmI: s.whoAmI, Clock: clock})
			source := credentials(map[string]string{"MAAS_ENDPOINT": "http://m/MAAS", "MAAS_API_KEY": before})
			c := testClient(t, append([]client.Object{source}, tc.machines...)...)
			first, err := p.ReconcileCredentials(t.Context(), c, testCluster())
			g.Expect(err).NotTo(HaveOccurred())

			s.user, s.err = tc.user, tc.err
			source.Data["MAAS_API_KEY"] = []byte(after)
			if tc.endpoint != "" {
				source.Data["MAAS_ENDPOINT"] = []byte(tc.endpoint)
			}
			g.Expect(c.Update(t.Context(), source)).To(Succeed())
			second, err := p.ReconcileCredentials(t.Context(), c, testCluster())
			g.Expect(err).NotTo(HaveOccurred())
			copied := &corev1.Secret{}
			g.Expect(c.Get(t.Context(), theCopy, copied)).To(Succeed())
			g.Expect(string(copied.Data["MAAS_API_KEY"])).To(Equal(tc.gets))
			g.Expect(second.Hash == first.Hash).To(Equal(tc.gets == before), "the provider is rolled for what it gets, and only for that")
			g.Expect(second.Condition.Reason).To(Equal(tc.reason), second.Condition.Message)
			g.Expect(second.Condition.Message).To(ContainSubstring(tc.says))
			g.Expect(second.CheckAgain).To(BeNumerically(">", 0))

			s.user, s.err = "alice", nil
			source.Data["MAAS_ENDPOINT"] = []byte("http://m/MAAS")
			g.Expect(c.Update(t.Context(), source)).To(Succeed())
			clock.Step(time.Hour)
			third, err := p.ReconcileCredentials(t.Context(), c, testCluster())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(third.Condition.Status).To(Equal(metav1.ConditionTrue))
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(copied), copied)).To(Succeed())
			g.Expect(string(copied.Data["MAAS_API_KEY"])).To(Equal(after), "as soon as MAAS takes them")
		})
	}
}
