// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	ignition "github.com/coreos/ignition/v2/config/v3_2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// world is one pool in its own namespace of a shared API server.
type world struct {
	*GomegaWithT
	t         *testing.T
	client    client.WithWatch
	clock     *testingclock.FakeClock
	namespace string
	// refusal is the ignition-server's report on configurations. Empty means success; "-" means that the server is down.
	refusal string
	*Reconciler
}

func newWorld(t *testing.T, c client.WithWatch, namespace string) *world {
	clock := testingclock.NewFakeClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	return &world{GomegaWithT: NewWithT(t), t: t, client: c, clock: clock, namespace: namespace, Reconciler: &Reconciler{
		Client: fixture.AsOperator(t), Clock: clock, Recorder: &events.FakeRecorder{}, Releases: fixture.Payloads(), Platforms: fixture.Platforms(nil),
	}}
}

func (s *world) hosted() string { return fixture.Hosted(s.namespace) }

func (s *world) key() client.ObjectKey {
	return client.ObjectKey{Namespace: s.namespace, Name: fixture.PoolName}
}

func (s *world) pass() (ctrl.Result, error) {
	return s.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: s.key()})
}

func (s *world) mustPass() {
	s.t.Helper()
	for range 3 {
		_, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.answer()
	}
}

// answer writes the ignition-server's report into the token Secrets that have none yet.
func (s *world) answer() {
	s.t.Helper()
	secrets := &corev1.SecretList{}
	s.Expect(s.client.List(s.t.Context(), secrets, client.InNamespace(s.hosted()))).To(Succeed())
	for i := range secrets.Items {
		token := &secrets.Items[i]
		if s.refusal == "-" || token.Annotations[hyperv1.IgnitionConfigAnnotation] == "" || len(token.Data[hyperv1.TokenSecretReasonKey]) > 0 {
			continue
		}
		token.Data[hyperv1.TokenSecretReasonKey], token.Data[hyperv1.TokenSecretMessageKey] = []byte(hyperv1.AsExpectedReason), []byte("Payload generated successfully")
		if token.Annotations[hyperv1.TokenSecretNodePoolUpgradeTypeAnnotation] == string(hyperv1.UpgradeTypeInPlace) {
			token.Data["payload"] = []byte("packed")
		}
		if s.refusal != "" {
			token.Data[hyperv1.TokenSecretReasonKey], token.Data[hyperv1.TokenSecretMessageKey] = []byte("InvalidConfig"), []byte(s.refusal)
		}
		s.Expect(s.client.Update(s.t.Context(), token)).To(Succeed())
	}
}

func (s *world) pool() *hyperv1.NodePool {
	s.t.Helper()
	pool := &hyperv1.NodePool{}
	s.Expect(s.client.Get(s.t.Context(), s.key(), pool)).To(Succeed())
	return pool
}

// change updates the pool's spec.
func (s *world) change(mutate func(*hyperv1.NodePool)) {
	s.t.Helper()
	pool := s.pool()
	mutate(pool)
	s.Expect(s.client.Update(s.t.Context(), pool)).To(Succeed())
}

func (s *world) condition(conditionType string) hyperv1.NodePoolCondition {
	s.t.Helper()
	c := scope.Find(s.pool().Status.Conditions, conditionType)
	s.Expect(c).NotTo(BeNil(), "condition %s", conditionType)
	return *c
}

func (s *world) deployment() *clusterv1.MachineDeployment {
	s.t.Helper()
	md := &clusterv1.MachineDeployment{}
	s.Expect(s.client.Get(s.t.Context(), client.ObjectKey{Namespace: s.hosted(), Name: fixture.PoolName}, md)).To(Succeed())
	return md
}

func (s *world) secret(name string) *corev1.Secret {
	s.t.Helper()
	secret := &corev1.Secret{}
	s.Expect(s.client.Get(s.t.Context(), client.ObjectKey{Namespace: s.hosted(), Name: name}, secret)).To(Succeed())
	return secret
}

// tokenOf returns the token Secret that belongs to a user-data Secret.
func (s *world) tokenOf(userData string) *corev1.Secret {
	s.t.Helper()
	return s.secret(strings.Replace(userData, "user-data-", "token-", 1))
}

func (s *world) templates() []infrav1.MaasMachineTemplate {
	s.t.Helper()
	list := &infrav1.MaasMachineTemplateList{}
	s.Expect(s.client.List(s.t.Context(), list, client.InNamespace(s.hosted()))).To(Succeed())
	return list.Items
}

// ready makes the cluster ready for pools.
func (s *world) ready(mutate func(*hyperv1.HostedCluster)) {
	s.t.Helper()
	hc := fixture.HostedCluster(s.namespace)
	hc.Spec.InfraID = "demo-abcde"
	if mutate != nil {
		mutate(hc)
	}
	fixture.Create(s.t, s.client, append(fixture.Inputs(s.namespace), hc,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: "ignition-server-ca-cert"},
			Data: map[string][]byte{"tls.crt": []byte("CA")}})...)
	hc.Status.IgnitionEndpoint = "172.30.240.1:30443"
	hc.Status.KubeConfig = &corev1.LocalObjectReference{Name: "demo-admin-kubeconfig"}
	s.Expect(s.client.Status().Update(s.t.Context(), hc)).To(Succeed())
}

// machine creates a Machine as Cluster API would for the pool.
func (s *world) machine(name, userData string) *clusterv1.Machine {
	s.t.Helper()
	md := s.deployment()
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: name,
			Labels: md.Spec.Template.Labels, Annotations: map[string]string{hyperv1.NodePoolAnnotation: s.key().String()}},
		Spec: *md.Spec.Template.Spec.DeepCopy(),
	}
	machine.Spec.Bootstrap.DataSecretName = ptr.To(userData)
	machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: infrav1.GroupVersion.Group, Kind: "MaasMachine", Name: name,
	}
	s.Expect(s.client.Create(s.t.Context(), machine)).To(Succeed())
	return machine
}

func TestReconcile(t *testing.T) {
	c := fixture.Start(t)

	t.Run("When there is no cluster, it should report that and wait", func(t *testing.T) {
		s := newWorld(t, c, "orphan")
		fixture.Create(t, c, fixture.NodePool(s.namespace))
		s.mustPass()
		s.Expect(s.condition("Ready").Message).To(ContainSubstring("There is no HostedCluster demo"))
	})

	t.Run("When the cluster is ready, it should create a token and a MachineDeployment", func(t *testing.T) {
		s := newWorld(t, c, "create")
		s.ready(nil)
		fixture.Create(t, c, fixture.NodePool(s.namespace))
		s.mustPass()

		md := s.deployment()
		s.Expect(md.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
		s.Expect(md.Spec.ClusterName).To(Equal("demo-abcde"))
		s.Expect(md.Spec.Template.Spec.Version).To(Equal("1.36.3"))
		s.Expect(md.Spec.Template.Annotations).To(HaveKeyWithValue(hyperv1.NodePoolAnnotation, "create/demo"))
		s.Expect(md.Spec.Selector.MatchLabels).To(Equal(md.Spec.Template.Labels))
		userData := *md.Spec.Template.Spec.Bootstrap.DataSecretName
		token := s.tokenOf(userData)
		s.Expect(token.Annotations).To(HaveKeyWithValue("hypershift.openshift.io/ignition-config", "true"))
		s.Expect(token.Data).To(And(HaveKey("token"), HaveKey("config"), HaveKey("pull-secret-hash"), HaveKey("hc-configuration-hash")))
		s.Expect(string(token.Data["release"])).To(Equal(fixture.ReleaseImage))

		config, report, err := ignition.Parse(s.secret(userData).Data["value"])
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(report.IsFatal()).To(BeFalse())
		merge := config.Ignition.Config.Merge[0]
		s.Expect(merge.Source).To(HaveValue(Equal("https://172.30.240.1:30443/ignition")))
		headers := map[string]string{}
		for _, h := range merge.HTTPHeaders {
			headers[h.Name] = *h.Value
		}
		s.Expect(headers).To(HaveKeyWithValue("Authorization", "Bearer "+base64.StdEncoding.EncodeToString(token.Data["token"])))
		s.Expect(headers).To(HaveKeyWithValue("NodePool", "create/demo"))
		s.Expect(userData).To(HaveSuffix(headers["TargetConfigVersionHash"]))
		s.Expect(s.secret(userData).Data).NotTo(HaveKey("token"), "this ignition-server would not know a machine's token")
		s.Expect(config.Systemd.Units).To(BeEmpty(), "the disk wipe is off with a Kubernetes release")

		s.Expect(s.templates()).To(HaveLen(1))
		spec := s.templates()[0].Spec.Template.Spec
		s.Expect(spec.Image).To(Equal("custom/kubernetes-node"))
		s.Expect(spec.FailureDomain).To(HaveValue(Equal("az1")))
		s.Expect(md.Spec.Template.Spec.InfrastructureRef.Name).To(Equal(s.templates()[0].Name))
		s.Expect(s.condition("ValidReleaseImage").Status).To(Equal(corev1.ConditionTrue))
		s.Expect(s.condition("UpdatingVersion").Status).To(Equal(corev1.ConditionTrue))
	})

	t.Run("When the ignition-server supports tokens for single machines, the provider should get the token", func(t *testing.T) {
		s := newWorld(t, c, "create")
		before := s.deployment()
		userData := *before.Spec.Template.Spec.Bootstrap.DataSecretName
		token := s.tokenOf(userData)
		token.Annotations["hypershift.openshift.io/machine-tokens"] = "true"
		s.Expect(c.Update(t.Context(), token)).To(Succeed())
		s.mustPass()
		s.Expect(s.secret(userData).Data).To(HaveKeyWithValue("token", token.Data["token"]))
		s.Expect(s.deployment().Spec.Template).To(Equal(before.Spec.Template))
	})

	t.Run("When nothing has changed, it should write nothing", func(t *testing.T) {
		s := newWorld(t, c, "create")
		counted := fixture.NewFaulty(c)
		s.Reconciler.Client = counted
		s.mustPass()
		s.Expect(counted.Log).To(BeEmpty())
	})

	t.Run("When replicas changes, it should scale and replace no nodes", func(t *testing.T) {
		s := newWorld(t, c, "create")
		before := s.deployment()
		s.change(func(p *hyperv1.NodePool) { p.Spec.Replicas = ptr.To[int32](3) })
		s.mustPass()
		after := s.deployment()
		s.Expect(after.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
		s.Expect(after.Spec.Template).To(Equal(before.Spec.Template))
	})

	t.Run("When a timeout changes, it should update the template in place and replace no nodes", func(t *testing.T) {
		s := newWorld(t, c, "create")
		before := s.deployment()
		s.change(func(p *hyperv1.NodePool) { p.Spec.Platform.MAAS.DeployTimeout = &metav1.Duration{Duration: time.Hour} })
		s.mustPass()
		s.Expect(s.templates()).To(HaveLen(1))
		s.Expect(s.templates()[0].Spec.Template.Spec.Timeouts.Deploy).To(HaveValue(Equal(metav1.Duration{Duration: time.Hour})))
		s.Expect(s.deployment().Spec.Template).To(Equal(before.Spec.Template))
	})

	t.Run("When all machines are running, it should report the version", func(t *testing.T) {
		s := newWorld(t, c, "create")
		for _, name := range []string{"a", "b", "c"} {
			s.born(name)
		}
		s.mustPass()
		pool := s.pool()
		s.Expect(pool.Status.Version).To(Equal("1.36.3"))
		s.Expect(pool.Status.Replicas).To(BeEquivalentTo(3))
		s.Expect(s.condition("Ready").Status).To(Equal(corev1.ConditionTrue))
		s.Expect(s.condition("UpdatingVersion").Status).To(Equal(corev1.ConditionFalse))
		s.bury("a", "b", "c")
	})

	t.Run("When the provider reports a problem with a machine, the NodePool should report it", func(t *testing.T) {
		s := newWorld(t, c, "create")
		s.machine("m1", *s.deployment().Spec.Template.Spec.Bootstrap.DataSecretName)
		infra := &infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: "m1"}, Spec: s.templates()[0].Spec.Template.Spec}
		fixture.Create(t, c, infra)
		infra.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "NoCapacity",
			Message: "no machine fits: ask for less", LastTransitionTime: metav1.Now()}}
		s.Expect(c.Status().Update(t.Context(), infra)).To(Succeed())
		s.mustPass()
		s.Expect(s.condition("AllMachinesReady").Reason).To(Equal("NoCapacity"))
		s.Expect(s.condition("AllMachinesReady").Message).To(Equal("Machine m1: no machine fits: ask for less"))
	})

	t.Run("When the configuration changes, it should keep user-data that a machine is still using", func(t *testing.T) {
		s := newWorld(t, c, "create")
		old := *s.deployment().Spec.Template.Spec.Bootstrap.DataSecretName
		fixture.Create(t, c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "extra"}, Data: map[string]string{
			"config": "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: extra}\nspec: {config: {}}\n"}})
		s.change(func(p *hyperv1.NodePool) { p.Spec.Config = []corev1.LocalObjectReference{{Name: "extra"}} })
		s.mustPass()
		s.Expect(*s.deployment().Spec.Template.Spec.Bootstrap.DataSecretName).NotTo(Equal(old))
		s.secret(old)
		s.Expect(s.tokenOf(old).Annotations).NotTo(HaveKey(hyperv1.IgnitionServerTokenExpirationTimestampAnnotation))
		s.Expect(s.condition("UpdatingConfig").Status).To(Equal(corev1.ConditionTrue))

		// Set an expiration, as if an earlier reconcile had not observed the machine yet. Set a new token, as if the
		// ignition-server had rotated it.
		token := s.tokenOf(old)
		token.Annotations[hyperv1.IgnitionServerTokenExpirationTimestampAnnotation] = "2026-11-20T14:00:00Z"
		token.Data["token"] = []byte("rotated")
		s.Expect(c.Update(t.Context(), token)).To(Succeed())
		s.mustPass()
		s.Expect(s.tokenOf(old).Annotations).NotTo(HaveKey(hyperv1.IgnitionServerTokenExpirationTimestampAnnotation))
		s.Expect(string(s.secret(old).Data["value"])).To(ContainSubstring(base64.StdEncoding.EncodeToString([]byte("rotated"))))

		machine := &clusterv1.Machine{}
		s.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: s.hosted(), Name: "m1"}, machine)).To(Succeed())
		machine.Status.NodeRef = clusterv1.MachineNodeReference{Name: "node"}
		s.Expect(c.Status().Update(t.Context(), machine)).To(Succeed())
		s.mustPass()
		err := c.Get(t.Context(), client.ObjectKey{Namespace: s.hosted(), Name: old}, &corev1.Secret{})
		s.Expect(apierrors.IsNotFound(err)).To(BeTrue())
		s.Expect(s.tokenOf(old).Annotations).To(HaveKeyWithValue(hyperv1.IgnitionServerTokenExpirationTimestampAnnotation, "2026-11-20T14:00:00Z"))
	})

	t.Run("When labels and taints change, it should set them on the machines", func(t *testing.T) {
		s := newWorld(t, c, "create")
		s.change(func(p *hyperv1.NodePool) {
			p.Spec.NodeLabels = map[string]string{"rack": "r1"}
			p.Spec.Taints = []hyperv1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
		})
		s.mustPass()
		machine := &clusterv1.Machine{}
		s.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: s.hosted(), Name: "m1"}, machine)).To(Succeed())
		s.Expect(machine.Labels).To(HaveKeyWithValue("managed.hypershift.openshift.io.rack", "r1"))
		var taints []hyperv1.Taint
		s.Expect(json.Unmarshal([]byte(machine.Annotations[hyperv1.NodePoolTaintsAnnotation]), &taints)).To(Succeed())
		s.Expect(taints).To(HaveLen(1))
	})

	t.Run("When the NodePool is deleted, it should wait for its machines and then delete its objects", func(t *testing.T) {
		s := newWorld(t, c, "create")
		machine := &clusterv1.Machine{}
		s.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: s.hosted(), Name: "m1"}, machine)).To(Succeed())
		machine.Finalizers = []string{"test/cluster-api"}
		s.Expect(c.Update(t.Context(), machine)).To(Succeed())
		s.Expect(c.Delete(t.Context(), machine)).To(Succeed())
		s.Expect(c.Delete(t.Context(), s.pool())).To(Succeed())
		result, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(result.RequeueAfter).NotTo(BeZero())
		s.Expect(s.condition("Ready").Message).To(ContainSubstring("no machine fits"))

		s.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(machine), machine)).To(Succeed())
		machine.Finalizers = nil
		s.Expect(c.Update(t.Context(), machine)).To(Succeed())
		_, err = s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(apierrors.IsNotFound(c.Get(t.Context(), s.key(), &hyperv1.NodePool{}))).To(BeTrue())
		s.Expect(s.templates()).To(BeEmpty())
		secrets := &corev1.SecretList{}
		s.Expect(c.List(t.Context(), secrets, client.InNamespace(s.hosted()))).To(Succeed())
		for _, secret := range secrets.Items {
			s.Expect(secret.Annotations).NotTo(HaveKey(hyperv1.NodePoolAnnotation))
		}
	})

	t.Run("When a NodePool without a cluster is deleted, it should be removed", func(t *testing.T) {
		s := newWorld(t, c, "orphan")
		s.Expect(c.Delete(t.Context(), s.pool())).To(Succeed())
		_, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(apierrors.IsNotFound(c.Get(t.Context(), s.key(), &hyperv1.NodePool{}))).To(BeTrue())
	})

	deletions(t, c)
	disruptions(t, c)
}
