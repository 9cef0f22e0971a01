// SPDX-License-Identifier: Apache-2.0

package inplaceupgrade

import (
	"context"
	"fmt"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift/hypershift/support/upsert"
)

// markAnnotation is on a Machine whose node is being updated. It holds the step, the configuration, and the start time
// of the step, separated by spaces.
const markAnnotation = "hypershift.openshift.io/in-place-update"

// Steps in a mark.
const (
	// stepDrain cordons and drains the node.
	stepDrain = "drain"
	// stepAsk asks the node-agent to apply the configuration.
	stepAsk = "ask"
	// stepFail is the final step for a node that rolled back. It ends when the desired configuration changes, or when a
	// user removes the request from the Node.
	stepFail = "fail"
)

// mark is the progress of a Machine's update. The zero value means that it has not started.
type mark struct {
	step, config string
	since        time.Time
}

// readMark reads the mark of a Machine. An invalid mark counts as none: the update of the node starts again.
func readMark(machine *clusterv1.Machine) mark {
	fields := strings.Fields(machine.Annotations[markAnnotation])
	if len(fields) != 3 {
		return mark{}
	}
	since, err := time.Parse(time.RFC3339, fields[2])
	if err != nil {
		return mark{}
	}
	return mark{step: fields[0], config: fields[1], since: since}
}

func (m mark) String() string {
	return fmt.Sprintf("%s %s %s", m.step, m.config, m.since.UTC().Format(time.RFC3339))
}

// mark stores a step before it is taken. The time is the start time of the step.
func (r *Reconciler) mark(ctx context.Context, m *member, step, config string) error {
	if m.mark.step == step && m.mark.config == config {
		return nil
	}
	m.mark = mark{step: step, config: config, since: r.Clock.Now()}
	return upsert.Patch(ctx, r.Management, m.machine, func() {
		annotate(m.machine, markAnnotation, m.mark.String())
	})
}
