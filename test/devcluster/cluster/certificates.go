// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"path/filepath"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/pki"
)

// pkiDir is the folder of the certificates in the machine.
const pkiDir = "etc/kubernetes/pki"

// management is the name of the management cluster in kubeconfigs.
const management = "management"

// servers lists the certificates that a program of the control plane reads from a separate file.
var servers = []pki.Leaf{
	{Name: "etcd", User: "etcd", Hosts: []string{"127.0.0.1", "localhost"}},
	{Name: "apiserver", User: "kube-apiserver", Hosts: []string{
		env.Gateway, env.APIServiceIP, "127.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc." + env.ClusterDomain,
	}},
	{Name: "service-account", User: "service-account"},
}

// admin is the user of the kubeconfig for the administrator.
var admin = pki.Leaf{Name: "admin", User: "admin", Groups: []string{"system:masters"}}

// clients lists the users of the first node that get a kubeconfig /etc/kubernetes/NAME.conf.
var clients = []pki.Leaf{
	{Name: "controller-manager", User: "system:kube-controller-manager"},
	{Name: "scheduler", User: "system:kube-scheduler"},
}

// kubelet returns the certificate of a node's kubelet.
func kubelet(n env.Node) pki.Leaf {
	return pki.Leaf{Name: "kubelet", User: "system:node:" + n.Name, Groups: []string{"system:nodes"}, Hosts: []string{n.Name, n.Address}}
}

// writeNodeCertificates creates the missing files of a node, signed by the authority in the first node's root folder.
func writeNodeCertificates(first string, n env.Node, root string) error {
	authority, err := pki.Ensure(filepath.Join(first, pkiDir), "ca")
	if err != nil {
		return err
	}
	dir := filepath.Join(root, pkiDir)
	own := authority.In(dir)
	if err := writeFile(filepath.Join(dir, "ca.crt"), authority.PEM, 0o644); err != nil {
		return err
	}
	if _, err := own.Issue(kubelet(n)); err != nil {
		return err
	}
	return writeKubeconfigs(own, root, admin, kubelet(n), pki.Leaf{Name: "kube-proxy", User: "system:kube-proxy"})
}

// writeCertificates creates the missing certificates and kubeconfigs of the control plane, and the user's kubeconfig.
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
	// The kube-apiserver sends user information to extension API servers with a certificate of this authority, which signs
	// nothing else.
	frontProxy, err := pki.Ensure(dir, "front-proxy-ca")
	if err != nil {
		return err
	}
	if _, err := frontProxy.Issue(pki.Leaf{Name: "front-proxy", User: "front-proxy"}); err != nil {
		return err
	}
	if err := writeKubeconfigs(authority, root, clients...); err != nil {
		return err
	}
	config, err := kubeconfig(authority, admin)
	if err != nil {
		return err
	}
	return writeFile(e.Kubeconfig(), config, 0o600)
}

func writeKubeconfigs(authority *pki.Authority, root string, users ...pki.Leaf) error {
	for _, user := range users {
		config, err := kubeconfig(authority, user)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(root, "etc/kubernetes", user.Name+".conf"), config, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func kubeconfig(authority *pki.Authority, leaf pki.Leaf) ([]byte, error) {
	pair, err := authority.Issue(leaf)
	if err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[management] = &clientcmdapi.Cluster{Server: env.APIURL, CertificateAuthorityData: authority.PEM}
	config.AuthInfos[leaf.Name] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.Certificate, ClientKeyData: pair.Key}
	config.Contexts[management] = &clientcmdapi.Context{Cluster: management, AuthInfo: leaf.Name}
	config.CurrentContext = management
	data, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig of %s: %w", leaf.User, err)
	}
	return data, nil
}
