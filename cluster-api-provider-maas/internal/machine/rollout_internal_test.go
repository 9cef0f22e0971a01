// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/reservation"
	"github.com/openshift/hypershift/support/maas"
)

// rollOut is a MachineDeployment of two machines that replaces the machines of an older MachineSet one by one.
type rollOut struct {
	deployment *clusterv1.MachineDeployment
	set        *clusterv1.MachineSet
	machine    *infrav1.MaasMachine
	owner      *clusterv1.Machine
	infra      *infrav1.MaasCluster
	observed   *maas.Machine
}

func newRollOut() *rollOut {
	at := metav1.NewTime(noon.Add(-time.Hour))
	o := &rollOut{
		deployment: &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pool"}},
		set:        &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pool-1", CreationTimestamp: at}},
		machine:    sibling("self", running("wq4h8c"), leaving, annotated(UIDAnnotation, "self")),
		owner:      &clusterv1.Machine{}, observed: deployed(),
		infra: &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo", Finalizers: []string{infrav1.ClusterFinalizer}}},
	}
	o.machine.Labels[clusterv1.MachineSetNameLabel] = "pool-1"
	o.deployment.Spec.Replicas = ptr.To[int32](2)
	o.deployment.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(0))
	o.deployment.Spec.Template.Spec.Version, o.set.Spec.Template.Spec.Version = "v1.31.0", "v1.30.0"
	return o
}

// among returns a reconciler whose cache has the rollout, and the scope of its machine.
func (o *rollOut) among(t *testing.T) (*Reconciler, *scope) {
	t.Helper()
	r := among(t, o.machine)
	for _, obj := range []client.Object{o.deployment, o.set} {
		leaves := obj.GetDeletionTimestamp() != nil
		obj.SetFinalizers([]string{"test/x"})
		err := r.Client.Create(t.Context(), obj)
		if leaves {
			err = errors.Join(err, r.Client.Delete(t.Context(), obj))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// Updates need the latest version.
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(o.machine), o.machine); err != nil {
		t.Fatal(err)
	}
	return r, &scope{machine: o.machine, owner: o.owner, infra: o.infra, observed: o.observed}
}

// TestIntend checks that a healthy machine is reserved if its successor is created after it is gone. Any MaasMachine
// may allocate every other machine.
func TestIntend(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*rollOut)
		kept   bool
	}{
		"a rollout replaces it": {func(*rollOut) {}, true},
		"its pool is replaced when a user deletes machines": {func(o *rollOut) {
			o.deployment.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
		}, true},
		"its bootstrap configuration changed":       {func(o *rollOut) { same(o); o.deployment.Spec.Template.Spec.Bootstrap.ConfigRef.Name = "new" }, true},
		"its template changed":                      {func(o *rollOut) { same(o); o.deployment.Spec.Template.Spec.InfrastructureRef.Name = "new" }, true},
		"its zone changed":                          {func(o *rollOut) { same(o); o.deployment.Spec.Template.Spec.FailureDomain = "az2" }, true},
		"a user asks to replace all machines":       {func(o *rollOut) { same(o); o.deployment.Spec.Rollout.After = metav1.NewTime(noon.Add(-time.Minute)) }, true},
		"nothing changed, and the pool shrinks":     {same, false},
		"a user asks to replace all machines later": {func(o *rollOut) { same(o); o.deployment.Spec.Rollout.After = metav1.NewTime(noon.Add(time.Minute)) }, false},
		"it was created after that time":            {func(o *rollOut) { same(o); o.deployment.Spec.Rollout.After = metav1.NewTime(noon.Add(-2 * time.Hour)) }, false},
		"the new machine is created first": {func(o *rollOut) {
			o.deployment.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(1))
		}, false},
		"maxSurge is not set, which means one": {func(o *rollOut) { o.deployment.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = nil }, false},
		"maxSurge is rounded up to one machine": {func(o *rollOut) {
			o.deployment.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromString("10%"))
		}, false},
		"maxSurge is zero percent": {func(o *rollOut) {
			o.deployment.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromString("0%"))
		}, true},
		"maxSurge is not a number": {func(o *rollOut) {
			o.deployment.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromString("some"))
		}, false},
		"no replicas are desired": {func(o *rollOut) { o.deployment.Spec.Replicas = ptr.To[int32](0) }, false},
		"the pool is deleted":     {func(o *rollOut) { o.deployment.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }, false},
		"the pool is gone":        {func(o *rollOut) { o.deployment.Name = "other" }, false},
		"its set is gone":         {func(o *rollOut) { o.set.Name = "other" }, false},
		"it belongs to no pool":   {func(o *rollOut) { delete(o.machine.Labels, clusterv1.MachineDeploymentNameLabel) }, false},
		"its Machine is gone":     {func(o *rollOut) { o.owner = nil }, false},
		"a health check found it unhealthy": {func(o *rollOut) {
			o.owner.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineOwnerRemediatedCondition}}
		}, false},
		"one of its deployments failed":    {func(o *rollOut) { annotate(o.machine, FailuresAnnotation, `[{"systemID": "y", "released": true}]`) }, false},
		"another provider allocated it":    {func(o *rollOut) { delete(o.machine.Annotations, UIDAnnotation) }, false},
		"it does not run":                  {func(o *rollOut) { o.observed.Status = maas.StatusFailedDeployment }, false},
		"MAAS does not show it":            {func(o *rollOut) { o.observed = nil }, false},
		"it is a virtual machine":          {func(o *rollOut) { o.machine.Spec.ProvisioningMode = infrav1.ProvisioningModeLXD }, false},
		"there is no MaasCluster":          {func(o *rollOut) { o.infra = nil }, false},
		"its MaasCluster has no finalizer": {func(o *rollOut) { o.infra.Finalizers = nil }, false},
		"its MaasCluster is deleted":       {func(o *rollOut) { o.infra.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }, false},
	} {
		t.Run("When "+name+", it should be reserved only for a successor", func(t *testing.T) {
			t.Parallel()
			o := newRollOut()
			tc.change(o)
			r, s := o.among(t)
			if err := r.intend(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			stored := &infrav1.MaasMachine{}
			if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(o.machine), stored); err != nil {
				t.Fatal(err)
			}
			if s.kept() != tc.kept || (stored.Annotations[KeptAnnotation] == "pool") != tc.kept {
				t.Errorf("it is kept: %t, and written down as %q", s.kept(), stored.Annotations[KeptAnnotation])
			}
		})
	}
}

// same makes the template of the MachineDeployment equal to that of the MachineSet.
func same(o *rollOut) { o.deployment.Spec.Template.Spec = o.set.Spec.Template.Spec }

// TestIntendLost checks that a lost machine is not reserved.
func TestIntendLost(t *testing.T) {
	t.Parallel()
	r, s := newRollOut().among(t)
	s.lost = true
	if err := r.intend(t.Context(), s); err != nil || s.kept() {
		t.Errorf("it is kept: %t, %v", s.kept(), err)
	}
}

// TestIntendWithoutSight checks that no machine is reserved if an older Role does not permit reading
// MachineDeployments. If the API server does not answer, the call is retried.
func TestIntendWithoutSight(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "machinedeployments"}, "pool", errors.New("no"))
	for cause, want := range map[error]error{forbidden: nil, context.DeadlineExceeded: context.DeadlineExceeded} {
		r, s := newRollOut().among(t)
		r.Reader = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return cause
			}})
		if err := r.intend(t.Context(), s); !errors.Is(err, want) || s.kept() {
			t.Errorf("%v is told as %v, and it is kept: %t", cause, err, s.kept())
		}
	}
}

// TestHeritage checks that a reserved machine goes to one successor of its pool, and not to a MaasMachine that has
// already tried another machine.
func TestHeritage(t *testing.T) {
	t.Parallel()
	record := reservation.Record{UID: "old", Deployment: "pool", Set: "pool-1", Since: noon}
	with := func(change func(*reservation.Record)) reservation.Record {
		r := record
		change(&r)
		return r
	}
	failed := annotated(FailuresAnnotation, `[{"systemID": "y"}]`)
	for name, tc := range map[string]struct {
		record   reservation.Record
		self     func(*infrav1.MaasMachine)
		siblings []*infrav1.MaasMachine
		want     string
	}{
		"the machine is reserved for a successor":                                {record, nil, nil, "x"},
		"it claimed the record before a crash":                                   {with(func(r *reservation.Record) { r.Successor = "self" }), nil, nil, "x"},
		"another MaasMachine claimed the record":                                 {with(func(r *reservation.Record) { r.Successor = "a" }), nil, []*infrav1.MaasMachine{sibling("a")}, ""},
		"a MaasMachine that is gone claimed the record":                          {with(func(r *reservation.Record) { r.Successor = "a" }), nil, nil, ""},
		"another MaasMachine claimed a restored machine":                         {with(func(r *reservation.Record) { r.Successor, r.Restored = "a", true }), nil, []*infrav1.MaasMachine{sibling("a")}, ""},
		"the successor of a restored machine is gone":                            {with(func(r *reservation.Record) { r.Successor, r.Restored = "a", true }), nil, nil, "x"},
		"the machine is reserved for another pool":                               {with(func(r *reservation.Record) { r.Deployment = "q" }), nil, nil, ""},
		"the reservation is of the same MachineSet":                              {with(func(r *reservation.Record) { r.Set = "pool-2" }), nil, nil, ""},
		"the reservation of a restored machine is of the same MachineSet":        {with(func(r *reservation.Record) { r.Set, r.Restored = "pool-2", true }), nil, nil, "x"},
		"its previous MaasMachine still exists":                                  {record, nil, []*infrav1.MaasMachine{sibling("old")}, ""},
		"another MaasMachine has the key":                                        {record, nil, []*infrav1.MaasMachine{sibling("a", annotated(UIDAnnotation, "old"))}, ""},
		"this MaasMachine already requested another machine":                     {record, annotated(AttemptAnnotation, noon.Format(time.RFC3339Nano)), nil, ""},
		"one of its deployments already failed":                                  {record, failed, nil, ""},
		"this MaasMachine belongs to no pool":                                    {record, func(m *infrav1.MaasMachine) { m.Labels = nil }, nil, ""},
		"a restored machine belongs to a MachineSet without a MachineDeployment": {with(func(r *reservation.Record) { r.Deployment, r.Restored = "pool-2", true }), func(m *infrav1.MaasMachine) { delete(m.Labels, clusterv1.MachineDeploymentNameLabel) }, nil, "x"},
	} {
		t.Run("When "+name+", it should get the machine only as its successor", func(t *testing.T) {
			t.Parallel()
			self := sibling("self", func(m *infrav1.MaasMachine) { m.Labels[clusterv1.MachineSetNameLabel] = "pool-2" })
			maybe(tc.self, self)
			infra := &infrav1.MaasCluster{}
			// The first match by ID is claimed; a record without a match before it does not matter.
			if err := errors.Join(reservation.Records.Set(infra, "x", tc.record), reservation.Records.Set(infra, "a", reservation.Record{UID: "nobody", Deployment: "z"})); err != nil {
				t.Fatal(err)
			}
			id, got, err := among(t, append(tc.siblings, self)...).heritage(t.Context(), &scope{machine: self, infra: infra})
			if err != nil || id != tc.want || (id != "") != (got.UID == "old") {
				t.Errorf("it is %q with %+v, %v", id, got, err)
			}
		})
	}
}
