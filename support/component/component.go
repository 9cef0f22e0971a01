// SPDX-License-Identifier: Apache-2.0

// Package component is the framework of hosted control plane components.
//
// A component consists of a folder of manifests, functions that adapt them to one hosted cluster, and options. The
// framework decides whether the component is enabled and waits for its dependencies. It gives the component's pods the
// common settings of a control plane: images of the payload, priority, placement, labels. It then applies the component
// and reports in a ControlPlaneComponent.
//
//	enabled? --no--> delete all of it
//	   | yes
//	dependencies met? --no--> report WaitingForDependencies, touch nothing
//	   | yes, or first start and the pods wait by themselves
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

// Images returns the images of a payload by tag.
type Images interface {
	// ComponentImage returns the pull spec of tag and whether the payload has it.
	ComponentImage(tag string) (string, bool)
}

// Scope holds the state of the hosted control plane in one reconcile. Components read its exported fields only.
type Scope struct {
	// Client accesses the management cluster.
	Client client.Client
	// HCP is the hosted control plane.
	HCP *hyperv1.HostedControlPlane
	// Version is the version that the components must reach.
	Version string
	// Images returns component images, both the payload's and the operator's own.
	Images Images
	// Infra holds the published endpoints; nil until they are known.
	Infra *Infra
	// Operator is the name of the operator that rolls out the components, for labels and as the field owner; empty means
	// the control-plane-operator.
	Operator string
	// Guest is the guest cluster; nil in an operator without components in the guest cluster.
	Guest *Guest
	// GuestNodes are the nodes of the guest cluster at the start of the reconcile; empty if Guest is nil.
	GuestNodes []corev1.Node
	// ControlPlaneVersion is the version that dependencies must have reached; empty means Version. It differs from
	// Version while the control plane and its guest cluster run different releases.
	ControlPlaneVersion string
	// MetricsSet determines which metrics the monitors keep; see TelemetryMetrics.
	MetricsSet string
	// PodUID is the user ID of pods if the management cluster does not choose one; nil means the user of the image.
	PodUID *int64

	// reported holds the ControlPlaneComponents as this reconcile wrote them, by name. Client may read older ones from
	// a cache.
	reported map[string]*hyperv1.ControlPlaneComponent
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
	// API is the address at which nodes and users reach the kube-apiserver.
	API Endpoint
	// Ignition is the address at which machines reach the ignition-server; only its Host is known before the component
	// runs.
	Ignition Endpoint
	// APINames and IgnitionNames are additional hosts in their certificates: the hosts of previous addresses, and of a
	// future address.
	APINames, IgnitionNames []string
}

// Component is one part of a hosted control plane.
type Component struct {
	// Name is the name of the workload and of the ControlPlaneComponent.
	Name string
	// Manifests is the folder of manifests. It has exactly one of deployment.yaml, statefulset.yaml, daemonset.yaml,
	// job.yaml and cronjob.yaml. Any number of auxiliary manifests are applied before the workload, in the order of their
	// file names. Monitors and recording rules among them are applied only if the management cluster serves their kinds.
	// For a role.yaml, the framework adds a service account with the component's name and a binding to the role.
	Manifests fs.FS
	// Images holds pull specs by tag, which take precedence over the scope's images.
	Images map[string]string
	// Adapters change single manifests, by file name.
	Adapters map[string]Adapter
	// Enabled reports whether the component should run; nil means always. A component that should not run is deleted.
	Enabled func(context.Context, *Scope) (bool, error)
	// Dependencies are the components that must be available at the desired version before this one is applied.
	Dependencies []string
	// Options configure the component's pods.
	Options
}

// Options configure a component's pods.
type Options struct {
	// RequestServing marks pods that serve requests of users and nodes.
	RequestServing bool
	// MultiZone spreads the replicas over zones and hosts.
	MultiZone bool
	// ManagementAccess gives pods a token for the management cluster, and the label for access to its API server.
	ManagementAccess bool
	// UserCAs makes pods trust the CAs that the user of the cluster provides.
	UserCAs bool
	// Held retains a deleted Deployment until Release is called, because its pods are needed longer than the related
	// objects.
	Held bool
	// Singleton runs one replica, regardless of the availability policy.
	Singleton bool
	// HighlyAvailableReplicas is the number of replicas of a highly available control plane; zero means 2.
	HighlyAvailableReplicas int32
	// Priority is the pods' priority class; empty means PriorityDefault.
	Priority PriorityClass
	// Guest runs the component in the guest cluster. Its manifests set their namespaces. Its pods get the payload's
	// images, and roll when the objects that they mount change. They get no other common settings of a control plane. Only
	// Deployments and DaemonSets are supported.
	Guest bool
	// WaitsFor returns the URL that pods wait for in an init container before they start, for example APIServerReady. The
	// scheme is https, or tcp for a port that must accept connections. Nil, or an empty URL, adds no init container.
	WaitsFor func(*hyperv1.HostedControlPlane) string
	// WaitsInPod says that the pods wait for the dependencies by themselves. At the first start of a control plane, the
	// component is then created together with its dependencies, so that nodes pull its images at once.
	WaitsInPod bool
}

// Adapter changes one manifest to fit a hosted cluster.
type Adapter struct {
	adapt   func(context.Context, *Scope, client.Object) error
	enabled func(*Scope) bool
}

// Adapt returns an Adapter that calls a function with the manifest's own type.
func Adapt[T client.Object](adapt func(context.Context, *Scope, T) error) Adapter {
	return Adapter{adapt: func(ctx context.Context, scope *Scope, obj client.Object) error {
		typed, ok := obj.(T)
		if !ok {
			return fmt.Errorf("the manifest is a %T, not a %T", obj, typed)
		}
		return adapt(ctx, scope, typed)
	}}
}

// When limits a manifest to control planes for which enabled returns true; in others it is deleted.
func When(enabled func(*Scope) bool) Adapter {
	return Adapter{enabled: enabled}
}

// When returns the adapter limited to control planes for which enabled returns true.
func (a Adapter) When(enabled func(*Scope) bool) Adapter {
	a.enabled = enabled
	return a
}

func (a Adapter) wants(scope *Scope) bool {
	return a.enabled == nil || a.enabled(scope)
}

// workloadFiles lists the possible names of the workload's manifest.
var workloadFiles = []string{"deployment.yaml", "statefulset.yaml", "daemonset.yaml", "job.yaml", "cronjob.yaml"}

// files returns the names of the folder's manifests: the auxiliary ones, in order, and the workload.
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

// kubeAPIServer is the component on which nearly all others depend.
const kubeAPIServer = "kube-apiserver"

// withoutAPI lists the components that start before the hosted API server or work without it.
var withoutAPI = []string{
	kubeAPIServer, "etcd", "featuregate-generator", "control-plane-operator", "cluster-api", "capi-provider",
	"karpenter-operator", "karpenter", "router", "ignition-server", "ignition-server-proxy",
}

// dependencies returns the declared dependencies, and the API server for all components that need it. It omits an etcd
// that the user manages.
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
