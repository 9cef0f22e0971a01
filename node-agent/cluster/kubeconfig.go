// SPDX-License-Identifier: Apache-2.0

// Package cluster is the guest as the kubelet of this machine may see it: its own Node, by the kubelet's own certificate.
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

// Kubeconfig is the kubelet's own. It is there when the machine has joined.
const Kubeconfig = "/var/lib/kubelet/kubeconfig"

// kubeconfig is what the kubelet writes into its kubeconfig.
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
	// What it holds is not repeated: it may have keys.
	if err := yaml.Unmarshal(raw, k); err != nil || len(k.Clusters) != 1 || len(k.Users) != 1 {
		return nil, errors.New(Kubeconfig + " is not as the kubelet writes it, with one cluster and one user")
	}
	return k, nil
}

// TLS shows the certificate that the kubelet has now to a server of this CA. The kubelet renews it every few days.
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

// Server is the URL of the API server that the kubelet goes by when it starts.
func Server(h *host.Host) (string, error) {
	k, err := readKubeconfig(h)
	if err != nil {
		return "", err
	}
	return k.Clusters[0].Cluster.Server, nil
}

// SetServer changes that, and nothing else.
func SetServer(h *host.Host, url string) error {
	raw, err := h.Read(Kubeconfig)
	if err != nil {
		return err
	}
	var all map[string]any
	problem := errors.New(Kubeconfig + " is not as the kubelet writes it") // What it holds is not repeated: it may have keys.
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

// connect makes a client of the guest's API, and says where that is.
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
