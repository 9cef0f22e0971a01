// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/tenantlimits"
)

// Labels and annotations of the pods of a hosted control plane.
const (
	managedByLabel          = hyperv1.ManagedByLabel
	componentLabel          = hyperv1.ControlPlaneComponentLabel
	hostedControlPlaneLabel = hyperv1.ControlPlaneNamespaceLabel
	managementAccessLabel   = hyperv1.NeedManagementKASAccessLabel
	requestServingLabel     = hyperv1.RequestServingComponentLabel
	releaseImageAnnotation  = hyperv1.ReleaseImageAnnotation
	restartDateAnnotation   = hyperv1.RestartDateAnnotation
	debugAnnotation         = hyperv1.DebugDeploymentsAnnotation
	topologyAnnotation      = hyperv1.TopologyAnnotation
	dedicatedTopology       = "dedicated-request-serving-components"
	safeToEvictAnnotation   = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"

	managedByValue = "control-plane-operator"
	pullSecretName = hosted.PullSecret

	configMapMode int32 = 0o644
	secretMode    int32 = 0o640
)

// setDefaults sets the common settings of all workloads of a hosted control plane.
func (c *Component) setDefaults(ctx context.Context, scope *Scope, w *workload) error {
	labels := w.object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[managedByLabel] = cmp.Or(scope.Operator, managedByValue)
	w.object.SetLabels(labels)
	if c.Held {
		controllerutil.AddFinalizer(w.object, heldBy)
	}

	c.setReplicas(scope.HCP, w)
	c.setPodMetadata(scope.HCP, w.template)
	c.setScheduling(scope.HCP, w)
	if c.UserCAs {
		trustUserCAs(scope.HCP, &w.template.Spec)
	}
	c.setPodSpec(scope, &w.template.Spec)
	setThrift(scope.HCP, &w.template.Spec)
	c.injectProber(scope.HCP, &w.template.Spec)
	addTmp(w.template)
	if err := c.setImages(scope, &w.template.Spec); err != nil {
		return err
	}
	if err := c.overrideRequests(scope.HCP, &w.template.Spec); err != nil {
		return err
	}
	Bound(&w.template.Spec)
	return c.stamp(ctx, scope, w)
}

// setReplicas sets the number of replicas if the manifest has none.
func (c *Component) setReplicas(hcp *hyperv1.HostedControlPlane, w *workload) {
	if w.replicas == nil {
		return
	}
	if slices.Contains(strings.Split(hcp.Annotations[debugAnnotation], ","), w.object.GetName()) {
		*w.replicas = ptr.To[int32](0)
	} else if *w.replicas == nil {
		*w.replicas = ptr.To(c.Replicas(hcp))
	}
	if d, ok := w.object.(*appsv1.Deployment); ok {
		c.setStrategy(d)
	}
}

// Replicas returns the component's number of replicas.
func (c *Component) Replicas(hcp *hyperv1.HostedControlPlane) int32 {
	switch {
	case c.Singleton || hcp.Spec.ControllerAvailabilityPolicy != hyperv1.HighlyAvailable:
		return 1
	case c.RequestServing && hcp.Annotations[topologyAnnotation] == dedicatedTopology:
		return 2
	case c.HighlyAvailableReplicas > 0:
		return c.HighlyAvailableReplicas
	default:
		return 2
	}
}

// setStrategy sets a rollout strategy that keeps a Deployment serving, if the manifest has none.
func (c *Component) setStrategy(d *appsv1.Deployment) {
	d.Spec.RevisionHistoryLimit = ptr.To[int32](2)
	if d.Spec.Strategy.Type != "" {
		return
	}
	surge, unavailable := intstr.FromInt32(1), intstr.FromInt32(0)
	switch replicas := *d.Spec.Replicas; {
	case replicas > 2:
		surge, unavailable = intstr.FromInt32(0), intstr.FromInt32(1)
	case replicas > 1 && c.RequestServing:
		unavailable = intstr.FromInt32(1)
	}
	d.Spec.Strategy = appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable},
	}
}

func (c *Component) setPodMetadata(hcp *hyperv1.HostedControlPlane, pod *corev1.PodTemplateSpec) {
	labels := map[string]string{}
	for key, value := range hcp.Spec.Labels {
		// Users must not set reserved labels. Services and NetworkPolicies select by them, so they decide which connections a
		// pod can make and accept.
		if !tenantlimits.ReservedLabel(key) {
			labels[key] = value
		}
	}
	maps.Copy(labels, pod.Labels)
	labels[componentLabel] = c.Name
	labels[hostedControlPlaneLabel] = hcp.Namespace
	if c.ManagementAccess {
		labels[managementAccessLabel] = "true"
	}
	if c.RequestServing {
		labels[requestServingLabel] = "true"
	}
	pod.Labels = labels

	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[releaseImageAnnotation] = hcp.Spec.ReleaseImage
	if date := hcp.Annotations[restartDateAnnotation]; date != "" {
		pod.Annotations[restartDateAnnotation] = date
	}
}

func (c *Component) setPodSpec(scope *Scope, pod *corev1.PodSpec) {
	pod.AutomountServiceAccountToken = ptr.To(c.ManagementAccess)
	pod.ImagePullSecrets = []corev1.LocalObjectReference{{Name: pullSecretName}}
	restrict(pod, scope.PodUID)
	for i := range pod.InitContainers {
		setContainer(&pod.InitContainers[i])
	}
	for i := range pod.Containers {
		setContainer(&pod.Containers[i])
	}
	for i := range pod.Volumes {
		setMode(&pod.Volumes[i])
	}
}

// thriftyGC is the GOGC of programs in a control plane of single replicas: Go collects garbage when it reaches half of
// the memory in use, instead of all of it. Such a control plane uses a fifth less memory (docs/performance.md). Its API
// server, which has little load, uses somewhat more CPU time.
const thriftyGC = "50"

// setThrift reduces the memory of programs in a control plane of single replicas, unless the manifest sets GOGC. All
// programs are written in Go.
func setThrift(hcp *hyperv1.HostedControlPlane, pod *corev1.PodSpec) {
	if hcp.Spec.ControllerAvailabilityPolicy == hyperv1.HighlyAvailable {
		return
	}
	for i := range pod.Containers {
		container := &pod.Containers[i]
		if !slices.ContainsFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == "GOGC" }) {
			container.Env = append(container.Env, corev1.EnvVar{Name: "GOGC", Value: thriftyGC})
		}
	}
}

// restrict sets the fields that the Pod Security level "restricted" requires of pods. uid is the user ID if the
// management cluster does not choose one.
func restrict(pod *corev1.PodSpec, uid *int64) {
	if pod.SecurityContext == nil {
		pod.SecurityContext = &corev1.PodSecurityContext{RunAsUser: uid, FSGroup: uid}
	}
	pod.SecurityContext.RunAsNonRoot = ptr.To(true)
	pod.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
}

const (
	tmpVolume      = "tmp-dir"
	netBindService = corev1.Capability("NET_BIND_SERVICE")
)

// setContainer gives a container a read-only root file system, so that no change in it persists unnoticed. It removes
// everything that the Pod Security level "restricted" forbids.
func setContainer(container *corev1.Container) {
	container.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	if container.SecurityContext == nil {
		container.SecurityContext = &corev1.SecurityContext{}
	}
	if container.SecurityContext.ReadOnlyRootFilesystem == nil {
		container.SecurityContext.ReadOnlyRootFilesystem = ptr.To(true)
	}
	container.SecurityContext.AllowPrivilegeEscalation = ptr.To(false)
	container.SecurityContext.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: allowed(container.SecurityContext.Capabilities)}
}

// allowed returns the capabilities of a manifest that the Pod Security level "restricted" allows, which is only
// NET_BIND_SERVICE.
func allowed(wanted *corev1.Capabilities) []corev1.Capability {
	if wanted != nil && slices.Contains(wanted.Add, netBindService) {
		return []corev1.Capability{netBindService}
	}
	return nil
}

func setMode(volume *corev1.Volume) {
	if volume.ConfigMap != nil && volume.ConfigMap.DefaultMode == nil {
		volume.ConfigMap.DefaultMode = ptr.To(configMapMode)
	}
	if volume.Secret != nil && volume.Secret.DefaultMode == nil {
		volume.Secret.DefaultMode = ptr.To(secretMode)
	}
}

// DisruptionBudget adapts a PodDisruptionBudget to the availability policy. Of several pods, one may be evicted at a
// time. A single pod may not be evicted.
func DisruptionBudget() Adapter {
	return Adapt(func(_ context.Context, scope *Scope, pdb *policyv1.PodDisruptionBudget) error {
		one := intstr.FromInt32(1)
		pdb.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
		if scope.HCP.Spec.ControllerAvailabilityPolicy == hyperv1.HighlyAvailable {
			pdb.Spec.MaxUnavailable = &one
		} else {
			pdb.Spec.MinAvailable = &one
		}
		return nil
	})
}

// OfSeveral reports whether the components of a control plane have several replicas. It limits manifests such as a
// PodDisruptionBudget.
func OfSeveral(scope *Scope) bool {
	return scope.HCP.Spec.ControllerAvailabilityPolicy == hyperv1.HighlyAvailable
}
