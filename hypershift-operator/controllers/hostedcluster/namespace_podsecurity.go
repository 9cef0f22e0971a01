// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/upsert"
)

// enforceLabel is what the API server's Pod Security admission goes by.
const enforceLabel = "pod-security.kubernetes.io/enforce"

// Levels of Pod Security, of which the later forbid more.
const (
	privileged = "privileged"
	baseline   = "baseline"
	restricted = "restricted"
)

var levels = []string{privileged, baseline, restricted}

// restrictedPods is the label of a payload's control-plane-operator whose pods all pass the level restricted.
const restrictedPods = "io.openshift.hypershift.restricted-psa"

// reconcilePodSecurity has the API server refuse pods that could hurt the node they run on. The namespace is made restricted, and
// stays it until the payload turns out to be one that cannot live with that.
func (r *Reconciler) reconcilePodSecurity(ctx context.Context, s *scope) (ctrl.Result, error) {
	level, err := r.payloadLevel(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	_, err = upsert.Object(ctx, r.Client, namespace, func() error {
		setPodSecurity(namespace, levelOf(level, s.hc.Annotations, namespace.Annotations))
		return nil
	})
	return ctrl.Result{}, err
}

// levelOf is the payload's level, or a stricter one that the cluster's annotation asks for. The same annotation of the namespace,
// which only an administrator can give it, decides alone.
func levelOf(payload string, ofCluster, ofNamespace map[string]string) string {
	key := hyperv1.PodSecurityAdmissionLabelOverrideAnnotation
	if decided := ofNamespace[key]; slices.Contains(levels, decided) {
		return decided
	}
	return levels[max(slices.Index(levels, payload), slices.Index(levels, ofCluster[key]))]
}

// payloadLevel is the strictest level that the pods of the payload pass. Ours pass all; of those of another operator only its image
// can tell, and older ones that do not say run as root, yet touch nothing of their node.
func (r *Reconciler) payloadLevel(ctx context.Context, s *scope) (string, error) {
	able, err := r.operatorIsAble(ctx, s, restrictedPods)
	if err != nil || !able {
		return baseline, err
	}
	return restricted, nil
}

// operatorIsAble tells whether the control-plane-operator has an ability that its image says by a label. Ours has all of them. A
// cluster's annotation may say it in the image's place, and cannot deny it.
func (r *Reconciler) operatorIsAble(ctx context.Context, s *scope, ability string) (bool, error) {
	said := strings.Split(s.hc.Annotations[hyperv1.ControlPlaneOperatorImageLabelsAnnotation], ",")
	if !s.distribution().OwnOperators || slices.Contains(said, ability+"=true") {
		return true, nil
	}
	image := r.controlPlaneOperatorImage(s)
	labels, err := r.Releases.Labels(ctx, image, s.registryAccess())
	if err != nil {
		return false, fmt.Errorf("finding out what %s is able to do: %w", image, err)
	}
	return labels[ability] == "true", nil
}

func setPodSecurity(namespace *corev1.Namespace, level string) {
	label(namespace, map[string]string{
		enforceLabel:                       level,
		"pod-security.kubernetes.io/audit": level,
		"pod-security.kubernetes.io/warn":  level,
	})
}
