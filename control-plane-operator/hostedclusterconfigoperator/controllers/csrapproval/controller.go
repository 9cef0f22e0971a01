package csrapproval

import (
	"context"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// retryAfter is how soon a request that could not be approved is looked at again, should no watch fire before.
const retryAfter = 30 * time.Second

// Reconciler approves CertificateSigningRequests of the guest against Machines of the management cluster.
type Reconciler struct {
	// Guest reads and approves requests in the guest, and reads its Nodes.
	Guest client.Client
	// Management reads Machines.
	Management client.Reader
	// Namespace is the hosted namespace, which holds the Machines.
	Namespace string
	// Pause is heeded: a paused cluster lets nobody in.
	Pause pause.Gate
}

// SetupWithManager watches the guest's requests, the Machines that may make a waiting request right, and the
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

// pending are all requests that nobody has decided.
func (r *Reconciler) pending(ctx context.Context) []reconcile.Request {
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := r.Guest.List(ctx, list); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing CertificateSigningRequests")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if relevant(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
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
	f, err := r.facts(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	log := ctrl.LoggerFrom(ctx).WithValues("requester", csr.Spec.Username)
	if err := authorize(csr, f); errors.Is(err, errWait) {
		log.Info("Not approving yet", "because", err.Error())
		return phase.After(retryAfter)
	} else if err != nil {
		log.Info("Not approving", "because", err.Error())
		return phase.Done()
	}
	return ctrl.Result{}, r.approve(ctx, csr)
}

func (r *Reconciler) facts(ctx context.Context) (facts, error) {
	machines := &clusterv1.MachineList{}
	if err := r.Management.List(ctx, machines, client.InNamespace(r.Namespace)); err != nil {
		return facts{}, fmt.Errorf("listing Machines: %w", err)
	}
	nodes := &corev1.NodeList{}
	if err := r.Guest.List(ctx, nodes); err != nil {
		return facts{}, fmt.Errorf("listing Nodes: %w", err)
	}
	return facts{machines: machines.Items, nodes: nodes.Items}, nil
}

func (r *Reconciler) approve(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	csr = csr.DeepCopy()
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
		Reason: "MachineVouches", Message: "A Machine of this cluster has the names and addresses of the request",
		LastUpdateTime: metav1.Now(),
	})
	if err := r.Guest.SubResource("approval").Update(ctx, csr); err != nil {
		return fmt.Errorf("approving CertificateSigningRequest %s: %w", csr.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Approved", "requester", csr.Spec.Username, "signer", csr.Spec.SignerName)
	return nil
}
