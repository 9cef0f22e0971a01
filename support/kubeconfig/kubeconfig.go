// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig loads kubeconfigs from clusters. A kubeconfig can name programs, files and other users. client-go
// uses them with the rights of the program that reads the kubeconfig. This package accepts only a server, its CA, and a
// client certificate or a token as data. It refuses everything else.
package kubeconfig

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// maxSize is the maximum size of a kubeconfig, in bytes. A Secret cannot be larger.
const maxSize = 1 << 20

// ErrNone reports content that is not a kubeconfig. Errors of this package contain nothing of the content.
var ErrNone = errors.New("it holds no kubeconfig with a current context")

// FieldError reports a field that a kubeconfig must not have.
type FieldError struct {
	// Field is the name in the file, such as "users[].user.exec".
	Field string
	// Reason explains why the field is refused, and what to use instead.
	Reason string
}

// Error names the field.
func (e *FieldError) Error() string { return e.Field + " " + e.Reason }

// Access is the current context of a kubeconfig: the address of an API server, and the credentials for it.
type Access struct {
	// Server is an https URL.
	Server string
	// TLSServerName is the name in the server's certificate; empty means the host of Server.
	TLSServerName string
	// ProxyURL is the proxy to the server; empty means the proxy of the environment.
	ProxyURL string
	// CA is PEM; empty means the certificate authorities of the system.
	CA []byte
	// ClientCertificate and ClientKey are PEM.
	ClientCertificate, ClientKey []byte
	// Token is a bearer token.
	Token string
	// Namespace is the default namespace.
	Namespace string
}

// Parse parses a kubeconfig. It returns a FieldError for a refused field in any of the contexts, clusters and users.
func Parse(raw []byte) (*Access, error) {
	if len(raw) > maxSize {
		return nil, fmt.Errorf("it is larger than %d bytes", maxSize)
	}
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, ErrNone
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
	if current == nil || config.Clusters[current.Cluster] == nil {
		return nil, ErrNone
	}
	access := of(config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo])
	access.Namespace = current.Namespace
	paired := (len(access.ClientCertificate) > 0) == (len(access.ClientKey) > 0)
	if _, err := rest.TLSConfigFor(access.config()); err != nil || !paired {
		return nil, errors.New("its certificates or its key cannot be read: they must be PEM, and a certificate needs its key")
	}
	return access, nil
}

// ReadFile parses a file that is mounted from a Secret, see Parse.
func ReadFile(path string) (*Access, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %s: %w", path, err)
	}
	access, err := Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return access, nil
}

func of(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) *Access {
	access := &Access{
		Server: cluster.Server, TLSServerName: cluster.TLSServerName, ProxyURL: cluster.ProxyURL,
		CA: slices.Clone(cluster.CertificateAuthorityData),
	}
	if user != nil {
		access.ClientCertificate, access.ClientKey = slices.Clone(user.ClientCertificateData),
			slices.Clone(user.ClientKeyData)
		access.Token = user.Token
	}
	return access
}

const asData = "names a file; use "

func checkUser(user *clientcmdapi.AuthInfo) error {
	field := func(name, reason string) error { return &FieldError{Field: "users[].user." + name, Reason: reason} }
	const credentials = "token, or client-certificate-data and client-key-data"
	switch {
	case user == nil:
		return nil
	case user.Exec != nil:
		return field("exec", "runs a program; use "+credentials)
	case user.AuthProvider != nil:
		return field("auth-provider", "is no longer part of Kubernetes; use "+credentials)
	case user.TokenFile != "":
		return field("tokenFile", asData+"token")
	case user.ClientCertificate != "":
		return field("client-certificate", asData+"client-certificate-data")
	case user.ClientKey != "":
		return field("client-key", asData+"client-key-data")
	case user.Username != "" || user.Password != "":
		return field("username", "is no longer part of Kubernetes; use "+credentials)
	case user.Impersonate != "":
		return field("as", "acts as another user; use the credentials of that user")
	case user.ImpersonateUID != "":
		return field("as-uid", "acts as another user; use the credentials of that user")
	case len(user.ImpersonateGroups) > 0:
		return field("as-groups", "acts for other groups; use the credentials of a user in these groups")
	case len(user.ImpersonateUserExtra) > 0:
		return field("as-user-extra", "acts as another user; use the credentials of that user")
	}
	return nil
}

func checkCluster(cluster *clientcmdapi.Cluster) error {
	field := func(name, reason string) error {
		return &FieldError{Field: "clusters[].cluster." + name, Reason: reason}
	}
	switch {
	case cluster == nil:
		return nil
	case cluster.CertificateAuthority != "":
		return field("certificate-authority", asData+"certificate-authority-data")
	case cluster.InsecureSkipTLSVerify:
		return field("insecure-skip-tls-verify", "accepts any server; use certificate-authority-data")
	case !isURL(cluster.Server, "https"):
		return field("server", "must be a URL of https:// with a host, and without user, query and fragment")
	case cluster.ProxyURL != "" && !isURL(cluster.ProxyURL, "http", "https", "socks5"):
		return field("proxy-url", "must be a URL of http://, https:// or socks5:// with a host, and without user, query and fragment")
	}
	return nil
}

func isURL(text string, schemes ...string) bool {
	u, err := url.Parse(text)
	return err == nil && slices.Contains(schemes, u.Scheme) && u.Hostname() != "" && u.User == nil && u.RawQuery == "" &&
		u.Fragment == ""
}

// Encode returns a kubeconfig whose only context, cluster and user have this name.
func (a *Access) Encode(name string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[name], config.AuthInfos[name] = a.Cluster(), a.User()
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: a.Namespace}
	config.CurrentContext = name
	raw, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("writing a kubeconfig for %s: %w", a.Server, err)
	}
	return raw, nil
}

// Cluster returns the cluster of a kubeconfig.
func (a *Access) Cluster() *clientcmdapi.Cluster {
	return &clientcmdapi.Cluster{Server: a.Server, TLSServerName: a.TLSServerName, ProxyURL: a.ProxyURL,
		CertificateAuthorityData: a.CA}
}

// User returns the user of a kubeconfig.
func (a *Access) User() *clientcmdapi.AuthInfo {
	return &clientcmdapi.AuthInfo{ClientCertificateData: a.ClientCertificate, ClientKeyData: a.ClientKey, Token: a.Token}
}
