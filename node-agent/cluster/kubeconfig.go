// SPDX-License-Identifier: Apache-2.0

// Package cluster accesses the guest cluster with the kubelet's certificate. It may only access the Node of this
// machine.
package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/node-agent/host"
)

// Kubeconfig is the kubeconfig of the kubelet. It exists once the machine has joined.
const Kubeconfig = "/var/lib/kubelet/kubeconfig"

// kubeconfig holds the fields of the kubelet's kubeconfig that this package reads.
type kubeconfig struct {
	Clusters []struct {
		Cluster struct {
			Server string `json:"server"`
			CA     []byte `json:"certificate-authority-data"`
			CAFile string `json:"certificate-authority"`
		} `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		User struct {
			Certificate string `json:"client-certificate"`
			Key         string `json:"client-key"`
		} `json:"user"`
	} `json:"users"`
}

func readKubeconfig(h *host.Host) (*kubeconfig, error) {
	raw, err := h.Read(Kubeconfig)
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return nil, errors.New("this machine has not joined its cluster yet: there is no " + Kubeconfig)
	}
	k := &kubeconfig{}
	// The error does not quote the content, which may include keys.
	if err := yaml.Unmarshal(raw, k); err != nil || len(k.Clusters) != 1 || len(k.Users) != 1 {
		return nil, errors.New(Kubeconfig + " is not as the kubelet writes it, with one cluster and one user")
	}
	return k, nil
}

// TLS returns a configuration with the given server CA and the current certificate of the kubelet. It reads the
// certificate for each handshake, since the kubelet renews it every few days.
func TLS(h *host.Host, ca []byte) (*tls.Config, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("the CA of the server holds no certificate")
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: roots,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			k, err := readKubeconfig(h)
			if err != nil {
				return nil, err
			}
			user := k.Users[0].User
			pair, err := tls.LoadX509KeyPair(h.Path(user.Certificate), h.Path(user.Key))
			if err != nil {
				return nil, fmt.Errorf("reading the kubelet's certificate: %w", err)
			}
			return &pair, nil
		},
	}, nil
}

// Server returns the URL of the API server that the kubelet uses after its next start.
func Server(h *host.Host) (string, error) {
	k, err := readKubeconfig(h)
	if err != nil {
		return "", err
	}
	return k.Clusters[0].Cluster.Server, nil
}

// SetServer changes the URL of the API server in the kubeconfig, and nothing else.
func SetServer(h *host.Host, url string) error {
	raw, err := h.Read(Kubeconfig)
	if err != nil {
		return err
	}
	var all map[string]any
	// The error does not quote the content, which may include keys.
	problem := errors.New(Kubeconfig + " is not as the kubelet writes it")
	if err := yaml.Unmarshal(raw, &all); err != nil {
		return problem
	}
	clusters, _ := all["clusters"].([]any)
	if len(clusters) != 1 {
		return problem
	}
	named, _ := clusters[0].(map[string]any)
	cluster, _ := named["cluster"].(map[string]any)
	if cluster == nil {
		return problem
	}
	if cluster["server"] == url {
		return nil
	}
	cluster["server"] = url
	if raw, err = yaml.Marshal(all); err != nil {
		return problem
	}
	_, err = h.Write(Kubeconfig, raw, 0o600)
	return err
}

// connect returns a client for the API of the guest cluster, and its URL.
func connect(h *host.Host) (*http.Client, string, error) {
	k, err := readKubeconfig(h)
	if err != nil {
		return nil, "", err
	}
	cluster := k.Clusters[0].Cluster
	if cluster.CAFile != "" {
		if cluster.CA, err = os.ReadFile(h.Path(cluster.CAFile)); err != nil {
			return nil, "", fmt.Errorf("reading the CA of the API server: %w", err)
		}
	}
	config, err := TLS(h, cluster.CA)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", Kubeconfig, err)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, MaxIdleConnsPerHost: 1}}, cluster.Server, nil
}
