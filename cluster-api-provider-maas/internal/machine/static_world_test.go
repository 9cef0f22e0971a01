// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// addStatic creates a MaasMachine with a static address.
func (w *world) addStatic(name string, static infrav1.StaticIPConfig) {
	w.t.Helper()
	w.add(name, infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(1), MinMemory: ptr.To(1024), StaticIP: &static})
}

// until reconciles the named MaasMachines until all of them have the condition want, such as "Ready True Ready".
func (w *world) until(want string, names ...string) {
	w.t.Helper()
	w.Eventually(func() []string {
		var not []string
		for _, name := range names {
			w.pass(name)
			c := meta.FindStatusCondition(w.machine(name).Status.Conditions, strings.Fields(want)[0])
			if c == nil || want != strings.Join([]string{c.Type, string(c.Status), c.Reason}, " ") {
				not = append(not, name+": "+describe(c))
			}
		}
		return not
	}, patience, "20ms").Should(BeEmpty())
}

func describe(c *metav1.Condition) string {
	if c == nil {
		return "no condition"
	}
	return c.Type + " " + string(c.Status) + " " + c.Reason + ": " + c.Message
}

// leave deletes the named MaasMachines and reconciles them until they are gone.
func (w *world) leave(names ...string) {
	w.t.Helper()
	for _, name := range names {
		if !w.gone(name) {
			w.remove(name)
		}
	}
	w.Eventually(func() []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			w.pass(name)
			return w.gone(name)
		})
	}, patience, "20ms").Should(BeEmpty())
}

// modes returns the mode of each link of a machine's interface, followed by the address if the link has one.
func (w *world) modes(systemID string, nic int) []string {
	var modes []string
	for _, link := range w.Machine(systemID).Interfaces[nic].Links {
		modes = append(modes, strings.TrimSpace(link.Mode+" "+link.IP))
	}
	return modes
}

// hold assigns a static address to a machine that no test uses.
func (w *world) hold(ip string) {
	w.Change("aaaaa5", func(m *inventory.Machine) {
		nic := inventory.Interface{ID: 500, Name: "eth0", Type: "physical", Enabled: true, VLANID: ptr.To(1)}
		nic.Links = []inventory.Link{{ID: 900, Mode: "static", SubnetID: ptr.To(1), IP: ip}}
		m.Interfaces, m.Status, m.Owner = []inventory.Interface{nic}, status.Deployed, "bob"
	})
}
