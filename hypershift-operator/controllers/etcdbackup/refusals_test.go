// SPDX-License-Identifier: Apache-2.0

package etcdbackup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

// TestRefusals runs the lifecycle of a backup that no operator handles, against a server that fails each request once.
func TestRefusals(t *testing.T) {
	g, c := NewWithT(t), fixture.Start(t)
	server := testenv.NewGrudging(c)
	backup := s3Backup("refused")
	backup.Finalizers = []string{hyperv1.EtcdBackupFinalizer}
	fixture.Create(t, c, backup)
	// Shortly before and exactly at the end of the grace period of the control plane's operator.
	clock := clocktesting.NewFakePassiveClock(backup.CreationTimestamp.Add(10*time.Second - 1))
	r := &Reconciler{Client: server, Clock: clock}
	pass := func() (ctrl.Result, error) {
		return r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(backup)})
	}
	conditions := func() any { return nil }
	server.Exhaust(t, pass, conditions)
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(backup), backup)).To(Succeed())
	g.Expect(backup.Status.Conditions).To(BeEmpty())
	clock.SetTime(backup.CreationTimestamp.Add(10 * time.Second))
	server.Exhaust(t, pass, conditions)
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(backup), backup)).To(Succeed())
	g.Expect(backup.Status.Conditions).To(HaveLen(1))
	g.Expect(c.Delete(t.Context(), backup)).To(Succeed())
	server.Exhaust(t, pass, conditions)
	g.Expect(apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(backup), backup))).To(BeTrue())
}

// TestPace checks that a kind that is added a year later is detected within five minutes, with few requests until then.
func TestPace(t *testing.T) {
	delay := asking.DelayFunc()
	var got []string
	for range 9 {
		got = append(got, delay().String())
	}
	want := []string{"5s", "10s", "20s", "40s", "1m20s", "2m40s", "5m0s", "5m0s", "5m0s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
