// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Names inside the kubeconfigs of a hosted cluster.
const (
	kubeconfigCluster   = "cluster"
	kubeconfigUser      = "admin"
	kubeconfigNamespace = "default"
)

// Kubeconfig renders a kubeconfig with a client certificate for server. caBundle (PEM) verifies the server's
// certificate.
func Kubeconfig(server string, caBundle []byte, client *KeyPair) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[kubeconfigCluster] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: caBundle}
	config.AuthInfos[kubeconfigUser] = &clientcmdapi.AuthInfo{ClientCertificateData: client.CertPEM, ClientKeyData: client.KeyPEM}
	config.Contexts[kubeconfigUser] = &clientcmdapi.Context{
		Cluster: kubeconfigCluster, AuthInfo: kubeconfigUser, Namespace: kubeconfigNamespace,
	}
	config.CurrentContext = kubeconfigUser
	raw, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("rendering the kubeconfig of %q for %s: %w", client.Cert.Subject.CommonName, server, err)
	}
	return raw, nil
}
