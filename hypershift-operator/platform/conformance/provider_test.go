// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/test/standin/contract"
)

// lab is an infrastructure whose machines behave as the test specifies.
type lab struct {
	machine contract.Machine
	orders  []contract.Order
	held    bool
}

func (l *lab) Provide(_ context.Context, order contract.Order) (contract.Machine, error) {
	l.orders, l.held = append(l.orders, order), true
	return l.machine, nil
}

func (l *lab) Release(context.Context, string) (bool, error) {
	gone := !l.held
	l.held = false
	return gone, nil
}

// provider is a fake provider that reconciles the objects that the operator created for a subject.
type provider struct {
	*world
	lab      *lab
	clusters *contract.Clusters
	machines *contract.Machines
	machine  client.Object
}

// TestProviders compares what the operator writes and reads with the contract of each platform's provider.
func TestProviders(t *testing.T) {
	admin, operator := fixture.Start(t), fixture.AsOperator(t)
	plugins := fixture.Platforms(nil)
	for _, played := range contract.All() {
		all := subjects(t)
		s := all[slices.IndexFunc(all, func(s Subject) bool { return contractOf(s.Type) == played.Kind })]
		s.Plugin, _ = plugins.For(s.Type)
		if err := played.AddToScheme(admin.Scheme()); err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, admin, operator, s, "provided")
		if s.Type == hyperv1.KubevirtPlatform {
			s.Beside = inNamespace(s.Beside, w.namespace)
			w.subject = s
		}
		w.create()
		p := &provider{world: w, lab: &lab{machine: contract.Machine{ID: "abc123", Zone: "eu-west-1a"}}}
		p.start(t, played)
		for _, scenario := range []struct {
			name string
			run  func(*provider)
		}{
			{"When the cluster is not ready, the machine should wait", (*provider).waits},
			{"When the cluster is paused, the provider should create nothing", (*provider).paused},
			{"When a machine starts, the plugin should report a waiting reason", (*provider).starts},
			{"When a machine runs, the plugin should report no problem and the start time", (*provider).runs},
			{"When nothing changes, the provider should write nothing", (*provider).rests},
			{"When the provider reports a failure, the plugin should report the message", (*provider).fails},
			{"When a machine is deleted, the plugin should report that the cluster's deletion waits for it", (*provider).deletes},
		} {
			ok := t.Run("When the platform is "+string(s.Type)+"/"+scenario.name, func(t *testing.T) {
				view := *p
				view.world = p.in(t)
				scenario.run(&view)
			})
			if !ok {
				break
			}
		}
	}
}

func contractOf(platformType hyperv1.PlatformType) string {
	return map[hyperv1.PlatformType]string{hyperv1.AWSPlatform: "AWSCluster", hyperv1.AgentPlatform: "AgentCluster", hyperv1.KubevirtPlatform: "KubevirtCluster"}[platformType]
}

// inNamespace returns copies of a cluster's additional objects for another namespace.
func inNamespace(beside []client.Object, namespace string) []client.Object {
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "infra"}, Data: beside[1].(*corev1.Secret).Data},
	}
}

// start creates the machine that Cluster API would create from the pool's template, and the files that the provider's
// pod would have.
func (p *provider) start(t *testing.T, played contract.Contract) {
	t.Helper()
	root := t.TempDir()
	for name, content := range played.Files {
		p.Expect(os.MkdirAll(filepath.Dir(root+name), 0o700)).To(Succeed())
		p.Expect(os.WriteFile(root+name, []byte(content), 0o600)).To(Succeed())
	}
	p.clusters = &contract.Clusters{Client: p.admin, Contract: played}
	p.machines = &contract.Machines{
		Client: p.admin, Contract: played, Infrastructure: p.lab, Root: root, Clock: testingclock.NewFakeClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)),
		Nodes: func(context.Context, client.ObjectKey, []string, string) (bool, error) { return true, nil },
	}
	spec := p.world.machines()
	spec.ClusterName = infraID
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: p.hosted(), Name: "one", Labels: map[string]string{clusterv1.ClusterNameLabel: infraID}}, Spec: spec}
	machine.Spec.InfrastructureRef.Name = "one"
	p.Expect(p.admin.Create(t.Context(), machine)).To(Succeed())
	p.machine = played.Machine()
	p.fromTemplate(machine)
	p.Expect(p.admin.Create(t.Context(), p.machine)).To(Succeed())
}

// fromTemplate sets the infrastructure machine's spec from the template.
func (p *provider) fromTemplate(owner *clusterv1.Machine) {
	template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p.templates()[0])
	p.Expect(err).NotTo(HaveOccurred())
	spec, _, err := unstructured.NestedMap(template, "spec", "template", "spec")
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"spec": spec}, p.machine)).To(Succeed())
	p.machine.SetNamespace(p.hosted())
	p.machine.SetName("one")
	p.machine.SetLabels(owner.Labels)
	p.machine.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: owner.Name, UID: owner.UID}})
}

// work lets the provider reconcile the machine, and then reads the machine.
func (p *provider) work() {
	p.t.Helper()
	key := client.ObjectKeyFromObject(p.machine)
	_, err := p.machines.Reconcile(p.t.Context(), ctrl.Request{NamespacedName: key})
	p.Expect(err).NotTo(HaveOccurred())
	fresh := p.machines.Machine()
	p.Expect(p.admin.Get(p.t.Context(), key, fresh)).To(Succeed())
	p.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(p.unstructured(fresh), p.machine)).To(Succeed())
}

func (p *provider) unstructured(obj client.Object) map[string]any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	p.Expect(err).NotTo(HaveOccurred())
	return content
}

func (p *provider) clusterObject() *clusterv1.Cluster {
	cluster := &clusterv1.Cluster{}
	p.Expect(p.admin.Get(p.t.Context(), client.ObjectKey{Namespace: p.hosted(), Name: infraID}, cluster)).To(Succeed())
	return cluster
}

func (p *provider) waits() {
	p.work()
	p.Expect(p.lab.orders).To(BeEmpty())
	reason, _ := p.subject.Plugin.MachineProblem(p.machine)
	p.Expect(reason).NotTo(BeEmpty())
	p.Expect(p.subject.Plugin.MachineStart(p.machine)).To(Equal(platform.MachineStart{}), "it has nothing yet that another would not wait for too")
	p.infrastructureReady()
}

// infrastructureReady does what Cluster API does once the infrastructure cluster is ready.
func (p *provider) infrastructureReady() {
	cluster := p.clusterObject()
	ref := cluster.Spec.InfrastructureRef
	infra := &unstructured.Unstructured{}
	infra.SetAPIVersion(p.groupVersion(ref.Kind))
	infra.SetKind(ref.Kind)
	key := client.ObjectKey{Namespace: p.hosted(), Name: ref.Name}
	p.Expect(p.admin.Get(p.t.Context(), key, infra)).To(Succeed())
	if p.clusters.Cluster != nil {
		infra.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: cluster.Name, UID: cluster.UID}})
		p.Expect(p.admin.Update(p.t.Context(), infra)).To(Succeed())
		_, err := p.clusters.Reconcile(p.t.Context(), ctrl.Request{NamespacedName: key})
		p.Expect(err).NotTo(HaveOccurred())
		p.Expect(p.admin.Get(p.t.Context(), key, infra)).To(Succeed())
	}
	ready, _, err := unstructured.NestedBool(infra.Object, "status", "ready")
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(ready).To(BeTrue(), "%s", ref.Kind)
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	p.Expect(p.admin.Status().Update(p.t.Context(), cluster)).To(Succeed())
}

func (p *provider) groupVersion(kind string) string {
	for _, obj := range p.subject.Plugin.Watched() {
		gvk, err := apiutil.GVKForObject(obj, p.admin.Scheme())
		p.Expect(err).NotTo(HaveOccurred())
		if gvk.Kind == kind {
			return gvk.GroupVersion().String()
		}
	}
	return ""
}

func (p *provider) paused() {
	pause := func(until *string) {
		hc := p.cluster()
		hc.Spec.PausedUntil = until
		p.Expect(p.admin.Update(p.t.Context(), hc)).To(Succeed())
		p.settle()
	}
	pause(ptr.To("true"))
	p.work()
	p.Expect(p.lab.orders).To(BeEmpty())
	pause(nil)
}

func (p *provider) starts() {
	p.work()
	p.Expect(p.lab.orders).To(HaveLen(1))
	order := p.lab.orders[0]
	p.Expect(string(order.UserData)).To(ContainSubstring("172.30.240.1"), "where the configuration is, as the operator published it")
	p.Expect(string(order.UserData)).To(ContainSubstring("Bearer "), "with the token for it")
	reason, _ := p.subject.Plugin.MachineProblem(p.machine)
	p.Expect(p.subject.Plugin.Underway()).To(ContainElement(reason))
	p.Expect(p.subject.Plugin.MachineStart(p.machine).Reason).To(BeEmpty())
	p.Expect(p.machine.GetFinalizers()).To(ConsistOf(p.machines.Finalizer))
}

func (p *provider) runs() {
	p.lab.machine.Running = true
	p.lab.machine.Names, p.lab.machine.Addresses = []string{"calm-ant"}, []string{"172.30.240.10"}
	p.work()
	reason, message := p.subject.Plugin.MachineProblem(p.machine)
	p.Expect(reason + message).To(BeEmpty())
	start := p.subject.Plugin.MachineStart(p.machine)
	p.Expect(start.Begun).NotTo(BeZero())
	p.Expect(start.Reason).To(BeEmpty())
}

func (p *provider) rests() {
	before := p.machine.GetResourceVersion()
	p.work()
	p.Expect(p.machine.GetResourceVersion()).To(Equal(before))
}

func (p *provider) fails() {
	p.lab.machine.Running, p.lab.machine.Failure = false, "the disk is broken"
	p.work()
	reason, message := p.subject.Plugin.MachineProblem(p.machine)
	p.Expect(reason).To(Equal("CreateError"))
	p.Expect(message).To(Equal("the disk is broken"))
	start := p.subject.Plugin.MachineStart(p.machine)
	p.Expect(start.Message).To(Equal("the disk is broken"), "only another machine helps")
}

func (p *provider) deletes() {
	p.Expect(p.admin.Delete(p.t.Context(), p.machine)).To(Succeed())
	says, err := p.subject.Plugin.OrphanedMachines(p.t.Context(), p.world.clusters.Client, platform.Cluster{HostedCluster: p.cluster(), Namespace: p.hosted()})
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(says).To(ContainSubstring(p.machine.GetName()))
	key := client.ObjectKeyFromObject(p.machine)
	p.work()
	_, err = p.machines.Reconcile(p.t.Context(), ctrl.Request{NamespacedName: key})
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(apierrors.IsNotFound(p.admin.Get(p.t.Context(), key, p.machine))).To(BeTrue(), "nothing holds it when the machine was given back")
}
