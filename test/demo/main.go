// SPDX-License-Identifier: Apache-2.0

// Command demo shows the main use case on one machine: a hosted cluster whose nodes are machines of MAAS.
//
// Usage: demo up | down
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/journey"
)

// The cluster that is left running, its pool of virtual machines, and a temporary second cluster.
const cluster, virtual, passing = "demo", "virtual", "passing"

func main() {
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	walker, err := newWalker()
	if err == nil && len(args) == 1 && args[0] == "down" {
		err = walker.StopEnvironment(ctx)
	} else if err == nil && len(args) == 1 && args[0] == "up" {
		err = up(ctx, walker)
	} else if err == nil {
		fmt.Fprintln(os.Stderr, "demo: say up or down")
		return 2
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func newWalker() (*journey.Walker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	e, err := env.New("", filepath.Dir(self))
	if err != nil {
		return nil, err
	}
	return journey.NewWalker(e.Bin, e.Dir, os.Stdout), nil
}

func up(ctx context.Context, w *journey.Walker) error {
	w.Say("A hosted cluster on MAAS, on this machine. Everything lives in %s and in namespaces of its own.", w.Dir)
	if err := w.StartEnvironment(ctx); err != nil {
		return err
	}
	for _, part := range []struct {
		cluster string
		walk    func(ctx context.Context, w *journey.Walker) error
	}{{cluster, walk}, {passing, pass}} {
		if err := part.walk(ctx, w); err != nil {
			if ctx.Err() == nil {
				w.Diagnose(ctx, part.cluster)
			}
			return err
		}
	}
	w.Say("")
	w.Timeline.Print(w.Out)
	w.PrintMeasures(ctx)
	w.Say(next, w.Path("kubeconfig"), w.Path(cluster+".kubeconfig"), w.Bin, w.Bin)
	return nil
}

// walk starts with an empty management cluster and ends with a page that is served by a MAAS machine.
func walk(ctx context.Context, w *journey.Walker) error {
	if err := w.Install(ctx); err != nil {
		return err
	}
	w.Mark()
	// Only MAAS administrators can compose virtual machines; for bare metal, the key of any user is sufficient.
	count, err := w.EnsureCluster(ctx, cluster, 2, "--image", "ubuntu/noble", "--maas-api-key-file", w.AdminKeyFile())
	if err != nil {
		return err
	}
	if err := w.FollowCluster(ctx, cluster, count); err != nil {
		return err
	}
	if err := measure(ctx, w, cluster, &w.Stock); err != nil {
		return err
	}
	if err := w.Type(ctx, w.Guest(cluster, "get", "nodes", "-o", "wide")...); err != nil {
		return err
	}
	if err := w.Type(ctx, "kubectl", "get", "maasmachines", "-n", journey.HostedNamespace(cluster)); err != nil {
		return err
	}
	if err := w.RunWorkload(ctx, cluster); err != nil {
		return err
	}
	return compose(ctx, w)
}

// measure stores the costs of the first boot of a cluster's machines in boot.
func measure(ctx context.Context, w *journey.Walker, cluster string, boot *journey.Boot) error {
	measured, err := w.MeasureBoot(ctx, cluster)
	*boot = measured
	return err
}

// compose adds virtual machines to the cluster, which MAAS composes on two LXD hosts.
func compose(ctx context.Context, w *journey.Walker) error {
	w.Say("\nA pool of virtual machines, which MAAS composes on its LXD hosts, beside the metal:")
	count, err := w.EnsureVirtualPool(ctx, cluster, virtual, 2)
	if err != nil {
		return err
	}
	if err := w.FollowVirtualPool(ctx, cluster, virtual, count); err != nil {
		return err
	}
	return w.Type(ctx, w.Guest(cluster, "get", "nodes", "-o", "wide")...)
}

// pass creates a second cluster beside the first one, measures it and destroys it.
func pass(ctx context.Context, w *journey.Walker) error {
	w.Say("\nA second cluster comes and goes, to show how one is destroyed; its machine has an image with Ignition:")
	before := w.Memory()
	if _, err := w.EnsureCluster(ctx, passing, 1, "--image", "custom/kubernetes-node"); err != nil {
		return err
	}
	if err := w.FollowPool(ctx, passing, 1); err != nil {
		return err
	}
	w.Another = w.Memory() - before
	if err := w.SaveKubeconfig(ctx, passing); err != nil {
		return err
	}
	if err := measure(ctx, w, passing, &w.Ignition); err != nil {
		return err
	}
	if err := w.DestroyCluster(ctx, passing); err != nil {
		return err
	}
	return w.Type(ctx, "kubectl", "get", "hostedclusters,nodepools", "-n", journey.Namespace)
}

const next = `
It keeps running. What to try next:

  export KUBECONFIG=%[1]s                  # the management cluster
  export GUEST=%[2]s              # the hosted cluster
  export PATH=%[3]s:%[4]s/kube:$PATH

  kubectl get hostedclusters,nodepools -n clusters
  hypershift console                                        # the site in a browser, at the address that it prints
  kubectl --kubeconfig $GUEST get pods -A -o wide

  kubectl scale nodepool demo -n clusters --replicas 3      # one more machine out of MAAS
  hypershift create nodepool maas --name big --cluster-name demo --replicas 1 --min-cpu 8 --tags gpu
  kubectl delete machine -n clusters-demo --all             # every machine is replaced
  hypershift drain lxd-host lxd-1 --credentials-secret demo-maas-credentials    # its virtual machine moves to the other LXD host
  hypershift destroy cluster maas --name demo               # every machine goes back to MAAS

  make demo-down                                            # remove every trace
`
