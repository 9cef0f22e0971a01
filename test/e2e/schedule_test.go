// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/journey"
)

// needs holds the resources that a scenario uses at its peak.
type needs struct {
	// controlPlanes is the number of hosted clusters; surge is set if a rolling update of one adds a pod temporarily.
	controlPlanes int
	surge         bool
	// machines is the number of bare metal machines.
	machines int
	lxdHosts int
}

// The resources that one control plane, one additional kube-apiserver and one machine use. CPU is what the pods
// request, and memory is the observed use.
const (
	controlPlaneCPU, surgeCPU         = 510, 250 // In thousandths of a CPU.
	controlPlaneMemory, machineMemory = 800, 250 // In MiB.
	machinesOfAnLXDHost               = 2
)

// amount is the free or used capacity of the environment.
type amount struct{ cpu, memory, machines, lxdHosts, processors int }

func (n needs) amount() amount {
	a := amount{
		cpu: n.controlPlanes * controlPlaneCPU, machines: n.machines, lxdHosts: n.lxdHosts,
		processors: 1,
		memory:     n.controlPlanes*controlPlaneMemory + (n.machines+machinesOfAnLXDHost*n.lxdHosts)*machineMemory,
	}
	if n.surge {
		a.cpu += surgeCPU
	}
	return a
}

func (a amount) less(b amount) amount {
	return amount{
		a.cpu - b.cpu, a.memory - b.memory, a.machines - b.machines, a.lxdHosts - b.lxdHosts, a.processors - b.processors,
	}
}

func (a amount) negative() bool {
	return min(a.cpu, a.memory, a.machines, a.lxdHosts, a.processors) < 0
}

// capacity returns the capacity of the environment for scenarios.
func (s *suite) capacity(ctx context.Context) (amount, error) {
	nodes := &corev1.NodeList{}
	if err := s.c.List(ctx, nodes); err != nil {
		return amount{}, err
	}
	pods := &corev1.PodList{}
	if err := s.c.List(ctx, pods); err != nil {
		return amount{}, err
	}
	free := amount{}
	for i := range pods.Items {
		if strings.HasPrefix(pods.Items[i].Namespace, journey.HostedNamespace("")) {
			continue // Scenarios include the requests of their own control planes.
		}
		for _, c := range pods.Items[i].Spec.Containers {
			free.cpu -= int(c.Resources.Requests.Cpu().MilliValue())
		}
	}
	for i := range nodes.Items {
		free.cpu += int(nodes.Items[i].Status.Allocatable.Cpu().MilliValue())
	}
	var err error
	if free.memory, err = availableMemory(); err != nil {
		return amount{}, err
	}
	metal, err := s.maas.ListMachines(ctx, maas.MachineFilter{Pools: []string{workers}})
	if err != nil {
		return amount{}, err
	}
	hosts, err := s.maas.ListVMHosts(ctx)
	free.machines, free.lxdHosts = len(metal), len(hosts)
	// Use the number of processors of this computer, not the one that the management cluster's node reports.
	free.processors = runtime.NumCPU()
	return free, err
}

// availableMemory returns the available memory of this computer, in MiB.
func availableMemory() (int, error) {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			var kib int
			_, err := fmt.Sscan(value, &kib)
			return kib >> 10, err
		}
	}
	return 0, fmt.Errorf("reading /proc/meminfo: no MemAvailable")
}

// result is the result of a scenario.
type result struct {
	name              string
	ran, failed       bool
	took              time.Duration
	waited, waitAlone time.Duration
}

func (r result) String() string {
	switch {
	case !r.ran:
		return "not selected"
	case r.failed:
		return "failed"
	}
	return "passed"
}

// schedule starts scenarios when the environment has the resources that they need.
type schedule struct {
	free amount
	// running is locked for reading by each running scenario.
	running sync.RWMutex
	results []result
}

// run runs the scenarios and returns when all of them have ended. It always starts the first scenario in the list
// that fits. A scenario that needs more than the total capacity runs when no other scenario does.
func (a *schedule) run(t *testing.T, s *suite, pending []scenario) {
	began, ended := time.Now(), make(chan func(), len(pending))
	for running := 0; len(pending) > 0 || running > 0; {
		next := a.fitting(pending, running)
		if next < 0 {
			(<-ended)()
			running--
			continue
		}
		sc, taken := pending[next], pending[next].needs.amount()
		pending = append(pending[:next:next], pending[next+1:]...)
		a.free = a.free.less(taken)
		running++
		one := result{name: sc.name, waited: time.Since(began)}
		go func() {
			one.failed = !t.Run(sc.name, func(t *testing.T) { a.one(t, s, sc, &one) })
			ended <- func() {
				a.free = a.free.less(amount{}.less(taken))
				a.results = append(a.results, one)
			}
		}()
	}
}

// fitting returns the index of the first scenario that can be started now; -1 if there is none.
func (a *schedule) fitting(pending []scenario, running int) int {
	for i := range pending {
		if running == 0 || !a.free.less(pending[i].needs.amount()).negative() {
			return i
		}
	}
	return -1
}

func (a *schedule) one(t *testing.T, s *suite, sc scenario, into *result) {
	a.running.RLock()
	defer a.running.RUnlock()
	into.ran = true
	own, began := s.of(t, sc, &a.running), time.Now()
	defer func() { into.took, into.waitAlone = time.Since(began), own.waitedAlone }()
	sc.run(own, t)
}

// complete reports whether every scenario ran and passed.
func (a *schedule) complete() bool {
	passed := 0
	for _, r := range a.results {
		if r.ran && !r.failed {
			passed++
		}
	}
	return passed == len(scenarios)
}

// print writes a line for each scenario, in the order in which they ended.
func (a *schedule) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "SCENARIO\tRESULT\tTOOK\tWAITED FOR ROOM\tWAITED TO BE ALONE")
	second := time.Second
	for _, r := range a.results {
		if r.ran {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.name, r, r.took.Round(second), r.waited.Round(second),
				r.waitAlone.Round(second))
		}
	}
	_ = w.Flush()
}
