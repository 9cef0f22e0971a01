package nodepool

import (
	"strconv"

	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/platforms"
)

// replicas is how many machines a pool gets. With autoscaling the number belongs to the autoscaler, within the bounds.
func replicas(pool *hyperv1.NodePool, current *int32) *int32 {
	if pool.Spec.AutoScaling == nil {
		return ptr.To(ptr.Deref(pool.Spec.Replicas, 0))
	}
	minimum, maximum := bounds(pool)
	if current == nil {
		return ptr.To(minimum)
	}
	return ptr.To(max(minimum, min(*current, maximum)))
}

// scalingMin is what the user asked for as the least number of machines.
func scalingMin(pool *hyperv1.NodePool) int32 {
	return ptr.Deref(pool.Spec.AutoScaling.Min, 1)
}

// bounds are those of the autoscaler. A platform whose machines tell the autoscaler nothing before they exist keeps one.
func bounds(pool *hyperv1.NodePool) (minimum, maximum int32) {
	minimum, maximum = scalingMin(pool), pool.Spec.AutoScaling.Max
	if traits, _ := platforms.Of(pool.Spec.Platform.Type); minimum == 0 && !traits.ScalesFromZero {
		minimum = 1
	}
	return minimum, max(minimum, maximum)
}

// autoscalerBounds are the bounds as annotations; both zero keep the autoscaler away.
func autoscalerBounds(pool *hyperv1.NodePool) (minimum, maximum string) {
	if pool.Spec.AutoScaling == nil {
		return "0", "0"
	}
	lowest, highest := bounds(pool)
	return strconv.Itoa(int(lowest)), strconv.Itoa(int(highest))
}
