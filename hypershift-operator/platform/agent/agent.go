// SPDX-License-Identifier: Apache-2.0

// Package agent is the plugin of the platform Agent. Workers are hosts that booted the discovery image of the assisted
// service. It represents each host as an Agent and installs OpenShift on it.
package agent

import (
	"context"
	"errors"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentv1 "github.com/openshift/hypershift/api/agent/v1beta1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/crds"
)

// Options implements platform.Options without flags.
type Options struct{}

// AddFlags adds no flags.
func (Options) AddFlags(*pflag.FlagSet) {}

// New creates the plugin.
func (Options) New(env platform.Environment) (platform.Platform, error) {
	return &Platform{providerImage: env.ProviderImage}, nil
}

// Platform implements platform.Platform.
type Platform struct {
	// providerImage is the image that the installer chose; if empty, the plugin chooses it.
	providerImage string
}

var _ platform.Platform = &Platform{}

// AddToScheme registers the provider's kinds.
func (*Platform) AddToScheme(scheme *runtime.Scheme) error { return agentv1.AddToScheme(scheme) }

// CRDs returns the provider's CRDs. The operator does not access Agents, which belong to the assisted service.
func (*Platform) CRDs() []string { return crds.Names(crds.Agent) }

// Watched returns the provider's kinds.
func (*Platform) Watched() []client.Object {
	return []client.Object{&agentv1.AgentCluster{}, &agentv1.AgentMachine{}, &agentv1.AgentMachineTemplate{}}
}

// ValidateHostedCluster requires the namespace of the agents.
func (*Platform) ValidateHostedCluster(hc *hyperv1.HostedCluster) error {
	if agentNamespace(hc) == "" {
		return errors.New("spec.platform.agent.agentNamespace is missing: name the namespace of the Agents that the cluster may use")
	}
	return nil
}

func agentNamespace(hc *hyperv1.HostedCluster) string {
	if hc.Spec.Platform.Agent == nil {
		return ""
	}
	return hc.Spec.Platform.Agent.AgentNamespace
}

// ignitionCA is the Secret in the hosted namespace with the CA of the ignition-server.
const ignitionCA = "ignition-server-ca-cert"

// InfraCluster returns the AgentCluster, or nil until machines can fetch their configuration.
func (*Platform) InfraCluster(cluster platform.Cluster) *platform.Object {
	ignition := cluster.HostedCluster.Status.IgnitionEndpoint
	if cluster.ControlPlane == nil || cluster.ControlPlane.Status.ControlPlaneEndpoint.Host == "" || ignition == "" {
		return nil
	}
	endpoint := cluster.ControlPlane.Status.ControlPlaneEndpoint
	infra := &agentv1.AgentCluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.HostedCluster.Name}}
	return &platform.Object{Object: infra, Mutate: func() error {
		infra.Spec.IgnitionEndpoint = &agentv1.IgnitionEndpoint{
			URL:                    "https://" + ignition + "/ignition",
			CACertificateReference: &agentv1.CACertificateReference{Namespace: cluster.Namespace, Name: ignitionCA},
		}
		infra.Spec.ControlPlaneEndpoint = agentv1.APIEndpoint{Host: endpoint.Host, Port: endpoint.Port}
		return nil
	}}
}

// ReconcileSecretEncryption does nothing, because the platform has no key management service.
func (*Platform) ReconcileSecretEncryption(context.Context, client.Client, platform.Cluster) error {
	return nil
}
