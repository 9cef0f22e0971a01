// SPDX-License-Identifier: Apache-2.0

// Package csrapproval approves the certificate requests of kubelets when the node's Machine confirms the requested
// identity.
//
// The controller compares a request with what Cluster API knows of its machines. A machine gets one certificate with
// its bootstrap credentials, for one key, which is stored on its Machine. From then on the node renews the certificate
// itself, as long as its Machine exists.
package csrapproval

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	nodeUserPrefix = "system:node:"
	nodeGroup      = "system:nodes"
)

// facts is the information that a request is compared with.
type facts struct {
	machines []clusterv1.Machine
	nodes    []corev1.Node
	// made reports that this cluster creates nodes from Machines, so that a node without a Machine is not legitimate.
	made bool
	// bootstrap describes the requester's bootstrap credentials; nil for a requester without any.
	bootstrap *bootstrapper
}

// bootstrapper describes bootstrap credentials.
type bootstrapper struct {
	// machine is the machine that the credentials were created for, or first used by; empty if neither is known.
	machine string
	// until is the latest creation time of Machines that may use the shared credentials; zero for credentials that are not
	// shared.
	until time.Time
}

// errWait marks requests that may become valid: the Machine's addresses or the Node may not be known yet.
var errWait = errors.New("waiting")

// errTaken marks requests for an identity that another node has: the requester may have stolen the credentials.
var errTaken = errors.New("refused")

// relevant reports whether a CertificateSigningRequest comes from a kubelet and is not decided yet.
func relevant(csr *certificatesv1.CertificateSigningRequest) bool {
	kubelet := csr.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName ||
		csr.Spec.SignerName == certificatesv1.KubeletServingSignerName
	return kubelet && len(csr.Status.Conditions) == 0 && len(csr.Status.Certificate) == 0
}

// claim is a Machine that gets its first certificate. The name and the key of its node are stored before the approval.
type claim struct {
	machine   *clusterv1.Machine
	node, key string
}

// authorize returns nil if the request should be approved, and otherwise the reason why not. The claim must be stored
// before the approval. Only errTaken leads to a denial: any other request that is not approved expires, and its node
// sends another one.
func authorize(csr *certificatesv1.CertificateSigningRequest, f facts) (*claim, error) {
	request, err := parse(csr.Spec.Request)
	if err != nil {
		return nil, err
	}
	name, isNode := strings.CutPrefix(request.Subject.CommonName, nodeUserPrefix)
	if !isNode || name == "" {
		return nil, fmt.Errorf("the common name %q is not that of a node", request.Subject.CommonName)
	}
	if !slices.Equal(request.Subject.Organization, []string{nodeGroup}) {
		return nil, fmt.Errorf("the organizations are %v, those of a node are [%s]", request.Subject.Organization, nodeGroup)
	}
	if csr.Spec.SignerName == certificatesv1.KubeletServingSignerName {
		return nil, authorizeServing(csr, request, name, f)
	}
	if err := clientOnly(csr, request); err != nil {
		return nil, err
	}
	if isItself(csr, name) {
		return nil, authorizeRenewal(name, f)
	}
	return authorizeFirst(csr, request, name, f)
}

// clientOnly requires exactly the properties of a kubelet's client certificate.
func clientOnly(csr *certificatesv1.CertificateSigningRequest, request *x509.CertificateRequest) error {
	if err := onlyUsages(csr, certificatesv1.UsageClientAuth); err != nil {
		return err
	}
	if len(request.DNSNames)+len(request.IPAddresses)+len(request.EmailAddresses)+len(request.URIs) > 0 {
		return errors.New("a client certificate has no alternative names")
	}
	return nil
}

// isItself reports whether the requester is the node itself.
func isItself(csr *certificatesv1.CertificateSigningRequest, name string) bool {
	return csr.Spec.Username == nodeUserPrefix+name && slices.Contains(csr.Spec.Groups, nodeGroup)
}

func parse(raw []byte) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(raw)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, errors.New("the request is not one PEM block of type CERTIFICATE REQUEST")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parsing the request: %w", err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("checking the request's signature: %w", err)
	}
	return request, nil
}

// authorizeServing approves a node's serving certificate if all names in it belong to its Machine.
func authorizeServing(csr *certificatesv1.CertificateSigningRequest, request *x509.CertificateRequest, name string, f facts) error {
	if !isItself(csr, name) {
		return fmt.Errorf("the requester %q is not node %s", csr.Spec.Username, name)
	}
	if err := onlyUsages(csr, certificatesv1.UsageServerAuth); err != nil {
		return err
	}
	if len(request.EmailAddresses)+len(request.URIs) > 0 {
		return errors.New("a serving certificate has DNS names and IP addresses only")
	}
	if len(request.DNSNames)+len(request.IPAddresses) == 0 {
		return errors.New("a serving certificate needs a DNS name or an IP address")
	}
	machine, err := MachineOf(name, f.machines)
	if err != nil {
		return err
	}
	return onlyNamesOf(machine, name, request)
}

func onlyNamesOf(machine *clusterv1.Machine, node string, request *x509.CertificateRequest) error {
	for _, dns := range request.DNSNames {
		if !strings.EqualFold(dns, node) && !hasName(machine, dns) {
			return fmt.Errorf("%w: DNS name %q does not belong to machine %s", errWait, dns, machine.Name)
		}
	}
	for _, ip := range request.IPAddresses {
		if !hasAddress(machine, ip) {
			return fmt.Errorf("%w: address %s does not belong to machine %s", errWait, ip, machine.Name)
		}
	}
	return nil
}

// onlyUsages requires the given extended key usage, and rejects usages that the signer does not sign.
func onlyUsages(csr *certificatesv1.CertificateSigningRequest, wanted certificatesv1.KeyUsage) error {
	if !slices.Contains(csr.Spec.Usages, wanted) {
		return fmt.Errorf("usage %q is missing", wanted)
	}
	allowed := []certificatesv1.KeyUsage{wanted, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment}
	for _, usage := range csr.Spec.Usages {
		if !slices.Contains(allowed, usage) {
			return fmt.Errorf("usage %q is not allowed for a node", usage)
		}
	}
	return nil
}

// MachineOf returns the Machine of a node that may be registered already. A Machine that is being deleted is only found
// by its node.
func MachineOf(node string, machines []clusterv1.Machine) (*clusterv1.Machine, error) {
	for i := range machines {
		if machines[i].Status.NodeRef.Name == node {
			return &machines[i], nil
		}
	}
	return machineNamed(node, machines)
}

// machineNamed returns the one Machine that has the name as an address and is not being deleted.
func machineNamed(name string, machines []clusterv1.Machine) (*clusterv1.Machine, error) {
	var found *clusterv1.Machine
	for i := range machines {
		if machines[i].DeletionTimestamp != nil || !hasName(&machines[i], name) {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("machines %s and %s both have the name %s", found.Name, machines[i].Name, name)
		}
		found = &machines[i]
	}
	if found == nil {
		return nil, fmt.Errorf("%w: no machine has the name %s", errWait, name)
	}
	return found, nil
}

func hasName(machine *clusterv1.Machine, name string) bool {
	names := []clusterv1.MachineAddressType{clusterv1.MachineHostName, clusterv1.MachineInternalDNS, clusterv1.MachineExternalDNS}
	return slices.ContainsFunc(machine.Status.Addresses, func(a clusterv1.MachineAddress) bool {
		return slices.Contains(names, a.Type) && strings.EqualFold(a.Address, name)
	})
}

func hasAddress(machine *clusterv1.Machine, ip net.IP) bool {
	kinds := []clusterv1.MachineAddressType{clusterv1.MachineInternalIP, clusterv1.MachineExternalIP}
	return slices.ContainsFunc(machine.Status.Addresses, func(a clusterv1.MachineAddress) bool {
		return slices.Contains(kinds, a.Type) && ip.Equal(net.ParseIP(a.Address))
	})
}
