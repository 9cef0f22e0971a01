// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// refusals are requests that a server refuses, such as "patch Machine".
type refusals = scopetest.Refusals

// on returns a reconciler with a fake server that has these objects and refuses some requests.
func on(refused refusals, objects ...client.Object) *Reconciler {
	return &Reconciler{Releases: fixture.Payloads(), Platforms: fixture.Platforms(nil), Client: scopetest.Server(refused, objects...)}
}

// read returns an object of the hosted control plane namespace; nil if it does not exist.
func read[T client.Object](t *testing.T, r *Reconciler, obj T, name string) T {
	t.Helper()
	return scopetest.Find(t, r.Client, obj, name)
}

// inHosted returns the metadata of an object in the hosted control plane namespace, with annotations.
var inHosted = scopetest.InHosted

// housed sets the namespace of a machine to the hosted namespace in which the test server's objects are.
func housed(m *clusterv1.Machine) { m.Namespace = fixture.Hosted("clusters") }

// onMAAS sets the platform of a scope to MAAS.
func onMAAS(s *reconciliation) *reconciliation {
	s.Platform, s.PlatformServed = fixture.Platforms(nil).For(hyperv1.MAASPlatform)
	return s
}

// says returns a condition as text.
func (s *reconciliation) says(conditionType string) string {
	return scopetest.Says(s.Scope, conditionType)
}

func TestScope(t *testing.T) {
	g, s := NewWithT(t), pass()
	g.Expect(s.Key()).To(Equal("clusters/demo"))
	g.Expect(s.Namespace()).To(Equal("clusters-demo"))
	s.SetTrue("A", "well")
	s.SetFalse("B", "R", "bad")
	g.Expect(s.says("A")).To(Equal("True/AsExpected: well"))
	g.Expect(s.says("B")).To(Equal("False/R: bad"))
	s.Clear("B")
	g.Expect(s.Conditions).NotTo(HaveKey("B"), "also what this pass has told")
	g.Expect(s.Cleared).To(ConsistOf("B"))
	g.Expect(s.InPlace()).To(BeFalse())
	s.Pool.Spec.Management.UpgradeType = hyperv1.UpgradeTypeInPlace
	g.Expect(s.InPlace()).To(BeTrue())
	g.Expect(s.Traits().KeepsOutdatedUserData).To(BeTrue())
	g.Expect(s.Distribution().OwnOperators).To(BeFalse())
	s.Release = fixture.Payloads()[fixture.OCPImage]
	g.Expect(s.Distribution().OwnOperators).To(BeTrue())
}

func TestScopeView(t *testing.T) {
	g, s := NewWithT(t), pass()
	s.Stream = "rhel-10"
	view := s.View()
	g.Expect(view.NodePool).To(BeIdenticalTo(s.Pool))
	g.Expect(view.HostedCluster).To(BeIdenticalTo(s.HC))
	g.Expect(view.Release).To(BeIdenticalTo(s.Release))
	g.Expect(view.Stream).To(Equal("rhel-10"))
	g.Expect(view.Kept).To(BeNil())
}

func TestAnnotate(t *testing.T) {
	secret := &corev1.Secret{}
	scope.Annotate(secret, "a", "1")
	scope.Annotate(secret, "b", "2")
	scope.Annotate(secret, "a", "3")
	if diff := cmp.Diff(map[string]string{"a": "3", "b": "2"}, secret.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}
