// SPDX-License-Identifier: Apache-2.0

// Package revocation revokes a kubelet's certificates when its Machine is gone. A later Machine on the same hardware
// gets the same Node name. Certificates for that name would still grant permissions.
// An API server does not support revocation, but it reports the certificate of each request. The package therefore
// keeps a record of each Machine in a ConfigMap that no node can write. The record lists the certificates that were
// issued to the Machine's node. An admission policy rejects requests with a certificate of a Machine that is gone.
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
	// stateLabel is the label of each record with its state; the policy selects the revoked records.
	stateLabel = hyperv1.NodeCredentialsLabel
	held       = "held"
	// leaving is the state while the Machine is being deleted. The node needs its certificates until it is drained.
	leaving = "leaving"
	revoked = "revoked"

	// namePrefix is the prefix of a record's name, before the Machine's name.
	namePrefix = "node-credentials-"
	// nodeKey holds the node's name. The other keys are SHA-256 digests of certificates, with the expiry time of each.
	nodeKey = "node"

	// heirAnnotation is on a record that was restored with a snapshot of etcd. It holds the control plane (UID) and the
	// Machine that the record was assigned to, as UID/NAME.
	heirAnnotation = "hypershift.openshift.io/taken-over-by"

	nodeUserPrefix = "system:node:"
	// resync is the interval at which expired certificates are removed from records.
	resync = time.Hour
)

// Reconciler manages the records.
type Reconciler struct {
	// Guest reads CertificateSigningRequests, and manages the records in kube-system. Its cache must contain the objects
	// with component.GuestLabel.
	Guest client.Client
	// Management reads Machines and the HostedControlPlane.
	Management client.Client
	Clock      clock.PassiveClock
}

// SetupWithManager watches the certificates that are issued, the Machines that are deleted, and the records. hcp names
// the HostedControlPlane.
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

// record is the data to store about a Machine.
type record struct {
	node string
	// certificates are the certificates in the observed requests: the digest, and the expiry time of each.
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

// records returns the existing records, and records for recently issued certificates. The requests of certificates
// stay for an hour.
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

// Digest returns the API server's identifier of a certificate, in the user's extra
// authentication.kubernetes.io/credential-id.
func Digest(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// issuedTo returns the certificate that a request was issued to a node; nil if there is none.
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

// holder returns the Machine that a node's certificate was issued to; empty if there is none. A Machine that was
// created after the request does not count: it is a later Machine with the same name.
func holder(csr *certificatesv1.CertificateSigningRequest, node string, machines []clusterv1.Machine) string {
	machine, err := csrapproval.MachineOf(node, machines)
	if err != nil || csr.CreationTimestamp.Before(&machine.CreationTimestamp) {
		return ""
	}
	return machine.Name
}

// write updates a Machine's record, and deletes it when all of its certificates have expired.
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

// shape adds the observed certificates, and drops those that have expired.
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

// heir returns the Machine that determines the state of a record. A record that is older than its control plane was
// restored with a snapshot of etcd, like the node. Its Machine belonged to the lost management cluster. The first
// Machine with the node's name adopted the running machine, including its certificates. It stays the successor even
// after its deletion, so that no later Machine with that name becomes the successor.
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

// stateOf computes the state of a record from the current Machines. A missing Machine proves little: a management
// cluster that is being restored has no Machines at first, while all nodes run. A Machine therefore counts as gone if
// it was seen being deleted, or if a new Machine has its node's name.
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
