// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/component"
)

const (
	// clientSignersConfigMap holds the signers of the cluster's own client certificates and the user's signers. It is
	// separate from the bundle that verifies serving certificates of kubelets, which must not contain the user's signers.
	clientSignersConfigMap = "kas-client-signers"
	clientSignersKey       = "ca.crt"
	clientSignersDir       = "/etc/kubernetes/client-signers"
	userSignersKey         = "ca-bundle.crt"
)

// userSigners returns the ConfigMap of additional signers of client certificates; empty means none.
func userSigners(hcp *hyperv1.HostedControlPlane) string {
	if hcp.Spec.Configuration == nil || hcp.Spec.Configuration.APIServer == nil {
		return ""
	}
	return hcp.Spec.Configuration.APIServer.ClientCA.Name
}

func hasUserSigners(scope *component.Scope) bool { return userSigners(scope.HCP) != "" }

func clientCAFile(hcp *hyperv1.HostedControlPlane) string {
	if userSigners(hcp) != "" {
		return clientSignersDir + "/" + clientSignersKey
	}
	return certDir + "/client-ca/ca.crt"
}

func adaptClientSigners(ctx context.Context, scope *component.Scope, cm *corev1.ConfigMap) error {
	own, err := readBundle(ctx, scope.Client, scope.HCP.Namespace, pki.ClientBundle, clientSignersKey)
	if err != nil {
		return err
	}
	users, err := readBundle(ctx, scope.Client, scope.HCP.Namespace, userSigners(scope.HCP), userSignersKey)
	if err != nil && !errors.Is(err, errNoCertificates) {
		return err
	}
	cm.Data = map[string]string{clientSignersKey: strings.TrimSpace(strings.TrimSpace(own)+"\n"+strings.TrimSpace(users)) + "\n"}
	return nil
}

// refuseSigners reports that the API server rejects certificates of the user's signers, because their bundle is
// unusable.
func refuseSigners(ctx context.Context, c client.Reader, hcp *hyperv1.HostedControlPlane) ([]error, error) {
	if userSigners(hcp) == "" {
		return nil, nil
	}
	_, err := readBundle(ctx, c, hcp.Namespace, userSigners(hcp), userSignersKey)
	if errors.Is(err, errNoCertificates) {
		return []error{fmt.Errorf("configuration.apiServer.clientCA: %w: client certificates of these signers are refused until this is fixed", err)}, nil
	}
	return nil, err
}

// errNoCertificates is returned for a bundle that would keep the API server from starting.
var errNoCertificates = errors.New("there are no certificates")

func readBundle(ctx context.Context, c client.Reader, namespace, name, key string) (string, error) {
	cm := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cm)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading the signers of client certificates in ConfigMap %s: %w", name, err)
	}
	if _, err := cert.ParseCertsPEM([]byte(cm.Data[key])); err != nil {
		return "", fmt.Errorf("%w under key %s of ConfigMap %s", errNoCertificates, key, name)
	}
	return cm.Data[key], nil
}
