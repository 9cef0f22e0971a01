// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/machinetoken"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

func TestReconciler(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When a machine fits, it should be deployed, published and released":                                          life,
		"When nothing changes, it should not write anything or call MAAS":                                             settled,
		"When the process died after the allocation, it should adopt the machine":                                     adopts,
		"When an allocation has an unknown outcome, it should wait before it allocates another machine":               doubts,
		"When two machines have its allocation key, it should keep one":                                               keepsOne,
		"When no machine fits, it should report the reasons with counts":                                              noCapacity,
		"When MAAS is unusable, it should report the remedy":                                                          problems,
		"When MAAS allocates a machine that does not match, it should release the machine":                            misfit,
		"When a deployment fails, it should try another machine":                                                      retries,
		"When all attempts fail, it should stop and report the MAAS error":                                            exhausted,
		"When a deployment takes too long, it should try another machine":                                             overdue,
		"When a deployment can't start, it should try another machine":                                                neverBegins,
		"When the image does not support the bootstrap data format, it should fail before it allocates":               wrongFormat,
		"When another user takes its machine, it should fail and never touch the machine again":                       takenAway,
		"When a machine is marked broken, it should not become Ready because of a release":                            brokenStays,
		"When a machine is powered off, it should be powered on once":                                                 powersOn,
		"When it is deleted while MAAS is unusable, it should wait unless no machine was ever requested":              deletions,
		"When it is deleted during an unknown allocation, it should wait for the machine that appears late":           deletedInDoubt,
		"When its Cluster is paused, it should do nothing and report that":                                            pauses,
		"When prerequisites are missing, it should report which ones":                                                 prerequisites,
		"When another MaasMachine just allocated its machine, it should not touch the machine":                        allocatedAnew,
		"When a machine just failed, it should not be allocated for another MaasMachine":                              setAside,
		"When another MAAS user allocated its machine, it should fail and not touch the machine":                      otherUser,
		"When it is moved to another management cluster, it should keep its machine":                                  moved,
		"When another provider allocated its machine, it should adopt the machine":                                    foreign,
		"When a user works on the machine in MAAS, it should wait":                                                    maintenance,
		"When a machine is locked, it should report that":                                                             locked,
		"When erasing is requested, it should pass the request to MAAS":                                               erases,
		"When the Node registers, it should get the provider ID; if it does not register, that is reported":           joins,
		"When a deployed machine loses its operating system, it should be reported in time and erased at the release": lostSystem,
		"When the pool's token is known, each machine should be deployed with its own token":                          personal,
		"When MAAS has no LXD hosts, a virtual machine should wait and not allocate another machine":                  vmWithoutHosts,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

func personal(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"}, simtest.Machine{ID: "bbbbbb"})
	bearer := func(token string) string { return "Bearer " + base64.StdEncoding.EncodeToString([]byte(token)) }
	secret := &corev1.Secret{}
	w.get("bootstrap", secret)
	secret.Data = map[string][]byte{"value": []byte(`{"a":"` + bearer("pool's") + `"}`), "token": []byte("pool's")}
	w.Expect(w.client.Update(t.Context(), secret)).To(Succeed())
	w.add("m", infrav1.MaasMachineSpec{})
	w.add("n", infrav1.MaasMachineSpec{})
	w.reconcile("m", 0)
	w.reconcile("n", 0)
	for _, name := range []string{"m", "n"} {
		held := w.Machine(*w.machine(name).Spec.SystemID)
		w.Expect(string(held.UserData)).To(Equal(`{"a":"` + bearer(machinetoken.Derive([]byte("pool's"), name)) + `"}`))
	}
}

func life(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa", Hostname: "Mole", Zone: "az1", Pool: "p", Tags: []string{"ssd"}, CPU: 8, Memory: 16384, DiskGB: 200},
		simtest.Machine{ID: "bbbbbb", Zone: "az2", Tags: []string{"gpu"}})
	w.slow(faults.BootHangs)
	w.add("m", infrav1.MaasMachineSpec{MinCPU: ptr.To(8), MinMemory: ptr.To(16384), MinDiskSize: ptr.To(100), FailureDomain: ptr.To("az1"),
		ResourcePool: ptr.To("p"), Tags: []string{"ssd"}, NotTags: []string{"old", "gpu"}, Arch: "amd64", DeployInMemory: true})
	w.reconcile("m", 0)
	w.expect("m", "Ready False MachineDeploying", "machine Mole (aaaaaa) is Deploying")
	w.expect("m", "MachineAllocated True MachineAllocated", "Mole")
	m := w.machine("m")
	w.Expect(m.Spec.ProviderID).To(HaveValue(Equal("maas:///az1/aaaaaa")))
	w.Expect(m.Annotations).NotTo(HaveKey(machine.AttemptAnnotation))
	held := w.Machine("aaaaaa")
	w.Expect(held.AgentName).To(Equal(maas.AllocationKey(string(m.UID))))
	w.Expect(held.Annotations).To(HaveKeyWithValue(maas.AnnotationMachineUID, string(m.UID)))
	w.Expect(held.Annotations).To(HaveKeyWithValue(maas.AnnotationMachine, "m"))
	w.Expect(held.UserData).To(BeEquivalentTo("#cloud-config\nx: 1\n"))
	w.Expect(held.Ephemeral).To(BeTrue())
	w.Expect(held.OSystem + "/" + held.Series).To(Equal("custom/node-image"))
	w.Expect(w.sent("allocate").Get("storage")).To(Equal("root:100"))
	w.Expect(w.sent("allocate")["not_tags"]).To(Equal([]string{"gpu"}), "MAAS refuses a tag that it does not have, and no machine carries it")

	w.Change("aaaaaa", func(m *inventory.Machine) {
		m.Interfaces[0].Links[0].IP, m.PowerState = "10.0.0.7", "on"
		w.Expect(w.Life.OSReady(m)).To(Succeed())
	})
	w.reconcile("m", 15*time.Second)
	w.expect("m", "Ready True Ready", "")
	m = w.machine("m")
	w.Expect(m.Status.Ready).To(BeTrue())
	w.Expect(m.Status.Initialization.Provisioned).To(HaveValue(BeTrue()))
	w.Expect(m.Status.Addresses).To(ConsistOf(
		infrav1.MachineAddress{Type: "Hostname", Address: "mole"}, infrav1.MachineAddress{Type: "InternalIP", Address: "10.0.0.7"},
		infrav1.MachineAddress{Type: "ExternalIP", Address: "10.0.0.7"}, infrav1.MachineAddress{Type: "InternalDNS", Address: "mole.maas"},
		infrav1.MachineAddress{Type: "InternalDNS", Address: "mole"}, infrav1.MachineAddress{Type: "ExternalDNS", Address: "mole.maas"}))
	w.Expect(w.wrote()).To(Equal([]string{"allocate", "set_workload_annotations", "deploy"}))

	w.slow(faults.SlowRelease)
	w.remove("m")
	w.reconcile("m", 0)
	w.expect("m", "Deleting True MachineReleasing", "Releasing")
	w.edit("aaaaaa", func(m *inventory.Machine) { m.Status, m.Owner = status.Ready, "" })
	w.reconcile("m", 15*time.Second)
	w.Expect(w.gone("m")).To(BeTrue())
	w.Expect(w.count("release")).To(Equal(1))
}

func settled(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	w.expect("m", "Ready True Ready", "")
	before := w.machine("m").ResourceVersion
	w.told()
	w.ResetRequests()
	for range 10 {
		w.reconcile("m", 30*time.Second)
	}
	w.Expect(w.machine("m").ResourceVersion).To(Equal(before))
	w.Expect(w.told()).To(BeEmpty())
	w.Expect(w.Load.Report().Of("machines.read").Calls).To(BeNumerically("<=", 3), "five minutes are at most three lists")
}

func adopts(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"}, simtest.Machine{ID: "bbbbbb"})
	w.add("m", infrav1.MaasMachineSpec{})
	key := maas.AllocationKey(string(w.machine("m").UID))
	w.edit("bbbbbb", func(m *inventory.Machine) { m.Status, m.Owner, m.AgentName = status.Allocated, "provider", key })
	w.passes("m", 2)
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("bbbbbb")))
	w.Expect(w.count("allocate")).To(BeZero())
	w.Expect(w.held()).To(HaveLen(1))
}

func doubts(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"}, simtest.Machine{ID: "bbbbbb"})
	w.add("m", infrav1.MaasMachineSpec{})
	simtest.Fault(t, w.Simulator, faults.Rule{Kind: faults.Error, Operation: "machines.allocate", Status: http.StatusGatewayTimeout, Count: 1})
	w.reconcile("m", 0)
	w.expect("m", "Ready False MAASUnavailable", "")
	w.reconcile("m", 15*time.Second)
	w.expect("m", "Ready False AllocationUncertain", "answer was not received")
	w.restart()
	w.reconcile("m", 15*time.Second)
	w.Expect(w.count("allocate")).To(Equal(1), "not before a late answer can be excluded")
	w.reconcile("m", time.Minute)
	w.Expect(w.count("allocate")).To(Equal(2))
	w.Expect(w.machine("m").Spec.SystemID).NotTo(BeNil())
}

func keepsOne(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"}, simtest.Machine{ID: "bbbbbb"})
	w.add("m", infrav1.MaasMachineSpec{})
	key := maas.AllocationKey(string(w.machine("m").UID))
	w.edit("aaaaaa", func(m *inventory.Machine) { m.Status, m.Owner, m.AgentName = status.Allocated, "provider", key })
	w.edit("bbbbbb", func(m *inventory.Machine) {
		m.Status, m.Owner, m.AgentName, m.PowerState = status.Deployed, "provider", key, "on"
	})
	w.passes("m", 2)
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("bbbbbb")), "the one that has come furthest")
	w.Expect(w.held()).To(HaveLen(1))
}

func noCapacity(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa", Zone: "az1", CPU: 16}, simtest.Machine{ID: "bbbbbb", Zone: "az1", CPU: 16},
		simtest.Machine{ID: "cccccc", Zone: "az1"}, simtest.Machine{ID: "dddddd", Zone: "az2", Tags: []string{"gpu"}})
	w.add("m", infrav1.MaasMachineSpec{MinCPU: ptr.To(16), MinMemory: ptr.To(1), FailureDomain: ptr.To("az1"), Tags: []string{"gpu"}})
	w.passes("m", 3)
	w.expect("m", "Ready False NoCapacity", `3 of 4 Ready machines are in zone "az1"; 2 of these have 16 cores; none of these has tag "gpu"`)
	w.Expect(w.count("allocate")).To(Equal(1), "it is not asked again while it waits")
	w.Expect(w.told()).To(HaveLen(1), "an event once, not each time")
	w.add("lost", infrav1.MaasMachineSpec{FailureDomain: ptr.To("nozone"), ResourcePool: ptr.To("nopool"), Tags: []string{"notag"}})
	w.reconcile("lost", 0)
	w.expect("lost", "Ready False NoCapacity", `MAAS has no zone "nozone", it has: az1, az2, default; MAAS has no resource pool "nopool", it has: default; MAAS has no tag "notag"`)
	w.reconcile("m", 11*time.Minute)
	w.expect("m", "Ready False AllocationTimedOut", "no machine for more than 10m0s")
}

func problems(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.add("image", infrav1.MaasMachineSpec{Image: "custom/nothing"})
	w.credentials("consumer:token:wrongsecret")
	w.reconcile("m", 0)
	w.expect("m", "Ready False MAASUnauthorized", "put a valid API key into the Secret")

	w.credentials(w.Key("provider"))
	w.reconcile("image", 15*time.Second)
	w.expect("image", "Ready False ImageNotFound", `MAAS has no image "custom/nothing"; it has custom/node-image, ubuntu/noble`)
	w.Expect(w.held()).To(BeEmpty(), "no machine is taken for an image that is not there")

	endpoint := w.endpoint
	w.endpoint = "http://127.0.0.1:1/MAAS"
	w.credentials(w.Key("provider"))
	w.reconcile("m", 15*time.Second)
	w.expect("m", "Ready False MAASUnreachable", "check the endpoint")

	w.credentials("nonsense")
	w.reconcile("m", 15*time.Second)
	w.expect("m", "Ready False MAASCredentialsMissing", "MAAS_API_KEY")
	w.Expect(w.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "maas", Namespace: w.namespace}})).To(Succeed())
	w.reconcile("m", 15*time.Second)
	w.expect("m", "Ready False MAASCredentialsMissing", "does not exist: create it with the keys MAAS_ENDPOINT and MAAS_API_KEY")

	w.endpoint = endpoint
	w.credentials(w.Key("provider"))
	w.passes("m", 2)
	w.expect("m", "Ready True Ready", "")
}

func misfit(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa", CPU: 4, Pool: "mine"}, simtest.Machine{ID: "bbbbbb", Pool: "vms", Status: status.Broken})
	w.add("m", infrav1.MaasMachineSpec{ResourcePool: ptr.To("mine")})
	w.transport = testenv.RoundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("op") == "allocate" {
			w.edit("aaaaaa", func(m *inventory.Machine) { m.PoolID = w.DB.Machines.Get("bbbbbb").PoolID })
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("")), 0
		}
		return w.RoundTrip(r)
	})
	w.restart()
	w.reconcile("m", 0)
	w.expect("m", "Ready False NoCapacity", `does not match the request (is in resource pool "vms" instead of "mine"); it is released`)
	w.Expect(w.held()).To(BeEmpty())
	w.Expect(w.machine("m").Spec.ProviderID).To(BeNil())
}

func retries(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa", CPU: 2, Hostname: "bad"}, simtest.Machine{ID: "bbbbbb", CPU: 8, Hostname: "good"})
	simtest.FailDeployments(t, w.Simulator, "bad", 9)
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 2)
	w.expect("m", "Ready False MachineDeployFailed", "Marking node failed")
	w.Expect(strings.Join(w.told(), "\n")).To(ContainSubstring("curtin: writing the image to disk failed"), "MAAS's last events are told")
	w.passes("m", 3)
	w.expect("m", "Ready True Ready", "")
	m := w.machine("m")
	w.Expect(m.Spec.SystemID).To(HaveValue(Equal("bbbbbb")))
	w.Expect(m.Status.Attempts).To(BeEquivalentTo(1))
	w.Expect(m.Status.ExcludedSystemIDs).To(Equal([]string{"aaaaaa"}))
	w.Expect(w.held()).To(HaveLen(1))

	w.add("other", infrav1.MaasMachineSpec{})
	w.passes("other", 2)
	w.expect("other", "Ready False NoCapacity", "set aside for a while, since a deployment failed")
}

func exhausted(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"}, simtest.Machine{ID: "bbbbbb"}, simtest.Machine{ID: "cccccc"}, simtest.Machine{ID: "dddddd"})
	simtest.FailDeployments(t, w.Simulator, "*", 3)
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 12)
	w.expect("m", "Ready False DeployAttemptsExhausted", "deployments failed on 3 machines, and no other machine is tried")
	m := w.machine("m")
	w.Expect(m.Status.FailureReason).To(HaveValue(Equal("CreateError")))
	w.Expect(m.Status.FailureMessage).To(HaveValue(ContainSubstring("curtin: writing the image to disk failed")))
	before := m.ResourceVersion
	w.passes("m", 3)
	w.Expect(w.machine("m").ResourceVersion).To(Equal(before), "a terminal failure is settled")
	w.remove("m")
	w.passes("m", 2)
	w.Expect(w.gone("m")).To(BeTrue())
	w.Expect(w.held()).To(BeEmpty())
}

func overdue(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa", CPU: 2}, simtest.Machine{ID: "bbbbbb", CPU: 8})
	installed := w.slow(faults.BootHangs)
	w.add("m", infrav1.MaasMachineSpec{Timeouts: infrav1.MachineTimeouts{Deploy: &metav1.Duration{Duration: 3 * time.Minute}}})
	w.passes("m", 5)
	w.expect("m", "Ready False MachineDeploying", "")
	w.reconcile("m", 4*time.Minute)
	w.expect("m", "Ready False MachineDeployTimedOut", "for more than 3m0s")
	installed()
	w.passes("m", 4)
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("bbbbbb")))
	w.expect("m", "Ready True Ready", "")
}

func neverBegins(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa", CPU: 2}, simtest.Machine{ID: "bbbbbb", CPU: 8})
	w.add("m", infrav1.MaasMachineSpec{})
	w.refuse("machine.deploy", "aaaaaa", http.StatusInternalServerError, "Failed talking to node's BMC")
	w.passes("m", 3)
	w.expect("m", "Ready False MAASUnavailable", "BMC")
	w.reconcile("m", 11*time.Minute)
	w.passes("m", 4)
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("bbbbbb")))
	w.expect("m", "Ready True Ready", "")
	w.Expect(w.machine("m").Annotations[machine.FailuresAnnotation]).To(ContainSubstring("BMC"))
}

func wrongFormat(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"})
	secret := &corev1.Secret{}
	w.get("bootstrap", secret)
	secret.Data["value"] = []byte(`{"ignition": {"version": "3.4.0"}}`)
	w.Expect(w.client.Update(t.Context(), secret)).To(Succeed())
	w.add("m", infrav1.MaasMachineSpec{Image: "ubuntu/noble"})
	w.passes("m", 2)
	w.expect("m", "Ready False BootstrapFormatNotSupported", "use an image that runs Ignition")
	w.Expect(w.held()).To(BeEmpty())
}

func prerequisites(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	cluster := &clusterv1.Cluster{}
	w.get("demo", cluster)
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(false)
	w.Expect(w.client.Status().Update(t.Context(), cluster)).To(Succeed())
	w.reconcile("m", 0)
	w.expect("m", "Ready False WaitingForClusterInfrastructure", "")
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	w.Expect(w.client.Status().Update(t.Context(), cluster)).To(Succeed())
	w.Expect(w.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bootstrap", Namespace: w.namespace}})).To(Succeed())
	w.reconcile("m", 15*time.Second)
	w.expect("m", "Ready False WaitingForBootstrapData", `key "value" of Secret bootstrap`)
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bootstrap"}, Data: map[string][]byte{"value": []byte("x")}})
	w.passes("m", 2)
	w.expect("m", "Ready True Ready", "")
}

func vmWithoutHosts(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"})
	w.add("vm", infrav1.MaasMachineSpec{ProvisioningMode: infrav1.ProvisioningModeLXD})
	w.add("upstream", infrav1.MaasMachineSpec{LXD: &infrav1.LXDConfig{Enabled: ptr.To(true)}})
	for _, name := range []string{"vm", "upstream"} {
		w.reconcile(name, 0)
		w.expect(name, "Ready False HostUnavailable", "MAAS has no LXD host on which it composes")
	}
	w.Expect(w.held()).To(BeEmpty())
}
