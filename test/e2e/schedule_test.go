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

// needs is what a scenario takes of the environment at the same time, at most.
type needs struct {
	// controlPlanes are hosted clusters, and surge is one whose pods are replaced one by one.
	controlPlanes int
	surge         bool
	// machines are those of metal.
	machines int
	lxdHosts int
}

// What the parts of a scenario take: the requests of a control plane's pods, those of a second kube-apiserver beside
// the first one, and the memory that control planes and machines were seen to use.
const (
	controlPlaneCPU, surgeCPU         = 510, 250 // thousandths of a CPU
	controlPlaneMemory, machineMemory = 800, 250 // MiB
	machinesOfAnLXDHost               = 2
)

// amount is what is free in the environment, or taken of it.
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

// capacity is what the environment has for scenarios.
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
			continue // Scenarios account for their control planes.
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
	// The processors are those of the computer, whatever the node of the management cluster says that it has.
	free.processors = runtime.NumCPU()
	return free, err
}

// availableMemory is what programs can still have of this computer, in MiB.
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

// result is how a scenario went.
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

// schedule starts scenarios as soon as the environment has what they need.
type schedule struct {
	free amount
	// running is held for reading by each scenario that runs.
	running sync.RWMutex
	results []result
}

// run runs the scenarios and returns when all of them ended. The first one in the list that fits is started next; one
// that needs more than there is runs when no other does.
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

// fitting is the first scenario that can be started now; -1 when there is none.
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

// print writes a line a scenario, in the order in which they ended.
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
