// SPDX-License-Identifier: Apache-2.0

package etcdbackup

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

// TestWatches checks each kind that triggers a reconcile of a backup or a schedule. The reconciled objects do not
// exist, except for the controllers' own kinds. The case of the backup comes first, since the cases of control planes
// would trigger its reconcile too.
func TestWatches(t *testing.T) {
	config := testenv.Start(t, crds.HyperShift)
	testenv.NeedsServer(t, config)
	c, err := client.New(config, client.Options{Scheme: fixture.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range fixture.HostedNamespace() {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	clock := clocktesting.NewFakePassiveClock(time.Now().Add(time.Hour))
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	takers := testenv.Manage(t, config, fixture.Scheme(), func(mgr ctrl.Manager) error {
		mgr.GetClient().(*testenv.Requests).Listed = []client.Object{&hyperv1.HCPEtcdBackup{ObjectMeta: named("waits")}}
		return (&Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock, Events: events.NewFakeRecorder(100)}).SetupWithManager(mgr)
	})
	schedules := testenv.Manage(t, config, fixture.Scheme(), func(mgr ctrl.Manager) error {
		mgr.GetClient().(*testenv.Requests).Listed = []client.Object{&hyperv1.HostedControlPlane{ObjectMeta: named("absent")}}
		return (&Scheduler{Client: mgr.GetClient(), Clock: clock}).SetupWithManager(mgr)
	})
	controlPlane := func(name string) *hyperv1.HostedControlPlane {
		hcp := fixture.ControlPlane()
		hcp.ObjectMeta = named(name)
		return hcp
	}
	job := &batchv1.Job{ObjectMeta: named("job"), Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "backup", Image: "registry.example/hypershift"}}}}}}
	job.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: hyperv1.GroupVersion.String(), Kind: "HCPEtcdBackup", Name: "of-the-job", UID: "uid", Controller: ptr.To(true)}}
	for _, tc := range []struct {
		name     string
		requests *testenv.Requests
		obj      client.Object
		asked    client.Object
	}{
		{"When a backup is created, it should be reconciled", takers, backupOf("new"), &hyperv1.HCPEtcdBackup{ObjectMeta: named("new")}},
		{"When a Job changes, its backup should be reconciled", takers, job, &hyperv1.HCPEtcdBackup{ObjectMeta: named("of-the-job")}},
		{"When a control plane changes, its waiting backups should be reconciled", takers, controlPlane("one"), &hyperv1.HCPEtcdBackup{ObjectMeta: named("waits")}},
		{"When a control plane changes, its schedule should be reconciled", schedules, controlPlane("other"), &hyperv1.HostedControlPlane{ObjectMeta: named("other")}},
		{"When a backup changes, the schedule of its control plane should be reconciled", schedules, backupOf("second"), &hyperv1.HostedControlPlane{ObjectMeta: named("absent")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.requests.ExpectCreated(t, tc.obj, tc.asked)
		})
	}
}
