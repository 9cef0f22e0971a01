// Package csrapproval approves the certificates that kubelets ask for, when the Machine behind a node vouches for it.
//
// A machine holds no secret of its own before it has a certificate: every machine of a cluster boots with the same
// bootstrap credentials. So what a request claims is held against what Cluster API knows of its machines.
package csrapproval

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
)

const (
	nodeUserPrefix = "system:node:"
	nodeGroup      = "system:nodes"
)

// facts are what a request is held against.
type facts struct {
	machines []clusterv1.Machine
	nodes    []corev1.Node
}

// errWait marks requests that may become right: the Machine's addresses or the Node may not be known yet.
var errWait = errors.New("waiting")

// relevant tells whether a request is one that kubelets make and that nobody has decided.
func relevant(csr *certificatesv1.CertificateSigningRequest) bool {
	kubelet := csr.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName ||
		csr.Spec.SignerName == certificatesv1.KubeletServingSignerName
	return kubelet && len(csr.Status.Conditions) == 0 && len(csr.Status.Certificate) == 0
}

// authorize returns nil when the request is to be approved, and else the reason why not. It never asks for a denial: a
// request that nobody approves expires, and its node asks again.
func authorize(csr *certificatesv1.CertificateSigningRequest, f facts) error {
	request, err := parse(csr.Spec.Request)
	if err != nil {
		return err
	}
	name, isNode := strings.CutPrefix(request.Subject.CommonName, nodeUserPrefix)
	if !isNode || name == "" {
		return fmt.Errorf("the common name %q is not that of a node", request.Subject.CommonName)
	}
	if !slices.Equal(request.Subject.Organization, []string{nodeGroup}) {
		return fmt.Errorf("the organizations are %v, those of a node are [%s]", request.Subject.Organization, nodeGroup)
	}
	if csr.Spec.SignerName == certificatesv1.KubeletServingSignerName {
		return authorizeServing(csr, request, name, f)
	}
	return authorizeClient(csr, request, name, f)
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

// authorizeClient approves a node's first certificate when a Machine of that name has no node yet. Renewals are approved by
// the kube-controller-manager.
func authorizeClient(csr *certificatesv1.CertificateSigningRequest, request *x509.CertificateRequest, name string, f facts) error {
	bootstrapper := csr.Spec.Username == pki.NodeBootstrapper || slices.Contains(csr.Spec.Groups, pki.BootstrapGroup)
	if !bootstrapper {
		return fmt.Errorf("the requester %q may not ask for a node's first certificate", csr.Spec.Username)
	}
	if err := onlyUsages(csr, certificatesv1.UsageClientAuth); err != nil {
		return err
	}
	if len(request.DNSNames)+len(request.IPAddresses)+len(request.EmailAddresses)+len(request.URIs) > 0 {
		return errors.New("a client certificate has no alternative names")
	}
	if slices.ContainsFunc(f.nodes, func(n corev1.Node) bool { return n.Name == name }) {
		return fmt.Errorf("%w: node %s exists and renews its certificate with the one it has", errWait, name)
	}
	machine, err := machineNamed(name, f.machines)
	if err != nil {
		return err
	}
	if bound := machine.Status.NodeRef.Name; bound != "" && bound != name {
		return fmt.Errorf("machine %s is node %s already", machine.Name, bound)
	}
	return nil
}

// authorizeServing approves a node's serving certificate when all names in it are names of its Machine.
func authorizeServing(csr *certificatesv1.CertificateSigningRequest, request *x509.CertificateRequest, name string, f facts) error {
	if csr.Spec.Username != nodeUserPrefix+name || !slices.Contains(csr.Spec.Groups, nodeGroup) {
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
	machine, err := machineOf(name, f.machines)
	if err != nil {
		return err
	}
	return onlyNamesOf(machine, name, request)
}

func onlyNamesOf(machine *clusterv1.Machine, node string, request *x509.CertificateRequest) error {
	for _, dns := range request.DNSNames {
		if !strings.EqualFold(dns, node) && !hasName(machine, dns) {
			return fmt.Errorf("%w: DNS name %q is none of machine %s", errWait, dns, machine.Name)
		}
	}
	for _, ip := range request.IPAddresses {
		if !hasAddress(machine, ip) {
			return fmt.Errorf("%w: address %s is none of machine %s", errWait, ip, machine.Name)
		}
	}
	return nil
}

// onlyUsages wants the one extended usage and none that the signer would not sign.
func onlyUsages(csr *certificatesv1.CertificateSigningRequest, wanted certificatesv1.KeyUsage) error {
	if !slices.Contains(csr.Spec.Usages, wanted) {
		return fmt.Errorf("usage %q is missing", wanted)
	}
	allowed := []certificatesv1.KeyUsage{wanted, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment}
	for _, usage := range csr.Spec.Usages {
		if !slices.Contains(allowed, usage) {
			return fmt.Errorf("usage %q is not one of a node", usage)
		}
	}
	return nil
}

// machineOf finds the Machine of a node that may be registered already.
func machineOf(node string, machines []clusterv1.Machine) (*clusterv1.Machine, error) {
	for i := range machines {
		if machines[i].Status.NodeRef.Name == node {
			return &machines[i], nil
		}
	}
	return machineNamed(node, machines)
}

// machineNamed finds the one Machine that has a name as an address and is not going away.
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
