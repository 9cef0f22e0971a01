// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/seeds"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/standin/contract"
)

func TestLab(t *testing.T) {
	s, err := simulator.New(simulator.Options{Seed: seeds.Demo, RandomSeed: 1, Users: []simulator.User{{Name: "admin", Admin: true}, {Name: "bob"}}})
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "hosted", Name: SecretName}, Data: map[string][]byte{
		maas.SecretKeyEndpoint: []byte(simtest.Serve(t, s)), maas.SecretKeyAPIKey: []byte(s.Key("bob"))}}
	lab := &Lab{Reader: fake.NewClientBuilder().WithObjects(secret).Build(), Namespace: "hosted"}
	provide := func(g Gomega, order contract.Order) contract.Machine {
		machine, err := lab.Provide(t.Context(), order)
		g.Expect(err).NotTo(HaveOccurred())
		return machine
	}
	first := contract.Order{Key: "standin-1", Image: "docker://" + Disk, UserData: []byte("#cloud-config\n")}
	t.Run("When a request is repeated, as after a crash, it should return the same machine", func(t *testing.T) {
		g := NewWithT(t)
		one := provide(g, first)
		g.Expect(provide(g, first).ID).To(Equal(one.ID))
		g.Expect(provide(g, contract.Order{Key: "standin-2", UserData: []byte("{}")}).ID).NotTo(Equal(one.ID))
		g.Expect(s.Machine(one.ID).OSystem + "/" + s.Machine(one.ID).Series).To(Equal(withCloudInit))
	})
	t.Run("When a machine is deployed, it should run and have names and addresses", func(t *testing.T) {
		NewWithT(t).Eventually(func(g Gomega) {
			machine := provide(g, first)
			g.Expect(machine.Running).To(BeTrue())
			g.Expect(machine.Names).NotTo(BeEmpty())
			g.Expect(machine.Addresses).NotTo(BeEmpty())
		}, time.Minute, 10*time.Millisecond).Should(Succeed())
	})
	t.Run("When a machine is released, it should be gone, and the machine of another user should stay", func(t *testing.T) {
		NewWithT(t).Eventually(func() (bool, error) { return lab.Release(t.Context(), first.Key) }, time.Minute, 10*time.Millisecond).Should(BeTrue())
		held := 0
		for _, m := range s.Machines() {
			if m.Owner == "bob" {
				held++
			}
		}
		NewWithT(t).Expect(held).To(Equal(1))
	})
	t.Run("When the image is for another cloud, no machine should be allocated", func(t *testing.T) {
		_, err := lab.Provide(t.Context(), contract.Order{Key: "standin-3", Image: "ami-1"})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`no image "ami-1"`)))
	})
	t.Run("When the Secret of the cloud is missing, the error should name it", func(t *testing.T) {
		_, err := (&Lab{Reader: fake.NewClientBuilder().Build(), Namespace: "hosted"}).Provide(t.Context(), first)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(SecretName)))
	})
}
