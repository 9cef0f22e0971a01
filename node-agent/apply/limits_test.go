// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/apply"
)

func TestKernelLimits(t *testing.T) {
	t.Parallel()
	const watches = "/proc/sys/fs/inotify/max_user_watches"
	t.Run("raises a low setting after the settings of the plan", func(t *testing.T) {
		g, m := newMachine(t)
		m.Put(watches, "8192\n")
		g.Expect(apply.KernelSettings(t.Context(), m.Host, nil)).To(Succeed())
		g.Expect(m.Commands).To(HaveLen(2))
		g.Expect(m.Commands[1]).To(Equal("sysctl -q -w fs.inotify.max_user_watches=524288"))
		g.Expect(m.Log()).To(ContainSubstring("from 8192 to 524288"))
	})
	t.Run("keeps a larger setting, and settings that are no number", func(t *testing.T) {
		g, m := newMachine(t)
		m.Put(watches, "1048576\n")
		m.Put("/proc/sys/fs/file-max", "9223372036854775807\n")
		m.Put("/proc/sys/vm/max_map_count", "many\n")
		g.Expect(apply.KernelSettings(t.Context(), m.Host, nil)).To(Succeed())
		g.Expect(m.Commands).To(HaveLen(1))
		g.Expect(m.Log()).To(BeEmpty())
	})
	t.Run("names a setting that the kernel refuses to change, and continues", func(t *testing.T) {
		g, m := newMachine(t)
		m.Put("/proc/sys/net/netfilter/nf_conntrack_max", "65536\n")
		m.Put("/proc/sys/vm/max_map_count", "65530\n")
		m.Program = func(command string, _ io.Reader) ([]byte, error) {
			if strings.Contains(command, "nf_conntrack_max") {
				return nil, errors.New("read-only file system")
			}
			return nil, nil
		}
		g.Expect(apply.KernelSettings(t.Context(), m.Host, nil)).To(Succeed())
		g.Expect(m.Log()).To(And(
			ContainSubstring("net.netfilter.nf_conntrack_max is 65536, and pods may need 131072: "), ContainSubstring("raised kernel setting vm.max_map_count")))
	})
}
