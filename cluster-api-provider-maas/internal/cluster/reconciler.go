// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/guest"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/identity"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/record"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/phase"
)

const (
	// pollEvery is how often the zones are read from MAAS. The read also checks that MAAS is reachable and accepts the API
	// key.
	pollEvery = time.Minute
	// versionEvery is how often the version of MAAS is read, which changes with an upgrade of MAAS.
	versionEvery = time.Hour
	// problemEvery is the delay before a failed MAAS call is retried.
	problemEvery = 15 * time.Second
	// deletePollEvery is how often a deletion checks for remaining machines.
	deletePollEvery = 10 * time.Second
)

// Reconciler reconciles MaasClusters.
type Reconciler struct {
	// Client reads from the cache and writes. Reader bypasses the cache.
	Client client.Client
	Reader client.Reader
	// Identities resolves credentials to MAAS clients.
	Identities *identity.Resolver
	// Machines continues the releases that MaasMachines delegated.
	Machines Releaser
	// Nodes drops its cache of a deleted cluster. It may be nil.
	Nodes    *guest.Nodes
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// QuarantineAfter is the number of failed deployments after which a machine is quarantined; zero means never.
	QuarantineAfter int

	mu sync.Mutex
	// young holds, by MaasCluster and system ID, when an allocation without the annotation of the cluster was first seen.
	young map[types.UID]map[string]time.Time
	// surveys holds, by MaasCluster, the time of the next check of all machines of the user.
	surveys map[types.UID]time.Time
}

// Releaser does the next step of a delegated release, and returns its progress.
type Releaser interface {
	GiveBack(ctx context.Context, infra *infrav1.MaasCluster, id *identity.Identity, systemID string, record handover.Record) lifecycle.Outcome
}

// scope holds the state of one reconcile.
type scope struct {
	// Set by observe; owner is nil when it does not exist.
	infra *infrav1.MaasCluster
	owner *clusterv1.Cluster
	// Set by connect; nil without credentials.
	identity *identity.Identity
	// user is the MAAS user of the credentials; empty if there is a problem.
	user maas.User
	// Set by the phases.
	zones    []maas.Zone
	version  maas.Version
	problem  *machine.Problem
	endpoint *machine.Problem
	// dns is the DNS name created in MAAS; empty while there is none.
	dns string
	// Set by takeBack: the progress of the delegated releases, by system ID.
	unreleased map[string]lifecycle.Outcome
	// Set by sweep: why machines of the cluster may remain in MAAS.
	left *machine.Problem
}

// Reconcile moves one MaasCluster closer to its desired state.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return phase.Driver[*infrav1.MaasCluster, *scope]{
		Client: r.Client, Finalizers: []string{infrav1.ClusterFinalizer}, Observe: r.observe, Pause: pauseOf,
		Phases: r.phases, Deletion: r.deletion, Report: r.report,
	}.Reconcile(ctx, req)
}

func (r *Reconciler) phases(*scope) []phase.Phase[*scope] {
	return []phase.Phase[*scope]{
		{Name: "MAAS", Run: r.connect},
		{Name: "endpoint", Run: r.ensureEndpoint},
		{Name: "delegated releases", Run: r.takeBack},
		{Name: "machines restored", Run: r.restore},
		{Name: "machines kept", Run: r.endReservations},
		{Name: "sweep", Run: r.sweep},
		{Name: "quarantine", Run: r.quarantine},
	}
}

// observe reads the owner. It stops without one: Cluster API sets the owner later, and the update triggers another
// reconcile.
func (r *Reconciler) observe(ctx context.Context, infra *infrav1.MaasCluster) (*scope, error) {
	s := &scope{infra: infra}
	owner, err := util.GetOwnerCluster(ctx, r.Client, infra.ObjectMeta)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the Cluster of MaasCluster %s: %w", client.ObjectKeyFromObject(infra), err)
	}
	s.owner = owner
	if owner == nil && infra.DeletionTimestamp.IsZero() && !s.paused() {
		return nil, phase.ErrStop
	}
	return s, nil
}

func pauseOf(_ context.Context, s *scope) (pause.State, error) {
	return pause.State{Frozen: s.paused()}, nil
}

func (s *scope) paused() bool {
	if s.owner == nil {
		return annotations.HasPaused(s.infra)
	}
	return annotations.IsPaused(s.owner, s.infra)
}

func (s *scope) identitySecret() client.ObjectKey {
	if s.infra.Spec.IdentityRef == nil {
		return client.ObjectKey{}
	}
	return client.ObjectKey{Namespace: s.infra.Namespace, Name: s.infra.Spec.IdentityRef.Name}
}

// connect resolves the MAAS client and reads the zones.
func (r *Reconciler) connect(ctx context.Context, s *scope) (ctrl.Result, error) {
	id, err := r.Identities.For(ctx, s.identitySecret())
	if err == nil {
		s.identity = id
		s.zones, err = id.Inventory.Zones(ctx, pollEvery)
	}
	if err == nil {
		// The version is used only for a warning. If it cannot be read, there is no warning.
		s.version, _ = id.Inventory.Version(ctx, versionEvery)
	}
	if err == nil {
		err = r.sameUser(ctx, s)
	}
	if ctx.Err() != nil {
		return ctrl.Result{}, err
	}
	if err != nil {
		p := machine.ProblemOf(err)
		s.problem = &p
	}
	if s.problem != nil {
		return phase.After(max(problemEvery, maas.RetryAfter(err)))
	}
	return phase.After(pollEvery)
}

// sameUser reports a problem if machines were allocated by another MAAS user, since the user of the credentials cannot
// see them.
func (r *Reconciler) sameUser(ctx context.Context, s *scope) error {
	user, err := s.identity.Inventory.User(ctx)
	if err != nil {
		return err
	}
	s.user = user
	machines, err := r.machines(ctx, s, r.Client)
	if err != nil {
		return err
	}
	for i := range machines {
		owner := machines[i].Annotations[infrav1.OwnerAnnotation]
		if id := machines[i].Spec.SystemID; id != nil && owner != "" && owner != user.Username {
			p := machine.AnotherUser("machine "+*id, owner, user.Username)
			s.problem = &p
			return nil
		}
	}
	records := handover.Records.Of(s.infra)
	for _, id := range record.IDs(records) {
		if owner := records[id].User; owner != "" && owner != user.Username {
			p := machine.AnotherUser("machine "+id, owner, user.Username)
			s.problem = &p
			return nil
		}
	}
	if owner := s.infra.Annotations[infrav1.OwnerAnnotation]; !s.infra.DeletionTimestamp.IsZero() && owner != "" && owner != user.Username {
		p := machine.AnotherUser("what may be left of this cluster", owner, user.Username)
		s.problem = &p
	}
	return nil
}

// machines lists the machines of the cluster, by the label that Cluster API sets.
func (r *Reconciler) machines(ctx context.Context, s *scope, reader client.Reader) ([]infrav1.MaasMachine, error) {
	list := &infrav1.MaasMachineList{}
	name := s.infra.Labels[clusterv1.ClusterNameLabel]
	if s.owner != nil {
		name = s.owner.Name
	}
	if name == "" {
		return nil, nil
	}
	if err := reader.List(ctx, list, client.InNamespace(s.infra.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name}); err != nil {
		return nil, fmt.Errorf("listing the MaasMachines of cluster %s: %w", name, err)
	}
	return list.Items, nil
}

// deletion returns the phases that wait for the machines and remove the DNS name. Afterwards the finalizer is removed.
func (r *Reconciler) deletion(*scope) []phase.Phase[*scope] {
	return []phase.Phase[*scope]{
		{Name: "machines", Critical: true, Run: r.awaitMachines},
		{Name: "MAAS", Run: r.connect},
		{Name: "delegated releases", Run: r.takeBack},
		{Name: "machines kept", Run: r.endReservations},
		{Name: "sweep", Run: r.sweep},
		{Name: "endpoint", Run: r.removeDNS},
		{Name: "leftovers", Run: r.leaveNothing},
	}
}

func (r *Reconciler) awaitMachines(ctx context.Context, s *scope) (ctrl.Result, error) {
	left, err := r.machines(ctx, s, r.Client)
	if err != nil || len(left) == 0 {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: deletePollEvery}, phase.ErrStop
}

// leaveNothing keeps the finalizer while MAAS may still have something that was created for the MaasCluster.
func (r *Reconciler) leaveNothing(_ context.Context, s *scope) (ctrl.Result, error) {
	if s.awaitsRecords() || s.endpoint != nil || r.mayLeak(s) {
		return ctrl.Result{}, phase.ErrStop
	}
	r.mu.Lock()
	delete(r.young, s.infra.UID)
	delete(r.surveys, s.infra.UID)
	r.mu.Unlock()
	if r.Nodes != nil && s.owner != nil {
		r.Nodes.Forget(client.ObjectKeyFromObject(s.owner))
	}
	return phase.Done()
}

// mayLeak reports whether machines of the cluster may remain in MAAS: because the sweep failed, or because a release
// failed. Nothing remains if no machine was ever requested from MAAS. Without any credentials a check will never be
// possible, so the deletion proceeds with a warning.
func (r *Reconciler) mayLeak(s *scope) bool {
	if _, asked := s.infra.Annotations[infrav1.OwnerAnnotation]; !asked {
		return false
	}
	if s.problem == nil || s.problem.Reason != machine.ReasonCredentialsMissing {
		left := cmp.Or(s.left, s.problem)
		if left == nil {
			return false
		}
		s.left = &machine.Problem{Reason: left.Reason, Message: fmt.Sprintf(
			"machines may be left in MAAS: %s. To delete the MaasCluster without this check, remove the annotation %s", left.Message, infrav1.OwnerAnnotation)}
		return true
	}
	r.warn(s.infra, "OrphansNotLookedFor", fmt.Sprintf("the MaasCluster is deleted without checking MAAS for leftover machines: %s", s.problem.Message))
	return false
}

func (r *Reconciler) warn(obj client.Object, reason, message string) {
	r.Recorder.Eventf(obj, nil, corev1.EventTypeWarning, reason, reason, "%s", message)
}

func (r *Reconciler) normal(obj client.Object, reason, message string) {
	r.Recorder.Eventf(obj, nil, corev1.EventTypeNormal, reason, reason, "%s", message)
}

func isTrue(p *bool) bool { return p != nil && *p }

func stamp(conditions []metav1.Condition, now time.Time) []metav1.Condition {
	for i := range conditions {
		conditions[i].LastTransitionTime = metav1.NewTime(now)
	}
	return conditions
}
