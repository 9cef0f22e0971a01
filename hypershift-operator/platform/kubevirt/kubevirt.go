// SPDX-License-Identifier: Apache-2.0

// Package kubevirt is the plugin of the platform KubeVirt. Workers are virtual machines of KubeVirt, in the hosted
// control plane namespace or in a namespace of an external cluster.
package kubevirt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	kubevirtv1 "github.com/openshift/hypershift/api/kubevirt/v1alpha1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/maas"
)

// Options are the operator's flags for all clusters of the platform.
type Options struct {
	// AllowCIDRs and RefuseCIDRs restrict the addresses of clusters for virtual machines, in addition to the Guard's own
	// rules.
	AllowCIDRs, RefuseCIDRs string
	// Clock is for tests; nil means the real one.
	Clock clock.PassiveClock
	// Timeout limits all calls of one use of such a cluster; zero means 5 s.
	Timeout time.Duration
}

// AddFlags adds the flags for the address ranges of clusters for virtual machines.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.AllowCIDRs, "kubevirt-allow-cidrs", "", "ranges that the API servers of tenants' clusters for virtual machines may be in "+
		"although the address policy refuses them, such as a loopback range in a test")
	flags.StringVar(&o.RefuseCIDRs, "kubevirt-refuse-cidrs", "", "ranges that the API servers of tenants' clusters for virtual machines must not be in, such as the pods and Services of the management cluster")
}

// New creates the plugin.
func (o *Options) New(env platform.Environment) (platform.Platform, error) {
	guard, err := maas.NewGuard(o.AllowCIDRs, o.RefuseCIDRs)
	if err != nil {
		return nil, fmt.Errorf("--kubevirt-allow-cidrs or --kubevirt-refuse-cidrs: %w", err)
	}
	if env.Own != nil {
		guard.Own = env.Own
	}
	return &Platform{providerImage: env.ProviderImage, infra: infraClusters{guard: guard, clock: o.Clock, timeout: o.Timeout}}, nil
}

// Platform implements platform.Platform.
type Platform struct {
	// providerImage is the image that the installer chose; if empty, the payload's is used.
	providerImage string
	// infra are the external clusters.
	infra infraClusters
}

var (
	_ platform.Platform        = &Platform{}
	_ platform.Identifier      = &Platform{}
	_ platform.ImageKeeper     = &Platform{}
	_ platform.EffectReporter  = &Platform{}
	_ platform.MachineReporter = &Platform{}
	_ platform.Connector       = &Platform{}
)

// generatedID is the length of the random ID in the names of a cluster's objects in the cluster that runs the virtual
// machines.
const generatedID = 10

// AddToScheme registers the provider's kinds.
func (*Platform) AddToScheme(scheme *runtime.Scheme) error { return kubevirtv1.AddToScheme(scheme) }

// CRDs returns the provider's CRDs. VirtualMachines belong to KubeVirt, which may be in another cluster.
func (*Platform) CRDs() []string { return crds.Names(crds.KubeVirt) }

// Watched returns the provider's kinds.
func (*Platform) Watched() []client.Object {
	return []client.Object{&kubevirtv1.KubevirtCluster{}, &kubevirtv1.KubevirtMachine{}, &kubevirtv1.KubevirtMachineTemplate{}}
}

// external returns the credentials of the cluster that runs the virtual machines; nil if that is the management
// cluster.
func external(hc *hyperv1.HostedCluster) *hyperv1.KubevirtPlatformCredentials {
	if hc.Spec.Platform.Kubevirt == nil {
		return nil
	}
	return hc.Spec.Platform.Kubevirt.Credentials
}

// Identify sets a random ID. It makes the names of objects unique that a payload's operators create next to the virtual
// machines, in a namespace that several clusters may share.
func (*Platform) Identify(hc *hyperv1.HostedCluster) {
	if hc.Spec.Platform.Kubevirt == nil {
		hc.Spec.Platform.Kubevirt = &hyperv1.KubevirtPlatformSpec{}
	}
	if hc.Spec.Platform.Kubevirt.GenerateID == "" {
		hc.Spec.Platform.Kubevirt.GenerateID = utilrand.String(generatedID)
	}
}

// ValidateHostedCluster requires a kubeconfig for a namespace of an external cluster, because the kubeconfig proves
// access to it. Without that, a user could name any namespace of the management cluster.
func (*Platform) ValidateHostedCluster(hc *hyperv1.HostedCluster) error {
	if block := hc.Spec.Platform.Kubevirt; block != nil && ptr.Deref(block.BaseDomainPassthrough, false) && hc.Spec.DNS.BaseDomain == "" {
		return errors.New("spec.platform.kubevirt.baseDomainPassthrough requires spec.dns.baseDomain; set it to the domain of the " +
			"management cluster's ingress, such as apps.example.com")
	}
	credentials := external(hc)
	if credentials == nil {
		return nil
	}
	const field = "spec.platform.kubevirt.credentials"
	if ref := credentials.InfraKubeConfigSecret; ref == nil || ref.Name == "" || ref.Key == "" {
		return errors.New(field + ".infraKubeConfigSecret is missing: name the Secret, and its key, with a kubeconfig that may make virtual machines in " +
			"infraNamespace, or leave out credentials to have them in the control plane's own namespace")
	}
	if problems := validation.IsDNS1123Label(credentials.InfraNamespace); len(problems) > 0 {
		return fmt.Errorf("%s.infraNamespace %q: %s", field, credentials.InfraNamespace, problems[0])
	}
	return nil
}

// InfraCluster returns the KubevirtCluster. It is managed externally, because the control plane's address does not
// depend on it.
func (*Platform) InfraCluster(cluster platform.Cluster) *platform.Object {
	if cluster.ControlPlane == nil || cluster.ControlPlane.Status.ControlPlaneEndpoint.Host == "" {
		return nil
	}
	endpoint := cluster.ControlPlane.Status.ControlPlaneEndpoint
	infra := &kubevirtv1.KubevirtCluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.HostedCluster.Spec.InfraID}}
	return &platform.Object{
		Object: infra,
		Mutate: func() error {
			metav1.SetMetaDataAnnotation(&infra.ObjectMeta, clusterv1.ManagedByAnnotation, "external")
			infra.Spec.ControlPlaneEndpoint = &kubevirtv1.APIEndpoint{Host: endpoint.Host, Port: endpoint.Port}
			infra.Spec.InfraClusterSecretRef = nil
			if external(cluster.HostedCluster) != nil {
				infra.Spec.InfraClusterSecretRef = &corev1.ObjectReference{Kind: "Secret", Namespace: cluster.Namespace, Name: infraCredentials}
			}
			return nil
		},
		MutateStatus: func() { infra.Status.Ready = true },
	}
}

// ReconcileSecretEncryption does nothing, because the platform has no key management service.
func (*Platform) ReconcileSecretEncryption(context.Context, client.Client, platform.Cluster) error {
	return nil
}
