// SPDX-License-Identifier: Apache-2.0

package token

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/config"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// pass returns the Secrets of a pool with its configuration, "wanted", and some machines.
func pass(machines ...*clusterv1.Machine) *Secrets {
	s := &Secrets{Scope: scopetest.New(machines...), Config: config.Config{Hash: "wanted", HashWithoutVersion: "configured"}}
	s.Platform, s.PlatformServed = fixture.Platforms(nil).For(s.Pool.Spec.Platform.Type)
	return s
}

// on returns the Secrets of a pool at a fake server that has these objects and refuses some requests.
func (s *Secrets) on(refused scopetest.Refusals, objects ...client.Object) *Secrets {
	s.Client = scopetest.Server(refused, objects...)
	return s
}

// world is a server in memory.
type world struct {
	*GomegaWithT
	t      *testing.T
	server client.WithWatch
}

func inMemory(t *testing.T) *world {
	t.Helper()
	return &world{GomegaWithT: NewWithT(t), t: t, server: fixture.InMemory(t)}
}

func (w *world) secret(name string) *corev1.Secret {
	w.t.Helper()
	return scopetest.Read(w.t, w.server, &corev1.Secret{}, name)
}
