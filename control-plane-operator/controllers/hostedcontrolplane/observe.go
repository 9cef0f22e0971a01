// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/infra"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	v2 "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
	"github.com/openshift/hypershift/support/hosted"
)

// managedByLabel selects the workloads of the control plane.
var managedByLabel = client.MatchingLabels{hyperv1.ManagedByLabel: "control-plane-operator"}

// observed is the state of the cluster; the status is computed from it and from the results of the phases.
type observed struct {
	// etcd and kas are nil if they do not exist.
	etcd *appsv1.StatefulSet
	kas  *appsv1.Deployment
	// deployments are the Deployments of the control plane.
	deployments []appsv1.Deployment
	components  []hyperv1.ControlPlaneComponent
	// hasKubeconfig reports whether the admin kubeconfig exists, hasCustomKubeconfig whether the one for the user's own
	// API server name exists.
	hasKubeconfig, hasCustomKubeconfig bool
	// encryption is the Secret of the encryption configuration, and encryptionKey the key in the cluster's spec; nil if
	// there is none.
	encryption    *corev1.Secret
	encryptionKey *hyperv1.SecretEncryptionKeyStatus
	// plugins reports whether plugins encrypt, and pluginFaults lists their faults, pod by pod.
	plugins      bool
	pluginFaults []string
	// secrets are the Secrets of the hosted namespace.
	secrets []corev1.Secret
	// refusals list the parts of the spec that components do not apply.
	refusals []error
	// unplaced are the pods that the scheduler finds no node for.
	unplaced []corev1.Pod
	// ownEtcd is why an etcd that the user provides does not serve; nil if it does, or was not queried.
	ownEtcd error
	// unhealthy is why the published API server does not answer; nil if it does, or was not queried.
	unhealthy error
	// unnamed is the error of an API server whose certificate does not name the desired address. unreached is why the
	// control plane does not reach the address that nodes should use. Both are nil if there is no fault, or if nothing
	// depends on the check.
	unnamed, unreached error
}

func (r *Reconciler) observe(ctx context.Context, s *scope) (observed, error) {
	var o observed
	in := client.InNamespace(s.hcp.Namespace)
	deployments := &appsv1.DeploymentList{}
	if err := r.Client.List(ctx, deployments, in, managedByLabel); err != nil {
		return o, fmt.Errorf("listing Deployments: %w", err)
	}
	o.deployments = deployments.Items
	for i := range o.deployments {
		if o.deployments[i].Name == kubeapiserver.Name {
			o.kas = &o.deployments[i]
		}
	}
	components := &hyperv1.ControlPlaneComponentList{}
	if err := r.Client.List(ctx, components, in); err != nil {
		return o, fmt.Errorf("listing ControlPlaneComponents: %w", err)
	}
	o.components = components.Items
	set := &appsv1.StatefulSet{}
	found, err := r.find(ctx, s.hcp.Namespace, etcd.Name, set)
	if err != nil {
		return o, err
	}
	if found {
		o.etcd = set
	}
	if o.hasKubeconfig, err = r.find(ctx, s.hcp.Namespace, pki.AdminKubeconfigRef(s.applied()).Name, &corev1.Secret{}); err != nil {
		return o, err
	}
	if o.hasCustomKubeconfig, err = r.find(ctx, s.hcp.Namespace, pki.CustomAdminKubeconfig, &corev1.Secret{}); err != nil {
		return o, err
	}
	secrets := &corev1.SecretList{}
	if err := r.Client.List(ctx, secrets, in); err != nil {
		return o, fmt.Errorf("listing Secrets: %w", err)
	}
	o.secrets = secrets.Items
	if err := r.observeEncryption(ctx, s, &o); err != nil {
		return o, err
	}
	if s.valid != nil {
		if o.refusals, err = v2.Refusals(ctx, r.Client, s.valid); err != nil {
			return o, err
		}
	}
	if o.unplaced, s.placing, err = r.unplaced(ctx, s.hcp.Namespace, r.Clock.Now()); err != nil {
		return o, err
	}
	s.placing = s.placing || len(o.unplaced) > 0
	o.unhealthy = r.askHealth(ctx, s, o)
	o.ownEtcd = r.askOwnEtcd(ctx, s, o)
	o.unnamed, o.unreached, err = r.askAddresses(ctx, s)
	return o, err
}

func (r *Reconciler) observeEncryption(ctx context.Context, s *scope, o *observed) error {
	config := &corev1.Secret{}
	found, err := r.find(ctx, s.hcp.Namespace, kubeapiserver.EncryptionSecret, config)
	if err == nil {
		err = hosted.Trusted(config)
	}
	if err != nil || !found {
		return err
	}
	o.encryption = config
	o.encryptionKey = kubeapiserver.WantedKey(ctx, r.Client, s.applied())
	return r.observePlugins(ctx, s.hcp.Namespace, o)
}

// observePlugins checks the plugins in the API servers' pods, and asks the running API servers whether their plugins
// answer.
func (r *Reconciler) observePlugins(ctx context.Context, namespace string, o *observed) error {
	pods := &corev1.PodList{}
	if err := r.Client.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{"app": kubeapiserver.Name}); err != nil {
		return fmt.Errorf("listing the pods of %s: %w", kubeapiserver.Name, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !kubeapiserver.HasPlugins(&pod.Spec) || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		o.plugins = true
		fault := kubeapiserver.PluginFault(pod)
		if fault == "" && pod.Status.PodIP != "" && pod.Status.Phase == corev1.PodRunning {
			fault = r.Plugins(ctx, pod.Status.PodIP)
		}
		if fault != "" {
			o.pluginFaults = append(o.pluginFaults, fmt.Sprintf("pod %s: %s", pod.Name, fault))
		}
	}
	slices.Sort(o.pluginFaults)
	return nil
}

// askHealth checks the published API server once its pods are available. It does not check a NodePort: its address is
// in the machine network, which pods of the management cluster possibly cannot reach.
func (r *Reconciler) askHealth(ctx context.Context, s *scope, o observed) error {
	strategy, _ := infra.Strategy(s.applied(), hyperv1.APIServer)
	if s.infra == nil || strategy.Type == hyperv1.NodePort || !deploymentAvailable(o.kas) {
		return nil
	}
	return r.Health(ctx, s.infra.API)
}

// askOwnEtcd checks an etcd that the user provides, unless an API server is available. An available API server has
// reached that etcd itself, possibly from a network where this operator is blocked.
func (r *Reconciler) askOwnEtcd(ctx context.Context, s *scope, o observed) error {
	hcp := s.applied()
	if !pki.BringsEtcd(hcp) || deploymentAvailable(o.kas) {
		return nil
	}
	if fault, ok := errors.AsType[*pki.OwnEtcdError](s.pkiErr); ok {
		return fault
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	return r.OwnEtcd(ctx, r.Client, hcp)
}

func (r *Reconciler) find(ctx context.Context, namespace, name string, obj client.Object) (bool, error) {
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %T %s/%s: %w", obj, namespace, name, err)
	}
	return true, nil
}

// updateStatus computes the status and writes it if it changed.
func (r *Reconciler) updateStatus(ctx context.Context, s *scope, _ error) error {
	o, err := r.observe(ctx, s)
	if err != nil {
		return err
	}
	before := s.hcp.Status
	s.hcp.Status = status(s, o, r.Clock.Now())
	return r.writeStatus(ctx, s.hcp, before)
}

// writeStatus writes the status if it changed.
func (r *Reconciler) writeStatus(ctx context.Context, hcp *hyperv1.HostedControlPlane, before hyperv1.HostedControlPlaneStatus) error {
	if equality.Semantic.DeepEqual(before, hcp.Status) {
		return nil
	}
	// Use an update, not a merge patch: the schema requires nulls in the version's history, which a merge patch cannot
	// express. The optimistic lock of the update also preserves the conditions that other operators write concurrently.
	if err := r.Client.Status().Update(ctx, hcp); err != nil {
		return fmt.Errorf("writing the status of HostedControlPlane %s/%s: %w", hcp.Namespace, hcp.Name, err)
	}
	return nil
}
