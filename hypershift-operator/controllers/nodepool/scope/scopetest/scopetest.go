// SPDX-License-Identifier: Apache-2.0

// Package scopetest builds scopes, machines and servers for the tests of a NodePool's phases.
package scopetest

import (
	"regexp"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

// New returns the scope of the fixture's pool, whose release is known, with some machines.
func New(machines ...*clusterv1.Machine) *scope.Scope {
	s := scope.New(fixture.NodePool("clusters"))
	s.HC, s.Release, s.Machines = fixture.HostedCluster("clusters"), fixture.Payloads()[fixture.ReleaseImage], machines
	s.Pool.Status.Version = s.Release.Version()
	s.Now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	s.Infra = map[string]client.Object{}
	return s
}

// Machine returns a machine that was created with a configuration.
func Machine(name, hash string, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec.Bootstrap.DataSecretName = ptr.To(scope.New(fixture.NodePool("clusters")).Secret(scope.UserDataPrefix, hash).Name)
	m.Spec.InfrastructureRef.Name, m.Spec.Version = name, "1.36.3"
	for _, c := range change {
		c(m)
	}
	return m
}

// Joined gives a machine its Node.
func Joined(m *clusterv1.Machine) {
	m.Status.NodeRef.Name = m.Name
	m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineAvailableCondition, Status: metav1.ConditionTrue}}
}

// Leaving marks a machine as being deleted.
func Leaving(m *clusterv1.Machine) { m.DeletionTimestamp = ptr.To(metav1.Now()) }

// Fleet returns a server in memory and the scope of a pool on MAAS, with existing machines and their MaasMachines.
func Fleet(t *testing.T, names ...string) (client.WithWatch, *scope.Scope) {
	t.Helper()
	c, s := fixture.InMemory(t), New()
	s.Platform, s.PlatformServed = fixture.Platforms(nil).For(s.Pool.Spec.Platform.Type)
	for _, name := range names {
		machine := Machine(name, "wanted")
		infra := &infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace(), Name: name}}
		machine.Namespace, machine.CreationTimestamp = s.Namespace(), metav1.NewTime(s.Now)
		fixture.Create(t, c, machine, infra)
		s.Machines, s.Infra[name] = append(s.Machines, machine), infra
	}
	return c, s
}

// Answering makes a server return an error for each request that matches a pattern, such as "patch
// v1beta1.MaasMachine .*/a".
func Answering(c client.WithWatch, pattern string, err error) client.WithWatch {
	fits := regexp.MustCompile("^(" + pattern + ")( .*)?$") // The content of a patch may follow.
	return testenv.Intercept(c, func(request testenv.Request) error {
		if fits.MatchString(request.String()) {
			return err
		}
		return request.Do()
	})
}

// Read reads an object of the hosted control plane namespace.
func Read[T client.Object](t *testing.T, c client.Reader, obj T, name string) T {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: fixture.Hosted("clusters"), Name: name}, obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

// Says returns a condition as text: its status and reason, and after a colon its message; empty if it is not set.
func Says(s *scope.Scope, conditionType string) string {
	c, is := s.Conditions[conditionType]
	if !is {
		return ""
	}
	return string(c.Status) + "/" + c.Reason + ": " + c.Message
}
