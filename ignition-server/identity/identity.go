// SPDX-License-Identifier: Apache-2.0

// Package identity identifies the pool of a requesting machine by the certificate of its kubelet. A Node needs no
// token to fetch its next configuration. Its certificate from the guest is valid until its Machine is deleted.
package identity

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/hosted"
)

const (
	userPrefix = "system:node:"
	group      = "system:nodes"
	bundleKey  = "ca.crt"
)

// ErrNotANode means that the client has no certificate of a node of this cluster.
var ErrNotANode = errors.New("the certificate is not that of a node of this cluster")

// ErrNoMachine means that a node has no Machine, or that its Machine is being deleted.
var ErrNoMachine = errors.New("this node has no Machine, or one that is being deleted")

// Node identifies the client.
type Node struct {
	// Name is the name of the Node, and Machine the name of its Machine.
	Name, Machine string
	// NodePool is <namespace>/<name> of the Machine's pool.
	NodePool string
}

// Nodes identifies the nodes of one hosted cluster.
type Nodes struct {
	// Client reads the CAs of nodes. There are two during a rotation of their signer.
	Client client.Reader
	// Management reads the Machines of Namespace without a cache.
	Management client.Reader
	Namespace  string
	Clock      clock.PassiveClock
}

// Identify returns the Node of a certificate chain. The TLS connection has already proved that the client has the key.
// It returns ErrNotANode, ErrNoMachine, or the error of a failed lookup.
func (n *Nodes) Identify(ctx context.Context, chain []*x509.Certificate) (Node, error) {
	name, err := n.verify(ctx, chain)
	if err != nil {
		return Node{}, err
	}
	machines := &clusterv1.MachineList{}
	if err := n.Management.List(ctx, machines, client.InNamespace(n.Namespace)); err != nil {
		return Node{}, fmt.Errorf("list the Machines of namespace %s: %w", n.Namespace, err)
	}
	at := slices.IndexFunc(machines.Items, func(m clusterv1.Machine) bool {
		return m.Status.NodeRef.Name == name && m.DeletionTimestamp.IsZero() && m.Annotations[hyperv1.NodePoolAnnotation] != ""
	})
	if at < 0 {
		return Node{Name: name}, fmt.Errorf("%w: %s", ErrNoMachine, name)
	}
	return Node{Name: name, Machine: machines.Items[at].Name, NodePool: machines.Items[at].Annotations[hyperv1.NodePoolAnnotation]}, nil
}

// verify returns the Node's name from a certificate of the guest.
func (n *Nodes) verify(ctx context.Context, chain []*x509.Certificate) (string, error) {
	if len(chain) == 0 {
		return "", ErrNotANode
	}
	bundle := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: n.Namespace, Name: hosted.KubeletClientCA}
	if err := hosted.ReadTrusted(ctx, n.Client, key, bundle); err != nil {
		return "", fmt.Errorf("read ConfigMap %s with the CAs of nodes: %w", key, err)
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(bundle.Data[bundleKey])) {
		return "", fmt.Errorf("key %q of ConfigMap %s holds no certificate", bundleKey, key)
	}
	for _, certificate := range chain[1:] {
		between.AddCert(certificate)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: n.Clock.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotANode, err)
	}
	// The same CA also signs certificates of other clients.
	name, ok := strings.CutPrefix(chain[0].Subject.CommonName, userPrefix)
	if !ok || name == "" || !slices.Contains(chain[0].Subject.Organization, group) {
		return "", fmt.Errorf("%w: it is that of %q", ErrNotANode, chain[0].Subject.CommonName)
	}
	return name, nil
}
