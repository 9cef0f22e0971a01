// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"fmt"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/distributions"
)

// This file is the one place that looks at fields of a NodePool which nothing honours. A test in test/integration/fields walks the
// whole spec: what no other file reads must be reported here.

// WithoutEffect lists fields that are set and that change nothing with a release of a distribution: tuning and streams are the business
// of the operators in an OpenShift payload.
func WithoutEffect(pool *hyperv1.NodePool, distribution distributions.Traits) []string {
	var fields []string
	if distribution.OwnOperators {
		return fields
	}
	if len(pool.Spec.TuningConfig) > 0 {
		fields = append(fields, "tuningConfig")
	}
	if pool.Spec.OSImageStream != nil {
		fields = append(fields, "osImageStream")
	}
	return fields
}

// reasonWithoutEffect is one of AllFieldsHonored.
const reasonWithoutEffect = "FieldsWithoutEffect"

// reportFieldsWithoutEffect says which fields the user set in vain. Machines are made all the same.
func (r *Reconciler) reportFieldsWithoutEffect(_ context.Context, s *scope) (ctrl.Result, error) {
	conditionType := hyperv1.NodePoolAllFieldsHonoredConditionType
	fields := WithoutEffect(s.pool, s.distribution())
	if reporter, ok := s.platform.(platform.EffectReporter); ok {
		fields = append(reporter.WithoutEffect(s.pool), fields...)
	}
	if len(fields) == 0 {
		s.clear(conditionType)
		return ctrl.Result{}, nil
	}
	s.reject(conditionType, reasonWithoutEffect, fmt.Sprintf("Set without effect, as this operator does nothing with it for a release of %s: spec.%s; remove it",
		s.release.Distribution(),
		strings.Join(fields, ", spec.")))
	return ctrl.Result{}, nil
}
