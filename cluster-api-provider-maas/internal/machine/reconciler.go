// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/guest"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/identity"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/phase"
)

// Timing holds the delays and deadlines of a reconcile; the zero value of each field means its default.
type Timing struct {
	// Poll is how often MAAS is looked at while a machine moves (10 s), Settled while it does not (2 min).
	Poll, Settled time.Duration
	// Doubt is how long after an allocation without an answer a machine may still turn up (60 s). It must be longer than
	// the time-out of the call.
	Doubt time.Duration
	// Allocate is after how long without a machine the condition says so (10 min), Deploy how long an installation may
	// take (60 min).
	Allocate, Deploy time.Duration
	// Boot is how long a machine may take from Deployed until it has its configuration (20 min), Join from then until its
	// Node is there (15 min).
	Boot, Join time.Duration
	// SetAside is how long a machine that failed is not picked again (1 h).
	SetAside time.Duration
	// Problem is how soon a call that failed is tried again (15 s).
	Problem time.Duration
	// Compose is how long after a call to compose without an answer a virtual machine may still turn up (150 s: MAAS gives its rack 120),
	// Commission how long its commissioning may take (30 min, as MAAS itself has it).
	Compose, Commission time.Duration
	// Refused is how long a machine is kept for which MAAS does not take our parameters (2 min).
	Refused time.Duration
	// Release is how long MAAS may take to get a machine back (10 min; MAAS itself gives a release 5), Erase when it erases disks
	// (24 h), Maintenance how long people may work on a machine that we hold (60 min).
	Release, Erase, Maintenance time.Duration
}

func (t Timing) withDefaults() Timing {
	for field, value := range map[*time.Duration]time.Duration{
		&t.Poll: 10 * time.Second, &t.Settled: 2 * time.Minute, &t.Doubt: time.Minute,
		&t.Allocate: infrav1.DefaultAllocateTimeout, &t.Deploy: infrav1.DefaultDeployTimeout, &t.Boot: infrav1.DefaultBootTimeout,
		&t.Join: infrav1.DefaultJoinTimeout, &t.SetAside: time.Hour, &t.Problem: 15 * time.Second,
		&t.Compose: 150 * time.Second, &t.Commission: infrav1.DefaultCommissionTimeout,
		&t.Refused: 2 * time.Minute, &t.Release: 10 * time.Minute, &t.Erase: 24 * time.Hour, &t.Maintenance: time.Hour,
	} {
		if *field == 0 {
			*field = value
		}
	}
	return t
}

// Reconciler makes MaasMachines real.
type Reconciler struct {
	// Client reads from the cache and writes; Reader reads Secrets and what must not be stale, without a cache.
	Client client.Client
	Reader client.Reader
	// Identities finds the MAAS clients.
	Identities *identity.Resolver
	// Nodes sets provider IDs in guest clusters; nil leaves the Nodes alone.
	Nodes    *guest.Nodes
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	Timing   Timing
	// Attempts bounds on how many machines one MaasMachine is tried. Zero means 3.
	Attempts int

	powered, released *pace
	refusals          *refusals
	claims            *claims
	spread            *spread
	places            *lxd.Ledger
	looks             *looks
}

// Default fills in what was left at its zero value.
func (r *Reconciler) Default() {
	r.Timing = r.Timing.withDefaults()
	r.powered, r.released = newPace(powerOnEvery), newPace(releaseAgainEvery)
	r.refusals = newRefusals(r.Timing.Problem, r.Timing.Settled)
	r.claims, r.spread, r.places = newClaims(), newSpread(), lxd.NewLedger()
	r.looks = newLooks()
	if r.Attempts == 0 {
		r.Attempts = infrav1.DefaultDeployAttempts
	}
}

// scope is what one reconcile knows.
type scope struct {
	// Set by fetch. owner, cluster and infra are nil when they do not exist.
	machine *infrav1.MaasMachine
	owner   *clusterv1.Machine
	cluster *clusterv1.Cluster
	infra   *infrav1.MaasCluster
	// Set by GiveBack: what events are about where the MaasMachine is gone; nil means the MaasMachine.
	regarding client.Object
	// Set by fetch: the state in which the last pass left the machine, and since when; zero where none was held then.
	seen sighting

	// Set by connect: how MAAS is called, and as which of its users.
	identity *identity.Identity
	user     string
	// Set by observe and by each call that changes the machine; nil while there is none.
	observed *maas.Machine
	// Set by observe: another MAAS user has the machine, so it can't be read.
	foreign bool
	// Set by bootstrap; nil while there is no data.
	bootstrapData map[string][]byte
	// Set by ensureAddress: where the static address is; nil without one.
	subnet *maas.Subnet
	// Set by occupied: machines that are not to be taken on account of siblings, and that some of these may be Ready.
	occupied  map[string]bool
	contested bool
	// Set by heed: machines in a quarantine that only this cluster knows of.
	quarantined map[string]bool
	// Set by own: the machine was allocated anew, for somebody else.
	lost bool
	// Set by own and record: this pass saw the machine carry our key.
	proven bool

	// What the phases found out, for the status.
	findings findings
}

// Reconcile brings one MaasMachine closer to what it should be.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return phase.Driver[*infrav1.MaasMachine, *scope]{
		Client: r.Client, Finalizers: []string{infrav1.MachineFinalizer, evacuationFinalizer}, Observe: r.fetch, Pause: pauseOf,
		Phases: r.phases, Deletion: r.deletion, Report: r.report,
	}.Reconcile(ctx, req)
}

func (r *Reconciler) phases(*scope) []phase.Phase[*scope] {
	return []phase.Phase[*scope]{
		{Name: "prerequisites", Critical: true, Run: r.prerequisites},
		{Name: "credentials", Critical: true, Run: r.connect},
		{Name: "failed machines", Run: r.background},
		{Name: "machine in MAAS", Critical: true, Run: r.observe},
		{Name: "ownership", Critical: true, Run: r.own},
		{Name: "allocation", Critical: true, Run: r.acquire},
		{Name: "workload annotations", Critical: true, Run: r.mark},
		{Name: "swap", Critical: true, Run: r.swapOff},
		{Name: "deployment", Critical: true, Run: r.advance},
		{Name: "node", Run: r.node},
		{Name: "LXD host", Run: r.lookAfterHost},
	}
}

// fetch reads what belongs to the MaasMachine. One without owner or cluster has yet to get them from Cluster API, whose update
// brings it back.
func (r *Reconciler) fetch(ctx context.Context, machine *infrav1.MaasMachine) (*scope, error) {
	s := &scope{machine: machine}
	if machine.UID == "" {
		return nil, fmt.Errorf("MaasMachine %s has no UID", client.ObjectKeyFromObject(machine))
	}
	owner, err := util.GetOwnerMachine(ctx, r.Client, machine.ObjectMeta)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the Machine of MaasMachine %s: %w", client.ObjectKeyFromObject(machine), err)
	}
	s.owner = owner
	if since := s.machine.Status.StateSince; s.systemID() != "" && since != nil {
		s.seen = sighting{state: deref(s.machine.Status.MachineState), since: since.Time}
	}
	if err := r.fetchCluster(ctx, s); err != nil {
		return nil, err
	}
	if (s.owner == nil || s.cluster == nil) && machine.DeletionTimestamp.IsZero() && !s.paused() {
		return nil, phase.ErrStop
	}
	return s, nil
}

// sighting is a state of MAAS, and since when a machine was seen in it.
type sighting struct {
	state string
	since time.Time
}

func (r *Reconciler) fetchCluster(ctx context.Context, s *scope) error {
	name := s.machine.Labels[clusterv1.ClusterNameLabel]
	if s.owner != nil {
		name = s.owner.Spec.ClusterName
	}
	if name == "" {
		return nil
	}
	cluster := &clusterv1.Cluster{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.machine.Namespace, Name: name}, cluster)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Cluster %s/%s: %w", s.machine.Namespace, name, err)
	}
	s.cluster = cluster
	infra := &infrav1.MaasCluster{}
	key := client.ObjectKey{Namespace: s.machine.Namespace, Name: cluster.Spec.InfrastructureRef.Name}
	if key.Name == "" {
		return nil
	}
	if err := r.Client.Get(ctx, key, infra); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading MaasCluster %s: %w", key, err)
	}
	s.infra = infra
	return nil
}

func pauseOf(_ context.Context, s *scope) (pause.State, error) {
	return pause.State{Frozen: s.paused()}, nil
}

func (s *scope) paused() bool {
	if s.cluster == nil {
		return annotations.HasPaused(s.machine)
	}
	return annotations.IsPaused(s.cluster, s.machine)
}

// prerequisites stops until Cluster API has done its part; a machine that is held already is looked after in any case.
func (r *Reconciler) prerequisites(_ context.Context, s *scope) (ctrl.Result, error) {
	if s.systemID() != "" {
		return phase.Done()
	}
	if ready := s.cluster.Status.Initialization.InfrastructureProvisioned; ready == nil || !*ready {
		return s.wait(ReasonWaitingForInfrastructure, "waiting for the infrastructure of the Cluster")
	}
	if s.bootstrapSecret() == "" {
		return s.wait(ReasonWaitingForBootstrapData, "waiting for the bootstrap data of the Machine")
	}
	return phase.Done()
}

// wait notes why nothing more can be done and lets a watch bring the reconcile back.
func (s *scope) wait(reason, message string) (ctrl.Result, error) {
	s.findings.problem = &Problem{reason, message}
	return ctrl.Result{}, phase.ErrStop
}

// problem notes an error of MAAS and comes back soon, or when MAAS asked for it. A cancelled reconcile is an error: nobody learnt anything;
// and so is a write that came too late, which MAAS has nothing to do with.
func (r *Reconciler) problem(ctx context.Context, s *scope, err error) (ctrl.Result, error) {
	if ctx.Err() != nil || apierrors.IsConflict(err) {
		return ctrl.Result{}, err
	}
	p := ProblemOf(err)
	s.findings.problem = &p
	return ctrl.Result{RequeueAfter: jitter(max(r.Timing.Problem, maas.RetryAfter(err)))}, phase.ErrStop
}

func (r *Reconciler) connect(ctx context.Context, s *scope) (ctrl.Result, error) {
	id, err := r.Identities.For(ctx, s.identitySecret())
	if err != nil {
		return r.problem(ctx, s, err)
	}
	s.identity = id
	return r.sameUser(ctx, s)
}

// observe reads the machine that the MaasMachine holds, if any.
func (r *Reconciler) observe(ctx context.Context, s *scope) (ctrl.Result, error) {
	id := s.systemID()
	if id == "" {
		return phase.Done()
	}
	m, err := s.identity.Inventory.Machine(ctx, id, r.maxAge(s))
	switch {
	case maas.IsNotFound(err), maas.IsForbidden(err):
		return r.hidden(ctx, s, err)
	case err != nil:
		return r.problem(ctx, s, err)
	}
	s.observed = m
	return phase.Done()
}

// maxAge is how old what is known of the machine may be: little while it moves, much when it is settled.
func (r *Reconciler) maxAge(s *scope) time.Duration {
	switch {
	case s.settled():
		return r.Timing.Settled
	case s.kept() && !s.machine.DeletionTimestamp.IsZero():
		return min(keepEvery/2, r.Timing.Poll)
	}
	return r.Timing.Poll
}

// node sets the provider ID and the zone of the Node, until Cluster API has found the Node by it.
func (r *Reconciler) node(ctx context.Context, s *scope) (ctrl.Result, error) {
	if r.Nodes == nil || s.observed == nil || !s.provisioned() && !s.findings.ready {
		return phase.Done()
	}
	if s.owner.Status.NodeRef.IsDefined() && condition.IsTrue(s.machine.Status.Conditions, ConditionNode) {
		s.findings.node = nodeFound()
		return phase.Done()
	}
	key := client.ObjectKey{Namespace: s.machine.Namespace, Name: s.cluster.Name}
	err := r.Nodes.SetProviderID(ctx, key, nodeNames(s.observed), s.providerID(), s.observed.Zone.Name)
	s.findings.node = r.nodeCondition(s, err)
	if s.findings.node.Reason == ReasonNodeTimedOut {
		return ctrl.Result{RequeueAfter: jitter(r.Timing.Settled)}, nil
	}
	return ctrl.Result{RequeueAfter: jitter(r.Timing.Poll)}, nil
}

func (r *Reconciler) event(s *scope, kind, reason, message string) {
	regarding := s.regarding
	if regarding == nil {
		regarding = s.machine
	}
	r.Recorder.Eventf(regarding, nil, kind, reason, reason, "%s", note(message))
}

func (r *Reconciler) normal(s *scope, reason, message string) {
	r.event(s, corev1.EventTypeNormal, reason, message)
}

func (r *Reconciler) warn(s *scope, reason, message string) {
	r.event(s, corev1.EventTypeWarning, reason, message)
}
