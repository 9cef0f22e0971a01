// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"testing"
	"text/tabwriter"
	"time"
)

// fleetWatch watches a cluster and compares the pods of its control plane with those at the start.
type fleetWatch struct {
	*watcher
	of   *suite
	pods *controlPlane
}

func (s *suite) watchFleet(t *testing.T) *fleetWatch {
	t.Helper()
	return &fleetWatch{of: s, pods: s.controlPlane(t), watcher: s.watch(t, s.look(t))}
}

// printFleet stops the watchers and prints what the users of each cluster noticed since the installation of this build.
func printFleet(out io.Writer, began time.Time, watches []*fleetWatch) {
	// The context of a test that failed may have ended.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	defer func() { _ = w.Flush() }()
	fmt.Fprintf(w, "%s after the installation of this build:\n", time.Since(began).Round(time.Second))
	fmt.Fprintln(w, "CLUSTER\tCALLS TO MAAS\tNODES NOT READY\tUSERS' PODS CHANGED\tWRITES\tTRIED AGAIN\tFAILED\t"+
		"LONGEST TIME WITHOUT ONE\tPODS REPLACED\tCONTAINERS RESTARTED")
	for _, one := range watches {
		seen := one.stop(ctx)
		fmt.Fprintf(one.of.Out, "%s\n", seen)
		now, err := one.of.controlPlaneOnce(ctx)
		if err != nil {
			fmt.Fprintf(one.of.Out, "reading the control plane of %s: %v\n", one.of.cluster, err)
			continue
		}
		one.pods.printChanges(one.of.Out, now)
		replaced, restarts := one.pods.compare(now)
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%d of %d\t%d\n", one.of.cluster, seen.calls,
			seen.notReady.Len(), seen.pods.Len(), seen.writes, seen.again, seen.failed,
			seen.away.Round(100*time.Millisecond), replaced, len(now.pods), restarts)
	}
}

// compare counts the new pods of the workloads and the restarts of their containers since a snapshot.
func (c *controlPlane) compare(now *controlPlane) (replaced, restarts int) {
	for name := range now.workloads {
		before := c.podsOf(name)
		for uid, pod := range now.podsOf(name) {
			earlier, kept := before[uid]
			if !kept {
				replaced++
			}
			restarts += len(newRestarts(earlier, pod))
		}
	}
	return replaced, restarts
}
