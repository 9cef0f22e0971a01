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

// Cost is the resource usage of processes.
type Cost struct {
	// Memory is the proportional set size, in bytes.
	Memory int64
	// Processor is their CPU time so far.
	Processor time.Duration
	// Written is the number of bytes written to disks so far.
	Written int64
}

// Costs returns the resource usage of a hosted control plane's components, by name.
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
			continue // The process has ended.
		}
		if component := componentOf(pods.Items, string(group)); component != "" {
			costs[component] = costs[component].plus(costOf(p))
		}
	}
	return costs, nil
}

// componentOf returns the component whose pod a control group belongs to; empty if none.
func componentOf(pods []corev1.Pod, group string) string {
	// Systemd's names of control groups have no dashes.
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

// costOf returns the resource usage of one process; zero if it has ended.
func costOf(process string) Cost {
	read := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(process, name))
		return string(text)
	}
	return Cost{Memory: proportional(process), Processor: processor(read("stat")), Written: written(read("io"))}
}

// processor returns the user and kernel CPU time of a stat file, whose unit is 1/100 second. The program name, in
// parentheses, may contain any character.
func processor(stat string) time.Duration {
	const user, system = 11, 12 // Counted from the end of the name.
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

// written returns the number of written bytes of an io file.
func written(io string) int64 {
	for line := range strings.Lines(io) {
		if value, ok := strings.CutPrefix(line, "write_bytes:"); ok {
			bytes, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return bytes
		}
	}
	return 0
}
