// SPDX-License-Identifier: Apache-2.0

package clusterautoscaler

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
)

// ownLabels are labels that differ between nodes of otherwise similar pools.
var ownLabels = []string{hyperv1.NodePoolLabel}

// expanders map the API's expanders to the names of the cluster-autoscaler.
var expanders = map[hyperv1.ExpanderString]string{
	hyperv1.LeastWasteExpander: "least-waste",
	hyperv1.PriorityExpander:   "priority",
	hyperv1.RandomExpander:     "random",
}

func setLimits(f *component.Flags, spec hyperv1.ClusterAutoscaling) {
	setInt(f, "max-nodes-total", spec.MaxNodesTotal, "")
	setInt(f, "max-graceful-termination-sec", spec.MaxPodGracePeriod, "")
	setInt(f, "expendable-pods-priority-cutoff", spec.PodPriorityThreshold, "")
	f.SetUnlessEmpty("max-node-provision-time", spec.MaxNodeProvisionTime)
}

// setChoice sets which pool grows, and which pools count as similar.
func setChoice(f *component.Flags, spec hyperv1.ClusterAutoscaling) {
	order := spec.Expanders
	if len(order) == 0 {
		order = []hyperv1.ExpanderString{hyperv1.PriorityExpander, hyperv1.LeastWasteExpander}
	}
	var names []string
	for _, expander := range order {
		names = append(names, expanders[expander])
	}
	f.Set("expander", strings.Join(names, ","))
	for _, label := range slices.Concat(ownLabels, spec.BalancingIgnoredLabels) {
		f.Set("balancing-ignore-label", label)
	}
	setPercent(f, "max-free-difference-ratio", spec.MaxFreeDifferenceRatioPercent)
}

func setScaleDown(f *component.Flags, spec hyperv1.ClusterAutoscaling) {
	f.Set("scale-down-enabled", strconv.FormatBool(spec.Scaling != hyperv1.ScaleUpOnly))
	if spec.Scaling == hyperv1.ScaleUpOnly {
		return
	}
	down := ptr.Deref(spec.ScaleDown, hyperv1.ScaleDownConfig{})
	setInt(f, "scale-down-delay-after-add", down.DelayAfterAddSeconds, "s")
	setInt(f, "scale-down-delay-after-delete", down.DelayAfterDeleteSeconds, "s")
	setInt(f, "scale-down-delay-after-failure", down.DelayAfterFailureSeconds, "s")
	setInt(f, "scale-down-unneeded-time", down.UnneededDurationSeconds, "s")
	setPercent(f, "scale-down-utilization-threshold", down.UtilizationThresholdPercent)
}

// setInt sets a flag to a number of units; without a value, the program's default applies.
func setInt(f *component.Flags, name string, value *int32, unit string) {
	if value != nil {
		f.Set(name, fmt.Sprint(*value)+unit)
	}
}

// setPercent sets a flag that takes a fraction.
func setPercent(f *component.Flags, name string, value *int32) {
	if value != nil {
		f.Set(name, fmt.Sprintf("%.2f", float64(*value)/100))
	}
}
