// SPDX-License-Identifier: Apache-2.0

// Package env says where the embedded environment keeps its files and which names and addresses it uses. Every name here
// is at the edge to another part (see docs/architecture.md), so it is written down once.
package env

import (
	"os"
	"path/filepath"
)

// Addresses of the environment. All but Host are those of the management machine.
const (
	// Namespace is the network namespace and the name of the management machine.
	Namespace = "hs-mgmt"
	// Bridge connects the machines; it is in Namespace.
	Bridge = "hsbr0"
	// HostLink is the host's only interface of the environment.
	HostLink = "hs-host0"
	// HostLinkPeer is the other end of HostLink, plugged into Bridge.
	HostLinkPeer = "hs-host1"
	// Network is where the machines live.
	Network = "172.30.240.0/24"
	// Gateway is the management machine.
	Gateway = "172.30.240.1"
	// Host is the host's own address.
	Host = "172.30.240.254"
	// PodNetwork and ServiceNetwork are those of the management cluster.
	PodNetwork, ServiceNetwork = "10.200.0.0/16", "10.201.0.0/16"
	// APIServiceIP and DNSServiceIP are the Services "kubernetes" and "kube-dns".
	APIServiceIP, DNSServiceIP = "10.201.0.1", "10.201.0.10"
	// ClusterDomain is the DNS domain of the management cluster.
	ClusterDomain = "cluster.local"
	// APIPort is the management kube-apiserver's.
	APIPort = 6443
	// APIURL is the management kube-apiserver.
	APIURL = "https://" + Gateway + ":6443"
	// Registry is the host and port of the image registry.
	Registry = Gateway + ":5000"
	// S3 is the host and port of the object store, and Bucket what is in it from the beginning.
	S3, Bucket = Gateway + ":9000", "backups"
	// MAASListen and MAASAdmin are where the MAAS simulator serves its API and its levers.
	MAASListen, MAASAdmin = Gateway + ":5240", Gateway + ":5241"
	// MAASURL is what a user gives as the endpoint of the simulated MAAS.
	MAASURL = "http://" + MAASListen + "/MAAS"
)

// DefaultDir is where the environment lives if neither flag nor DirVariable says otherwise.
const DefaultDir = "/var/lib/hypershift-maas"

// DirVariable is the environment variable that names another folder than DefaultDir.
const DirVariable = "HYPERSHIFT_DEV_DIR"

// Env is one embedded environment.
type Env struct {
	// Dir is the folder that holds all that the environment writes. Absolute.
	Dir string
	// Bin is the folder of the built programs and images. Absolute.
	Bin string
}

// New makes both paths absolute; an empty dir means DirVariable or DefaultDir, an empty bin the folder of the running
// program.
func New(dir, bin string) (Env, error) {
	if dir == "" {
		dir = os.Getenv(DirVariable)
	}
	if dir == "" {
		dir = DefaultDir
	}
	if bin == "" {
		self, err := os.Executable()
		if err != nil {
			return Env{}, err
		}
		bin = filepath.Dir(self)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Env{}, err
	}
	bin, err = filepath.Abs(bin)
	return Env{Dir: dir, Bin: bin}, err
}

// Kubeconfig is the administrator's kubeconfig of the management cluster.
func (e Env) Kubeconfig() string { return filepath.Join(e.Dir, "kubeconfig") }

// Management is the folder of the management machine.
func (e Env) Management() string { return filepath.Join(e.Dir, "management") }

// Machines is the folder of the machines that MAAS boots.
func (e Env) Machines() string { return filepath.Join(e.Dir, "machines") }

// MAAS is the folder of the MAAS simulator's state.
func (e Env) MAAS() string { return filepath.Join(e.Dir, "maas") }

// RegistryDir holds the registry's blobs, manifests and certificates.
func (e Env) RegistryDir() string { return filepath.Join(e.Dir, "registry") }

// RegistryCA is the CA certificate that whoever pulls or pushes must trust.
func (e Env) RegistryCA() string { return filepath.Join(e.RegistryDir(), "ca.crt") }

// StoreDir holds what the object store keeps, and what its users need: StoreCA and StoreCredentials.
func (e Env) StoreDir() string { return filepath.Join(e.Dir, "s3") }

// StoreCA is the CA certificate that users of the object store must trust.
func (e Env) StoreCA() string { return filepath.Join(e.StoreDir(), "ca.crt") }

// StoreCredentials is the AWS credentials file of the object store's user.
func (e Env) StoreCredentials() string { return filepath.Join(e.StoreDir(), "credentials") }

// Images is the OCI layout of the built images.
func (e Env) Images() string { return filepath.Join(e.Bin, "images", "oci") }

// Program is a program of ours, such as "maas-simulator".
func (e Env) Program(name string) string { return filepath.Join(e.Bin, name) }
