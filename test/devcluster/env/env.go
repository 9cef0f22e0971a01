// SPDX-License-Identifier: Apache-2.0

// Package env defines the files, names and addresses of the embedded environment. Other parts depend on every name here
// (see docs/architecture.md), so it is defined once.
package env

import (
	"os"
	"path/filepath"
)

// Addresses of the environment. All except Host belong to the management machine.
const (
	// Namespace is the name of the management machine and of its network namespace.
	Namespace = "hs-mgmt"
	// Bridge connects the machines; it is in Namespace.
	Bridge = "hsbr0"
	// HostLink is the only interface that the environment adds to the host.
	HostLink = "hs-host0"
	// HostLinkPeer is the other end of HostLink, connected to Bridge.
	HostLinkPeer = "hs-host1"
	// Network is the network of the machines.
	Network = "172.30.240.0/24"
	// Gateway is the address of the management machine.
	Gateway = "172.30.240.1"
	// Host is the host's own address.
	Host = "172.30.240.254"
	// PodNetwork and ServiceNetwork are the networks of the management cluster.
	PodNetwork, ServiceNetwork = "10.200.0.0/16", "10.201.0.0/16"
	// APIServiceIP and DNSServiceIP are the addresses of the Services "kubernetes" and "kube-dns".
	APIServiceIP, DNSServiceIP = "10.201.0.1", "10.201.0.10"
	// ClusterDomain is the DNS domain of the management cluster.
	ClusterDomain = "cluster.local"
	// APIPort is the port of the management kube-apiserver.
	APIPort = 6443
	// APIURL is the URL of the management kube-apiserver.
	APIURL = "https://" + Gateway + ":6443"
	// Registry is the host and port of the image registry.
	Registry = Gateway + ":5000"
	// S3 is the host and port of the object store; Bucket is its initial bucket.
	S3, Bucket = Gateway + ":9000", "backups"
	// MAASListen and MAASAdmin are the addresses of the MAAS simulator's API and of its admin interface.
	MAASListen, MAASAdmin = Gateway + ":5240", Gateway + ":5241"
	// MAASURL is the endpoint of the simulated MAAS that a user passes.
	MAASURL = "http://" + MAASListen + "/MAAS"
)

// DefaultDir is the folder of the environment if neither the flag nor DirVariable sets one.
const DefaultDir = "/var/lib/hypershift-maas"

// DirVariable is the environment variable that overrides DefaultDir.
const DirVariable = "HYPERSHIFT_DEV_DIR"

// Env is one embedded environment.
type Env struct {
	// Dir is the absolute path of the folder with everything that the environment writes.
	Dir string
	// Bin is the absolute path of the folder with the built programs and images.
	Bin string
}

// New makes both paths absolute. An empty dir means DirVariable or DefaultDir; an empty bin means the folder of the
// running program.
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

// Kubeconfig returns the administrator's kubeconfig of the management cluster.
func (e Env) Kubeconfig() string { return filepath.Join(e.Dir, "kubeconfig") }

// Management returns the folder of the management machine.
func (e Env) Management() string { return filepath.Join(e.Dir, "management") }

// Machines returns the folder of the machines that MAAS boots.
func (e Env) Machines() string { return filepath.Join(e.Dir, "machines") }

// MAAS returns the folder of the MAAS simulator's state.
func (e Env) MAAS() string { return filepath.Join(e.Dir, "maas") }

// RegistryDir returns the folder of the registry's blobs, manifests and certificates.
func (e Env) RegistryDir() string { return filepath.Join(e.Dir, "registry") }

// RegistryCA returns the CA certificate that clients of the registry must trust.
func (e Env) RegistryCA() string { return filepath.Join(e.RegistryDir(), "ca.crt") }

// StoreDir returns the folder of the object store's data, and of what its users need: StoreCA and StoreCredentials.
func (e Env) StoreDir() string { return filepath.Join(e.Dir, "s3") }

// StoreCA returns the CA certificate that users of the object store must trust.
func (e Env) StoreCA() string { return filepath.Join(e.StoreDir(), "ca.crt") }

// StoreCredentials returns the AWS credentials file of the object store's user.
func (e Env) StoreCredentials() string { return filepath.Join(e.StoreDir(), "credentials") }

// Images returns the OCI layout of the built images.
func (e Env) Images() string { return filepath.Join(e.Bin, "images", "oci") }

// Program returns the path of one of our programs, such as "maas-simulator".
func (e Env) Program(name string) string { return filepath.Join(e.Bin, name) }
