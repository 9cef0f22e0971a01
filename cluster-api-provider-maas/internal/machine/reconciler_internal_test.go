// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/guest"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// TestDefaults checks that unset fields have the documented defaults, and set fields keep their values.
func TestDefaults(t *testing.T) {
	t.Parallel()
	r := &Reconciler{}
	r.Default()
	want := Timing{Poll: 10 * time.Second, Settled: 2 * time.Minute, Doubt: time.Minute, Allocate: 10 * time.Minute, Deploy: time.Hour, Boot: 20 * time.Minute,
		Join: 15 * time.Minute, SetAside: time.Hour, Problem: 15 * time.Second, Compose: 150 * time.Second, Commission: 30 * time.Minute, Refused: 2 * time.Minute,
		Release: 10 * time.Minute, Erase: 24 * time.Hour, Maintenance: time.Hour}
	if diff := cmp.Diff(want, r.Timing); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if r.Attempts != 3 {
		t.Errorf("%d machines are tried", r.Attempts)
	}
	r = &Reconciler{Attempts: 7, Timing: Timing{Poll: time.Second, Problem: 3 * time.Second, Settled: 5 * time.Second}}
	r.Default()
	if r.Attempts != 7 || r.Timing.Poll != time.Second || r.Timing.Join != want.Join {
		t.Errorf("%d machines are tried, and it is timed %+v", r.Attempts, r.Timing)
	}
	for _, most := range []time.Duration{3 * time.Second, 5 * time.Second, 5 * time.Second} {
		if pause := r.refusals.add("x", Problem{}, noon); pause < most || pause > most+most/5+most/5 {
			t.Errorf("after a refusal it pauses %s, and not %s", pause, most)
		}
	}
	if first := r.powered; !first.due("x", noon) || first.due("x", noon.Add(5*time.Minute-1)) || !first.due("x", noon.Add(5*time.Minute)) {
		t.Error("a machine is switched on again too soon, or too late")
	}
	if first := r.released; !first.due("x", noon) || first.due("x", noon.Add(30*time.Second-1)) || !first.due("x", noon.Add(30*time.Second)) {
		t.Error("a release is asked for again too soon, or too late")
	}
}

// TestPhases checks which phases stop the reconcile when they fail. No phase acts on a machine that was not read, and
// the Node phase blocks no other phase.
func TestPhases(t *testing.T) {
	t.Parallel()
	r, _, _ := quiet()
	want := []string{"prerequisites true", "credentials true", "failed machines false", "machine in MAAS true", "ownership true", "allocation true",
		"workload annotations true", "swap true", "deployment true", "node false", "LXD host false"}
	if diff := cmp.Diff(want, flags(t, r.phases(nil))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestFetch checks that fetch reads the related objects. It waits for missing ones, and an unreadable one is an
// error.
func TestFetch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change                func(*infrav1.MaasMachine)
		drop                  client.Object
		stops                 bool
		owner, cluster, infra bool
	}{
		"all objects exist":                     {nil, nil, false, true, true, true},
		"its Machine is gone":                   {nil, &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, true, false, false, false},
		"it has no owner":                       {func(m *infrav1.MaasMachine) { m.OwnerReferences = nil }, nil, true, false, false, false},
		"its Cluster is gone":                   {nil, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}, true, false, false, false},
		"its MaasCluster is gone":               {nil, &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}, false, true, true, false},
		"it is deleted and has no owner":        {func(m *infrav1.MaasMachine) { leaving(m); m.OwnerReferences = nil }, nil, false, false, true, true},
		"it is deleted and names no Cluster":    {func(m *infrav1.MaasMachine) { leaving(m); m.OwnerReferences, m.Labels = nil, nil }, nil, false, false, false, false},
		"it is deleted and its Cluster is gone": {leaving, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}, false, true, false, false},
		"it is paused and has no owner":         {func(m *infrav1.MaasMachine) { annotate(m, clusterv1.PausedAnnotation, ""); m.OwnerReferences = nil }, nil, false, false, true, true},
		"its label is that of another Cluster":  {func(m *infrav1.MaasMachine) { m.Labels[clusterv1.ClusterNameLabel] = "other" }, nil, false, true, true, true},
		"it is deleted and names a Cluster that does not exist": {func(m *infrav1.MaasMachine) {
			leaving(m)
			m.OwnerReferences, m.Labels[clusterv1.ClusterNameLabel] = nil, "other"
		}, nil, false, false, false, false},
	} {
		t.Run("When "+name+", it should read the existing objects and wait for the others", func(t *testing.T) {
			t.Parallel()
			var changes []func(*infrav1.MaasMachine)
			if tc.change != nil {
				changes = append(changes, tc.change)
			}
			l := newLife(t, "alice", simtest.Seed(), changes...)
			if tc.drop != nil {
				tc.drop.SetNamespace("ns")
				if err := l.Client.Delete(t.Context(), tc.drop); err != nil {
					t.Fatal(err)
				}
			}
			s, err := l.fetch(t.Context(), l.now())
			if stops := errors.Is(err, phase.ErrStop); stops != tc.stops || err != nil && !stops {
				t.Fatalf("it ends with %v", err)
			}
			if err == nil && (s.owner != nil != tc.owner || s.cluster != nil != tc.cluster || s.infra != nil != tc.infra) {
				t.Errorf("owner %v, cluster %v, infra %v", s.owner, s.cluster, s.infra)
			}
		})
	}
}

// TestFetchFails checks that no object counts as deleted when the API server does not answer.
func TestFetchFails(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	for _, kind := range []string{"*v1beta2.Machine", "*v1beta2.Cluster", "*v1beta1.MaasCluster"} {
		l := newLife(t, "alice", simtest.Seed())
		m := l.now()
		l.Client = interceptor.NewClient(l.Client.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if fmt.Sprintf("%T", obj) == kind {
					return down
				}
				return c.Get(ctx, key, obj, opts...)
			}})
		if _, err := l.fetch(t.Context(), m); !errors.Is(err, down) {
			t.Errorf("without an answer about %s: %v", kind, err)
		}
	}
	l := newLife(t, "alice", simtest.Seed(), func(m *infrav1.MaasMachine) { m.UID = "" })
	if _, err := l.fetch(t.Context(), l.now()); err == nil || errors.Is(err, phase.ErrStop) {
		t.Errorf("one without UID, whose key all others would have, is looked after: %v", err)
	}
}

// TestSeen checks that, for an allocated machine, the status provides its state and the time since when it is in this
// state.
func TestSeen(t *testing.T) {
	t.Parallel()
	since := metav1.NewTime(noon)
	for name, tc := range map[string]struct {
		change func(*infrav1.MaasMachine)
		want   sighting
	}{
		"a machine is allocated":  {func(*infrav1.MaasMachine) {}, sighting{"Deploying", noon}},
		"no machine is allocated": {func(m *infrav1.MaasMachine) { m.Spec.SystemID = nil }, sighting{}},
		"its start is unknown":    {func(m *infrav1.MaasMachine) { m.Status.StateSince = nil }, sighting{}},
		"its state is unknown":    {func(m *infrav1.MaasMachine) { m.Status.MachineState = nil }, sighting{since: noon}},
	} {
		l := newLife(t, "alice", simtest.Seed())
		m := l.now()
		m.Spec.SystemID, m.Status.MachineState, m.Status.StateSince = ptr.To("x"), ptr.To("Deploying"), &since
		tc.change(m)
		s, err := l.fetch(t.Context(), m)
		if err != nil || s.seen.state != tc.want.state || !s.seen.since.Equal(tc.want.since) {
			t.Errorf("when %s, it was seen as %+v, %v", name, s, err)
		}
	}
}

// TestPaused checks that a pause of the MaasMachine or of its Cluster prevents all changes, and is reported.
func TestPaused(t *testing.T) {
	t.Parallel()
	for name, pauses := range map[string]func(*life){
		"the MaasMachine": func(l *life) { change(l, l.now(), annotated(clusterv1.PausedAnnotation, "")) },
		"the Cluster": func(l *life) {
			c := &clusterv1.Cluster{}
			if err := l.Client.Get(l.t.Context(), client.ObjectKey{Namespace: "ns", Name: "demo"}, c); err != nil {
				l.t.Fatal(err)
			}
			change(l, c, func(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) })
		},
		"a MaasMachine without a Cluster": func(l *life) {
			change(l, l.now(), annotated(clusterv1.PausedAnnotation, ""))
			if err := l.Client.Delete(l.t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}); err != nil {
				l.t.Fatal(err)
			}
		},
	} {
		t.Run("When it is "+name+", it should not be changed", func(t *testing.T) {
			t.Parallel()
			l := newLife(t, "alice", simtest.Seed(simtest.Machine{ID: "aaaaa1"}))
			pauses(l)
			l.expect(0, 0, "")
			m := l.now()
			c := meta.FindStatusCondition(m.Status.Conditions, clusterv1.PausedCondition)
			if c == nil || c.Status != metav1.ConditionTrue || c.Reason != clusterv1.PausedReason || c.Message == "" || !c.LastTransitionTime.Time.Equal(l.Clock.Now()) {
				t.Errorf("it is told %+v", c)
			}
			if len(m.Status.Conditions) != 1 || l.site.Has("aaaaa1").Owner != "" || m.Spec.SystemID != nil {
				t.Errorf("it is looked after: %+v", m.Status)
			}
		})
	}
	l := newLife(t, "alice", simtest.Seed(simtest.Machine{ID: "aaaaa1"}))
	l.pass(0)
	if got := conditionsOf(l.now(), clusterv1.PausedCondition); !cmp.Equal(got, []string{"Paused False NotPaused"}) {
		t.Errorf("of one that is not paused is told %v", got)
	}
}

// TestPrerequisites checks that no machine is requested before it can be used. An allocated machine is reconciled in
// any case.
func TestPrerequisites(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		held  bool
		ready *bool
		data  *string
		want  string
	}{
		"all prerequisites are met":                              {false, ptr.To(true), ptr.To("data"), ""},
		"the infrastructure is not ready":                        {false, ptr.To(false), ptr.To("data"), ReasonWaitingForInfrastructure},
		"the infrastructure does not report whether it is ready": {false, nil, nil, ReasonWaitingForInfrastructure},
		"there is no bootstrap data":                             {false, ptr.To(true), nil, ReasonWaitingForBootstrapData},
		"it has a machine, and no prerequisite is met":           {true, nil, nil, ""},
	} {
		r, _, _ := quiet()
		s := &scope{machine: holding(), owner: &clusterv1.Machine{}, cluster: &clusterv1.Cluster{}}
		if !tc.held {
			s.machine.Spec = infrav1.MaasMachineSpec{}
		}
		s.cluster.Status.Initialization.InfrastructureProvisioned, s.owner.Spec.Bootstrap.DataSecretName = tc.ready, tc.data
		result, err := r.prerequisites(t.Context(), s)
		if (err != nil) != (tc.want != "") || err != nil && !errors.Is(err, phase.ErrStop) || !result.IsZero() {
			t.Errorf("when %s, it ends with %v, %v", name, result, err)
		}
		if p := s.findings.problem; (p != nil) != (tc.want != "") || p != nil && (p.Reason != tc.want || p.Message == "") {
			t.Errorf("when %s, it is told %+v", name, p)
		}
	}
}

// TestProblem checks that a failed call is retried soon, or when MAAS permits. A cancelled reconcile or a conflict
// reports nothing.
func TestProblem(t *testing.T) {
	t.Parallel()
	r, _, _ := quiet()
	s := &scope{machine: holding()}
	result, err := r.problem(t.Context(), s, errors.New("odd"))
	if !errors.Is(err, phase.ErrStop) || !soon(result, 15*time.Second) || *s.findings.problem != (Problem{ReasonError, "odd"}) {
		t.Errorf("%v, %v, %+v", result, err, s.findings.problem)
	}
	result, err = r.problem(t.Context(), s, &maas.Error{StatusCode: http.StatusServiceUnavailable, RetryAfter: 5 * time.Minute})
	if !errors.Is(err, phase.ErrStop) || !soon(result, 5*time.Minute) || s.findings.problem.Reason != ReasonUnavailable {
		t.Errorf("%v, %v, %+v", result, err, s.findings.problem)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late := apierrors.NewConflict(schema.GroupResource{}, "m", errors.New("somebody wrote it"))
	for cause, ctx := range map[error]context.Context{late: t.Context(), context.Canceled: cancelled} {
		s.findings.problem = nil
		if result, err := r.problem(ctx, s, cause); !errors.Is(err, cause) || !result.IsZero() || s.findings.problem != nil {
			t.Errorf("%v is told as %+v: %v, %v", cause, s.findings.problem, result, err)
		}
	}
}

// TestMaxAge checks that a settled machine is read rarely, and a machine that will be allocated again most often.
func TestMaxAge(t *testing.T) {
	t.Parallel()
	settled := func(m *infrav1.MaasMachine) {
		running("x")(m)
		m.Status.MachineState = ptr.To("Deployed")
	}
	for name, tc := range map[string]struct {
		machine *infrav1.MaasMachine
		want    time.Duration
	}{
		"it moves":                             {sibling("a"), 10 * time.Second},
		"it is in its final state":             {sibling("a", settled), 2 * time.Minute},
		"it is in its final state and deleted": {sibling("a", settled, leaving), 10 * time.Second},
		"it is to be allocated again":          {sibling("a", settled, leaving, annotated(KeptAnnotation, "pool")), 500 * time.Millisecond},
		"a user set the annotation":            {sibling("a", annotated(KeptAnnotation, "pool")), 10 * time.Second},
	} {
		r, _, _ := quiet()
		if got := r.maxAge(&scope{machine: tc.machine}); got != tc.want {
			t.Errorf("when %s, what is known may be %s old", name, got)
		}
	}
}

// TestObserve checks that a machine that cannot be read does not count as deleted.
func TestObserve(t *testing.T) {
	t.Parallel()
	k := newRack(t, "alice", sibling("self", running("aaaaa1")), allocated("aaaaa1", "self", status.Deployed))
	if _, err := k.observe(t.Context(), k.scope); err != nil || k.observed == nil || k.observed.SystemID != "aaaaa1" {
		t.Errorf("%+v, %v", k.observed, err)
	}
	k.observed = nil
	k.identity.Inventory.Forget("aaaaa1")
	simtest.Fault(t, k.site.Simulator, faults.Rule{Kind: faults.Error, Status: http.StatusServiceUnavailable})
	result, err := k.observe(t.Context(), k.scope)
	if !errors.Is(err, phase.ErrStop) || !soon(result, 15*time.Second) || k.findings.problem == nil || k.observed != nil {
		t.Errorf("%v, %v, %+v", result, err, k.findings.problem)
	}
	k = newRack(t, "alice", sibling("self"))
	if result, err := k.observe(t.Context(), k.scope); err != nil || !result.IsZero() || k.asked("") != 0 {
		t.Errorf("MAAS is asked about a machine that nobody has: %v, %v", result, err)
	}
}

// TestNodePhase checks that the Node is looked up from the moment its machine runs, until it is found.
func TestNodePhase(t *testing.T) {
	t.Parallel()
	found := func(s *scope) {
		s.owner.Status.NodeRef.Name = "node"
		s.machine.Status.Conditions = []metav1.Condition{condition.True(ConditionNode, ReasonNodeFound, "")}
	}
	late := func(s *scope) {
		s.machine.Status.Conditions = []metav1.Condition{{Type: ConditionDeployed, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}
	}
	for name, tc := range map[string]struct {
		change func(*scope)
		none   bool
		want   string
		again  time.Duration
	}{
		"it is being deployed":           {func(s *scope) { s.findings.ready = false }, false, "", 0},
		"Nodes are not managed":          {nil, true, "", 0},
		"MAAS does not show the machine": {func(s *scope) { s.observed = nil }, false, "", 0},
		"it runs":                        {nil, false, ReasonWaitingForNode, 10 * time.Second},
		"it ran before": {func(s *scope) { s.machine.Status.Initialization.Provisioned, s.findings.ready = ptr.To(true), false }, false,
			ReasonWaitingForNode, 10 * time.Second},
		"the Node was found":                  {found, false, ReasonNodeFound, 0},
		"only Cluster API has found it":       {func(s *scope) { found(s); s.machine.Status.Conditions = nil }, false, ReasonWaitingForNode, 10 * time.Second},
		"Cluster API has not found it":        {func(s *scope) { found(s); s.owner.Status.NodeRef.Name = "" }, false, ReasonWaitingForNode, 10 * time.Second},
		"the timeout for the Node has passed": {late, false, ReasonNodeTimedOut, 2 * time.Minute},
		"the Node exists":                     {func(s *scope) { s.cluster.Name = "demo" }, false, ReasonNodeFound, 10 * time.Second},
	} {
		t.Run("When "+name+", the Node condition should report it", func(t *testing.T) {
			t.Parallel()
			r, _, _ := quiet()
			nodes := fakeclient.NewClientBuilder().WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "mole.maas"}}).Build()
			if !tc.none {
				r.Nodes = &guest.Nodes{Clock: r.Clock, Connect: func(*rest.Config) (client.Client, error) { return nodes, nil }, Reader: fakeclient.NewClientBuilder().WithObjects(
					&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-kubeconfig"}, Data: map[string][]byte{"value": []byte(kubeconfig)}}).Build()}
			}
			s := &scope{machine: holding(), owner: &clusterv1.Machine{}, cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, observed: deployed(), findings: findings{ready: true}}
			s.observed.FQDN = "Mole.maas"
			maybe(tc.change, s)
			result, err := r.node(t.Context(), s)
			if err != nil || !soon(result, tc.again) {
				t.Errorf("%v, %v", result, err)
			}
			if c := s.findings.node; (c != nil) != (tc.want != "") || c != nil && c.Reason != tc.want {
				t.Errorf("it is told %+v", c)
			}
			node := &corev1.Node{}
			if err := nodes.Get(t.Context(), client.ObjectKey{Name: "mole.maas"}, node); err != nil {
				t.Fatal(err)
			}
			if set := node.Spec.ProviderID == "maas:///az1/wq4h8c" && node.Labels[corev1.LabelTopologyZone] == "az1"; set != (s.cluster.Name == "demo") {
				t.Errorf("the Node has the provider ID %q and the labels %v", node.Spec.ProviderID, node.Labels)
			}
		})
	}
}

const kubeconfig = "{clusters: [{name: c, cluster: {server: 'https://192.0.2.1'}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}"

// TestEvent checks that events are about the MaasMachine, or, after it is gone, about the MaasCluster that continues
// its work.
func TestEvent(t *testing.T) {
	t.Parallel()
	var about recorded
	r := &Reconciler{Recorder: &about}
	s := &scope{machine: holding()}
	r.normal(s, "Reason", "words of 100%")
	s.regarding = &infrav1.MaasCluster{}
	r.warn(s, "Reason", strings.Repeat("w", 2000))
	want := recorded{"*v1beta1.MaasMachine Normal Reason Reason words of 100%", "*v1beta1.MaasCluster Warning Reason Reason " + note(strings.Repeat("w", 2000))}
	if diff := cmp.Diff(want, about); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// recorded holds events with the type of their object.
type recorded []string

// Eventf implements events.EventRecorder.
func (d *recorded) Eventf(about, _ runtime.Object, kind, reason, action, note string, args ...any) {
	*d = append(*d, fmt.Sprintf("%T %s %s %s ", about, kind, reason, action)+fmt.Sprintf(note, args...))
}
