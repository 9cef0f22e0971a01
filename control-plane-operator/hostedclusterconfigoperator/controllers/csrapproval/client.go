// SPDX-License-Identifier: Apache-2.0

package csrapproval

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// authorizeFirst approves a node's first certificate if a Machine of that name has no node yet, and no certificate for
// a different key.
func authorizeFirst(csr *certificatesv1.CertificateSigningRequest, request *x509.CertificateRequest, name string, f facts) (*claim, error) {
	if f.bootstrap == nil {
		return nil, fmt.Errorf("the requester %q may not ask for a node's first certificate", csr.Spec.Username)
	}
	machine, err := machineNamed(name, f.machines)
	if err != nil {
		return nil, err
	}
	if err := f.bootstrap.mayBe(machine); err != nil {
		return nil, err
	}
	first := &claim{machine: machine, node: name, key: fingerprint(request)}
	if bound := machine.Status.NodeRef.Name; bound != "" && bound != name {
		return nil, fmt.Errorf("machine %s is node %s already", machine.Name, bound)
	}
	if first.taken() {
		return nil, fmt.Errorf("%w: machine %s has a certificate for another key", errTaken, machine.Name)
	}
	if machine.Status.NodeRef.Name != "" {
		return nil, fmt.Errorf("%w: machine %s is node %s, which renews its certificate with the one it has", errTaken, machine.Name, name)
	}
	if slices.ContainsFunc(f.nodes, func(n corev1.Node) bool { return n.Name == name }) {
		return nil, fmt.Errorf("%w: node %s exists and renews its certificate with the one it has", errWait, name)
	}
	return first, nil
}

// mayBe returns an error if the machine must not use the bootstrap credentials.
func (b *bootstrapper) mayBe(machine *clusterv1.Machine) error {
	if b.machine != "" && b.machine != machine.Name {
		return fmt.Errorf("%w: the bootstrap credentials are those of machine %s, not of machine %s", errTaken, b.machine, machine.Name)
	}
	if !b.until.IsZero() && machine.CreationTimestamp.After(b.until) {
		return fmt.Errorf("%w: machine %s has bootstrap credentials of its own, and does not use those that older machines had in common", errTaken, machine.Name)
	}
	return nil
}

// identity returns the data in the annotation of a Machine about its first certificate. A replacement of the hardware
// changes the node name, and with it the key.
func (c *claim) identity() string { return c.node + " " + c.key }

// taken reports whether the machine already got a certificate for the node's name with a different key.
func (c *claim) taken() bool {
	known := c.machine.Annotations[hyperv1.NodeIdentityAnnotation]
	return known != c.identity() && len(known) > len(c.node) && known[:len(c.node)+1] == c.node+" "
}

// fingerprint identifies a public key.
func fingerprint(request *x509.CertificateRequest) string {
	sum := sha256.Sum256(request.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

// authorizeRenewal approves the next certificate of a node if its Machine exists. In a cluster whose nodes have no
// Machines, it is enough that the Node was not deleted.
func authorizeRenewal(name string, f facts) error {
	if !slices.ContainsFunc(f.nodes, func(n corev1.Node) bool { return n.Name == name }) {
		return fmt.Errorf("node %s is gone", name)
	}
	if !f.made {
		return nil
	}
	if len(f.machines) == 0 {
		return fmt.Errorf("%w: there is no Machine at all, as after a restore", errWait)
	}
	machine, err := MachineOf(name, f.machines)
	if err != nil {
		return err
	}
	if machine.DeletionTimestamp != nil {
		return fmt.Errorf("machine %s of node %s is being deleted", machine.Name, name)
	}
	return nil
}
