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

// Timing holds the delays and deadlines of a reconcile. The zero value of a field selects its default, given in
// parentheses.
type Timing struct {
	// Poll is the interval between MAAS reads while the state of a machine changes (10 s). Settled is the interval while
	// it does not (2 min).
	Poll, Settled time.Duration
	// Doubt is how long an allocation with an unknown outcome may still yield a machine (60 s). It must be longer than the
	// timeout of the call.
	Doubt time.Duration
	// Allocate is the time without a machine after which the condition reports a timeout (10 min). Deploy limits an
	// installation (60 min).
	Allocate, Deploy time.Duration
	// Boot limits the time from Deployed until the machine has its configuration (20 min). Join limits the time from then
	// until its Node registers (15 min).
	Boot, Join time.Duration
	// SetAside is how long a failed machine is not allocated again (1 h).
	SetAside time.Duration
	// Problem is the delay before a failed call is retried (15 s).
	Problem time.Duration
	// Compose is how long a compose call with an unknown outcome may still yield a virtual machine (150 s). MAAS gives its
	// rack controller 120 s. Commission limits the commissioning (30 min, as in MAAS itself).
	Compose, Commission time.Duration
	// Refused is how long a machine stays allocated while MAAS rejects the request parameters (2 min).
	Refused time.Duration
	// Release limits a release (10 min; MAAS itself limits a release to 5 min). Erase limits a release that erases disks
	// (24 h). Maintenance limits how long an administrator may work on an allocated machine (60 min).
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

// Reconciler reconciles MaasMachines with MAAS.
type Reconciler struct {
	// Client reads from the cache and writes. Reader bypasses the cache; it reads Secrets and objects that must not be
	// stale.
	Client client.Client
	Reader client.Reader
	// Identities resolves credentials to MAAS clients.
	Identities *identity.Resolver
	// Nodes sets provider IDs in guest clusters. When it is nil, Nodes are not changed.
	Nodes    *guest.Nodes
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	Timing   Timing
	// Attempts limits the number of machines on which one MaasMachine is deployed. Zero means 3.
	Attempts int

	powered, released *pace
	// refusals is for changes of a machine in use, unreleased for its release, unmet for requests for a machine.
	refusals, unreleased, unmet *refusals
	common                      *commonCauses
	claims                      *claims
	spread                      *spread
	places                      *lxd.Ledger
	looks                       *looks
}

// Default sets the defaults of fields with a zero value and creates the internal state.
func (r *Reconciler) Default() {
	r.Timing = r.Timing.withDefaults()
	r.powered, r.released = newPace(powerOnEvery), newPace(releaseAgainEvery)
	r.refusals, r.unreleased = newRefusals(r.Timing.Problem, r.Timing.Settled), newRefusals(r.Timing.Problem, r.Timing.Settled)
	r.unmet = newRefusals(r.Timing.Problem, r.Timing.Settled)
	r.common = newCommonCauses()
	r.claims, r.spread, r.places = newClaims(), newSpread(), lxd.NewLedger()
	r.looks = newLooks()
	if r.Attempts == 0 {
		r.Attempts = infrav1.DefaultDeployAttempts
	}
}

// scope holds the state of one reconcile.
type scope struct {
	// Set by fetch. owner, cluster and infra are nil when they do not exist.
	machine *infrav1.MaasMachine
	owner   *clusterv1.Machine
	cluster *clusterv1.Cluster
	infra   *infrav1.MaasCluster
	// Set by GiveBack: the object of the events when the MaasMachine no longer exists; nil means the MaasMachine.
	regarding client.Object
	// Set by fetch: the machine state after the previous reconcile, and its start time; zero if no machine was allocated.
	seen sighting

	// Set by connect: the MAAS client, and the MAAS user that it authenticates as.
	identity *identity.Identity
	user     string
	// Set by observe and by each call that changes the machine; nil without a machine.
	observed *maas.Machine
	// Set by observe: the machine is allocated to another MAAS user, so it cannot be read.
	foreign bool
	// Set by bootstrap; nil while there is no bootstrap data.
	bootstrapData map[string][]byte
	// Set by ensureAddress: the subnet of the static address; nil without a static address.
	subnet *maas.Subnet
	// Set by occupied: machines that must not be allocated because of siblings, and whether some of them may be Ready.
	occupied  map[string]bool
	contested bool
	// Set by `excludeFailed`: quarantined machines that only this cluster knows about.
	quarantined map[string]bool
	// Set by own: the machine was released and allocated again for another owner.
	lost bool
	// Set by own and record: this reconcile saw the allocation key on the machine.
	proven bool
	// Set by allocate: MAAS was asked for a machine, and the requested machine may be allocated now.
	asked bool

	// The results of the phases, for the status.
	findings findings
}

// Reconcile moves one MaasMachine closer to its desired state.
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

// fetch reads the objects that belong to the MaasMachine. It stops when the owner or the Cluster does not exist yet.
// Cluster API sets them later, and its update triggers another reconcile.
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

// sighting is the state of a machine in MAAS, and when that state began.
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

// prerequisites stops until Cluster API has provided the infrastructure and the bootstrap data. A machine that is
// already allocated is reconciled regardless.
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

// wait records why the reconcile cannot continue, and stops. A watch triggers the next reconcile.
func (s *scope) wait(reason, message string) (ctrl.Result, error) {
	s.findings.problem = &Problem{reason, message}
	return ctrl.Result{}, phase.ErrStop
}

// problem records a MAAS error and requeues after Timing.Problem, or later if MAAS sends Retry-After. It returns the
// error itself if the context was cancelled, since nothing was observed. It also returns a write conflict itself, since
// MAAS did not cause it.
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

// observe reads the machine that is allocated to the MaasMachine, if any.
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

// maxAge returns the maximum age of the cached machine: long for a settled machine, short while its state changes.
func (r *Reconciler) maxAge(s *scope) time.Duration {
	switch {
	case s.settled():
		return r.Timing.Settled
	case s.kept() && !s.machine.DeletionTimestamp.IsZero():
		return min(keepEvery/2, r.Timing.Poll)
	}
	return r.Timing.Poll
}

// node sets the provider ID and the zone of the Node until Cluster API has found the Node by its provider ID.
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
