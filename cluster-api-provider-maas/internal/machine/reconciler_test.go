package machine_test

import (
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
	"github.com/openshift/hypershift/support/maas/maastest"
	"github.com/openshift/hypershift/support/testenv"
)

func TestReconciler(t *testing.T) {
	cfg := testenv.Start(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When a machine fits, it should be deployed, published and given back":                         life,
		"When nothing changes, it should write nothing and ask MAAS nothing":                           settled,
		"When a process died after the allocation, it should adopt the machine":                        adopts,
		"When an answer is outstanding, it should wait before it allocates another machine":            doubts,
		"When two machines carry its key, it should keep one":                                          keepsOne,
		"When no machine fits, it should say why with counts":                                          noCapacity,
		"When MAAS can't be used, it should say what to do":                                            problems,
		"When MAAS gives what was not asked for, it should give it back":                               misfit,
		"When a deployment fails, it should try another machine":                                       retries,
		"When all tries fail, it should be terminal with MAAS's words":                                 exhausted,
		"When a deployment takes too long, it should try another machine":                              overdue,
		"When a deployment can't even begin, it should try another machine":                            neverBegins,
		"When the image can't take the bootstrap data, it should refuse before it allocates":           wrongFormat,
		"When a machine is taken away, it should be terminal and never touch what others made of it":   takenAway,
		"When a machine is marked broken, it should not make it Ready by a release":                    brokenStays,
		"When a machine is switched off, it should switch it on once":                                  powersOn,
		"When it is deleted while MAAS is unusable, it should wait, or go where nothing was asked for": deletions,
		"When it is deleted in doubt, it should wait for the machine that turns up late":               deletedInDoubt,
		"When its Cluster is paused, it should do nothing and say so":                                  pauses,
		"When prerequisites are missing, it should say which":                                          prerequisites,
		"When another MaasMachine got its machine a moment ago, it should not touch it":                allocatedAnew,
		"When a machine failed a moment ago, it should not be picked for another MaasMachine":          setAside,
		"When another MAAS user got its machine, it should be terminal and not touch it":               otherUser,
		"When it was moved to another management cluster, it should keep its machine":                  moved,
		"When another provider allocated its machine, it should take it over":                          foreign,
		"When somebody works on the machine in MAAS, it should wait":                                   maintenance,
		"When a machine is locked, it should say so":                                                   locked,
		"When erasing is asked for, it should ask MAAS for it":                                         erases,
		"When the Node registers, it should get the provider ID; when it does not, that is told":       joins,
		"When a field is not supported, it should say so":                                              unsupported,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

func life(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa", Hostname: "Mole", Zone: "az1", Pool: "p", Tags: []string{"ssd"}, CPU: 8, Memory: 16384, DiskGB: 200},
		&maastest.Machine{ID: "bbbbbb", Zone: "az2"})
	w.maas.DeployTime = time.Hour
	w.add("m", infrav1.MaasMachineSpec{MinCPU: ptr.To(8), MinMemory: ptr.To(16384), MinDiskSize: ptr.To(100), FailureDomain: ptr.To("az1"),
		ResourcePool: ptr.To("p"), Tags: []string{"ssd"}, NotTags: []string{"old"}, Arch: "amd64", DeployInMemory: true})
	w.reconcile("m", 0)
	w.expect("m", "Ready False MachineDeploying", "machine Mole (aaaaaa) is Deploying")
	w.expect("m", "MachineAllocated True MachineAllocated", "Mole")
	m := w.machine("m")
	w.Expect(m.Spec.ProviderID).To(HaveValue(Equal("maas:///az1/aaaaaa")))
	w.Expect(m.Annotations).NotTo(HaveKey(machine.AttemptAnnotation))
	held := w.maas.Get("aaaaaa")
	w.Expect(held.AgentName).To(Equal(maas.AllocationKey(string(m.UID))))
	w.Expect(held.Annotations).To(HaveKeyWithValue(maas.AnnotationMachineUID, string(m.UID)))
	w.Expect(held.Annotations).To(HaveKeyWithValue(maas.AnnotationMachine, "m"))
	w.Expect(held.UserData).To(Equal("#cloud-config\nx: 1\n"))
	deploy, _ := w.maas.Last("POST machines/* deploy")
	w.Expect(deploy.Params.Get("ephemeral_deploy")).To(Equal("true"))
	w.Expect(deploy.Params.Get("distro_series")).To(Equal("custom/node-image"))
	allocate, _ := w.maas.Last("POST machines allocate")
	w.Expect(allocate.Params.Get("storage")).To(Equal("root:100"))
	w.Expect(allocate.Params.Get("not_tags")).To(Equal("old"))

	w.maas.Edit("aaaaaa", func(m *maastest.Machine) { m.Status, m.IPs, m.Power = maastest.Deployed, []string{"10.0.0.7"}, "on" })
	w.reconcile("m", 15*time.Second)
	w.expect("m", "Ready True Ready", "")
	m = w.machine("m")
	w.Expect(m.Status.Ready).To(BeTrue())
	w.Expect(m.Status.Initialization.Provisioned).To(HaveValue(BeTrue()))
	w.Expect(m.Status.Addresses).To(ConsistOf(
		infrav1.MachineAddress{Type: "Hostname", Address: "mole"}, infrav1.MachineAddress{Type: "InternalIP", Address: "10.0.0.7"},
		infrav1.MachineAddress{Type: "ExternalIP", Address: "10.0.0.7"}, infrav1.MachineAddress{Type: "InternalDNS", Address: "mole.maas"},
		infrav1.MachineAddress{Type: "InternalDNS", Address: "mole"}, infrav1.MachineAddress{Type: "ExternalDNS", Address: "mole.maas"}))
	own := 0
	for call, n := range w.maas.Calls(true) {
		if !strings.HasPrefix(call, "GET ") {
			own += n
		}
	}
	w.Expect(own).To(BeNumerically("<=", 3), "allocate, annotate, deploy")

	w.maas.ReleaseTime = time.Hour
	w.remove("m")
	w.reconcile("m", 0)
	w.expect("m", "Deleting True MachineReleasing", "Releasing")
	w.maas.Edit("aaaaaa", func(m *maastest.Machine) { m.Status, m.Owner = maastest.Ready, "" })
	w.reconcile("m", 15*time.Second)
	w.Expect(w.gone("m")).To(BeTrue())
	w.Expect(w.maas.Calls(true)["POST machines/* release"]).To(Equal(1))
}

func settled(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	w.expect("m", "Ready True Ready", "")
	before := w.machine("m").ResourceVersion
	w.told()
	w.maas.Calls(true)
	for range 10 {
		w.reconcile("m", 30*time.Second)
	}
	w.Expect(w.machine("m").ResourceVersion).To(Equal(before))
	w.Expect(w.told()).To(BeEmpty())
	w.Expect(w.maas.Calls(true)).To(HaveKeyWithValue("GET machines", BeNumerically("<=", 3)), "five minutes are at most three lists")
}

func adopts(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa"}, &maastest.Machine{ID: "bbbbbb"})
	w.add("m", infrav1.MaasMachineSpec{})
	key := maas.AllocationKey(string(w.machine("m").UID))
	w.maas.Edit("bbbbbb", func(m *maastest.Machine) { m.Status, m.Owner, m.AgentName = maastest.Allocated, "provider", key })
	w.passes("m", 2)
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("bbbbbb")))
	w.Expect(w.maas.Calls(false)).NotTo(HaveKey("POST machines allocate"))
	w.Expect(w.maas.Held()).To(HaveLen(1))
}

func doubts(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa"}, &maastest.Machine{ID: "bbbbbb"})
	w.add("m", infrav1.MaasMachineSpec{})
	lost := true
	w.maas.Intercept = func(c maastest.Call, rw http.ResponseWriter) (bool, func(http.ResponseWriter) bool) {
		if c.Op != "allocate" || !lost {
			return false, nil
		}
		lost = false
		rw.WriteHeader(http.StatusGatewayTimeout)
		return true, nil
	}
	w.reconcile("m", 0)
	w.expect("m", "Ready False MAASUnavailable", "")
	w.reconcile("m", 15*time.Second)
	w.expect("m", "Ready False AllocationUncertain", "answer was not received")
	w.restart()
	w.reconcile("m", 15*time.Second)
	w.Expect(w.maas.Calls(false)["POST machines allocate"]).To(Equal(1), "not before a late answer can be excluded")
	w.reconcile("m", time.Minute)
	w.Expect(w.maas.Calls(false)["POST machines allocate"]).To(Equal(2))
	w.Expect(w.machine("m").Spec.SystemID).NotTo(BeNil())
}

func keepsOne(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa"}, &maastest.Machine{ID: "bbbbbb"})
	w.add("m", infrav1.MaasMachineSpec{})
	key := maas.AllocationKey(string(w.machine("m").UID))
	w.maas.Edit("aaaaaa", func(m *maastest.Machine) { m.Status, m.Owner, m.AgentName = maastest.Allocated, "provider", key })
	w.maas.Edit("bbbbbb", func(m *maastest.Machine) {
		m.Status, m.Owner, m.AgentName, m.Power = maastest.Deployed, "provider", key, "on"
	})
	w.passes("m", 2)
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("bbbbbb")), "the one that has come furthest")
	w.Expect(w.maas.Held()).To(HaveLen(1))
}

func noCapacity(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa", Zone: "az1", CPU: 16}, &maastest.Machine{ID: "bbbbbb", Zone: "az1", CPU: 16},
		&maastest.Machine{ID: "cccccc", Zone: "az1"}, &maastest.Machine{ID: "dddddd", Zone: "az2", Tags: []string{"gpu"}})
	w.add("m", infrav1.MaasMachineSpec{MinCPU: ptr.To(16), MinMemory: ptr.To(1), FailureDomain: ptr.To("az1"), Tags: []string{"gpu"}})
	w.passes("m", 3)
	w.expect("m", "Ready False NoCapacity", `3 of 4 Ready machines are in zone "az1"; 2 of these have 16 cores; none of these has tag "gpu"`)
	w.Expect(w.maas.Calls(false)).NotTo(HaveKey("POST machines allocate"), "MAAS might compose a machine of its own")
	w.Expect(w.told()).To(HaveLen(1), "an event once, not each time")
	w.add("lost", infrav1.MaasMachineSpec{FailureDomain: ptr.To("nozone"), ResourcePool: ptr.To("nopool"), Tags: []string{"notag"}})
	w.reconcile("lost", 0)
	w.expect("lost", "Ready False NoCapacity", `MAAS has no zone "nozone", it has: az1, az2, default; MAAS has no resource pool "nopool", it has: default; MAAS has no tag "notag"`)
	w.reconcile("m", 11*time.Minute)
	w.expect("m", "Ready False AllocationTimedOut", "no machine for more than 10m0s")
}

func problems(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.add("image", infrav1.MaasMachineSpec{Image: "custom/nothing"})
	w.credentials("consumerkey:tokenkey01:wrongsecret")
	w.reconcile("m", 0)
	w.expect("m", "Ready False MAASUnauthorized", "put a valid API key into the Secret")

	w.credentials(w.maas.APIKey)
	w.reconcile("image", 15*time.Second)
	w.expect("image", "Ready False ImageNotFound", `MAAS has no image "custom/nothing"; it has custom/node-image, ubuntu/noble`)
	w.Expect(w.maas.Held()).To(BeEmpty(), "no machine is taken for an image that is not there")

	url := w.maas.URL
	w.maas.URL = "http://127.0.0.1:1/MAAS"
	w.credentials(w.maas.APIKey)
	w.reconcile("m", 15*time.Second)
	w.expect("m", "Ready False MAASUnreachable", "check the endpoint")

	w.credentials("nonsense")
	w.reconcile("m", 15*time.Second)
	w.expect("m", "Ready False MAASCredentialsMissing", "MAAS_API_KEY")
	w.Expect(w.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "maas", Namespace: w.namespace}})).To(Succeed())
	w.reconcile("m", 15*time.Second)
	w.expect("m", "Ready False MAASCredentialsMissing", "does not exist: create it with the keys MAAS_ENDPOINT and MAAS_API_KEY")

	w.maas.URL = url
	w.credentials(w.maas.APIKey)
	w.passes("m", 2)
	w.expect("m", "Ready True Ready", "")
}

func misfit(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa", CPU: 4, Pool: "mine"})
	w.add("m", infrav1.MaasMachineSpec{ResourcePool: ptr.To("mine")})
	w.maas.Intercept = func(c maastest.Call, _ http.ResponseWriter) (bool, func(http.ResponseWriter) bool) {
		if c.Op == "allocate" {
			w.maas.Edit("aaaaaa", func(m *maastest.Machine) { m.Pool = "vms" })
			delete(c.Params, "pool")
		}
		return false, nil
	}
	w.reconcile("m", 0)
	w.expect("m", "Ready False NoCapacity", `does not fit (is in resource pool "vms" instead of "mine"); it is given back`)
	w.Expect(w.maas.Held()).To(BeEmpty())
	w.Expect(w.machine("m").Spec.ProviderID).To(BeNil())
}

func retries(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa", CPU: 2, Hostname: "bad", FailDeploys: 9}, &maastest.Machine{ID: "bbbbbb", CPU: 8, Hostname: "good"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 2)
	w.expect("m", "Ready False MachineDeployFailed", "Marking node failed")
	w.Expect(strings.Join(w.told(), "\n")).To(ContainSubstring("curtin said no"), "MAAS's last events are told")
	w.passes("m", 3)
	w.expect("m", "Ready True Ready", "")
	m := w.machine("m")
	w.Expect(m.Spec.SystemID).To(HaveValue(Equal("bbbbbb")))
	w.Expect(m.Status.Attempts).To(BeEquivalentTo(1))
	w.Expect(m.Status.ExcludedSystemIDs).To(Equal([]string{"aaaaaa"}))
	w.Expect(w.maas.Held()).To(HaveLen(1))

	w.add("other", infrav1.MaasMachineSpec{})
	w.passes("other", 2)
	w.expect("other", "Ready False NoCapacity", "set aside for a while, since a deployment failed")
}

func exhausted(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa", FailDeploys: 9}, &maastest.Machine{ID: "bbbbbb", FailDeploys: 9},
		&maastest.Machine{ID: "cccccc", FailDeploys: 9}, &maastest.Machine{ID: "dddddd"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 12)
	w.expect("m", "Ready False DeployAttemptsExhausted", "deployments failed on 3 machines, no other one is tried")
	m := w.machine("m")
	w.Expect(m.Status.FailureReason).To(HaveValue(Equal("CreateError")))
	w.Expect(m.Status.FailureMessage).To(HaveValue(ContainSubstring("curtin said no")))
	before := m.ResourceVersion
	w.passes("m", 3)
	w.Expect(w.machine("m").ResourceVersion).To(Equal(before), "a terminal failure is settled")
	w.remove("m")
	w.passes("m", 2)
	w.Expect(w.gone("m")).To(BeTrue())
	w.Expect(w.maas.Held()).To(BeEmpty())
}

func overdue(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa", CPU: 2}, &maastest.Machine{ID: "bbbbbb", CPU: 8})
	w.maas.DeployTime = time.Hour
	w.add("m", infrav1.MaasMachineSpec{Timeouts: infrav1.MachineTimeouts{Deploy: &metav1.Duration{Duration: 3 * time.Minute}}})
	w.passes("m", 5)
	w.expect("m", "Ready False MachineDeploying", "")
	w.reconcile("m", 4*time.Minute)
	w.expect("m", "Ready False MachineDeployTimedOut", "for more than 3m0s")
	w.maas.DeployTime = 0
	w.passes("m", 4)
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("bbbbbb")))
	w.expect("m", "Ready True Ready", "")
}

func neverBegins(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa", CPU: 2}, &maastest.Machine{ID: "bbbbbb", CPU: 8})
	w.add("m", infrav1.MaasMachineSpec{})
	w.maas.Intercept = func(c maastest.Call, rw http.ResponseWriter) (bool, func(http.ResponseWriter) bool) {
		if c.Op == "deploy" && strings.Contains(c.Path, "aaaaaa") {
			http.Error(rw, "Failed talking to node's BMC", http.StatusInternalServerError)
			return true, nil
		}
		return false, nil
	}
	w.passes("m", 3)
	w.expect("m", "Ready False MAASUnavailable", "BMC")
	w.reconcile("m", 11*time.Minute)
	w.passes("m", 4)
	w.Expect(w.machine("m").Spec.SystemID).To(HaveValue(Equal("bbbbbb")))
	w.expect("m", "Ready True Ready", "")
	w.Expect(w.machine("m").Annotations[machine.FailuresAnnotation]).To(ContainSubstring("BMC"))
}

func wrongFormat(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa"})
	secret := &corev1.Secret{}
	w.get("bootstrap", secret)
	secret.Data["value"] = []byte(`{"ignition": {"version": "3.4.0"}}`)
	w.Expect(w.client.Update(t.Context(), secret)).To(Succeed())
	w.add("m", infrav1.MaasMachineSpec{Image: "ubuntu/noble"})
	w.passes("m", 2)
	w.expect("m", "Ready False BootstrapFormatNotSupported", "use an image that runs Ignition")
	w.Expect(w.maas.Held()).To(BeEmpty())
}

func prerequisites(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa"})
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

func unsupported(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, &maastest.Machine{ID: "aaaaaa"})
	w.add("vm", infrav1.MaasMachineSpec{ProvisioningMode: infrav1.ProvisioningModeLXD})
	w.add("upstream", infrav1.MaasMachineSpec{LXD: &infrav1.LXDConfig{Enabled: ptr.To(true)}})
	for _, name := range []string{"vm", "upstream"} {
		w.reconcile(name, 0)
		w.expect(name, "Ready False NotSupported", "not supported")
	}
	w.Expect(w.maas.Held()).To(BeEmpty())
}
