// SPDX-License-Identifier: Apache-2.0

package netns_test

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
	"github.com/openshift/hypershift/test/maas-simulator/boot/netns"
)

func TestBlank(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	backend := &netns.Backend{Dir: t.TempDir()}
	spec := newSpec(&fakeMAAS{})
	spec.OSystem = "custom"
	g.Expect(backend.Install(ctx, spec)).To(Succeed())
	disk := filepath.Join(backend.Dir, spec.SystemID, "sda.img")
	g.Expect(disk).To(BeAnExistingFile())

	spec.Blank = true
	g.Expect(backend.PowerOn(ctx, spec)).To(Succeed())
	g.Expect(power(t, backend, spec)).To(Equal(boot.On))
	g.Expect(disk).NotTo(BeAnExistingFile(), "nothing is left of what was installed")

	spec.Blank = false
	g.Expect(backend.PowerOff(ctx, spec.SystemID)).To(Succeed())
	g.Expect(power(t, backend, spec)).To(Equal(boot.Off))
	g.Expect(backend.PowerOn(ctx, spec)).To(Succeed())
	g.Expect(power(t, backend, spec)).To(Equal(boot.On), "it has the power on")
	g.Expect(filepath.Join(backend.Dir, spec.SystemID, "console.log")).NotTo(BeAnExistingFile(), "but a power cycle brings no system back")

	g.Expect(backend.Install(ctx, spec)).To(Succeed())
	g.Expect(power(t, backend, spec)).To(Equal(boot.Off))
	g.Expect(disk).To(BeAnExistingFile(), "an installation does")
	g.Expect(backend.Erase(ctx, spec.SystemID)).To(Succeed())
}
