// SPDX-License-Identifier: Apache-2.0

// Package platforms holds the differences between platforms as data.
//
// Code never compares a platform type itself. It reads a row of this table to answer "how long may a machine take to
// start?" or "what does the guest's Infrastructure contain?". To add a platform, add a row here and a folder in
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
	// ControlPlaneType is the platform type of the HostedControlPlane. It is None where the payload's own
	// control-plane-operator needs no information about the platform.
	ControlPlaneType hyperv1.PlatformType
	// InfrastructureType is the platform type in the guest's Infrastructure resource.
	InfrastructureType configv1.PlatformType
	// Architectures are the CPU architectures that NodePools may request, in Go's spelling.
	Architectures []string
	// DefaultUpgradeType is the upgrade type of a NodePool that sets none.
	DefaultUpgradeType hyperv1.UpgradeType
	// KeepsOutdatedUserData reports whether machines may still be installing from user-data of an outdated configuration.
	// That user-data must then exist until the last of these machines is gone.
	KeepsOutdatedUserData bool
	// ScalesFromZero reports whether the autoscaler may scale a pool to and from zero machines.
	ScalesFromZero bool
	// NodeLabels are additional labels of nodes in pools with upgrade type Replace. Components of OpenShift in the guest
	// select nodes by them.
	NodeLabels map[string]string
	// HealthCheck holds the defaults of machine health checks.
	HealthCheck HealthCheck
	// CRDs is the folder of support/crds with the CRDs of the platform's Cluster API provider; empty if there is no
	// provider.
	CRDs string
	// ExternalInfra reports whether the operator itself marks the infrastructure cluster as ready. The provider then does
	// not reconcile it.
	ExternalInfra bool
	// MachinePods are the labels of pods in hosted namespaces that are machines. They run the guest's workloads, so they
	// are isolated from the control plane like any machine. Empty where machines are not pods.
	MachinePods map[string]string
	// Conditions are the conditions of a HostedControlPlane that apply only to clusters of this platform.
	Conditions []hyperv1.ConditionType
	// Beside are further rights of the operator in hosted namespaces, such as to third-party kinds.
	Beside []rbacv1.PolicyRule
	// Passes are rights outside of hosted namespaces that the operator has only in order to grant them to the
	// provider.
	Passes []rbacv1.PolicyRule
}

var cloudHealth = HealthCheck{NodeUnready: 8 * time.Minute, NodeStartup: 20 * time.Minute}

// metalHealth has long time-outs, because shorter ones replace healthy machines. A MAAS machine takes 20 to 35 minutes
// to install, and its firmware alone can take ten minutes after a reboot.
var metalHealth = HealthCheck{NodeUnready: 16 * time.Minute, NodeStartup: 60 * time.Minute}

var table = []Traits{
	{
		Type: hyperv1.MAASPlatform, ControlPlaneType: hyperv1.NonePlatform, InfrastructureType: configv1.NonePlatformType,
		Architectures: []string{"amd64", "arm64"}, DefaultUpgradeType: hyperv1.UpgradeTypeReplace,
		KeepsOutdatedUserData: true, ScalesFromZero: true, HealthCheck: metalHealth, CRDs: crds.Infrastructure,
		// Third-party providers of the contract v1beta1 do not write all of the status that Cluster API reads.
		Beside: []rbacv1.PolicyRule{{
			APIGroups: []string{"infrastructure.cluster.x-k8s.io"},
			Resources: []string{"maasclusters/status", "maasmachines/status"}, Verbs: []string{"patch"},
		}},
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
		// One DataVolume for each pool that keeps its disk image.
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
		// An OpenShift component with the pull secrets of the guest's users selects nodes by this label.
		NodeLabels: map[string]string{"hypershift.openshift.io/nodepool-globalps-enabled": "true"},
	},
}

// Of returns the traits of a platform, and whether the platform is known.
func Of(platform hyperv1.PlatformType) (Traits, bool) {
	for _, t := range table {
		if t.Type == platform {
			t.Architectures = slices.Clone(t.Architectures)
			return t, true
		}
	}
	return Traits{}, false
}

// Add adds a row for a platform outside of this repository or in a test. It must be called from an init function,
// before the table is read.
func Add(row Traits) { table = append(table, row) }

// Known returns the platforms of the table in a fixed order.
func Known() []hyperv1.PlatformType {
	known := make([]hyperv1.PlatformType, 0, len(table))
	for _, t := range table {
		known = append(known, t.Type)
	}
	return known
}

// CRDFolders returns the folders of support/crds with the CRDs of all platforms.
func CRDFolders() []string {
	var folders []string
	for _, t := range table {
		if t.CRDs != "" {
			folders = append(folders, t.CRDs)
		}
	}
	return folders
}

// Name returns the platform's name in flags and commands.
func (t Traits) Name() string { return strings.ToLower(string(t.Type)) }

// ProviderTag returns the tag of the platform's Cluster API provider in a list of images.
func (t Traits) ProviderTag() string { return "cluster-api-provider-" + t.Name() }

// ProviderImageEnv returns the operator's environment variable that holds the image of the platform's Cluster API
// provider.
func (t Traits) ProviderImageEnv() string {
	return "IMAGE_" + strings.ToUpper(t.Name()) + "_CAPI_PROVIDER"
}

// Supports reports whether NodePools of the platform may use a CPU architecture; an empty one means amd64.
func (t Traits) Supports(architecture string) bool {
	if architecture == "" {
		architecture = "amd64"
	}
	return slices.Contains(t.Architectures, architecture)
}
