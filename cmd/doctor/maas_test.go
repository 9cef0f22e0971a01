// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"cmp"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/cluster"
	"github.com/openshift/hypershift/cmd/doctor"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/platform/maas"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

const (
	newEnough = "3.4.10"
	aliceKey  = "consumer:alice-token:sesame"
)

func region(t *testing.T, seed, version string) *simulator.Simulator {
	t.Helper()
	s, err := simulator.New(simulator.Options{
		Seed: []byte(seed), RandomSeed: 1, Version: version, Users: []simulator.User{{Name: "admin", Admin: true},
			{Name: "alice", Key: aliceKey}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// keyFile returns a file with an API key.
func keyFile(t *testing.T, key string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	NewWithT(t).Expect(os.WriteFile(file, []byte(key), 0o600)).To(Succeed())
	return file
}

func TestMAAS(t *testing.T) {
	url := simtest.Listen(t, region(t, simtest.Rack, newEnough))
	empty := simtest.Listen(t, region(t, simtest.Seed(), newEnough))
	for name, tt := range map[string]struct {
		key         string
		args        []string
		part, check string
		status      doctor.Status
		says        string
	}{
		"names the user of the key, and that a plain one suffices": {part: "maas", check: "key", status: doctor.OK,
			says: "alice, a plain user"},
		"warns about plain HTTP": {part: "maas", check: "endpoint",
			status: doctor.Warning, says: "plain http"},
		"refuses a wrong key": {key: "a:b:c", part: "maas", check: "key",
			status: doctor.Failed, says: "API key"},
		"skips the image with a wrong key": {key: "a:b:c", part: "maas", check: "image",
			status: doctor.Skipped, says: `"maas key"`},
		"needs an administrator for static addresses": {args: []string{"--static-ip-cidr", "10.9.0.0/24"},
			part: "maas", check: "key", status: doctor.Failed, says: "need an administrator"},
		"finds a synced image": {args: []string{"--image", "ubuntu/noble"}, part: "maas", check: "image",
			status: doctor.OK, says: "ubuntu/noble for amd64"},
		"finds a custom image": {args: []string{"--image", "custom/node"}, part: "maas", check: "image",
			status: doctor.OK, says: "custom/node"},
		"lists the images": {args: []string{"--image", "custom/rhcos"}, part: "maas", check: "image",
			status: doctor.Failed, says: "it has: custom/disk, custom/node, ubuntu/jammy"},
		"knows the architecture": {args: []string{"--arch", "arm64"}, part: "maas", check: "image", status: doctor.Failed,
			says: "only for amd64"},
		"accepts an alias": {args: []string{"--image", "ubuntu/24.04"}, part: "maas", check: "image",
			status: doctor.Warning, says: "alias"},
		"lists the zones": {args: []string{"--zone", "az9"}, part: "maas", check: "zone", status: doctor.Failed,
			says: "it has: default, north, south"},
		"lists the pools": {args: []string{"--resource-pool", "red"}, part: "maas", check: "pool",
			status: doctor.Failed, says: "blue, default"},
		"lists the tags": {args: []string{"--machine-type", "r650"}, part: "maas", check: "tags",
			status: doctor.Failed, says: `no tag "r650"`},
		"lists the domains": {args: []string{"--maas-dns-domain", "x"}, part: "maas", check: "domain",
			status: doctor.Failed, says: "lab.example, maas"},
		"counts the machines that fit": {args: []string{"--resource-pool", "blue", "--tags", "fast", "--node-pool-replicas",
			"2"},
			part: "maas", check: "machines", status: doctor.OK, says: "2 machines are Ready and fit"},
		"warns if too few fit": {args: []string{"--tags", "gpu", "--node-pool-replicas", "3"}, part: "maas",
			check: "machines", status: doctor.Warning, says: "2 of 3 machines"},
		"counts machines of another pool": {args: []string{"--resource-pool", "default", "--tags", "fast"}, part: "maas",
			check:  "machines",
			status: doctor.Failed, says: "5 Ready, of these 3 in resource pool default, of these 0 with tag fast"},
		"reports a MAAS without Ready machines": {args: []string{"--maas-endpoint", empty}, part: "maas", check: "machines",
			status: doctor.Failed, says: "no Ready machine"},
		"finds overlapping networks": {args: []string{"--cluster-cidr", "10.8.0.0/14"}, part: "network", check: "subnets",
			status: doctor.Failed, says: "10.9.0.0/24 of machines overlaps with 10.8.0.0/14"},
		"names the subnets": {part: "network", check: "subnets", status: doctor.OK, says: "10.9.0.0/24"},
		"reports an endpoint that refuses connections": {args: []string{"--maas-endpoint", "http://127.0.0.1:1/MAAS"},
			part: "maas", check: "endpoint",
			status: doctor.Failed, says: "connection refused"},
		"reports an endpoint that is no MAAS": {args: []string{"--maas-endpoint", strings.TrimSuffix(url, "/MAAS")},
			part: "maas", check: "endpoint",
			status: doctor.Failed, says: "not that of a MAAS API"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			report, err := run(t, append([]string{"--maas-endpoint", url, "--maas-api-key-file", keyFile(t, cmp.Or(tt.key,
				aliceKey))}, tt.args...)...)
			g.Expect(err).To(MatchError(ContainSubstring("checks failed")), "there is no management cluster")
			got := of(t, report.Checks, tt.part, tt.check)
			g.Expect(got.Status).To(Equal(tt.status), "%+v", got)
			g.Expect(got.Message).To(ContainSubstring(tt.says))
			if tt.status == doctor.Failed {
				g.Expect(got.Remedy).NotTo(BeEmpty())
			}
		})
	}
}

func TestMAASCertificate(t *testing.T) {
	g := NewWithT(t)
	s := region(t, simtest.Rack, newEnough)
	server := httptest.NewTLSServer(s)
	t.Cleanup(func() { server.Close(); g.Expect(s.Close()).To(Succeed()) })
	args := []string{"--maas-endpoint", server.URL + "/MAAS", "--maas-api-key-file", keyFile(t, aliceKey)}
	report, _ := run(t, args...)
	got := of(t, report.Checks, "maas", "endpoint")
	g.Expect(got.Status).To(Equal(doctor.Failed))
	g.Expect(got.Message).To(ContainSubstring("unknown authority"))
	g.Expect(got.Remedy).To(ContainSubstring("--maas-ca-bundle"))

	ca := filepath.Join(t.TempDir(), "ca.pem")
	pemCA := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	g.Expect(os.WriteFile(ca, pemCA, 0o600)).To(Succeed())
	report, _ = run(t, append(args, "--maas-ca-bundle", ca)...)
	g.Expect(of(t, report.Checks, "maas", "endpoint")).To(And(HaveField("Status", doctor.OK), HaveField("Message",
		"MAAS "+newEnough)))
}

func TestMAASVersion(t *testing.T) {
	url := simtest.Listen(t, region(t, simtest.Rack, "3.4.1"))
	report, _ := run(t, "--maas-endpoint", url, "--maas-api-key-file", keyFile(t, aliceKey))
	got := of(t, report.Checks, "maas", "endpoint")
	NewWithT(t).Expect(got).To(And(HaveField("Status", doctor.Warning), HaveField("Message",
		ContainSubstring("upgrade to 3.4.4"))))
}

func TestWithoutFlags(t *testing.T) {
	g := NewWithT(t)
	report, err := run(t)
	g.Expect(err).To(HaveOccurred(), "there is no management cluster")
	g.Expect(of(t, report.Checks, "maas", "endpoint")).To(And(HaveField("Status", doctor.Skipped), HaveField("Message",
		ContainSubstring("--maas-api-key-file"))))
	g.Expect(of(t, report.Checks, "cluster", "version")).To(And(HaveField("Status", doctor.Failed), HaveField("Remedy",
		ContainSubstring("--kubeconfig"))))
	g.Expect(of(t, report.Checks, "cluster", "storage").Status).To(Equal(doctor.Skipped))
	g.Expect(report.Status).To(Equal(doctor.Failed))
}

// preflight runs the checks of `create cluster maas` with these flags.
func preflight(t *testing.T, replicas int32, args ...string) (warnings string, err error) {
	t.Helper()
	t.Setenv("MAAS_API_KEY", "")
	g, p := NewWithT(t), maas.NewCluster()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	p.AddFlags(flags)
	g.Expect(flags.Parse(append(args, "--external-api-server-address", "api.example.com"))).To(Succeed())
	env := cluster.Environment{Name: "demo", Namespace: "clusters"}
	g.Expect(p.Complete(t.Context(), env)).To(Succeed())
	hc, pool := &hyperv1.HostedCluster{}, &hyperv1.NodePool{}
	pool.Spec.Arch, pool.Spec.Replicas = "amd64", ptr.To(replicas)
	var stderr strings.Builder
	err = doctor.Preflight(doctor.Run(t.Context(), p.Preflight(env, hc, pool)), &stderr)
	return stderr.String(), err
}

func TestPreflightOfCreate(t *testing.T) {
	url := simtest.Listen(t, region(t, simtest.Rack, newEnough))
	key := keyFile(t, aliceKey)
	t.Run("a refused key is an error, also for a cluster without nodes", func(t *testing.T) {
		_, err := preflight(t, 0, "--maas-endpoint", url, "--maas-api-key-file", keyFile(t, "a:b:c"))
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("maas key: "), ContainSubstring("--skip-preflight"))))
	})
	t.Run("a missing image is an error", func(t *testing.T) {
		_, err := preflight(t, 1, "--maas-endpoint", url, "--maas-api-key-file", key, "--image", "custom/none")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`no image "custom/none"`)))
	})
	t.Run("a cluster without nodes needs no image yet", func(t *testing.T) {
		_, err := preflight(t, 0, "--maas-endpoint", url, "--maas-api-key-file", key, "--image", "custom/none")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
	t.Run("machines that are not Ready now are a warning", func(t *testing.T) {
		g := NewWithT(t)
		warnings, err := preflight(t, 1, "--maas-endpoint", url, "--maas-api-key-file", key, "--min-cpu", "512")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(warnings).To(ContainSubstring("Warning: maas machines: no Ready machine of MAAS fits: 5 Ready, of these 0 with 512 cores"))
	})
	t.Run("a MAAS that only the management cluster may reach is a warning", func(t *testing.T) {
		g := NewWithT(t)
		warnings, err := preflight(t, 1, "--maas-endpoint", "http://127.0.0.1:1/MAAS", "--maas-api-key-file", key)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(strings.Count(warnings, "\n")).To(Equal(1))
		g.Expect(warnings).To(And(HavePrefix("Warning: maas endpoint: "), Not(ContainSubstring("sesame"))))
	})
}

// TestMAASOfCluster checks the credentials of an existing cluster, whose Secret a tenant writes.
func TestMAASOfCluster(t *testing.T) {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}}
	hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.MAASPlatform,
		MAAS: &hyperv1.MAASPlatformSpec{IdentityRef: hyperv1.MAASIdentityReference{Name: "creds"}}}
	secret := func(data map[string][]byte) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "creds"}, Data: data}
	}
	for name, tt := range map[string]struct {
		objects []client.Object
		says    string
	}{
		"reports a missing Secret": {nil, `secrets "creds" not found`},
		"reports a missing key":    {[]client.Object{secret(map[string][]byte{"MAAS_ENDPOINT": []byte("http://maas/MAAS")})}, "lacks MAAS_API_KEY"},
		"does not call this computer for a tenant": {[]client.Object{secret(map[string][]byte{
			"MAAS_ENDPOINT": []byte(simtest.Listen(t, region(t, simtest.Rack, newEnough))),
			"MAAS_API_KEY":  []byte(aliceKey)})}, "it is not called"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(append(tt.objects, hc)...).Build()
			report := doctor.Examine(t.Context(), c, client.ObjectKeyFromObject(hc), []doctor.Part{maas.NewDoctor()})
			got := of(t, report.Checks, "maas", "endpoint")
			g.Expect(got.Status).NotTo(Equal(doctor.OK))
			g.Expect(got.Message).To(ContainSubstring(tt.says))
			g.Expect(got.Message + got.Remedy).To(And(ContainSubstring("creds"), Not(ContainSubstring("sesame"))))
			g.Expect(of(t, report.Checks, "maas", "key").Status).To(Equal(doctor.Skipped))
		})
	}
}
