// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/platforms"
)

// validateAutoscaling reports whether the autoscaler sets the number of machines.
func (r *Reconciler) validateAutoscaling(_ context.Context, s *reconciliation) (ctrl.Result, error) {
	scaling := s.Pool.Spec.AutoScaling
	conditionType := hyperv1.NodePoolAutoscalingEnabledConditionType
	_, _, err := s.marksOfNode()
	switch {
	case scaling == nil:
		s.SetFalse(conditionType, hyperv1.AsExpectedReason, "Autoscaling is off: spec.replicas sets the number of machines")
	case scalingMin(s.Pool) == 0 && !s.Traits().ScalesFromZero:
		s.SetFalse(conditionType, hyperv1.NodePoolValidationFailedReason, fmt.Sprintf(
			"spec.autoScaling.min is 0, but platform %s cannot scale from zero: set it to 1 or more; until then, 1 is used", s.Pool.Spec.Platform.Type))
	case err != nil:
		s.SetFalse(conditionType, hyperv1.NodePoolValidationFailedReason, fmt.Sprintf(
			"The autoscaler gets no labels and taints of this pool's nodes: %v", err))
	default:
		s.SetTrue(conditionType, fmt.Sprintf("The autoscaler keeps between %d and %d machines", scalingMin(s.Pool), scaling.Max))
	}
	return ctrl.Result{}, nil
}

// autoscalerTag is the name of the autoscaler's image in a payload.
const autoscalerTag = "cluster-autoscaler"

// validateAutoscaler reports that the release has no autoscaler although the pool needs one. The autoscaler comes from
// the cluster's payload, which is the pool's payload or a newer one of the same distribution.
func (s *reconciliation) validateAutoscaler() {
	_, inPayload := s.Release.ComponentImage(autoscalerTag)
	if s.Pool.Spec.AutoScaling == nil || inPayload || s.HC.Annotations[hyperv1.ClusterAutoscalerImage] != "" {
		return
	}
	s.SetFalse(hyperv1.NodePoolAutoscalingEnabledConditionType, hyperv1.NodePoolValidationFailedReason, fmt.Sprintf(
		"The release %s brings no %s, so nothing changes the number of machines: name an image in the annotation %s of the HostedCluster, or set spec.replicas",
		s.Release.Version(), autoscalerTag, hyperv1.ClusterAutoscalerImage))
}

// validateManagement checks the update settings of machines.
func (r *Reconciler) validateManagement(_ context.Context, s *reconciliation) (ctrl.Result, error) {
	conditionType := hyperv1.NodePoolUpdateManagementEnabledConditionType
	if why := managementFault(s.Pool.Spec.Management); why != "" {
		s.SetFalse(conditionType, hyperv1.NodePoolValidationFailedReason, why)
		return ctrl.Result{}, phase.ErrStop
	}
	s.SetTrue(conditionType, fmt.Sprintf("Machines are updated by %s", s.Pool.Spec.Management.UpgradeType))
	return ctrl.Result{}, nil
}

func managementFault(management hyperv1.NodePoolManagement) string {
	if management.UpgradeType != hyperv1.UpgradeTypeReplace {
		return ""
	}
	replace := management.Replace
	switch {
	case replace == nil:
		return "spec.management.replace is missing: set it, or use the upgrade type InPlace"
	case replace.Strategy != hyperv1.UpgradeStrategyRollingUpdate && replace.Strategy != hyperv1.UpgradeStrategyOnDelete:
		return fmt.Sprintf("spec.management.replace.strategy is %q: use RollingUpdate or OnDelete", replace.Strategy)
	case replace.Strategy == hyperv1.UpgradeStrategyRollingUpdate && replace.RollingUpdate == nil:
		return "spec.management.replace.rollingUpdate is missing: set maxSurge and maxUnavailable"
	}
	return ""
}

// reconcilePlatform checks the pool's platform settings.
func (r *Reconciler) reconcilePlatform(ctx context.Context, s *reconciliation) (ctrl.Result, error) {
	if !s.PlatformServed {
		s.SetFalse(hyperv1.NodePoolValidPlatformConfigConditionType, hyperv1.NodePoolValidationFailedReason, fmt.Sprintf(
			"This operator cannot make machines of platform %s: %s", s.Pool.Spec.Platform.Type, r.Platforms.Why(s.Pool.Spec.Platform.Type)))
		return ctrl.Result{}, phase.ErrStop
	}
	if s.Pool.Spec.Platform.Type != s.HC.Spec.Platform.Type {
		s.SetFalse(hyperv1.NodePoolValidPlatformConfigConditionType, hyperv1.NodePoolValidationFailedReason, fmt.Sprintf(
			"spec.platform.type is %s but the HostedCluster's is %s: they must be the same", s.Pool.Spec.Platform.Type, s.HC.Spec.Platform.Type))
		return ctrl.Result{}, phase.ErrStop
	}
	if err := s.validatePlatform(); err != nil {
		return ctrl.Result{}, err
	}
	result, err := r.checkIdentity(ctx, s)
	if err != nil {
		return result, err
	}
	if why := architectureFault(s.Pool, s.HC, s.Traits()); why != "" {
		s.SetFalse(hyperv1.NodePoolValidArchPlatform, hyperv1.NodePoolInvalidArchPlatform, why)
		return result, phase.ErrStop
	}
	s.SetTrue(hyperv1.NodePoolValidArchPlatform, hyperv1.AllIsWellMessage)
	return result, nil
}

// checkIdentity rejects a pool whose credentials belong to another platform account than the cluster's.
func (r *Reconciler) checkIdentity(ctx context.Context, s *reconciliation) (ctrl.Result, error) {
	checker, ok := s.Platform.(platform.IdentityChecker)
	if !ok {
		return ctrl.Result{}, nil
	}
	why, again, err := checker.CheckIdentity(ctx, r.Client, s.View())
	result := ctrl.Result{RequeueAfter: again}
	if err != nil || why == "" {
		return result, err
	}
	s.SetFalse(hyperv1.NodePoolValidPlatformConfigConditionType, hyperv1.NodePoolValidationFailedReason, why)
	return result, phase.ErrStop
}

// validatePlatform lets the plugin validate the pool. It is called before the payload is known, once it is known, and
// once the operating system stream is chosen.
func (s *reconciliation) validatePlatform() error {
	err := s.Platform.ValidateNodePool(s.View())
	var fault *platform.Fault
	if err != nil && !errors.As(err, &fault) {
		s.SetFalse(hyperv1.NodePoolValidPlatformConfigConditionType, hyperv1.NodePoolValidationFailedReason, err.Error())
		return phase.ErrStop
	}
	s.reportFault(fault)
	s.SetTrue(hyperv1.NodePoolValidPlatformConfigConditionType, hyperv1.AllIsWellMessage)
	if fault != nil {
		return phase.ErrStop
	}
	return nil
}

// reportFault sets the conditions for what the platform waits for and for what it found, and clears the others. Without
// the payload, the findings are not known yet.
func (s *reconciliation) reportFault(fault *platform.Fault) {
	if fault != nil {
		s.SetFalse(fault.Condition, fault.Reason, fault.Message)
	}
	if s.Release == nil {
		return
	}
	found := map[string]string{}
	if finder, ok := s.Platform.(platform.Finder); ok {
		for _, finding := range finder.Findings(s.View()) {
			found[finding.Condition] = finding.Message
		}
	}
	for _, conditionType := range []string{hyperv1.NodePoolValidPlatformImageType, hyperv1.NodePoolAWSSecurityGroupAvailableConditionType} {
		if fault != nil && fault.Condition == conditionType {
			continue
		}
		if message, told := found[conditionType]; told {
			s.SetTrue(conditionType, message)
		} else if !s.keeps(conditionType) {
			s.Clear(conditionType)
		}
	}
}

// keeps reports whether reportFault must keep a condition, because the platform's ImageKeeper sets it later.
func (s *reconciliation) keeps(conditionType string) bool {
	_, keeper := s.Platform.(platform.ImageKeeper)
	return keeper && conditionType == hyperv1.NodePoolValidPlatformImageType
}

func architectureFault(pool *hyperv1.NodePool, hc *hyperv1.HostedCluster, traits platforms.Traits) string {
	if !traits.Supports(pool.Spec.Arch) {
		return fmt.Sprintf("spec.arch %s is not supported on platform %s: use one of %v", pool.Spec.Arch, traits.Type, traits.Architectures)
	}
	arch := hc.Status.PayloadArch
	if arch == "" || arch == hyperv1.Multi || pool.Spec.Arch == "" {
		return ""
	}
	if payloadArchs[pool.Spec.Arch] != arch {
		return fmt.Sprintf("spec.arch is %s but the cluster's release image is for %s only: use a multi-architecture release image", pool.Spec.Arch, arch)
	}
	return ""
}

var payloadArchs = map[string]hyperv1.PayloadArchType{
	"amd64": hyperv1.AMD64, "arm64": hyperv1.ARM64, "ppc64le": hyperv1.PPC64LE, "s390x": hyperv1.S390X,
}
