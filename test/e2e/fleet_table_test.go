// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// fleetSeen is the table of an upgrade: what the users of each cluster noticed.
type fleetSeen struct {
	took time.Duration
	rows []fleetRow
}

type fleetRow struct {
	cluster string
	watched watched
	// replaced counts the pods of the control plane that are new, restarts the restarts of containers.
	pods, replaced, restarts int
}

func (f *fleetSeen) add(s *suite, seen watched, before, now *controlPlane) {
	row := fleetRow{cluster: s.cluster, watched: seen, pods: len(now.pods)}
	for name := range now.workloads {
		old := before.podsOf(name)
		for uid, pod := range now.podsOf(name) {
			earlier, kept := old[uid]
			if !kept {
				row.replaced++
			}
			row.restarts += len(newRestarts(earlier, pod))
		}
	}
	f.rows = append(f.rows, row)
}

func (f *fleetSeen) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "Upgrade of the operator until all control planes were current: %s\n", f.took.Round(time.Second))
	fmt.Fprintln(w, "CLUSTER\tCALLS TO MAAS\tNODES NOT READY\tUSERS' PODS CHANGED\tWRITES\tFAILED\tLONGEST TIME WITHOUT\t"+
		"PODS REPLACED\tCONTAINERS RESTARTED")
	for _, row := range f.rows {
		seen := row.watched
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t%d of %d\t%d\n", row.cluster, seen.calls, seen.notReady.Len(),
			seen.pods.Len(), seen.writes, seen.failed, seen.away.Round(100*time.Millisecond), row.replaced, row.pods,
			row.restarts)
	}
	_ = w.Flush()
}
