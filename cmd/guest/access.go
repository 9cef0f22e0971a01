// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"errors"
	"fmt"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// maxSize is the largest kubeconfig that is read, in bytes. A Secret holds no more.
const maxSize = 1 << 20

// errNone reports content that is no kubeconfig. Errors about a kubeconfig repeat nothing of its content.
var errNone = errors.New("it holds no kubeconfig with a current context")

// Access is the current context of a kubeconfig as data: where an API server is, and as whom to call it.
type Access struct {
	// server is a URL of https, and serverName the name in its certificate; empty means the host of server.
	server, serverName string
	// ca, certificate and key are PEM.
	ca, certificate, key []byte
	token                string
	// Namespace is the default namespace.
	Namespace string
}

// Parse reads a kubeconfig. A field that names a program, a file or another user is refused, also in a context that is not the
// current one.
func Parse(raw []byte) (*Access, error) {
	if len(raw) > maxSize {
		return nil, fmt.Errorf("it is larger than %d bytes", maxSize)
	}
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, errNone
	}
	for _, user := range config.AuthInfos {
		if err := checkUser(user); err != nil {
			return nil, err
		}
	}
	for _, cluster := range config.Clusters {
		if err := checkCluster(cluster); err != nil {
			return nil, err
		}
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.Clusters[current.Cluster] == nil || config.AuthInfos[current.AuthInfo] == nil {
		return nil, errNone
	}
	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	access := &Access{
		server: cluster.Server, serverName: cluster.TLSServerName, ca: cluster.CertificateAuthorityData,
		certificate: user.ClientCertificateData, key: user.ClientKeyData, token: user.Token, Namespace: current.Namespace,
	}
	if _, err := rest.TLSConfigFor(access.Config()); err != nil {
		return nil, errors.New("its certificates or its key cannot be read")
	}
	return access, nil
}

// Config returns a client configuration.
func (a *Access) Config() *rest.Config {
	return &rest.Config{Host: a.server, BearerToken: a.token, TLSClientConfig: rest.TLSClientConfig{
		ServerName: a.serverName, CAData: a.ca, CertData: a.certificate, KeyData: a.key,
	}}
}

// Cluster returns the cluster of a kubeconfig.
func (a *Access) Cluster() *clientcmdapi.Cluster {
	return &clientcmdapi.Cluster{Server: a.server, TLSServerName: a.serverName, CertificateAuthorityData: a.ca}
}

// User returns the user of a kubeconfig.
func (a *Access) User() *clientcmdapi.AuthInfo {
	return &clientcmdapi.AuthInfo{ClientCertificateData: a.certificate, ClientKeyData: a.key, Token: a.token}
}

func refused(field, reason string) error { return fmt.Errorf("%s %s", field, reason) }

func checkUser(user *clientcmdapi.AuthInfo) error {
	switch {
	case user == nil:
		return nil
	case user.Exec != nil:
		return refused("users[].user.exec", "runs a program")
	case user.AuthProvider != nil:
		return refused("users[].user.auth-provider", "is no longer part of Kubernetes")
	case user.TokenFile != "":
		return refused("users[].user.tokenFile", "names a file")
	case user.ClientCertificate != "":
		return refused("users[].user.client-certificate", "names a file")
	case user.ClientKey != "":
		return refused("users[].user.client-key", "names a file")
	case user.Username != "" || user.Password != "":
		return refused("users[].user.username", "is no longer part of Kubernetes")
	case user.Impersonate != "" || user.ImpersonateUID != "" || len(user.ImpersonateGroups)+len(user.ImpersonateUserExtra) > 0:
		return refused("users[].user.as", "acts as another user")
	}
	return nil
}

func checkCluster(cluster *clientcmdapi.Cluster) error {
	if cluster == nil {
		return nil
	}
	server, err := url.Parse(cluster.Server)
	switch {
	case cluster.CertificateAuthority != "":
		return refused("clusters[].cluster.certificate-authority", "names a file")
	case cluster.InsecureSkipTLSVerify:
		return refused("clusters[].cluster.insecure-skip-tls-verify", "accepts any server")
	case cluster.ProxyURL != "":
		return refused("clusters[].cluster.proxy-url", "is not followed; set the proxy in the environment")
	case err != nil || server.Scheme != "https" || server.Hostname() == "" || server.User != nil || server.RawQuery != "":
		return refused("clusters[].cluster.server", "must be a URL of https:// with a host, and without user and query")
	}
	return nil
}
