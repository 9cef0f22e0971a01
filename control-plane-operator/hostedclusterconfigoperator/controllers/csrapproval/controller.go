// SPDX-License-Identifier: Apache-2.0

package csrapproval

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/watch"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/phase"
)

// retryAfter is the requeue interval of a request that could not be approved, if no watch event comes first.
const retryAfter = 30 * time.Second

// Reconciler approves CertificateSigningRequests of the guest by Machines of the management cluster.
type Reconciler struct {
	// Guest reads and approves requests in the guest, and reads its Nodes.
	Guest client.Client
	// Live reads and writes the guest's bootstrap tokens without a cache.
	Live client.Client
	// Management reads Machines, and stores in them which key has the identity of their node.
	Management client.Client
	// Recorder records refusals as events of the Machine.
	Recorder events.EventRecorder
	// Namespace is the hosted namespace, which holds the Machines.
	Namespace string
	// Pause evaluates the pause of the cluster, during which no node can join.
	Pause pause.Gate
}

// SetupWithManager watches the guest's requests, the Machines that may make a waiting request valid, and the
// HostedControlPlane, whose pause may end.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, management cache.Cache) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("csr-approval").
		For(&certificatesv1.CertificateSigningRequest{}).
		WatchesRawSource(source.Kind(management, &clusterv1.Machine{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(ctx context.Context, _ *clusterv1.Machine) []reconcile.Request { return r.pending(ctx) }))).
		WatchesRawSource(watch.Pause(management, r.pending)).
		Complete(r)
}

// pending returns all undecided requests.
func (r *Reconciler) pending(ctx context.Context) []reconcile.Request {
	return watch.All(ctx, r.Guest, &certificatesv1.CertificateSigningRequestList{}, relevant)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	type request = *certificatesv1.CertificateSigningRequest
	return phase.Driver[request, request]{
		Client: r.Guest,
		Observe: func(_ context.Context, csr request) (request, error) {
			if !relevant(csr) {
				return nil, phase.ErrStop
			}
			return csr, nil
		},
		Pause:  func(ctx context.Context, _ request) (pause.State, error) { return r.Pause.State(ctx) },
		Phases: func(request) []phase.Phase[request] { return []phase.Phase[request]{{Name: "approval", Run: r.decide}} },
	}.Reconcile(ctx, req)
}

func (r *Reconciler) decide(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (ctrl.Result, error) {
	f, err := r.facts(ctx, csr)
	if err != nil {
		return ctrl.Result{}, err
	}
	log := ctrl.LoggerFrom(ctx).WithValues("requester", csr.Spec.Username)
	first, err := authorize(csr, f)
	switch {
	case errors.Is(err, errWait):
		log.Info("Not approving yet", "because", err.Error())
		return phase.After(retryAfter)
	case errors.Is(err, errTaken):
		return ctrl.Result{}, r.refuse(ctx, csr, f, err)
	case err != nil:
		log.Info("Not approving", "because", err.Error())
		return phase.Done()
	}
	if first != nil {
		if err := r.remember(ctx, csr, first); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.settle(ctx, csr, certificatesv1.CertificateApproved, "MachineVouches", "A Machine of this cluster has the names and addresses of the request"); err != nil {
		return ctrl.Result{}, err
	}
	log.Info("Approved", "signer", csr.Spec.SignerName)
	return ctrl.Result{}, r.joined(ctx, csr, f)
}

// refuse denies a request for an identity that another node has, and reports it with an event and a metric.
func (r *Reconciler) refuse(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, f facts, why error) error {
	if err := r.settle(ctx, csr, certificatesv1.CertificateDenied, "IdentityTaken", why.Error()); err != nil {
		return err
	}
	CountRefusal()
	ctrl.LoggerFrom(ctx).Error(why, "Denied", "requester", csr.Spec.Username)
	if machine := askedFor(csr, f); machine != nil {
		r.Recorder.Eventf(machine, nil, corev1.EventTypeWarning, IdentityRefused, "Deny",
			"CertificateSigningRequest %s of the guest by %s was denied: %v", csr.Name, csr.Spec.Username, why)
	}
	return nil
}

// joined deletes the bootstrap credentials of a node that has its first certificate. A request for a serving
// certificate proves that it has one.
func (r *Reconciler) joined(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, f facts) error {
	machine := askedFor(csr, f)
	if csr.Spec.SignerName != certificatesv1.KubeletServingSignerName || machine == nil {
		return nil
	}
	return r.useUp(ctx, machine.Name)
}

// askedFor returns the Machine of the node that a CertificateSigningRequest names; nil if there is none.
func askedFor(csr *certificatesv1.CertificateSigningRequest, f facts) *clusterv1.Machine {
	request, err := parse(csr.Spec.Request)
	if err != nil {
		return nil
	}
	machine, err := MachineOf(strings.TrimPrefix(request.Subject.CommonName, nodeUserPrefix), f.machines)
	if err != nil {
		return nil
	}
	return machine
}

func (r *Reconciler) facts(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (facts, error) {
	machines := &clusterv1.MachineList{}
	if err := r.Management.List(ctx, machines, client.InNamespace(r.Namespace)); err != nil {
		return facts{}, fmt.Errorf("listing Machines: %w", err)
	}
	nodes := &corev1.NodeList{}
	if err := r.Guest.List(ctx, nodes); err != nil {
		return facts{}, fmt.Errorf("listing Nodes: %w", err)
	}
	clusters := &clusterv1.ClusterList{}
	if err := r.Management.List(ctx, clusters, client.InNamespace(r.Namespace)); err != nil {
		return facts{}, fmt.Errorf("listing Clusters: %w", err)
	}
	bootstrap, err := r.bootstrapper(ctx, csr)
	return facts{machines: machines.Items, nodes: nodes.Items, made: len(clusters.Items)+len(machines.Items) > 0, bootstrap: bootstrap}, err
}

// settle approves or denies a request.
func (r *Reconciler) settle(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, decision certificatesv1.RequestConditionType, reason, message string) error {
	csr = csr.DeepCopy()
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: decision, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastUpdateTime: metav1.Now(),
	})
	if err := r.Guest.SubResource("approval").Update(ctx, csr); err != nil {
		return fmt.Errorf("deciding CertificateSigningRequest %s: %w", csr.Name, err)
	}
	return nil
}
