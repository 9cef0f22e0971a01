// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// inventory lists the objects in the hosted namespace, as kind and name.
func (s *world) inventory() []string {
	s.t.Helper()
	var found []string
	for _, list := range []client.ObjectList{
		&corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.ServiceAccountList{}, &appsv1.DeploymentList{}, &rbacv1.RoleList{},
		&rbacv1.RoleBindingList{}, &networkingv1.NetworkPolicyList{}, &hyperv1.HostedControlPlaneList{}, &infrav1.MaasClusterList{},
	} {
		s.Expect(s.client.List(s.t.Context(), list, client.InNamespace(s.hosted()))).To(Succeed())
		items, err := meta.ExtractList(list)
		s.Expect(err).NotTo(HaveOccurred())
		for _, item := range items {
			found = append(found, fmt.Sprintf("%T %s", item, item.(client.Object).GetName()))
		}
	}
	clusters := &clusterv1.ClusterList{}
	s.Expect(s.client.List(s.t.Context(), clusters, client.InNamespace(s.hosted()))).To(Succeed())
	found = append(found, fmt.Sprintf("%d clusters", len(clusters.Items)))
	slices.Sort(found)
	return found
}

// live creates a cluster and reconciles until it is available. The operator crashes after write failAt and is
// restarted; zero means no crash.
func (s *world) live(failAt int64) (writes int64) {
	s.t.Helper()
	faulty := fixture.NewFaulty(s.client)
	faulty.FailAt, faulty.After = failAt, true
	s.Reconciler.Client = faulty
	fixture.Create(s.t, s.client, append(fixture.Inputs(s.namespace), fixture.HostedCluster(s.namespace))...)
	served := false
	for range 8 {
		_, err := s.pass()
		if errors.Is(err, fixture.ErrCrash) {
			s.Reconciler.Client = s.client
			continue
		}
		s.Expect(err).NotTo(HaveOccurred())
		if err := s.client.Get(s.t.Context(), client.ObjectKey{Namespace: s.hosted(), Name: fixture.ClusterName}, &hyperv1.HostedControlPlane{}); err == nil && !served {
			s.serve()
			served = true
		}
	}
	return faulty.Writes()
}

func TestCrash(t *testing.T) {
	c := fixture.Start(t)
	reference := newWorld(t, c, "whole")
	writes := reference.live(0)
	want := reference.inventory()

	for failAt := int64(1); failAt <= writes; failAt += stride() {
		t.Run(fmt.Sprintf("When the process dies after write %d, it should create the same objects as without a crash", failAt), func(t *testing.T) {
			s := newWorld(t, c, fmt.Sprintf("crash-%d", failAt))
			s.live(failAt)
			s.Expect(s.inventory()).To(Equal(want))
			s.Expect(s.condition(hyperv1.HostedClusterAvailable).Status).To(BeEquivalentTo("True"))
			s.Expect(s.condition(hyperv1.ReconciliationSucceeded).Status).To(BeEquivalentTo("True"))
		})
	}
}

// stride skips most of the crash points in short mode. A crash before a write leaves the same state as one after the
// previous write, so crashes after each write cover all cases.
func stride() int64 {
	if testing.Short() {
		return 7
	}
	return 1
}

// die deletes a running cluster. The operator crashes after write failAt and is restarted; zero means no crash.
func (s *world) die(failAt int64) (writes int64) {
	s.t.Helper()
	faulty := fixture.NewFaulty(s.client)
	faulty.FailAt, faulty.After = failAt, true
	s.Expect(s.client.Delete(s.t.Context(), s.cluster())).To(Succeed())
	s.Reconciler.Client = faulty
	for range 12 {
		_, err := s.pass()
		if errors.Is(err, fixture.ErrCrash) {
			s.Reconciler.Client = s.client
			continue
		}
		s.Expect(err).NotTo(HaveOccurred())
		s.finishNamespace()
	}
	return faulty.Writes()
}

// finishNamespace replaces the namespace controller, which does not run here.
func (s *world) finishNamespace() {
	s.t.Helper()
	namespace := &corev1.Namespace{}
	err := s.client.Get(s.t.Context(), client.ObjectKey{Name: s.hosted()}, namespace)
	if err != nil || namespace.DeletionTimestamp == nil {
		return
	}
	namespace.Spec.Finalizers = nil
	s.Expect(s.client.SubResource("finalize").Update(s.t.Context(), namespace)).To(Succeed())
}

func TestCrashWhileDeleting(t *testing.T) {
	c := fixture.Start(t)
	reference := newWorld(t, c, "whole-gone")
	reference.live(0)
	writes := reference.die(0)

	for failAt := int64(1); failAt <= writes; failAt += stride() {
		t.Run(fmt.Sprintf("When the process dies after write %d of a deletion, the next one should finish the deletion", failAt), func(t *testing.T) {
			s := newWorld(t, c, fmt.Sprintf("gone-%d", failAt))
			s.live(0)
			s.die(failAt)
			err := c.Get(t.Context(), s.request().NamespacedName, &hyperv1.HostedCluster{})
			s.Expect(apierrors.IsNotFound(err)).To(BeTrue())
			for _, name := range []string{capiManagerName, capiProviderName} {
				deployment := &appsv1.Deployment{}
				err := c.Get(t.Context(), client.ObjectKey{Namespace: s.hosted(), Name: name}, deployment)
				s.Expect(err != nil || len(deployment.Finalizers) == 0).To(BeTrue(), "%s is let go", name)
			}
			roles := &rbacv1.ClusterRoleBindingList{}
			s.Expect(c.List(t.Context(), roles, client.MatchingLabels{cluster.OwnerNamespace: s.namespace})).To(Succeed())
			s.Expect(roles.Items).To(BeEmpty())
		})
	}
}
