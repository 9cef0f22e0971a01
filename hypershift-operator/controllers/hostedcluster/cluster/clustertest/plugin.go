// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/none"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/condition"
)

// Plugin is a fake platform that implements all optional interfaces of a plugin, with configurable results.
type Plugin struct {
	none.Platform
	Infra        *platform.Object
	Runs         *component.Component
	MachineLists client.ObjectList
	Connection   platform.Connection
	Documents    map[string][]byte
	Why          metav1.Condition
	// Says describes what it waits for, or what it does not honor.
	Says string
	// Again is the delay until the next check.
	Again time.Duration
	Err   error
	// Seen are the clusters of all calls.
	Seen []platform.Cluster
	// Did are the names of all calls.
	Did []string
}

// PluginFinalizer is the finalizer of its issuer.
const PluginFinalizer = "test/issuer"

func (p *Plugin) note(what string, cluster platform.Cluster) {
	p.Did, p.Seen = append(p.Did, what), append(p.Seen, cluster)
}

// Identify sets the channel.
func (p *Plugin) Identify(hc *hyperv1.HostedCluster) { hc.Spec.Channel = "identified" }

// InfraCluster records the call, and returns what the test chose.
func (p *Plugin) InfraCluster(platform.Cluster) *platform.Object { return p.Infra }

// Provider records the call, and returns what the test chose.
func (p *Plugin) Provider(platform.Cluster) *component.Component { return p.Runs }

// Machines records the call, and returns what the test chose.
func (p *Plugin) Machines() client.ObjectList { return p.MachineLists }

// NotHonored records the call, and returns what the test chose.
func (p *Plugin) NotHonored(cluster platform.Cluster) string {
	p.note("not honored", cluster)
	return p.Says
}

// Connect records the call, and returns what the test chose.
func (p *Plugin) Connect(_ context.Context, _ client.Client, cluster platform.Cluster) (platform.Connection, error) {
	p.note("connect", cluster)
	return p.Connection, p.Err
}

// Disconnect records the call, and returns what the test chose.
func (p *Plugin) Disconnect(_ context.Context, _ client.Client, cluster platform.Cluster) (string, error) {
	p.note("disconnect", cluster)
	return p.Says, p.Err
}

// OrphanedMachines records the call, and returns what the test chose.
func (p *Plugin) OrphanedMachines(_ context.Context, _ client.Client, cluster platform.Cluster) (string, error) {
	p.note("orphaned machines", cluster)
	return p.Says, p.Err
}

// DeleteCredentials records the call, and returns what the test chose.
func (p *Plugin) DeleteCredentials(_ context.Context, _ client.Client, cluster platform.Cluster) error {
	p.note("delete credentials", cluster)
	return p.Err
}

// AdaptControlPlaneOperator records the call, and returns what the test chose.
func (p *Plugin) AdaptControlPlaneOperator(cluster platform.Cluster, deployment *appsv1.Deployment) {
	p.note("adapt", cluster)
	deployment.Spec.Template.Spec.HostNetwork = true
}

// IssuerFinalizer records the call, and returns what the test chose.
func (p *Plugin) IssuerFinalizer() string { return PluginFinalizer }

// IssuerDocuments records the call, and returns what the test chose.
func (p *Plugin) IssuerDocuments(_ context.Context, _ client.Reader, cluster platform.Cluster) (map[string][]byte, metav1.Condition, error) {
	p.note("documents", cluster)
	return p.Documents, p.Why, p.Err
}

// PublishIssuer records the call, and returns what the test chose.
func (p *Plugin) PublishIssuer(_ context.Context, cluster platform.Cluster, documents map[string][]byte) (metav1.Condition, time.Duration) {
	p.note("publish "+string(documents["keys"]), cluster)
	return condition.True(string(hyperv1.ValidOIDCConfiguration), "Published", ""), p.Again
}

// WithdrawIssuer records the call, and returns what the test chose.
func (p *Plugin) WithdrawIssuer(_ context.Context, cluster platform.Cluster) error {
	p.note("withdraw", cluster)
	return p.Err
}

// On returns a scope with this platform.
func On(p platform.Platform, mutate ...func(*cluster.Scope)) *cluster.Scope {
	return Scope(append([]func(*cluster.Scope){func(s *cluster.Scope) { s.Platform, s.PlatformServed = p, true }}, mutate...)...)
}
