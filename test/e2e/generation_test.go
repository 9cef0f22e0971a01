// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/test/journey"
)

// mostChanges is more than any scenario changes the spec of one object. Two controllers that change it in turns exceed
// the number within a minute.
const mostChanges = 60

// noTurns checks that no two controllers change an object of the hosted namespace in turns. The API server counts the
// changes of a spec in the generation of the object. Changes before the given generations do not count.
func (s *suite) noTurns(t *testing.T, before map[string]int64) {
	t.Helper()
	g := NewWithT(t)
	for name, generation := range s.generations(t) {
		g.Expect(generation-before[name]).To(BeNumerically("<", mostChanges), name)
	}
}

// generations returns the generations of the hosted namespace's objects by kind and name.
func (s *suite) generations(t *testing.T) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	for _, kind := range []schema.GroupVersionKind{
		clusterv1.GroupVersion.WithKind("Cluster"), clusterv1.GroupVersion.WithKind("Machine"),
		clusterv1.GroupVersion.WithKind("MachineSet"), clusterv1.GroupVersion.WithKind("MachineDeployment"),
		clusterv1.GroupVersion.WithKind("MachineHealthCheck"), hyperv1.GroupVersion.WithKind("HostedControlPlane"),
		appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		s.must(t, s.c.List(t.Context(), list, client.InNamespace(journey.HostedNamespace(s.cluster))))
		for _, obj := range list.Items {
			found[kind.Kind+" "+obj.Name] = obj.Generation
		}
	}
	return found
}
