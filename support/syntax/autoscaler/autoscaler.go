// SPDX-License-Identifier: Apache-2.0

// Package autoscaler writes the annotations by which the cluster autoscaler knows the labels and taints of a node that
// does not exist yet. Their formats are "key=value,key=value" and "key=value:effect,key:effect", without escapes.
package autoscaler

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/syntax"
)

// effects are the effects of taints.
var effects = []corev1.TaintEffect{
	corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute,
}

// Labels writes labels, sorted by key. It refuses what the API server would not accept as a label of a node.
func Labels(field string, labels map[string]string) (string, error) {
	items := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if err := check(field, key, labels[key]); err != nil {
			return "", err
		}
		items = append(items, key+"="+labels[key])
	}
	return strings.Join(items, ","), nil
}

// Taints writes taints in their order. It refuses what the API server would not accept as a taint of a node.
func Taints(field string, taints []hyperv1.Taint) (string, error) {
	items := make([]string, 0, len(taints))
	for _, taint := range taints {
		if err := check(field, taint.Key, taint.Value); err != nil {
			return "", err
		}
		if !slices.Contains(effects, taint.Effect) {
			return "", syntax.Refuse(field, "has an unknown effect; use NoSchedule, PreferNoSchedule or NoExecute")
		}
		item := taint.Key
		if taint.Value != "" {
			item += "=" + taint.Value
		}
		items = append(items, item+":"+string(taint.Effect))
	}
	return strings.Join(items, ","), nil
}

// ValidValue reports whether a text can be the value of a label.
func ValidValue(text string) bool { return len(validation.IsValidLabelValue(text)) == 0 }

func check(field, key, value string) error {
	if len(validation.IsQualifiedName(key)) > 0 {
		return syntax.Refuse(field, "has a key that is not a valid label key; write it as in example.com/rack")
	}
	if !ValidValue(value) {
		return syntax.Refuse(field, "has a value that is not a valid label value; "+
			"use at most 63 letters, digits, and - _ . between them")
	}
	return nil
}
