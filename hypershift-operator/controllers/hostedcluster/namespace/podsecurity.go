// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/management"
	"github.com/openshift/hypershift/support/upsert"
)

// enforceLabel is the namespace label that the API server's Pod Security admission enforces.
const enforceLabel = "pod-security.kubernetes.io/enforce"

// Levels of Pod Security, from the least to the most restrictive.
const (
	privileged = "privileged"
	baseline   = "baseline"
	restricted = "restricted"
)

var levels = []string{privileged, baseline, restricted}

// RestrictedPods is the label of a payload's control-plane-operator whose pods all comply with the level restricted.
const RestrictedPods = "io.openshift.hypershift.restricted-psa"

// PodSecurityLevels returns the levels that a hosted namespace can have, from the least to the most restrictive.
func PodSecurityLevels() []string { return slices.Clone(levels) }

// PodSecurity makes the API server reject pods that could harm their node. The namespace starts as restricted, until the
// payload is known to need a lower level.
type PodSecurity struct {
	Client client.Client
	// Loosest is how far the annotation of a HostedCluster may loosen the level of a payload that brings its own operators:
	// one of PodSecurityLevels, or empty for baseline.
	Loosest string
	// Able reports whether the control-plane-operator has an ability, which a label of its image names.
	Able func(ctx context.Context, ability string) (bool, error)
}

// Reconcile sets the level of the namespace.
func (r PodSecurity) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	level, err := r.payloadLevel(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	loosest := r.loosestLevel(s)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}
	_, err = upsert.Object(ctx, r.Client, namespace, func() error {
		setPodSecurity(namespace, levelOf(level, loosest, s.HC.Annotations, namespace.Annotations))
		return nil
	})
	reportLooserLevel(s, namespace)
	return ctrl.Result{}, err
}

// levelOf returns the payload's level, or the one that the cluster's annotation requests: a stricter one, or a looser
// one down to loosest. The same annotation of the namespace takes precedence, because only an administrator can write
// it.
func levelOf(payload, loosest string, ofCluster, ofNamespace map[string]string) string {
	key := hyperv1.PodSecurityAdmissionLabelOverrideAnnotation
	if decided := ofNamespace[key]; slices.Contains(levels, decided) {
		return decided
	}
	asked := slices.Index(levels, ofCluster[key])
	if asked < 0 {
		return payload
	}
	bound := min(slices.Index(levels, payload), slices.Index(levels, loosest))
	return levels[max(asked, bound)]
}

// loosestLevel returns the least strict level that the annotation of a HostedCluster may set. Pods of a Kubernetes
// payload comply with the level restricted, so no other level is allowed for them.
func (r PodSecurity) loosestLevel(s *cluster.Scope) string {
	switch {
	case !s.Distribution().OwnOperators:
		return restricted
	case slices.Contains(levels, r.Loosest):
		return r.Loosest
	default:
		return baseline
	}
}

// reportLooserLevel reports that the annotation of the HostedCluster requests a looser level than the installation
// allows.
func reportLooserLevel(s *cluster.Scope, namespace *corev1.Namespace) {
	asked := slices.Index(levels, s.HC.Annotations[hyperv1.PodSecurityAdmissionLabelOverrideAnnotation])
	got := namespace.Labels[enforceLabel]
	valid, set := s.Conditions[string(hyperv1.ValidHostedClusterConfiguration)]
	if asked < 0 || asked >= slices.Index(levels, got) || !set || valid.Status != metav1.ConditionTrue {
		return
	}
	valid.Message = fmt.Sprintf("%s; the annotation %s asks for %s, and this installation allows %s for this release; "+
		"an administrator can allow more by hypershift install --loosest-pod-security-level",
		valid.Message, hyperv1.PodSecurityAdmissionLabelOverrideAnnotation, levels[asked], got)
	s.SetCondition(valid)
}

// payloadLevel returns the strictest level that the pods of the payload comply with. Pods of this product comply with
// all levels. The label of an OpenShift operator's image only holds where SecurityContextConstraints add the missing
// settings to its pods. On other management clusters, that operator only sets the user of a pod. Older operators run as
// root, but use nothing of their node.
func (r PodSecurity) payloadLevel(ctx context.Context, s *cluster.Scope) (string, error) {
	if s.Distribution().OwnOperators && !cluster.Serves(r.Client, management.Security, "SecurityContextConstraints") {
		return baseline, nil
	}
	able, err := r.Able(ctx, RestrictedPods)
	if err != nil || !able {
		return baseline, err
	}
	return restricted, nil
}

func setPodSecurity(namespace *corev1.Namespace, level string) {
	cluster.Label(namespace, map[string]string{
		enforceLabel:                       level,
		"pod-security.kubernetes.io/audit": level,
		"pod-security.kubernetes.io/warn":  level,
	})
}
