// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

// against reconciles until the server has failed each request once.
func (s *world) against(server *testenv.Grudging) {
	s.t.Helper()
	s.Reconciler.Client, s.LiveReader = server, server
	pass := func() (ctrl.Result, error) {
		result, err := s.pass()
		s.finishNamespace()
		return result, err
	}
	server.Exhaust(s.t, pass, func() any { return s.cluster().Status.Conditions })
}

// TestRefusals runs the lifecycle of a cluster against a server that fails each request once.
func TestRefusals(t *testing.T) {
	c := fixture.Start(t)
	s := newWorld(t, c, "refusals")
	server := testenv.NewGrudging(c)
	fixture.Create(t, c, append(fixture.Inputs(s.namespace), fixture.HostedCluster(s.namespace))...)
	s.against(server)
	s.serve()
	s.against(server)
	s.Expect(s.condition(hyperv1.HostedClusterAvailable).Status).To(BeEquivalentTo("True"))
	for _, paused := range []*string{ptr.To("true"), nil} {
		hc := s.cluster()
		hc.Spec.PausedUntil = paused
		s.Expect(c.Update(t.Context(), hc)).To(Succeed())
		s.against(server)
	}
	s.Expect(c.Delete(t.Context(), s.cluster())).To(Succeed())
	s.against(server)
	s.Expect(apierrors.IsNotFound(c.Get(t.Context(), s.request().NamespacedName, &hyperv1.HostedCluster{}))).To(BeTrue())
}
