// SPDX-License-Identifier: Apache-2.0

// Package platforms holds what differs between platforms as data.
//
// Code that has to know "how long may a machine take to start?" or "what does the guest's Infrastructure say?" asks a row of
// this table and never compares a platform type itself: adding a platform means adding a row here and a folder in
// hypershift-operator/platform.
package platforms

import (
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/crds"
)

// HealthCheck holds the time-outs of a pool's MachineHealthCheck.
type HealthCheck struct {
	// NodeUnready is how long a Node may be not Ready or unknown before its Machine is replaced.
	NodeUnready time.Duration
	// NodeStartup is how long a Machine may take from its creation until it has a Node.
	NodeStartup time.Duration
}

// Traits are the facts about one platform that packages other than its plugin need.
type Traits struct {
	// Type is the platform that the row is about.
	Type hyperv1.PlatformType
	// ControlPlaneType is the platform type that the HostedControlPlane carries: None where the payload's own
	// control-plane-operator needs to know nothing of the platform.
	ControlPlaneType hyperv1.PlatformType
	// InfrastructureType is the platform type in the guest's Infrastructure resource.
	InfrastructureType configv1.PlatformType
	// Architectures are the CPU architectures that NodePools may ask for, in Go's spelling.
	Architectures []string
	// DefaultUpgradeType is what a NodePool gets that does not choose.
	DefaultUpgradeType hyperv1.UpgradeType
	// KeepsOutdatedUserData tells whether machines may still be installing from user-data of an outdated
	// configuration, so that it must live until the last of them is gone.
	KeepsOutdatedUserData bool
	// ScalesFromZero tells whether a pool may be scaled by the autoscaler to and from no machine.
	ScalesFromZero bool
	// NodeLabels are those that nodes of pools of upgrade type Replace get beside the pool's: parts of OpenShift in the guest look for them.
	NodeLabels map[string]string
	// HealthCheck holds the defaults of machine health checks.
	HealthCheck HealthCheck
	// CRDs is the folder of support/crds that holds the kinds of the platform's Cluster API provider; empty where there is no provider.
	CRDs string
	// ExternalInfra tells whether the operator itself says that the infrastructure cluster is ready: the provider leaves it alone.
	ExternalInfra bool
	// MachinePods labels the pods in hosted namespaces that are machines. What runs in them is the guest's: they are kept away from the
	// control plane as any machine is. Empty where machines are no pods.
	MachinePods map[string]string
	// Conditions are those of a HostedControlPlane that say something of clusters of this platform only.
	Conditions []hyperv1.ConditionType
	// Beside are rights to kinds of other people that the operator acts on in hosted namespaces.
	Beside []rbacv1.PolicyRule
	// Passes are rights that the operator has only to pass them on to the provider outside of hosted namespaces.
	Passes []rbacv1.PolicyRule
}

var cloudHealth = HealthCheck{NodeUnready: 8 * time.Minute, NodeStartup: 20 * time.Minute}

// A MAAS machine takes 20 to 35 minutes to install, and its firmware alone can take ten to come back after a reboot:
// shorter time-outs replace machines that are fine.
var metalHealth = HealthCheck{NodeUnready: 16 * time.Minute, NodeStartup: 60 * time.Minute}

var table = []Traits{
	{
		Type: hyperv1.MAASPlatform, ControlPlaneType: hyperv1.NonePlatform, InfrastructureType: configv1.NonePlatformType,
		Architectures: []string{"amd64", "arm64"}, DefaultUpgradeType: hyperv1.UpgradeTypeReplace,
		KeepsOutdatedUserData: true, ScalesFromZero: true, HealthCheck: metalHealth, CRDs: crds.Infrastructure,
	},
	{
		Type: hyperv1.NonePlatform, ControlPlaneType: hyperv1.NonePlatform, InfrastructureType: configv1.NonePlatformType,
		Architectures: []string{"amd64", "arm64"}, DefaultUpgradeType: hyperv1.UpgradeTypeInPlace,
		HealthCheck: HealthCheck{NodeUnready: 16 * time.Minute, NodeStartup: 20 * time.Minute},
	},
	{
		Type: hyperv1.AgentPlatform, ControlPlaneType: hyperv1.NonePlatform, InfrastructureType: configv1.NonePlatformType,
		Architectures: []string{"amd64", "arm64", "ppc64le"}, DefaultUpgradeType: hyperv1.UpgradeTypeInPlace,
		HealthCheck: HealthCheck{NodeUnready: 16 * time.Minute, NodeStartup: 20 * time.Minute}, CRDs: crds.Agent,
		Passes: []rbacv1.PolicyRule{{
			APIGroups: []string{"agent-install.openshift.io"}, Resources: []string{"agents"}, Verbs: []string{"get", "list", "watch", "patch", "update"},
		}},
	},
	{
		Type: hyperv1.KubevirtPlatform, ControlPlaneType: hyperv1.KubevirtPlatform, InfrastructureType: configv1.KubevirtPlatformType,
		Architectures: []string{"amd64", "s390x"}, DefaultUpgradeType: hyperv1.UpgradeTypeReplace,
		KeepsOutdatedUserData: true, HealthCheck: cloudHealth, CRDs: crds.KubeVirt, ExternalInfra: true,
		MachinePods: map[string]string{"kubevirt.io": "virt-launcher"},
		Conditions:  []hyperv1.ConditionType{hyperv1.ValidKubeVirtInfraNetworkMTU},
		// One for each pool that keeps its disk image.
		Beside: []rbacv1.PolicyRule{{APIGroups: []string{"cdi.kubevirt.io"}, Resources: []string{"datavolumes"}, Verbs: []string{"list", "create", "delete"}}},
	},
	{
		Type: hyperv1.AWSPlatform, ControlPlaneType: hyperv1.AWSPlatform, InfrastructureType: configv1.AWSPlatformType,
		Architectures: []string{"amd64", "arm64"}, DefaultUpgradeType: hyperv1.UpgradeTypeReplace,
		KeepsOutdatedUserData: true, ScalesFromZero: true, HealthCheck: cloudHealth, CRDs: crds.AWS, ExternalInfra: true,
		Conditions: []hyperv1.ConditionType{
			hyperv1.ValidAWSIdentityProvider, hyperv1.ValidAWSKMSConfig,
			hyperv1.AWSDefaultSecurityGroupCreated, hyperv1.AWSDefaultSecurityGroupDeleted,
		},
		NodeLabels: map[string]string{"hypershift.openshift.io/nodepool-globalps-enabled": "true"}, // It takes pull secrets of the guest's users.
	},
}

// Of returns the traits of a platform, and whether the platform is known at all.
func Of(platform hyperv1.PlatformType) (Traits, bool) {
	for _, t := range table {
		if t.Type == platform {
			t.Architectures = slices.Clone(t.Architectures)
			return t, true
		}
	}
	return Traits{}, false
}

// Add is for a platform that lives outside of this repository or in a test: it adds a row. It must be called from an init function, before
// anything asks.
func Add(row Traits) { table = append(table, row) }

// Known lists the platforms of the table in a fixed order.
func Known() []hyperv1.PlatformType {
	known := make([]hyperv1.PlatformType, 0, len(table))
	for _, t := range table {
		known = append(known, t.Type)
	}
	return known
}

// CRDFolders are the folders of support/crds with the kinds of all platforms.
func CRDFolders() []string {
	var folders []string
	for _, t := range table {
		if t.CRDs != "" {
			folders = append(folders, t.CRDs)
		}
	}
	return folders
}

// Name is what the platform is called in flags and in commands.
func (t Traits) Name() string { return strings.ToLower(string(t.Type)) }

// ProviderTag is the image of the platform's Cluster API provider in a list of images.
func (t Traits) ProviderTag() string { return "cluster-api-provider-" + t.Name() }

// ProviderImageEnv is the operator's environment variable with the image of that provider.
func (t Traits) ProviderImageEnv() string {
	return "IMAGE_" + strings.ToUpper(t.Name()) + "_CAPI_PROVIDER"
}

// Supports tells whether NodePools of the platform may ask for a CPU architecture; an empty one is amd64.
func (t Traits) Supports(architecture string) bool {
	if architecture == "" {
		architecture = "amd64"
	}
	return slices.Contains(t.Architectures, architecture)
}
