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
	"github.com/openshift/hypershift/support/nodelabels"
)

// This file is the only one that reads NodePool fields which have no effect. A test in test/integration/fields visits
// every field of the spec: a field that no other file reads must be reported here.

// WithoutEffect lists the fields that are set but have no effect with a release of a distribution. Only the operators
// in an OpenShift payload implement tuning and streams.
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

// reasonWithoutEffect is a reason of the condition AllFieldsHonored.
const reasonWithoutEffect = "FieldsWithoutEffect"

// reportFieldsWithoutEffect reports the fields that are set but have no effect. Machines are created nevertheless.
func (r *Reconciler) reportFieldsWithoutEffect(_ context.Context, s *reconciliation) (ctrl.Result, error) {
	conditionType := hyperv1.NodePoolAllFieldsHonoredConditionType
	fields := WithoutEffect(s.Pool, s.Distribution())
	if reporter, ok := s.Platform.(platform.EffectReporter); ok {
		fields = append(reporter.WithoutEffect(s.Pool), fields...)
	}
	var faults []string
	if overrider, ok := s.Platform.(platform.Overrider); ok {
		faults = overrider.Overridden(s.Pool)
	}
	// The API server refuses such labels; pools that are older than its policy may have some.
	faults = append(faults, nodelabels.Faults(s.Pool.Spec.NodeLabels)...)
	if len(fields) > 0 {
		faults = append(faults, fmt.Sprintf("Without effect for a release of %s: spec.%s; remove it",
			s.Release.Distribution(), strings.Join(fields, ", spec.")))
	}
	if len(faults) == 0 {
		s.Clear(conditionType)
		return ctrl.Result{}, nil
	}
	s.SetFalse(conditionType, reasonWithoutEffect, strings.Join(faults, ". "))
	return ctrl.Result{}, nil
}
