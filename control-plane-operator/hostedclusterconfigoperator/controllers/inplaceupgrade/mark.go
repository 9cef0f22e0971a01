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

// markAnnotation is on a Machine whose node is begun: the step, the configuration that it is for, and since when, with blanks between.
const markAnnotation = "hypershift.openshift.io/in-place-update"

// Steps of a mark.
const (
	// stepDrain has the node cordoned and emptied.
	stepDrain = "drain"
	// stepAsk has its node-agent asked.
	stepAsk = "ask"
	// stepFail has given up a node that went back, until another configuration is wanted or somebody takes the request off the Node.
	stepFail = "fail"
)

// mark is how far this controller has gone with a Machine. The zero value is one that is not begun.
type mark struct {
	step, config string
	since        time.Time
}

// readMark reads the mark of a Machine. One that nobody can read is as good as none: the node is begun again.
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

// mark writes down a step before it is taken. The time is that of the step's beginning.
func (r *Reconciler) mark(ctx context.Context, m *member, step, config string) error {
	if m.mark.step == step && m.mark.config == config {
		return nil
	}
	m.mark = mark{step: step, config: config, since: r.Clock.Now()}
	return upsert.Patch(ctx, r.Management, m.machine, func() {
		annotate(m.machine, markAnnotation, m.mark.String())
	})
}
