// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
)

var update = flag.Bool("update", false, "write the golden files")

func TestRenderGolden(t *testing.T) {
	t.Setenv("MAAS_API_KEY", apiKey)
	dir := t.TempDir()
	files := map[string]string{
		"mirrors.yaml":     "- source: quay.example/product\n  mirrors: [mirror.example/product]\n",
		"pull-secret.json": `{"auths":{"quay.example":{"username":"u","password":"p"}}}`,
		"maas-ca.crt":      "MAAS CA\n",
		"id_rsa.pub":       "ssh-ed25519 AAAA someone\n",
		"image-refs.yaml": `{"kind":"ImageStream","spec":{"tags":[
			{"name":"hypershift-operator","from":{"kind":"DockerImage","name":"quay.example/operator:1"}},
			{"name":"cluster-api","from":{"kind":"DockerImage","name":"quay.example/capi:1"}}]}}`,
	}
	for name, text := range files {
		NewWithT(t).Expect(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)).To(Succeed())
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	cluster := func(platform string, more ...string) []string {
		return append([]string{
			"create", "cluster", platform, "--name", "demo", "--infra-id", "demo-abcde", "--release-image", "quay.example/release:1.36.3",
			"--external-api-server-address", "10.0.0.1", "--render",
		}, more...)
	}
	tests := []struct {
		name, golden string
		args         []string
	}{
		{"When platform None gets only the required flags", "create-cluster-none.yaml", cluster("none")},
		{
			"When platform MAAS gets only the required flags", "create-cluster-maas.yaml",
			cluster("maas", "--maas-endpoint", "https://maas.example:5443/MAAS"),
		},
		{
			"When platform MAAS gets many flags", "create-cluster-maas-full.yaml",
			cluster("maas", "--network-type", "Other", "--allocate-node-cidrs", "--maas-endpoint", "https://maas.example/MAAS", "--maas-ca-bundle", in("maas-ca.crt"),
				"--maas-zone", "z1", "--maas-dns-domain", "maas", "--maas-resource-pool", "blue", "--maas-failure-domains", "z1,z2",
				"--pull-secret", in("pull-secret.json"), "--image-content-sources", in("mirrors.yaml"), "--ssh-key", in("id_rsa.pub"),
				"--additional-trust-bundle", filepath.Join("testdata", "ca.pem"), "--base-domain", "example.org", "--base-domain-prefix", "none", "--machine-cidr", "10.0.0.0/24",
				"--control-plane-availability-policy", "HighlyAvailable", "--infra-availability-policy", "HighlyAvailable", "--etcd-storage-class", "fast",
				"--etcd-storage-size", "20Gi", "--node-selector", "a=b", "--pods-labels", "c=d", "--annotations", "e=f", "--labels", "g=h",
				"--pausedUntil", "2026-12-31T00:00:00Z", "--control-plane-operator-image", "quay.example/cpo:1", "--node-pool-replicas", "3",
				"--node-drain-timeout", "5m", "--auto-repair", "--image", "custom/rhcos", "--user-data-format", "Ignition", "--min-cpu", "8", "--min-memory", "16384", "--min-disk-size", "100",
				"--tags", "a,b", "--not-tags", "c", "--machine-type", "r650", "--resource-pool", "red", "--disk-wipe", "--disk-wipe-device", "/dev/nvme0n1",
				"--disk-wipe-partition", "6", "--erase", "Quick", "--deploy-timeout", "90m", "--lxd-enabled", "--lxd-project", "p", "--lxd-disk-size", "60",
				"--static-ip-range", "10.0.0.10-10.0.0.20", "--static-ip-cidr", "10.0.0.0/24", "--static-ip-nameservers", "10.0.0.2"),
		},
		{
			"When a cluster uses an existing Secret", "create-cluster-maas-secret.yaml",
			cluster("maas", "--credentials-secret", "shared", "--node-pool-replicas", "-1"),
		},
		{
			"When a NodePool has a release image", "create-nodepool-maas.yaml",
			[]string{
				"create", "nodepool", "maas", "--name", "big", "--cluster-name", "demo", "--release-image", "quay.example/release:1.36.3", "--render",
				"--identity-ref", "other", "--zone", "z2", "--ephemeral", "--static-ip", "10.0.0.9", "--static-ip-cidr", "10.0.0.0/24", "--node-labels", "x=y",
			},
		},
		{"When the operator gets only the required flags", "install.yaml", []string{"install", "render", "--outputs", "resources", "--hypershift-image", "registry.example/hypershift:1"}},
		{
			"When the management cluster is OpenShift", "install-openshift.yaml",
			[]string{
				"install", "render", "--outputs", "resources", "--hypershift-image", "registry.example/hypershift:1", "--platform-monitoring", "All",
				"--management-apis", "config.openshift.io,monitoring.coreos.com,route.openshift.io,security.openshift.io",
			},
		},
		{
			"When the operator gets many flags", "install-full.yaml",
			[]string{
				"install", "render", "--outputs", "resources", "--image-refs", in("image-refs.yaml"), "--pull-secret", in("pull-secret.json"),
				"--registry-overrides", "a=b", "--maas-capi-provider-image", "quay.example/provider:1", "--control-plane-operator-image", "quay.example/cpo:1",
				"--replicas", "2", "--enable-ci-debug-output", "--metrics-set", "All", "--cert-rotation-scale", "1h", "--additional-operator-env-vars", "X=y",
				"--namespace", "other", "--image-pull-policy", "Always",
			},
		},
		{
			"When the nodes hold virtual IPs", "install-virtual-ip.yaml",
			[]string{
				"install", "render", "--outputs", "resources", "--hypershift-image", "registry.example/hypershift:1", "--pull-secret", in("pull-secret.json"),
				"--api-virtual-ip", "10.0.0.5,fd00::5", "--api-virtual-ip-interface", "bond0", "--api-virtual-ip-node-selector", "node-role.kubernetes.io/control-plane=",
				"--api-virtual-ip-lease-duration", "15s", "--management-apis", "security.openshift.io",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name+" it should render them", func(t *testing.T) {
			g := NewWithT(t)
			o := hypershift(t.Context(), "", tt.args...)
			g.Expect(o.code).To(Equal(0), o.stderr)
			g.Expect(o.stdout).NotTo(ContainSubstring("kind: Secret"), "Secrets are printed on demand only")
			path := filepath.Join("testdata", tt.golden)
			if *update {
				g.Expect(os.WriteFile(path, []byte(o.stdout), 0o644)).To(Succeed())
			}
			want, err := os.ReadFile(path)
			g.Expect(err).NotTo(HaveOccurred())
			if diff := cmp.Diff(string(want), o.stdout); diff != "" {
				t.Errorf("run the test with -update when this is meant (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRenderSensitive(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("MAAS_API_KEY", apiKey)
	file := filepath.Join(t.TempDir(), "all.yaml")
	o := hypershift(t.Context(), "", "create", "cluster", "maas", "--name", "demo", "--release-image", "quay.example/release:1.36.3",
		"--external-api-server-address", "10.0.0.1", "--maas-endpoint", "https://maas.example:5443/MAAS", "--render-into", file, "--render-sensitive")
	g.Expect([]any{o.code, o.stdout}).To(Equal([]any{0, ""}))
	g.Expect(o.stderr).To(ContainSubstring("no --pull-secret: Secret clusters/demo-pull-secret is made without credentials"))
	text, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).To(ContainSubstring("name: demo-maas-credentials"))
	info, err := os.Stat(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o600), "the file holds credentials")
}
