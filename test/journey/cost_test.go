// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func TestCost(t *testing.T) {
	t.Run("When a process is measured, its memory, CPU time and writes should be read", func(t *testing.T) {
		g := NewWithT(t)
		own := costOf("/proc/self")
		g.Expect(own.Memory).To(BeNumerically(">", 1<<20))
		g.Expect(own.Memory).To(BeNumerically("<", 10<<30))
		twice := own.plus(own)
		g.Expect(twice).To(Equal(Cost{Memory: 2 * own.Memory, Processor: 2 * own.Processor, Written: 2 * own.Written}))
	})
	t.Run("When a process has ended, its cost should be zero", func(t *testing.T) {
		NewWithT(t).Expect(costOf(t.TempDir())).To(BeZero())
	})
	t.Run("When the name of a program has spaces and parentheses, its CPU time should be found", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(processor("17 (a) b) (c) S 1 17 17 0 -1 4194560 9 0 0 0 150 50 7 7 20 0 1 0 5 6 7")).To(Equal(2 * time.Second))
		g.Expect(processor("17 (a) S 1")).To(BeZero())
		stat, err := os.ReadFile("/proc/self/stat")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(processor(string(stat))).To(BeNumerically("<", time.Hour))
	})
	t.Run("When a process writes, only the bytes that reach disks should count", func(t *testing.T) {
		NewWithT(t).Expect(written("rchar: 5\nwchar: 6\nread_bytes: 7\nwrite_bytes: 4096\ncancelled_write_bytes: 8\n")).To(BeEquivalentTo(4096))
	})
}

func TestComponentOf(t *testing.T) {
	pods := []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{UID: "aa-bb", Labels: map[string]string{hyperv1.ControlPlaneComponentLabel: "etcd"}}}}
	for name, tc := range map[string]struct{ group, want string }{
		"When the kubelet created the cgroup, the component should be found":      {"12:memory:/kubepods/burstable/podaa-bb/0f1e\n", "etcd"},
		"When systemd created the cgroup, the component should be found":          {"0::/kubepods.slice/kubepods-podaa_bb.slice/cri-containerd-0f1e.scope\n", "etcd"},
		"When the cgroup belongs to another Pod, no component should be returned": {"12:memory:/kubepods/burstable/podcc-dd/0f1e\n", ""},
		"When the process has no Pod, no component should be returned":            {"0::/init.scope\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(componentOf(pods, tc.group)).To(Equal(tc.want))
		})
	}
}
