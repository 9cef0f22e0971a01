// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/secrets"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/platforms"
	"github.com/openshift/hypershift/support/reference"
	"github.com/openshift/hypershift/support/upsert"
)

// copySettles is the delay between the creation of a copy and its first use by an existing HostedControlPlane.
const copySettles = 5 * time.Second

// reconcileControlPlane writes the HostedControlPlane, which is the contract with the control-plane-operator.
func (r *Reconciler) reconcileControlPlane(ctx context.Context, s *scope) (ctrl.Result, error) {
	if err := s.refusePlugin(); err != nil {
		return ctrl.Result{}, err
	}
	if s.inputs.NewCopy && s.HCP != nil {
		// The operators of the control plane read a copy immediately once it is named. Their caches must contain it by then.
		return ctrl.Result{RequeueAfter: copySettles}, phase.ErrStop
	}
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.HC.Name}}
	_, err := upsert.Object(ctx, r.Client, hcp, func() error {
		s.Own(hcp)
		mirrorLabels(s.HC, hcp)
		mirrorAnnotations(s.HC, hcp)
		setPresence(hcp, hyperv1.DisableClusterAutoscalerAnnotation, "true", !s.autoscaled())
		return s.shapeControlPlane(hcp)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	s.HCP = hcp
	return ctrl.Result{}, nil
}

// refusePlugin rejects a KMS plugin of the user for an OpenShift release, because its operators do not support one.
func (s *scope) refusePlugin() error {
	if secrets.KMSPlugin(s.HC) == nil || s.wantedControlPlane == nil || !distributions.Of(s.wantedControlPlane.Distribution()).OwnOperators {
		return nil
	}
	err := errors.New("spec.secretEncryption.kms.provider Plugin needs a Kubernetes release: choose aescbc, or a provider that OpenShift has")
	s.Reject(hyperv1.ValidHostedClusterConfiguration, hyperv1.InvalidConfigurationReason, err.Error())
	return err
}

// autoscaled reports whether the autoscaler scales any pool of the cluster.
func (s *scope) autoscaled() bool {
	return slices.ContainsFunc(s.Pools, func(pool hyperv1.NodePool) bool { return pool.Spec.AutoScaling != nil })
}

// shapeControlPlane copies the spec. References point to the copies in the hosted namespace, so that the control plane
// reads no name that a user chose.
func (s *scope) shapeControlPlane(hcp *hyperv1.HostedControlPlane) error {
	from, to := s.HC.Spec.DeepCopy(), &hcp.Spec
	hosted.PointToCopies(from)
	traits, known := platforms.Of(from.Platform.Type)
	if !known {
		return fmt.Errorf("platform %s has no traits", from.Platform.Type)
	}
	to.Platform = from.Platform
	if virtual := to.Platform.Kubevirt; virtual != nil && virtual.Credentials != nil &&
		virtual.Credentials.InfraKubeConfigSecret != nil {
		virtual.Credentials.InfraKubeConfigSecret.Name = hosted.KubevirtCredentials
	}
	if to.Platform.MAAS != nil {
		to.Platform.MAAS.IdentityRef.Name = hosted.CopyName(hosted.UsePlatform, to.Platform.MAAS.IdentityRef.Name)
	}
	if traits.ControlPlaneType != from.Platform.Type {
		to.Platform = hyperv1.PlatformSpec{Type: traits.ControlPlaneType}
	}
	s.nameReleases(hcp)
	to.PullSecret = corev1.LocalObjectReference{Name: naming.PullSecret}
	to.SSHKey = corev1.LocalObjectReference{}
	if from.SSHKey.Name != "" {
		to.SSHKey.Name = naming.SSHKey
	}
	to.AdditionalTrustBundle = nil
	if reference.Name(from.AdditionalTrustBundle) != "" {
		to.AdditionalTrustBundle = &corev1.LocalObjectReference{Name: naming.TrustBundle}
	}
	to.UpdateService, to.Channel = from.UpdateService, from.Channel
	to.AuditWebhook = reference.Named(from.AuditWebhook)
	to.FIPS = from.FIPS
	to.IssuerURL = from.IssuerURL
	to.ServiceAccountSigningKey = nil
	if reference.Name(from.ServiceAccountSigningKey) != "" {
		to.ServiceAccountSigningKey = &corev1.LocalObjectReference{Name: naming.SAKey}
	}
	to.Networking = from.Networking
	to.ClusterID, to.InfraID = from.ClusterID, from.InfraID
	to.DNS = from.DNS
	keepNodePorts(from.Services, to.Services, s.HC.Status)
	to.Services = s.publishable(from.Services, to.Services)
	to.ControllerAvailabilityPolicy = from.ControllerAvailabilityPolicy
	to.InfrastructureAvailabilityPolicy = from.InfrastructureAvailabilityPolicy
	s.keepVolumes(from.Etcd, to.Etcd)
	to.Etcd = from.Etcd
	to.ImageContentSources = from.ImageContentSources
	if from.SecretEncryption != nil {
		to.SecretEncryption = from.SecretEncryption
	}
	to.KubeAPIServerDNSName = from.KubeAPIServerDNSName
	to.PausedUntil = from.PausedUntil
	to.OLMCatalogPlacement = from.OLMCatalogPlacement
	to.Autoscaling = from.Autoscaling
	to.AutoNode = from.AutoNode
	to.NodeSelector, to.Tolerations, to.Labels = from.NodeSelector, from.Tolerations, from.Labels
	to.Configuration = from.Configuration
	to.Capabilities = from.Capabilities
	to.OperatorConfiguration = from.OperatorConfiguration
	to.Addons = from.Addons
	to.Monitoring = from.Monitoring
	return nil
}

// nameReleases sets the releases of the control plane and its nodes, and the references from which they were resolved.
func (s *scope) nameReleases(hcp *hyperv1.HostedControlPlane) {
	i := s.images
	hcp.Spec.ReleaseImage, hcp.Spec.ControlPlaneReleaseImage = i.release, nil
	if i.controlPlane != "" {
		hcp.Spec.ControlPlaneReleaseImage = &i.controlPlane
	}
	cluster.Annotate(hcp, hyperv1.ReleaseImageSourceAnnotation, i.releaseSource)
	setPresence(hcp, hyperv1.ControlPlaneReleaseImageSourceAnnotation, i.controlPlaneSource, i.controlPlane != "")
}

// mirroredPrefix is the prefix of user labels that are copied to control planes.
const mirroredPrefix = "api.openshift.com/"

func mirrorLabels(hc *hyperv1.HostedCluster, hcp *hyperv1.HostedControlPlane) {
	for key := range hcp.Labels {
		if _, still := hc.Labels[key]; strings.HasPrefix(key, mirroredPrefix) && !still {
			delete(hcp.Labels, key)
		}
	}
	for key, value := range hc.Labels {
		if strings.HasPrefix(key, mirroredPrefix) {
			cluster.Label(hcp, map[string]string{key: value})
		}
	}
}

// mirroredPrefixes and mirroredAnnotations name the annotations of the cluster that the control-plane-operator reads.
var mirroredPrefixes = []string{hyperv1.IdentityProviderOverridesAnnotationPrefix, hyperv1.ResourceRequestOverrideAnnotationPrefix}

var mirroredAnnotations = []string{
	hyperv1.DisablePKIReconciliationAnnotation, hyperv1.OauthLoginURLOverrideAnnotation,
	hyperv1.KonnectivityAgentImageAnnotation, hyperv1.KonnectivityServerImageAnnotation, hyperv1.ClusterAutoscalerImage,
	hyperv1.IBMCloudKMSProviderImage, hyperv1.AWSKMSProviderImage, hyperv1.PortierisImageAnnotation,
	hyperv1.DebugDeploymentsAnnotation, hyperv1.DisableProfilingAnnotation, hyperv1.DisableMonitoringServices, hyperv1.PrivateIngressControllerAnnotation,
	hyperv1.IngressControllerLoadBalancerScope, hyperv1.CleanupCloudResourcesAnnotation, hyperv1.ControlPlanePriorityClass,
	hyperv1.APICriticalPriorityClass, hyperv1.EtcdPriorityClass, hyperv1.EnsureExistsPullSecretReconcile,
	hyperv1.TopologyAnnotation, hyperv1.DisableMachineManagement, hyperv1.CertifiedOperatorsCatalogImageAnnotation,
	hyperv1.CommunityOperatorsCatalogImageAnnotation, hyperv1.RedHatMarketplaceCatalogImageAnnotation,
	hyperv1.RedHatOperatorsCatalogImageAnnotation, hyperv1.OLMCatalogsISRegistryOverridesAnnotation,
	hyperv1.KubeAPIServerGOGCAnnotation, hyperv1.KubeAPIServerGOMemoryLimitAnnotation,
	hyperv1.KubeAPIServerVerbosityLevelAnnotation, hyperv1.KubeAPIServerMaximumRequestsInFlight,
	hyperv1.KubeAPIServerMaximumMutatingRequestsInFlight, hyperv1.KubeAPIServerGoAwayChance,
	hyperv1.KubeAPIServerServiceAccountTokenMaxExpiration, hyperv1.RequestServingNodeAdditionalSelectorAnnotation,
	hyperv1.ManagementPlatformAnnotation, hyperv1.DisableIgnitionServerAnnotation,
	hyperv1.HostedClusterRestoredFromBackupAnnotation, hyperv1.RestoringAnnotation, hyperv1.EnableMetricsForwarding,
	hyperv1.CertificateValidityAnnotation, hyperv1.CertificateRenewalAnnotation,
	hyperv1.RotateSignersAnnotation, hyperv1.SignerOverlapAnnotation, hyperv1.AddressOverlapAnnotation,
}

// mirrorAnnotations copies the annotations for the control-plane-operator, and deletes those that the cluster no longer
// has.
func mirrorAnnotations(hc *hyperv1.HostedCluster, hcp *hyperv1.HostedControlPlane) {
	for _, key := range mirroredAnnotations {
		value, wanted := hc.Annotations[key]
		setPresence(hcp, key, value, wanted)
	}
	for key := range hcp.Annotations {
		if _, still := hc.Annotations[key]; hasAnyPrefix(key, mirroredPrefixes) && !still {
			delete(hcp.Annotations, key)
		}
	}
	for key, value := range hc.Annotations {
		if hasAnyPrefix(key, mirroredPrefixes) {
			cluster.Annotate(hcp, key, value)
		}
	}
	mirrorRestart(hc, hcp)
}

// mirrorRestart copies each restart request only once, because other writers later set the same annotation.
func mirrorRestart(hc *hyperv1.HostedCluster, hcp *hyperv1.HostedControlPlane) {
	wanted := hc.Annotations[hyperv1.RestartDateAnnotation]
	if wanted == "" || hcp.Annotations[hyperv1.PreviousRestartDateAnnotation] == wanted {
		return
	}
	cluster.Annotate(hcp, hyperv1.RestartDateAnnotation, wanted)
	cluster.Annotate(hcp, hyperv1.PreviousRestartDateAnnotation, wanted)
}

func hasAnyPrefix(text string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}

func setPresence(hcp *hyperv1.HostedControlPlane, key, value string, wanted bool) {
	if wanted {
		cluster.Annotate(hcp, key, value)
		return
	}
	delete(hcp.Annotations, key)
}
