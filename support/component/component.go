// SPDX-License-Identifier: Apache-2.0

// Package component is the framework of hosted control plane components.
//
// A component is a folder of manifests, functions that adapt them to one hosted cluster, and options. The framework
// decides whether the component is wanted, waits for what it depends on, gives its pods what all pods of a control plane
// have (images of the payload, priority, placement, labels), applies it, and reports in a ControlPlaneComponent.
//
//	enabled? --no--> delete all of it
//	   | yes
//	dependencies met? --no--> report WaitingForDependencies, touch nothing
//	   | yes
//	apply auxiliary manifests, then the workload --> report Available, RolloutComplete, version
package component

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Images finds the image of a payload's tag.
type Images interface {
	// ComponentImage returns the pull spec of tag and whether the payload has it.
	ComponentImage(tag string) (string, bool)
}

// Scope is what a pass knows about the hosted control plane that the components are part of. Components only read it.
type Scope struct {
	// Client reads and writes the management cluster.
	Client client.Client
	// HCP is the hosted control plane.
	HCP *hyperv1.HostedControlPlane
	// Version is the version that the components must reach.
	Version string
	// Images finds component images: the payload's, and those that the operator brings itself.
	Images Images
	// Infra says where the published endpoints are; nil until they are known.
	Infra *Infra
	// Operator names the operator that rolls the components out, in labels and as the owner of fields; empty means the
	// control-plane-operator.
	Operator string
	// Guest is the guest cluster; nil in an operator that rolls no component of the guest out.
	Guest *Guest
	// GuestNodes are the guest's nodes as the pass found them; none where Guest is nil.
	GuestNodes []corev1.Node
	// ControlPlaneVersion is what components that others depend on must have reached; empty means Version. It differs
	// while a control plane runs another release than its guest.
	ControlPlaneVersion string
	// MetricsSet says which metrics monitors keep; see TelemetryMetrics.
	MetricsSet string
	// PodUID runs pods as this user where the management cluster does not choose one; nil leaves the choice to the image.
	PodUID *int64
}

// Endpoint is an address that clients outside the management cluster use.
type Endpoint struct {
	// Host is a DNS name or an IP address.
	Host string
	// Port is the TCP port.
	Port int32
}

// Infra holds the published endpoints of a hosted control plane.
type Infra struct {
	// API is where nodes and users reach the kube-apiserver.
	API Endpoint
	// Ignition is where machines reach the ignition-server; only its Host is known before the component runs.
	Ignition Endpoint
	// APINames and IgnitionNames are further hosts that their certificates name: those of former addresses, and of one that is to come.
	APINames, IgnitionNames []string
}

// Component is one part of a hosted control plane.
type Component struct {
	// Name is the name of the workload and of its ControlPlaneComponent.
	Name string
	// Manifests is the folder: exactly one of deployment.yaml, statefulset.yaml, daemonset.yaml, job.yaml and
	// cronjob.yaml, and any number of auxiliary manifests, which are applied in the order of their file names before the workload. Monitors
	// and recording rules among them are applied where the management cluster has their kinds.
	// With a role.yaml come a service account of the component's name and the binding that gives it that role.
	Manifests fs.FS
	// Images are pull specs by tag that win over those of the scope.
	Images map[string]string
	// Adapters change single manifests, by file name.
	Adapters map[string]Adapter
	// Enabled tells whether the component is wanted; nil means always. What is not wanted is deleted.
	Enabled func(context.Context, *Scope) (bool, error)
	// Dependencies are components that must be available at the wanted version before this one is applied.
	Dependencies []string
	// Options say what is particular about the component's pods.
	Options
}

// Options say what is particular about a component's pods.
type Options struct {
	// RequestServing marks pods that serve requests of users and nodes.
	RequestServing bool
	// MultiZone spreads the replicas over zones and hosts.
	MultiZone bool
	// ManagementAccess gives pods a token for the management cluster and labels them as needing to reach it.
	ManagementAccess bool
	// UserCAs lets pods trust the CAs that the user of the cluster brought.
	UserCAs bool
	// Held keeps the Deployment until Release is called: its pods are needed for longer than the objects around them.
	Held bool
	// Singleton runs one replica whatever the availability policy says.
	Singleton bool
	// HighlyAvailableReplicas is the number of replicas of a highly available control plane; zero means 2.
	HighlyAvailableReplicas int32
	// Priority is the pods' priority class; empty means the one of ordinary components.
	Priority PriorityClass
	// Guest runs the component in the guest. Its manifests say their namespaces, and its pods get the payload's images, roll with what they mount, and have
	// nothing else of what all pods of a control plane have. Only Deployments and DaemonSets can run there.
	Guest bool
	// Prober makes pods wait for the API server before they start.
	Prober *Prober
}

// Adapter changes one manifest to fit a hosted cluster.
type Adapter struct {
	adapt   func(context.Context, *Scope, client.Object) error
	enabled func(*Scope) bool
}

// Adapt makes an Adapter of a function over the manifest's own type.
func Adapt[T client.Object](adapt func(context.Context, *Scope, T) error) Adapter {
	return Adapter{adapt: func(ctx context.Context, scope *Scope, obj client.Object) error {
		typed, ok := obj.(T)
		if !ok {
			return fmt.Errorf("the manifest is a %T, not a %T", obj, typed)
		}
		return adapt(ctx, scope, typed)
	}}
}

// When limits a manifest to the control planes for which enabled is true; elsewhere it is deleted.
func When(enabled func(*Scope) bool) Adapter {
	return Adapter{enabled: enabled}
}

// When returns the adapter limited to the control planes for which enabled is true.
func (a Adapter) When(enabled func(*Scope) bool) Adapter {
	a.enabled = enabled
	return a
}

func (a Adapter) wants(scope *Scope) bool {
	return a.enabled == nil || a.enabled(scope)
}

// workloadFiles are the names of the manifest that holds a component's pods.
var workloadFiles = []string{"deployment.yaml", "statefulset.yaml", "daemonset.yaml", "job.yaml", "cronjob.yaml"}

// files splits the folder's manifests into auxiliary ones, in order, and the workload.
func (c *Component) files() (auxiliary []string, workload string, err error) {
	entries, err := fs.ReadDir(c.Manifests, ".")
	if err != nil {
		return nil, "", fmt.Errorf("listing the manifests of component %s: %w", c.Name, err)
	}
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case slices.Contains(workloadFiles, name) && workload != "":
			return nil, "", fmt.Errorf("component %s has two workloads, %s and %s", c.Name, workload, name)
		case slices.Contains(workloadFiles, name):
			workload = name
		case strings.HasSuffix(name, ".yaml"):
			auxiliary = append(auxiliary, name)
		}
	}
	if workload == "" {
		return nil, "", fmt.Errorf("component %s has none of %s", c.Name, strings.Join(workloadFiles, ", "))
	}
	return auxiliary, workload, nil
}

// kubeAPIServer is the component that nearly all others need.
const kubeAPIServer = "kube-apiserver"

// withoutAPI lists the components that start before, or work without, the hosted API server.
var withoutAPI = []string{
	kubeAPIServer, "etcd", "featuregate-generator", "control-plane-operator", "cluster-api", "capi-provider",
	"karpenter-operator", "karpenter", "router", "ignition-server", "ignition-server-proxy",
}

// dependencies are those declared, and the API server for all that need it; an etcd that is not ours is none.
func (c *Component) dependencies(hcp *hyperv1.HostedControlPlane) []string {
	all := slices.Clone(c.Dependencies)
	if !slices.Contains(withoutAPI, c.Name) && !strings.HasPrefix(c.Name, "etcd-") {
		all = append(all, kubeAPIServer)
	}
	if hcp.Spec.Etcd.ManagementType == hyperv1.Unmanaged {
		all = slices.DeleteFunc(all, func(name string) bool { return name == "etcd" })
	}
	slices.Sort(all)
	return slices.Compact(all)
}
