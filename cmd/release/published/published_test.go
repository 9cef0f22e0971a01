// SPDX-License-Identifier: Apache-2.0

package published

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
)

func TestOf(t *testing.T) {
	t.Run("When the minor version is known, it should return the published image names", func(t *testing.T) {
		g := NewWithT(t)
		release, err := Of("v1.36.3", nil)
		g.Expect(err).NotTo(HaveOccurred())
		got := map[string]string{}
		for _, image := range release.Images {
			got[image.Tag] = image.Repository + ":" + image.Version
		}
		g.Expect(cmp.Diff(map[string]string{
			"etcd": "etcd:3.6.8-0", "pod": "pause:3.10.2", "coredns": "coredns/coredns:v1.14.2",
			"kube-apiserver": "kube-apiserver:v1.36.3", "kube-controller-manager": "kube-controller-manager:v1.36.3",
			"flannel": "flannel-io/flannel:v0.28.10", "kube-scheduler": "kube-scheduler:v1.36.3", "kube-proxy": "kube-proxy:v1.36.3",
			"cluster-capi-controllers": "cluster-api/cluster-api-controller:v1.13.6", "cluster-autoscaler": "autoscaling/cluster-autoscaler:v1.36.0",
			"metrics-server": "metrics-server/metrics-server:v0.9.0",
		}, got)).To(BeEmpty())
	})
	t.Run("When a minor version is in the table, it should return all versions and program URLs", func(t *testing.T) {
		for _, version := range []string{"1.31.14", "v1.32.13", "1.33.13", "1.34.4", "1.35.4", "1.36.0"} {
			g := NewWithT(t)
			release, err := Of(version, nil)
			g.Expect(err).NotTo(HaveOccurred())
			for _, image := range release.Images {
				g.Expect(image.Version).NotTo(BeEmpty(), version+" "+image.Tag)
			}
			g.Expect(release.Programs).To(HaveLen(5))
			for _, program := range release.Programs {
				g.Expect(program.Source+program.Checksums).NotTo(ContainSubstring("{version}"), version)
				g.Expect(program.Source).To(And(HavePrefix("https://"), ContainSubstring("{arch}")), version)
				g.Expect(release.Versions).To(Or(HaveKey(program.Name), HaveKey("kubernetes")))
			}
			g.Expect(release.Version).To(Equal(strings.TrimPrefix(version, "v")))
		}
	})
	t.Run("When a program is published, it should return the URL of its project", func(t *testing.T) {
		g := NewWithT(t)
		release, err := Of("v1.36.3", map[string]string{"containerd": "2.2.1", "runc": "v1.3.4"})
		g.Expect(err).NotTo(HaveOccurred())
		places := map[string]string{}
		for _, program := range release.Programs {
			places[program.Name] = program.Source + " " + program.Checksums
		}
		g.Expect(cmp.Diff(map[string]string{
			"kubelet": "https://dl.k8s.io/release/v1.36.3/bin/linux/{arch}/kubelet https://dl.k8s.io/release/v1.36.3/bin/linux/{arch}/kubelet.sha256",
			"containerd": "https://github.com/containerd/containerd/releases/download/v2.2.1/containerd-static-2.2.1-linux-{arch}.tar.gz " +
				"https://github.com/containerd/containerd/releases/download/v2.2.1/containerd-static-2.2.1-linux-{arch}.tar.gz.sha256sum",
			"runc": "https://github.com/opencontainers/runc/releases/download/v1.3.4/runc.{arch} https://github.com/opencontainers/runc/releases/download/v1.3.4/runc.sha256sum",
			"cni-plugins": "https://github.com/containernetworking/plugins/releases/download/v1.9.0/cni-plugins-linux-{arch}-v1.9.0.tgz " +
				"https://github.com/containernetworking/plugins/releases/download/v1.9.0/cni-plugins-linux-{arch}-v1.9.0.tgz.sha256",
			"crictl": "https://github.com/kubernetes-sigs/cri-tools/releases/download/v1.35.0/crictl-v1.35.0-linux-{arch}.tar.gz " +
				"https://github.com/kubernetes-sigs/cri-tools/releases/download/v1.35.0/crictl-v1.35.0-linux-{arch}.tar.gz.sha256",
		}, places)).To(BeEmpty())
	})
	for name, tc := range map[string]struct {
		version string
		chosen  map[string]string
		want    string
	}{
		"When the minor version is unknown, it should list the known ones":            {"v1.40.0", nil, "1.31 to 1.36"},
		"When the minor version is too old, it should be rejected as unknown":         {"1.30.1", nil, "Kubernetes 1.30 is not known here"},
		"When the major version differs, it should be rejected as unknown":            {"v2.36.0", nil, "Kubernetes 2.36 is not known here"},
		"When the version is malformed, it should print an example":                   {"latest", nil, "such as v1.36.3"},
		"When a part is unknown, it should name the part":                             {"v1.36.3", map[string]string{"calico": "1"}, `for part "calico"`},
		"When the version of Kubernetes is also set as a part, it should be rejected": {"v1.36.3", map[string]string{"kubernetes": "1.35.0"}, `for part "kubernetes"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Of(tc.version, tc.chosen)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}
