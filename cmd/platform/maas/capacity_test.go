// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cmd/capacity"
	"github.com/openshift/hypershift/cmd/kube/kubetest"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

const siteKey = "consumer:admin-token:sesame"

// siteOf returns the endpoint of a MAAS with machines in each state.
func siteOf(t *testing.T) string {
	t.Helper()
	demo := map[string]string{"hypershift-namespace": "clusters-demo", "hypershift-cluster": "demo"}
	other := map[string]string{"hypershift-namespace": "elsewhere-prod", "hypershift-cluster": "prod"}
	s, err := simulator.New(simulator.Options{
		RandomSeed: 1, Version: "3.4.10", Users: []simulator.User{{Name: "admin", Admin: true, Key: siteKey}},
		Seed: []byte(simtest.Seed(
			simtest.Machine{ID: "aaaaa1", Zone: "az1", Pool: "blue", Tags: []string{"gpu"}, CPU: 16},
			simtest.Machine{ID: "aaaaa2", Zone: "az1", Pool: "blue", CPU: 16},
			simtest.Machine{ID: "aaaaa3", Zone: "az2", Pool: "blue", Tags: []string{"gpu"}},
			simtest.Machine{ID: "aaaaa4", Zone: "az1", Tags: []string{"hypershift-quarantine"}},
			simtest.Machine{ID: "aaaaa5", Zone: "az2", Status: status.Broken},
			simtest.Machine{ID: "aaaaa6", Zone: "az1", Tags: []string{"gpu"}, Status: status.Deployed,
				Owner: "admin", Annotations: demo},
			simtest.Machine{ID: "aaaaa7", Zone: "az1", Status: status.Deployed, Owner: "admin", Annotations: other},
			simtest.Machine{ID: "aaaaa8", Zone: "az2", Status: status.Allocated, Owner: "admin"},
			simtest.Machine{ID: "aaaaa9", Zone: "az2", Status: status.Commissioning},
			simtest.Machine{ID: "aaaab1", Zone: "az2", Status: status.FailedTesting, Owner: "admin", Annotations: demo},
		)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return simtest.Listen(t, s)
}

// asks runs `capacity` and returns what it prints.
func asks(t *testing.T, args ...string) (out, said string, err error) {
	t.Helper()
	t.Setenv("MAAS_API_KEY", "")
	part := NewCapacity().(*Capacity)
	part.guard = func() (*maas.Guard, error) { return nil, nil }
	cmd := capacity.NewCommand(part)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var stdout, stderr bytes.Buffer
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

// rows returns the lines of a table with single spaces.
func rows(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// connected returns the flags that connect to a MAAS.
func connected(t *testing.T, endpoint string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "maas.key")
	NewWithT(t).Expect(os.WriteFile(file, []byte(siteKey), 0o600)).To(Succeed())
	return []string{"--maas-endpoint", endpoint, "--maas-api-key-file", file}
}

func TestCapacityOfFlags(t *testing.T) {
	g, endpoint := NewWithT(t), siteOf(t)
	flags := connected(t, endpoint)
	out, said, err := asks(t, append(flags, "--tags", "gpu", "--resource-pool", "blue", "--min-cpu", "8")...)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rows(out)).To(Equal([]string{
		"NODEPOOL NODES CAN GET REASON",
		"- - 1 4 Ready, of these 3 in resource pool blue, of these 2 with 8 cores or more, of these 1 with tag gpu",
		"Machines of " + endpoint + ": 10",
		"PLACE FIT UNFIT TAKEN QUARANTINED BROKEN OTHER TAKEN BY",
		"zone az1 1 1 2 1 0 0 namespace clusters-demo: 1, namespace elsewhere-prod: 1",
		"zone az2 0 1 2 0 1 1 namespace clusters-demo: 1, user admin: 1",
		"pool blue 1 2 0 0 0 0 -",
		"pool default 0 0 4 1 1 1 namespace clusters-demo: 2, namespace elsewhere-prod: 1, user admin: 1",
		"tag gpu 1 1 1 0 0 0 namespace clusters-demo: 1",
		"tag hypershift-quarantine 0 0 0 1 0 0 -",
	}))
	g.Expect(said).NotTo(ContainSubstring("sesame"))

	out, _, err = asks(t, append(flags, "-o", "json")...)
	g.Expect(err).NotTo(HaveOccurred())
	var report capacity.Report
	g.Expect(json.Unmarshal([]byte(out), &report)).To(Succeed())
	g.Expect(report.Needs).To(ConsistOf(HaveField("Fit", 3)))
	g.Expect(report.Machines).To(HaveLen(10))
	g.Expect(report.Machines).To(ContainElement(Equal(capacity.Machine{
		Hostname: "host-aaaaa6", SystemID: "aaaaa6", Zone: "az1", Pool: "default", Tags: []string{"gpu"},
		Status: "Deployed", State: capacity.Taken, TakenBy: "namespace clusters-demo",
	})))
	g.Expect(out).NotTo(ContainSubstring("sesame"))
}

// clusterAt returns cluster demo of a MAAS with two NodePools, one of them on LXD hosts, and the Secret.
func clusterAt(t *testing.T, endpoint string) *kubetest.Server {
	t.Helper()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "clusters", Name: name} }
	hc := &hyperv1.HostedCluster{ObjectMeta: meta("demo")}
	hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.MAASPlatform, MAAS: &hyperv1.MAASPlatformSpec{
		IdentityRef: hyperv1.MAASIdentityReference{Name: "maas"}, Zone: "az1",
	}}
	none := &hyperv1.HostedCluster{ObjectMeta: meta("none")}
	none.Spec.Platform.Type = hyperv1.NonePlatform
	pool := func(name string, platform hyperv1.MAASNodePoolPlatform) *hyperv1.NodePool {
		p := &hyperv1.NodePool{ObjectMeta: meta(name)}
		p.Spec.ClusterName, p.Spec.Replicas, p.Status.Replicas = "demo", ptr.To[int32](2), 1
		p.Spec.Platform = hyperv1.NodePoolPlatform{Type: hyperv1.MAASPlatform, MAAS: &platform}
		return p
	}
	infra := &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "clusters-demo", Name: "demo", Annotations: map[string]string{
			"failed-machine.infrastructure.cluster.x-k8s.io/aaaaa2": `{"hostname":"host-aaaaa2","quarantined":true}`,
		},
	}}
	secret := &corev1.Secret{ObjectMeta: meta("maas"), Data: map[string][]byte{
		"MAAS_ENDPOINT": []byte(endpoint), "MAAS_API_KEY": []byte(siteKey),
	}}
	return kubetest.Start(t, hc, none, infra, secret,
		pool("workers", hyperv1.MAASNodePoolPlatform{}),
		pool("elsewhere", hyperv1.MAASNodePoolPlatform{Zone: "az2", Tags: []hyperv1.MAASTag{"gpu"}}),
		pool("vms", hyperv1.MAASNodePoolPlatform{LXD: &hyperv1.MAASLXDNodePool{Enabled: true}}))
}

func TestCapacityOfCluster(t *testing.T) {
	endpoint := siteOf(t)
	server := clusterAt(t, endpoint)
	for name, tt := range map[string]struct {
		args []string
		want []string
	}{
		"of all NodePools": {nil, []string{
			"clusters/elsewhere 1/2 1 4 Ready, of these 1 in zone az2",
			"clusters/vms 1/2 0 none of 0 LXD hosts is in the zone",
			"clusters/workers 1/2 1 4 Ready, of these 3 in zone az1, of these 2 without tag hypershift-quarantine, " +
				"of these 1 that the cluster has not quarantined",
		}},
		"of one NodePool": {[]string{"--nodepool", "elsewhere"}, []string{
			"clusters/elsewhere 1/2 1 4 Ready, of these 1 in zone az2",
		}},
		"of flags, in the zone of the cluster": {[]string{"--tags", "gpu"}, []string{
			"- - 1 4 Ready, of these 3 in zone az1, of these 1 with tag gpu",
		}},
		"of another architecture": {[]string{"--arch", "arm64"}, []string{
			"- - 0 4 Ready, of these 3 in zone az1, of these 0 of architecture arm64",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			args := append([]string{"--kubeconfig", server.Kubeconfig, "--name", "demo"}, tt.args...)
			out, said, err := asks(t, args...)
			g.Expect(err).NotTo(HaveOccurred(), said)
			needs, places, _ := strings.Cut(out, "\n\n")
			g.Expect(rows(needs)[1:]).To(Equal(tt.want))
			g.Expect(places).To(ContainSubstring("clusters/demo: 1"))
			g.Expect(server.Writes()).To(BeEmpty(), "the command only reads")
		})
	}
}

func TestCapacityErrors(t *testing.T) {
	endpoint := siteOf(t)
	server := clusterAt(t, endpoint)
	demo := []string{"--kubeconfig", server.Kubeconfig, "--name", "demo"}
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"nothing to read":             {nil, "name a cluster by --name, or set --maas-endpoint"},
		"two sites":                   {append(connected(t, endpoint), demo...), "leave out --name, or the flags that connect"},
		"a NodePool without cluster":  {append(connected(t, endpoint), "--nodepool", "workers"), "set --name, too"},
		"two sets of constraints":     {append(demo, "--nodepool", "workers", "--tags", "gpu"), "leave out --nodepool, or the other"},
		"an unknown format":           {append(demo, "-o", "yaml"), `--output "yaml": use json`},
		"an unknown NodePool":         {append(demo, "--nodepool", "gone"), `has no NodePool "gone"; it has: elsewhere, vms, workers`},
		"a cluster without MAAS":      {append(demo, "--name", "none"), "is of platform None; only sites of platform MAAS can be read"},
		"an unknown cluster":          {append(demo, "--name", "gone"), "there is no HostedCluster clusters/gone"},
		"a tag in both lists":         {append(demo, "--tags", "a", "--not-tags", "a"), "no machine can have both"},
		"a MAAS that does not answer": {connected(t, "http://127.0.0.1:1/MAAS"), "connection refused; check --maas-endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, _, err := asks(t, tt.args...)
			g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
			g.Expect(err.Error()).NotTo(Or(ContainSubstring("\n"), ContainSubstring("sesame")))
		})
	}
	t.Run("no right to read the Secret", func(t *testing.T) {
		server.Refuse(func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/secrets/") })
		_, _, err := asks(t, demo...)
		NewWithT(t).Expect(err).To(MatchError(HavePrefix("you have no right to read Secret clusters/maas; run this as")))
	})
}

// TestCapacityGuard checks that a tenant cannot make the command call this computer.
func TestCapacityGuard(t *testing.T) {
	g, server := NewWithT(t), clusterAt(t, siteOf(t))
	cmd := capacity.NewCommand(NewCapacity())
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"--kubeconfig", server.Kubeconfig, "--name", "demo"})
	g.Expect(cmd.ExecuteContext(t.Context())).To(MatchError(ContainSubstring("it is not called")))
}
