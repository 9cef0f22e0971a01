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

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Cost is what processes take.
type Cost struct {
	// Memory is the proportional set size, in bytes.
	Memory int64
	// Processor is how long they have run so far.
	Processor time.Duration
	// Written is what they have written to disks so far, in bytes.
	Written int64
}

// Costs is what the components of a hosted control plane take, by their names.
func (w *Walker) Costs(ctx context.Context, cluster string) (map[string]Cost, error) {
	c, err := w.Management()
	if err != nil {
		return nil, err
	}
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(HostedNamespace(cluster))); err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", cluster, err)
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	costs := map[string]Cost{}
	for _, p := range processes {
		group, err := os.ReadFile(filepath.Join(p, "cgroup"))
		if err != nil {
			continue // It has ended meanwhile.
		}
		if component := componentOf(pods.Items, string(group)); component != "" {
			costs[component] = costs[component].plus(costOf(p))
		}
	}
	return costs, nil
}

// componentOf is whose pod a control group is of; empty for none of them.
func componentOf(pods []corev1.Pod, group string) string {
	// Systemd's names of groups have no dashes.
	group = strings.ReplaceAll(group, "_", "-")
	for i := range pods {
		if strings.Contains(group, "pod"+string(pods[i].UID)) {
			return pods[i].Labels[hyperv1.ControlPlaneComponentLabel]
		}
	}
	return ""
}

func (c Cost) plus(other Cost) Cost {
	return Cost{Memory: c.Memory + other.Memory, Processor: c.Processor + other.Processor, Written: c.Written + other.Written}
}

// costOf is what one process takes; nothing of one that has ended.
func costOf(process string) Cost {
	read := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(process, name))
		return string(text)
	}
	return Cost{Memory: proportional(process), Processor: processor(read("stat")), Written: written(read("io"))}
}

// processor is the time in user and kernel mode that a stat file tells, in hundredths of a second. The name of the program, in brackets, may have
// anything in it.
func processor(stat string) time.Duration {
	const user, system = 11, 12 // counted from behind the name
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) <= system {
		return 0
	}
	total := time.Duration(0)
	for _, field := range []string{fields[user], fields[system]} {
		hundredths, _ := strconv.ParseInt(field, 10, 64)
		total += time.Duration(hundredths) * 10 * time.Millisecond
	}
	return total
}

// written is the number of bytes that an io file tells.
func written(io string) int64 {
	for line := range strings.Lines(io) {
		if value, ok := strings.CutPrefix(line, "write_bytes:"); ok {
			bytes, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return bytes
		}
	}
	return 0
}
