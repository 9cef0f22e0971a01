// SPDX-License-Identifier: Apache-2.0

package boot_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
)

func TestNone(t *testing.T) {
	g := NewWithT(t)
	ctx := context.Background()
	var none boot.None

	power := func() boot.State {
		state, err := none.Power(ctx, "abc123")
		g.Expect(err).NotTo(HaveOccurred())
		return state
	}

	g.Expect(power()).To(Equal(boot.Off), "an unknown machine is off")
	g.Expect(none.PowerOff(ctx, "abc123")).To(Succeed(), "power off is idempotent")
	g.Expect(none.Install(ctx, boot.Spec{SystemID: "abc123"})).To(Succeed())
	g.Expect(power()).To(Equal(boot.Off), "installing leaves the power alone")
	g.Expect(none.PowerOn(ctx, boot.Spec{SystemID: "abc123"})).To(Succeed())
	g.Expect(power()).To(Equal(boot.On))
	g.Expect(none.PowerOff(ctx, "abc123")).To(Succeed())
	g.Expect(power()).To(Equal(boot.Off))
	g.Expect(none.Erase(ctx, "abc123")).To(Succeed())
}
