// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// live reconciles a new pool until it has a MachineDeployment, and returns the number of writes. The operator crashes
// after write failAt and is restarted; zero means no crash.
func (s *world) live(failAt int64) (writes int64) {
	s.t.Helper()
	faulty := fixture.NewFaulty(s.client)
	faulty.FailAt, faulty.After = failAt, true
	s.Reconciler.Client = faulty
	s.ready(nil)
	fixture.Create(s.t, s.client, fixture.NodePool(s.namespace))
	for range 6 {
		_, err := s.pass()
		s.answer()
		if errors.Is(err, fixture.ErrCrash) {
			s.Reconciler.Client = s.client
			continue
		}
		s.Expect(err).NotTo(HaveOccurred())
	}
	return faulty.Writes()
}

func TestCrash(t *testing.T) {
	c := fixture.Start(t)
	writes := newWorld(t, c, "whole").live(0)
	for failAt := int64(1); failAt <= writes; failAt++ {
		t.Run(fmt.Sprintf("When the process dies after write %d, it should create each object exactly once", failAt), func(t *testing.T) {
			s := newWorld(t, c, fmt.Sprintf("crash-%d", failAt))
			s.live(failAt)
			secrets := &corev1.SecretList{}
			s.Expect(c.List(t.Context(), secrets, client.InNamespace(s.hosted()))).To(Succeed())
			s.Expect(secrets.Items).To(HaveLen(3), "the CA, one token, one user-data")
			s.Expect(s.templates()).To(HaveLen(1))
			deployments := &clusterv1.MachineDeploymentList{}
			s.Expect(c.List(t.Context(), deployments, client.InNamespace(s.hosted()))).To(Succeed())
			s.Expect(deployments.Items).To(HaveLen(1))
			userData := *s.deployment().Spec.Template.Spec.Bootstrap.DataSecretName
			s.Expect(s.tokenOf(userData).Data).To(HaveKey("token"))
		})
	}
}
