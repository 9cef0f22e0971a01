// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"context"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	kubeconfigScopeLabel = "hypershift.openshift.io/kubeconfig"
	clusterNameLabel     = "cluster.x-k8s.io/cluster-name"

	// InternalURL is the URL of the API server for pods of the hosted namespace.
	InternalURL = "https://kube-apiserver:6443"
)

// kubeconfig describes one kubeconfig Secret.
type kubeconfig struct {
	secret, key, scope, server, client string
}

// URL returns the HTTPS URL of an endpoint.
func URL(e component.Endpoint) string {
	return "https://" + net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
}

// AdminKubeconfigRef returns the reference to the admin kubeconfig of a hosted control plane.
func AdminKubeconfigRef(hcp *hyperv1.HostedControlPlane) hyperv1.KubeconfigSecretRef {
	if hcp.Spec.KubeConfig != nil {
		return *hcp.Spec.KubeConfig
	}
	return hyperv1.KubeconfigSecretRef{Name: AdminKubeconfig, Key: KubeconfigKey}
}

func kubeconfigs(hcp *hyperv1.HostedControlPlane, infra *component.Infra) []kubeconfig {
	external, admin := URL(infra.API), AdminKubeconfigRef(hcp)
	list := []kubeconfig{
		{ServiceNetworkKubeconfig, KubeconfigKey, "service", InternalURL, SystemAdminClient},
		{hosted.ClusterAPIKubeconfig(hcp.Spec.InfraID), ClusterAPIKey, "capi", InternalURL, ClusterAPIClient},
		{hosted.ProviderKubeconfig(hcp.Spec.InfraID), ClusterAPIKey, "service", InternalURL, ProviderClient},
		{AutoscalerKubeconfig, ClusterAPIKey, "service", InternalURL, AutoscalerClient},
		{IgnitionKubeconfig, KubeconfigKey, "service", InternalURL, IgnitionClient},
		{HCCOKubeconfig, KubeconfigKey, "service", InternalURL, HCCOClient},
		{KCMKubeconfig, KubeconfigKey, "service", InternalURL, KCMClient},
		{SchedulerKubeconfig, KubeconfigKey, "service", InternalURL, SchedulerClient},
		{admin.Name, admin.Key, "external", external, SystemAdminClient},
		{BootstrapKubeconfig, KubeconfigKey, "bootstrap", external, NodeBootstrap},
	}
	if name := hcp.Spec.KubeAPIServerDNSName; name != "" {
		server := URL(component.Endpoint{Host: name, Port: infra.API.Port})
		list = append(list, kubeconfig{CustomAdminKubeconfig, KubeconfigKey, "external", server, SystemAdminClient})
	}
	return list
}

func (p *pass) reconcileKubeconfigs(ctx context.Context) error {
	for _, k := range kubeconfigs(p.hcp, p.infra) {
		if err := p.reconcileKubeconfig(ctx, k); err != nil {
			return err
		}
	}
	if p.hcp.Spec.KubeAPIServerDNSName != "" {
		return nil
	}
	_, err := upsert.Gone(ctx, p.Client, p.secret(CustomAdminKubeconfig))
	return err
}

func (p *pass) reconcileKubeconfig(ctx context.Context, k kubeconfig) error {
	bundle, err := p.trustOf(ctx, k)
	if err != nil {
		return err
	}
	raw, err := pki.Kubeconfig(k.server, bundle, p.leaves[k.client])
	if err != nil {
		return err
	}
	secret := p.secret(k.secret)
	return p.upsert(ctx, secret, func() error {
		if secret.Labels == nil {
			secret.Labels = map[string]string{}
		}
		secret.Labels[kubeconfigScopeLabel] = k.scope
		if k.scope == "capi" {
			secret.Labels[clusterNameLabel] = p.hcp.Spec.InfraID
		}
		secret.Data = map[string][]byte{k.key: raw}
		return nil
	})
}

// trustOf returns the CA bundle of a kubeconfig. External clients may get a certificate that the user provides for a
// name of the API server, so they trust its chain as well.
func (p *pass) trustOf(ctx context.Context, k kubeconfig) ([]byte, error) {
	root := p.signers[RootCA].Trust()
	if k.scope != "external" || p.hcp.Spec.Configuration == nil || p.hcp.Spec.Configuration.APIServer == nil {
		return root, nil
	}
	trusted := [][]byte{root}
	for _, named := range p.hcp.Spec.Configuration.APIServer.ServingCerts.NamedCertificates {
		secret := &corev1.Secret{}
		key := crclient.ObjectKey{Namespace: p.hcp.Namespace, Name: named.ServingCertificate.Name}
		if err := p.Client.Get(ctx, key, secret); err != nil {
			return nil, fmt.Errorf("reading serving certificate Secret %s: %w", key.Name, err)
		}
		trusted = append(trusted, secret.Data[corev1.TLSCertKey])
	}
	return pki.Bundle(trusted...), nil
}
