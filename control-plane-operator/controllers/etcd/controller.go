// SPDX-License-Identifier: Apache-2.0

// Package etcd manages the members of a hosted cluster's etcd. A reconcile observes the members, takes at most one step
// (next), and reports what it observed. All state that a step needs is in etcd itself, in the namespace and in the
// notes about the members. An operator that stops between two steps therefore continues where it was:
//
//	lost volume -> remove -> (renew its volume) -> note "Joining" -> add as learner
//		-> it starts -> note "Started" -> promote
//	changed pods -> restart the members one by one (the StatefulSet does not, OnDelete)
package etcd

import (
	"context"
	"fmt"
	"time"

	dto "github.com/prometheus/client_model/go"
	clientv3 "go.etcd.io/etcd/client/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	component "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	// settledResync is the interval at which the status of healthy members is checked.
	settledResync = 30 * time.Second
	// stepResync is the time until the next step of a replacement.
	stepResync = 2 * time.Second
	// AnswerTimeout is the timeout for an answer of a member. A slower member counts as not serving.
	AnswerTimeout = 5 * time.Second
	// defragmentation is the timeout for a member to rewrite its database: 8 GiB on a slow disk.
	defragmentation = 5 * time.Minute
)

// Reconciler manages the members of managed etcds.
type Reconciler struct {
	// Client writes to the management cluster.
	Client client.Client
	// Live reads from the management cluster without a cache, because an action on a member cannot be undone.
	Live client.Reader
	// Clock provides the current time.
	Clock clock.PassiveClock
	// Dial returns a client of etcd for the given URLs of members.
	Dial func(ctx context.Context, namespace string, urls []string) (Members, error)
	// Scrape reads the metrics of a member.
	Scrape func(ctx context.Context, namespace, url string) (map[string]*dto.MetricFamily, error)
	// PeerURL and ClientURL return the URLs at which the other members and clients reach the member of a pod.
	PeerURL, ClientURL func(namespace, pod string) string
	// AnswerTimeout is the timeout for answers of members.
	AnswerTimeout time.Duration
	// Metrics record what was observed; nil records nothing.
	Metrics *Metrics

	// compacted is the revision at which a full etcd was last compacted. It avoids repeating a compaction that does not
	// help. After a restart the operator compacts once more.
	compacted int64
	// disks holds the disks of the members, by pod, since this operator started.
	disks map[string]*disk
}

// SetupWithManager watches HostedControlPlanes and the StatefulSet of etcd; members are polled.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named(component.Name).
		For(&hyperv1.HostedControlPlane{}).
		Owns(&appsv1.StatefulSet{}).
		WithOptions(controller.Options{RateLimiter: phase.Backoff(time.Second, 10*time.Second)}).
		Complete(r)
}

// scope is the state of one reconcile.
type scope struct {
	hcp    *hyperv1.HostedControlPlane
	paused bool
	seen   *cluster
	step   step
	// refused is the error that keeps volumes from growing; empty if there is none.
	refused string
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return phase.Driver[*hyperv1.HostedControlPlane, *scope]{
		Client: r.Client, Observe: r.observe, Pause: r.pause, Report: r.report, Resync: resync,
		Phases: func(*scope) []phase.Phase[*scope] {
			return []phase.Phase[*scope]{{Name: "etcd members", Run: r.advance}, {Name: "etcd volumes", Run: r.grow}}
		},
	}.Reconcile(ctx, req)
}

func (r *Reconciler) observe(ctx context.Context, hcp *hyperv1.HostedControlPlane) (*scope, error) {
	// During a restore, another controller provides the members and volumes. A step of this controller would remove them
	// again.
	if !hcp.DeletionTimestamp.IsZero() || hcp.Spec.Etcd.ManagementType == hyperv1.Unmanaged || hcp.Annotations[hyperv1.RestoringAnnotation] != "" {
		return nil, phase.ErrStop
	}
	set := &appsv1.StatefulSet{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: hcp.Namespace, Name: component.Name}, set)
	if apierrors.IsNotFound(err) {
		return nil, phase.ErrStop
	}
	if err != nil {
		return nil, fmt.Errorf("reading StatefulSet %s/%s: %w", hcp.Namespace, component.Name, err)
	}
	seen, err := r.look(ctx, hcp)
	if err != nil {
		return nil, err
	}
	seen.revision = set.Status.UpdateRevision
	r.lookAtDisks(ctx, hcp.Namespace, seen)
	return &scope{hcp: hcp, seen: seen}, nil
}

func (r *Reconciler) pause(_ context.Context, s *scope) (pause.State, error) {
	state := pause.Until(s.hcp.Spec.PausedUntil, r.Clock.Now())
	s.paused = state.Paused
	return state, nil
}

func (r *Reconciler) advance(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.step = s.seen.next(r.Clock.Now()); s.step.why == "" {
		s.step = s.seen.maintain(component.Quota(s.hcp, s.seen.claims()))
	}
	if s.step.action == wait {
		return ctrl.Result{}, nil
	}
	ctrl.LoggerFrom(ctx).Info("Etcd member", "member", s.step.member.pod, "step", s.step.action, "because", s.step.why)
	return ctrl.Result{}, r.take(ctx, s.hcp, s.step)
}

func resync(s *scope) time.Duration {
	if s.step.why != "" {
		return stepResync
	}
	return settledResync
}

// take takes one step. A step is repeatable, since the operator may stop before it has seen the result.
func (r *Reconciler) take(ctx context.Context, hcp *hyperv1.HostedControlPlane, next step) error {
	pod := next.member.pod
	switch next.action {
	case note:
		return r.note(ctx, hcp, pod, next.note)
	case restart:
		// Delete that pod, and not its successor of the same name.
		return r.delete(ctx, next.member.live, client.Preconditions{UID: &next.member.live.UID})
	case renew:
		// Delete the claim first: it stays until its pod is gone, and the pod's successor gets a new one.
		if err := r.delete(ctx, next.member.claim); err != nil {
			return err
		}
		return r.delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: pod}})
	}
	return r.tell(ctx, hcp.Namespace, next)
}

// tell executes the steps that need a call to etcd.
func (r *Reconciler) tell(ctx context.Context, namespace string, next step) error {
	members, err := r.Dial(ctx, namespace, next.via)
	if err != nil {
		return err
	}
	defer func() { _ = members.Close() }()
	patience := r.AnswerTimeout
	if next.action == defragment {
		patience = defragmentation
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch next.action {
	case remove:
		_, err = members.MemberRemove(ctx, next.member.listed.ID)
	case add:
		_, err = members.MemberAddAsLearner(ctx, []string{r.PeerURL(namespace, next.member.pod)})
	case promote:
		_, err = members.MemberPromote(ctx, next.member.listed.ID)
	case defragment:
		_, err = members.Defragment(ctx, next.member.clientURL)
	case compact:
		revision := next.member.status.Header.Revision
		_, err = members.Compact(ctx, revision, clientv3.WithCompactPhysical())
		if err = compacted(err); err == nil {
			r.compacted = revision
		}
	case disarm:
		_, err = members.AlarmDisarm(ctx, (*clientv3.AlarmMember)(next.alarm))
	}
	if err != nil {
		return fmt.Errorf("etcd member %s: %s: %w", next.member.pod, next.action, err)
	}
	return nil
}

func (r *Reconciler) note(ctx context.Context, hcp *hyperv1.HostedControlPlane, pod string, n component.Note) error {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: component.NotesConfigMap}}
	_, err := upsert.Object(ctx, r.Client, cm, func() error {
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		cm.Data[pod] = n.String()
		return controllerutil.SetControllerReference(hcp, cm, r.Client.Scheme())
	})
	return err
}

func (r *Reconciler) delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if err := client.IgnoreNotFound(r.Client.Delete(ctx, obj, opts...)); err != nil {
		return fmt.Errorf("deleting %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}
