// SPDX-License-Identifier: Apache-2.0

// Package revocation takes a kubelet's certificates away when its Machine is gone. Another Machine that gets the same hardware gets the same
// name for its Node, and with that what certificates of the name may do.
//
// An API server knows no revoked certificates, but it says by which one somebody comes. So a record of each Machine, in a ConfigMap that no
// node can write, lists the certificates that its node was issued, and an admission policy refuses who comes by those of a Machine that is gone.
package revocation

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/csrapproval"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/watch"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	// stateLabel is on each record; the policy looks for those that are revoked.
	stateLabel = hyperv1.NodeCredentialsLabel
	held       = "held"
	// leaving is the state while the Machine is being deleted. The node needs its certificates until it is drained.
	leaving = "leaving"
	revoked = "revoked"

	// namePrefix is before the Machine's name in the name of its record.
	namePrefix = "node-credentials-"
	// nodeKey holds the node's name. The other keys are SHA-256 digests of certificates, with the time until which each is good.
	nodeKey = "node"

	// heirAnnotation of a record that came back with a snapshot of etcd says for which control plane (UID) it was given to which Machine, as UID/NAME.
	heirAnnotation = "hypershift.openshift.io/taken-over-by"

	nodeUserPrefix = "system:node:"
	// resync is how often records are looked through for certificates that have expired.
	resync = time.Hour
)

// Reconciler keeps the records.
type Reconciler struct {
	// Guest reads CertificateSigningRequests, and keeps the records in kube-system. Its cache must hold what carries component.GuestLabel.
	Guest client.Client
	// Management reads Machines and the HostedControlPlane.
	Management client.Client
	Clock      clock.PassiveClock
}

// SetupWithManager watches the certificates that are issued, the Machines that go, and the records. hcp names the HostedControlPlane.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, management cache.Cache, hcp client.ObjectKey) error {
	issued := predicate.NewPredicateFuncs(func(obj client.Object) bool {
		csr, ok := obj.(*certificatesv1.CertificateSigningRequest)
		return ok && len(csr.Status.Certificate) > 0
	})
	records := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetLabels()[stateLabel] != "" })
	return ctrl.NewControllerManagedBy(mgr).Named("revocation").
		WatchesRawSource(watch.ControlPlane(management)).
		Watches(&certificatesv1.CertificateSigningRequest{}, watch.One(hcp), builder.WithPredicates(issued)).
		Watches(&corev1.ConfigMap{}, watch.One(hcp), builder.WithPredicates(records)).
		WatchesRawSource(source.Kind(management, &clusterv1.Machine{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(context.Context, *clusterv1.Machine) []reconcile.Request {
				return []reconcile.Request{{NamespacedName: hcp}}
			}))).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler. The request names the HostedControlPlane.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	type controlPlane = *hyperv1.HostedControlPlane
	return phase.Driver[controlPlane, controlPlane]{
		Client: r.Management, Observe: phase.Itself[controlPlane],
		Pause: func(_ context.Context, hcp controlPlane) (pause.State, error) {
			return pause.Until(hcp.Spec.PausedUntil, r.Clock.Now()), nil
		},
		Phases: func(controlPlane) []phase.Phase[controlPlane] {
			return []phase.Phase[controlPlane]{{Name: "certificates of nodes", Run: r.keep}}
		},
		Resync: func(controlPlane) time.Duration { return resync },
	}.Reconcile(ctx, req)
}

// record is what is to be remembered of a Machine.
type record struct {
	node string
	// certificates are those that were seen now: the digest, and until when each is good.
	certificates map[string]string
}

func (r *Reconciler) keep(ctx context.Context, hcp *hyperv1.HostedControlPlane) (ctrl.Result, error) {
	machines := &clusterv1.MachineList{}
	if err := r.Management.List(ctx, machines, client.InNamespace(hcp.Namespace)); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing Machines: %w", err)
	}
	records, err := r.records(ctx, machines.Items)
	if err != nil {
		return ctrl.Result{}, err
	}
	for machine, seen := range records {
		if err := r.write(ctx, hcp, machine, seen, machines.Items); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

// records are those that there are, and those of the certificates that were issued of late: requests stay for an hour.
func (r *Reconciler) records(ctx context.Context, machines []clusterv1.Machine) (map[string]record, error) {
	kept, requests := &corev1.ConfigMapList{}, &certificatesv1.CertificateSigningRequestList{}
	if err := r.Guest.List(ctx, kept, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{stateLabel}); err != nil {
		return nil, fmt.Errorf("listing the records of certificates: %w", err)
	}
	if err := r.Guest.List(ctx, requests); err != nil {
		return nil, fmt.Errorf("listing CertificateSigningRequests: %w", err)
	}
	records, recorded := map[string]record{}, map[string]bool{}
	for _, cm := range kept.Items {
		records[strings.TrimPrefix(cm.Name, namePrefix)] = record{node: cm.Data[nodeKey], certificates: map[string]string{}}
		for digest := range cm.Data {
			recorded[digest] = true
		}
	}
	for i := range requests.Items {
		csr := &requests.Items[i]
		certificate := issuedTo(csr)
		if certificate == nil || r.Clock.Now().After(certificate.NotAfter) || recorded[Digest(certificate.Raw)] {
			continue
		}
		node := strings.TrimPrefix(certificate.Subject.CommonName, nodeUserPrefix)
		machine := holder(csr, node, machines)
		if machine == "" {
			continue
		}
		if _, known := records[machine]; !known {
			records[machine] = record{node: node, certificates: map[string]string{}}
		}
		records[machine].certificates[Digest(certificate.Raw)] = certificate.NotAfter.UTC().Format(time.RFC3339)
	}
	return records, nil
}

// Digest is how the API server names a certificate, in the user's extra authentication.kubernetes.io/credential-id.
func Digest(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// issuedTo is the certificate that a node got by a request; nil for none.
func issuedTo(csr *certificatesv1.CertificateSigningRequest) *x509.Certificate {
	if csr.Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName {
		return nil
	}
	block, _ := pem.Decode(csr.Status.Certificate)
	if block == nil {
		return nil
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil || !strings.HasPrefix(certificate.Subject.CommonName, nodeUserPrefix) {
		return nil
	}
	return certificate
}

// holder is the Machine that a node's certificate was issued to; empty for none. One that was made after the request is the next to get the
// name.
func holder(csr *certificatesv1.CertificateSigningRequest, node string, machines []clusterv1.Machine) string {
	machine, err := csrapproval.MachineOf(node, machines)
	if err != nil || csr.CreationTimestamp.Before(&machine.CreationTimestamp) {
		return ""
	}
	return machine.Name
}

// write brings a Machine's record to what is known, and deletes it when all of its certificates have expired.
func (r *Reconciler) write(ctx context.Context, hcp *hyperv1.HostedControlPlane, machine string, seen record, machines []clusterv1.Machine) error {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: namePrefix + machine}}
	before := ""
	_, err := upsert.Object(ctx, r.Guest, cm, func() error {
		before = cm.Labels[stateLabel]
		r.shape(cm, seen)
		cm.Labels[stateLabel] = stateOf(heir(hcp, machine, cm, machines), cm, machines)
		return nil
	})
	if err != nil {
		return err
	}
	if len(cm.Data) == 1 {
		_, err := upsert.Gone(ctx, r.Guest, cm)
		return err
	}
	if now := cm.Labels[stateLabel]; now != before && now == revoked {
		ctrl.LoggerFrom(ctx).Info("Revoked the certificates of a node whose Machine is gone", "machine", machine, "node", seen.node)
	}
	return nil
}

// shape adds the certificates that were seen, and drops those that have expired.
func (r *Reconciler) shape(cm *corev1.ConfigMap, seen record) {
	if cm.Labels == nil {
		cm.Labels = map[string]string{}
	}
	cm.Labels[component.GuestLabel] = "true"
	if cm.Data == nil {
		cm.Data = map[string]string{}
	}
	cm.Data[nodeKey] = seen.node
	for digest, until := range seen.certificates {
		cm.Data[digest] = until
	}
	for digest, until := range cm.Data {
		ends, err := time.Parse(time.RFC3339, until)
		if digest != nodeKey && (err != nil || r.Clock.Now().After(ends)) {
			delete(cm.Data, digest)
		}
	}
}

// heir is the Machine by which a record goes. One that is older than its control plane came back with a snapshot of etcd, and so did the node, while
// its Machine is one of the lost management cluster: the first Machine that has the node's name took the machine over as it runs, certificates too.
// It stays the heir when it goes, so that nobody who gets the name after it does.
func heir(hcp *hyperv1.HostedControlPlane, machine string, cm *corev1.ConfigMap, machines []clusterv1.Machine) string {
	mark := string(hcp.UID) + "/"
	if name, ok := strings.CutPrefix(cm.Annotations[heirAnnotation], mark); ok {
		return name
	}
	restored := !cm.CreationTimestamp.IsZero() && cm.CreationTimestamp.Before(&hcp.CreationTimestamp)
	named := slices.ContainsFunc(machines, func(m clusterv1.Machine) bool { return m.Name == machine })
	next, err := csrapproval.MachineOf(cm.Data[nodeKey], machines)
	if !restored || named || err != nil || cm.Labels[stateLabel] == revoked {
		return machine
	}
	metav1.SetMetaDataAnnotation(&cm.ObjectMeta, heirAnnotation, mark+next.Name)
	return next.Name
}

// stateOf decides by the Machines that there are. That one is not among them proves little: a management cluster that is being restored has none
// at first, while all nodes run. So it counts as gone when it was seen being deleted, or another one has its node's name by now.
func stateOf(machine string, cm *corev1.ConfigMap, machines []clusterv1.Machine) string {
	for i := range machines {
		if machines[i].Name != machine {
			continue
		}
		if machines[i].DeletionTimestamp != nil {
			return leaving
		}
		return held
	}
	known := cm.Labels[stateLabel]
	if _, err := csrapproval.MachineOf(cm.Data[nodeKey], machines); err == nil || known == leaving || known == revoked {
		return revoked
	}
	return held
}
