// SPDX-License-Identifier: Apache-2.0

// Package webhookkubeconfig checks kubeconfigs that a user writes and a hosted API server uses. The API server acts on
// them in its pod, with its files.
package webhookkubeconfig

import (
	"errors"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Webhook describes the kind of webhook that the API server calls.
type Webhook struct {
	// Decides reports whether the answers authenticate or authorize users, so that the connection must be protected. It is
	// false for a webhook that only receives data.
	Decides bool
}

// Accept returns the checked kubeconfig for the API server, without anything that was not checked. Its errors contain
// nothing of the content.
func (w Webhook) Accept(raw []byte) ([]byte, error) {
	config, err := clientcmd.Load(raw)
	if err != nil || len(config.Contexts) == 0 {
		return nil, errors.New("it holds no kubeconfig")
	}
	for _, user := range config.AuthInfos {
		if err := checkUser(user); err != nil {
			return nil, err
		}
	}
	for _, cluster := range config.Clusters {
		if err := w.checkCluster(cluster); err != nil {
			return nil, err
		}
	}
	used, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err == nil {
		_, err = rest.TLSConfigFor(used)
	}
	if err != nil {
		return nil, errors.New("its current context has no server, or certificates that cannot be read")
	}
	return clientcmd.Write(*config)
}

// checkUser refuses settings that run programs in the API server's pod or send its files to the webhook.
func checkUser(user *clientcmdapi.AuthInfo) error {
	switch {
	case user.Exec != nil:
		return errors.New("exec would run a program beside the API server: use token, or client-certificate-data and client-key-data")
	case user.AuthProvider != nil:
		return errors.New("auth-provider is gone from Kubernetes: use token, or client-certificate-data and client-key-data")
	case user.TokenFile != "":
		return errors.New("tokenFile would hand out a file of the API server: use token")
	case user.ClientCertificate != "" || user.ClientKey != "":
		return errors.New("client-certificate and client-key would read files of the API server: use client-certificate-data and client-key-data")
	}
	return nil
}

func (w Webhook) checkCluster(cluster *clientcmdapi.Cluster) error {
	switch {
	case cluster.CertificateAuthority != "":
		return errors.New("certificate-authority would read a file of the API server: use certificate-authority-data")
	case w.Decides && (cluster.InsecureSkipTLSVerify || !strings.HasPrefix(cluster.Server, "https://")):
		return errors.New("the webhook decides about access over an unprotected connection; use an https:// server without insecure-skip-tls-verify")
	}
	return nil
}
