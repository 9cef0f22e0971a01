// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/upsert"
)

// Names that the node tuning operator of an OpenShift payload reads and writes in the hosted control plane namespace
// (openshift/cluster-node-tuning-operator, 4.14 to main). The key of the label with the pool's name is
// hyperv1.NodePoolAnnotation.
const (
	tuningKey               = "tuning"
	tunedLabel              = "hypershift.openshift.io/tuned-config"
	performanceProfileLabel = "hypershift.openshift.io/performanceprofile-config"
	performanceStatusLabel  = "hypershift.openshift.io/nto-generated-performance-profile-status" //nolint:misspell // a name on the wire
	mirroredLabel           = "hypershift.openshift.io/mirrored-config"
	kubeletConfigLabel      = "hypershift.openshift.io/kubeletconfig-config"
	runtimeConfigLabel      = "hypershift.openshift.io/containerruntimeconfig-config"
	// maxConfigName is the longest name that fits a label's value.
	maxConfigName = 63
)

// reconcileTuning passes the pool's tuning to the payload's node tuning operator. Nodes are not created until the
// tuning is valid, because tuning changes their configuration, which would replace them again.
func (r *Reconciler) reconcileTuning(ctx context.Context, s *reconciliation) (ctrl.Result, error) {
	conditionType := hyperv1.NodePoolValidTuningConfigConditionType
	if !s.Distribution().OwnOperators {
		s.Clear(conditionType)
		return ctrl.Result{}, nil
	}
	wanted, err := r.tuning(ctx, s)
	if err != nil {
		s.SetFalse(conditionType, hyperv1.NodePoolValidationFailedReason, err.Error())
		return ctrl.Result{RequeueAfter: releaseRetry}, r.stopHolding(ctx, s, hyperv1.NodePoolValidationFailedReason, err.Error())
	}
	mirrored, err := r.mirroredConfigs(ctx, s)
	if err != nil {
		s.SetFalse(hyperv1.NodePoolValidMachineConfigConditionType, hyperv1.NodePoolValidationFailedReason, err.Error())
		return ctrl.Result{RequeueAfter: releaseRetry}, r.stopHolding(ctx, s, hyperv1.NodePoolValidationFailedReason, err.Error())
	}
	s.SetTrue(conditionType, hyperv1.AllIsWellMessage)
	return ctrl.Result{}, r.handOver(ctx, s, append(wanted, mirrored...))
}

// tuning returns the ConfigMaps of spec.tuningConfig in the form that the node tuning operator reads. One ConfigMap
// contains all Tuneds, and a second one the PerformanceProfile.
func (r *Reconciler) tuning(ctx context.Context, s *reconciliation) ([]*corev1.ConfigMap, error) {
	var tuneds []string
	var profile *corev1.ConfigMap
	for _, ref := range s.Pool.Spec.TuningConfig {
		source, err := r.userConfig(ctx, s, "spec.tuningConfig", ref.Name, tuningKey)
		if err != nil {
			return nil, err
		}
		read, err := nodeinput.ReadTuning(source.Data[tuningKey])
		if err != nil {
			return nil, fmt.Errorf("spec.tuningConfig: the ConfigMap %s/%s cannot be used: %w", source.Namespace, source.Name, err)
		}
		tuneds = append(tuneds, read.Tuneds...)
		for _, document := range read.Profiles {
			if profile != nil {
				return nil, fmt.Errorf("spec.tuningConfig: the ConfigMap %s holds a PerformanceProfile, and a NodePool takes one only: leave one out", source.Name)
			}
			profile = s.handedOver(naming.Join(source.Name, s.Pool.Name, maxConfigName), document, performanceProfileLabel)
		}
	}
	var all []*corev1.ConfigMap
	if len(tuneds) > 0 {
		slices.Sort(tuneds)
		all = append(all, s.handedOver("tuned-"+s.Pool.Name, strings.Join(tuneds, documentSeparator), tunedLabel))
	}
	if profile != nil {
		all = append(all, profile)
	}
	return all, nil
}

func (s *reconciliation) handedOver(name, document, label string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace(), Name: name, Labels: map[string]string{label: "true"}},
		Data:       map[string]string{tuningKey: document},
	}
}

// mirroredConfigs returns copies of the user's ConfigMaps with a KubeletConfig or ContainerRuntimeConfig, with which
// tuning must agree. A pool accepts only one KubeletConfig, from the user or from tuning.
func (r *Reconciler) mirroredConfigs(ctx context.Context, s *reconciliation) ([]*corev1.ConfigMap, error) {
	user, err := r.userConfigs(ctx, s)
	if err != nil {
		return nil, err
	}
	var all []*corev1.ConfigMap
	var kubelet []string
	for _, source := range user {
		labels := map[string]string{}
		kinds, err := nodeinput.Kinds(source.Data[configKey])
		if err != nil {
			return nil, fmt.Errorf("the ConfigMap %s/%s holds a configuration that cannot be used: %w", source.Namespace, source.Name, err)
		}
		for _, kind := range kinds {
			switch kind {
			case "KubeletConfig":
				labels[kubeletConfigLabel] = "true"
				kubelet = append(kubelet, source.Name)
			case "ContainerRuntimeConfig":
				labels[runtimeConfigLabel] = "true"
			}
		}
		if len(labels) == 0 {
			continue
		}
		labels[mirroredLabel] = "true"
		all = append(all, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace(), Name: naming.Join(source.Name, s.Pool.Name, maxConfigName), Labels: labels},
			Data:       source.Data,
		})
	}
	made, err := r.listConfigs(ctx, s.Namespace(), client.MatchingLabels{tunedGeneratedLabel: "true", kubeletConfigLabel: "true", hyperv1.NodePoolAnnotation: s.Pool.Name})
	for _, generated := range made {
		kubelet = append(kubelet, generated.Name)
	}
	if len(kubelet) > 1 {
		return nil, fmt.Errorf("the NodePool has more than one KubeletConfig, in the ConfigMaps %s: keep one (a PerformanceProfile makes one too)", strings.Join(kubelet, ", "))
	}
	return all, err
}

// handOver writes ConfigMaps to the hosted control plane namespace, and deletes the pool's earlier ones that are no
// longer desired.
func (r *Reconciler) handOver(ctx context.Context, s *reconciliation, wanted []*corev1.ConfigMap) error {
	var failures []error
	keep := map[string]bool{}
	for _, want := range wanted {
		keep[want.Name] = true
		written := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: want.Name}}
		_, err := upsert.Object(ctx, r.Client, written, func() error {
			scope.Annotate(written, hyperv1.NodePoolAnnotation, s.Key())
			written.Labels = want.Labels
			written.Labels[hyperv1.NodePoolAnnotation] = s.Pool.Name
			written.Data = want.Data
			return nil
		})
		failures = append(failures, err)
	}
	for _, label := range []string{tunedLabel, performanceProfileLabel, mirroredLabel} {
		old, err := r.listConfigs(ctx, s.Namespace(), client.MatchingLabels{label: "true"})
		failures = append(failures, err)
		for i := range old {
			if !keep[old[i].Name] && old[i].Annotations[hyperv1.NodePoolAnnotation] == s.Key() {
				failures = append(failures, client.IgnoreNotFound(r.Client.Delete(ctx, &old[i])))
			}
		}
	}
	return errors.Join(failures...)
}
