// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/pki"
)

// pkiDir is where the machine finds its certificates.
const pkiDir = "etc/kubernetes/pki"

// servers are the certificates that a program reads from a file of its own.
var servers = []pki.Leaf{
	{Name: "etcd", User: "etcd", Hosts: []string{"127.0.0.1", "localhost"}},
	{Name: "apiserver", User: "kube-apiserver", Hosts: []string{
		env.Gateway, env.APIServiceIP, "127.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc." + env.ClusterDomain,
	}},
	{Name: "kubelet", User: "system:node:" + node, Groups: []string{"system:nodes"}, Hosts: []string{node, env.Gateway}},
	{Name: "service-account", User: "service-account"},
}

// clients are the users that get a kubeconfig /etc/kubernetes/NAME.conf.
var clients = []pki.Leaf{
	{Name: "admin", User: "admin", Groups: []string{"system:masters"}},
	{Name: "controller-manager", User: "system:kube-controller-manager"},
	{Name: "scheduler", User: "system:kube-scheduler"},
	{Name: "kube-proxy", User: "system:kube-proxy"},
	{Name: "kubelet", User: "system:node:" + node, Groups: []string{"system:nodes"}, Hosts: []string{node, env.Gateway}},
}

// writeCertificates makes what is missing of the machine's certificates and kubeconfigs, and the user's kubeconfig.
func writeCertificates(e env.Env, root string) error {
	dir := filepath.Join(root, pkiDir)
	authority, err := pki.Ensure(dir, "ca")
	if err != nil {
		return err
	}
	for _, leaf := range servers {
		if _, err := authority.Issue(leaf); err != nil {
			return err
		}
	}
	// What the kube-apiserver tells extension API servers about a user is signed by an authority that signs nothing else.
	frontProxy, err := pki.Ensure(dir, "front-proxy-ca")
	if err != nil {
		return err
	}
	if _, err := frontProxy.Issue(pki.Leaf{Name: "front-proxy", User: "front-proxy"}); err != nil {
		return err
	}
	for _, leaf := range clients {
		config, err := kubeconfig(authority, leaf)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(root, "etc/kubernetes", leaf.Name+".conf"), config, 0o600); err != nil {
			return err
		}
	}
	admin, err := os.ReadFile(filepath.Join(root, "etc/kubernetes/admin.conf"))
	if err != nil {
		return err
	}
	return writeFile(e.Kubeconfig(), admin, 0o600)
}

func kubeconfig(authority *pki.Authority, leaf pki.Leaf) ([]byte, error) {
	pair, err := authority.Issue(leaf)
	if err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[node] = &clientcmdapi.Cluster{Server: env.APIURL, CertificateAuthorityData: authority.PEM}
	config.AuthInfos[leaf.Name] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.Certificate, ClientKeyData: pair.Key}
	config.Contexts[node] = &clientcmdapi.Context{Cluster: node, AuthInfo: leaf.Name}
	config.CurrentContext = node
	data, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig of %s: %w", leaf.User, err)
	}
	return data, nil
}
