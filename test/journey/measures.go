// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Goals of the measurements, on a machine with two cores and warm caches.
const (
	goalAvailable = 90 * time.Second
	goalNode      = 60 * time.Second
	goalDestroyed = 60 * time.Second
	goalMemory    = 5 << 30
	// The maximum size of a machine's user-data in MAAS, and the maximum ratio of the boot times with cloud-init and with
	// Ignition.
	goalUserData = 16 << 10
	goalRatio    = 1.3
)

// Mark restarts the clock of the scenario, so that measurements begin with the creation of a cluster.
func (w *Walker) Mark() { w.began = time.Now() }

// PrintMeasures prints the measurements and their goals.
func (w *Walker) PrintMeasures(ctx context.Context) {
	w.Say("")
	w.measure("control plane Available after create", w.Timeline.Took(StageAvailable), goalAvailable)
	w.measure("nodes Ready after their machines were Deployed", w.Timeline.Took(StageNodes), goalNode)
	w.measure("destroyed", w.Timeline.Took(StageDestroyed), goalDestroyed)
	w.sayBoots()
	w.sayMemory("memory of the environment", w.Memory(), fmt.Sprintf(" (goal %d GiB)", goalMemory>>30))
	w.sayMemory("memory of one more cluster with one node", w.Another, "")
}

func (w *Walker) measure(what string, took, goal time.Duration) {
	if took > 0 {
		w.Say("  %-48s %6s     (goal %s)", what, seconds(took), seconds(goal))
	}
}

func (w *Walker) sayBoots() {
	for _, boot := range []Boot{w.Stock, w.Ignition} {
		if boot.Image == "" {
			continue
		}
		w.Say("  %-48s %6.1f KiB  (goal %d KiB)", "user-data in MAAS, "+boot.Image, float64(boot.UserData)/(1<<10), goalUserData>>10)
		w.Say("  %-48s %6.1f MiB", "pulled by a node until it was Ready, "+boot.Image, float64(boot.Pulled)/(1<<20))
	}
	if w.Ignition.Took > 0 {
		w.Say("  %-48s %6.2f     (goal %.1f: %s and %s)", "Deployed to Ready, cloud-init beside Ignition", w.Stock.Took.Seconds()/w.Ignition.Took.Seconds(), goalRatio,
			seconds(w.Stock.Took), seconds(w.Ignition.Took))
	}
}

func (w *Walker) sayMemory(what string, bytes int64, goal string) {
	if bytes > 0 {
		w.Say("  %-48s %6.1f GiB%s", what, float64(bytes)/(1<<30), goal)
	}
}

// Memory returns the proportional set size of all processes in the environment's network namespaces, in bytes; zero if
// it cannot be read.
func (w *Walker) Memory() int64 {
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return 0
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0
	}
	var total int64
	for _, p := range processes {
		// Ignore a process that has ended concurrently.
		if ns, err := os.Readlink(filepath.Join(p, "ns/net")); err == nil && ns != own {
			total += proportional(p)
		}
	}
	return total
}

func proportional(process string) int64 {
	rollup, err := os.ReadFile(filepath.Join(process, "smaps_rollup"))
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(rollup), "\n") {
		var kib int64
		if value, ok := strings.CutPrefix(line, "Pss:"); ok {
			kib, _ = strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib << 10
		}
	}
	return 0
}
