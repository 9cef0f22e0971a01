// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/images"
)

// Timeouts of the stages: many times what a warm machine with two cores needs, so that only a hang exceeds them.
const (
	operatorLimit  = 5 * time.Minute
	availableLimit = 10 * time.Minute
	machinesLimit  = 10 * time.Minute
	nodesLimit     = 10 * time.Minute
	destroyLimit   = 10 * time.Minute
)

// Stages whose times are measured.
const (
	StageOperator  = "operator ready"
	StageAvailable = "control plane available"
	StageAllocated = "machines allocated"
	StageDeploying = "machines deploying"
	StageDeployed  = "machines deployed"
	StageNodes     = "nodes ready"
	StageWorkload  = "workload serves"
	StagePool      = "node pool ready"
	StageDestroyed = "cluster destroyed"
)

// StartEnvironment brings up the management cluster, the registry and MAAS; extra flags come last.
func (w *Walker) StartEnvironment(ctx context.Context, extra ...string) error {
	start := time.Now()
	if err := w.Type(ctx, append([]string{"devcluster", "up", "--dir", w.Dir}, extra...)...); err != nil {
		return err
	}
	w.reached("environment up", start)
	return os.WriteFile(w.Path("pull-secret.json"), []byte(`{"auths":{}}`), 0o600)
}

// StopEnvironment removes every trace of the environment.
func (w *Walker) StopEnvironment(ctx context.Context) error {
	return w.Type(ctx, "devcluster", "down", "--dir", w.Dir)
}

// Install installs the operator as a user would; extra flags come last.
func (w *Walker) Install(ctx context.Context, extra ...string) error {
	specs, err := images.Pullspecs(w.environment().Images(), env.Registry)
	if err != nil {
		return err
	}
	// The object store for backups is on the host, as are MAAS and the registry.
	flags := []string{"--object-store-allow-cidrs", env.Gateway + "/32"}
	return w.InstallImage(ctx, specs["hypershift"], append(flags, extra...)...)
}

// InstallImage installs the operator from an image; extra flags come last.
func (w *Walker) InstallImage(ctx context.Context, image string, extra ...string) error {
	argv := []string{"hypershift", "install",
		"--hypershift-image", image,
		"--hcp-egress-block-cidrs", strings.Join([]string{env.Gateway + "/32", env.PodNetwork, env.ServiceNetwork}, ","),
		"--additional-trust-bundle", w.environment().RegistryCA()}
	if err := w.Type(ctx, append(argv, extra...)...); err != nil {
		return err
	}
	c, err := w.Management()
	if err != nil {
		return err
	}
	return w.Reach(ctx, StageOperator, operatorLimit, OperatorReady(c))
}

func (w *Walker) environment() env.Env { return env.Env{Dir: w.Dir, Bin: w.Bin} }

// CreateCluster creates a hosted cluster with one pool of the same name, as a user would; extra flags come last.
func (w *Walker) CreateCluster(ctx context.Context, name string, replicas int, extra ...string) error {
	release, err := w.ReleaseImage(ctx)
	if err != nil {
		return err
	}
	argv := []string{"hypershift", "create", "cluster", "maas",
		"--name", name,
		"--node-pool-replicas", fmt.Sprint(replicas),
		"--erase", "None", // Machines of the simulator contain no data of other users, and erasing takes minutes.
		"--release-image", release,
		"--pull-secret", w.Path("pull-secret.json"),
		"--additional-trust-bundle", w.environment().RegistryCA(),
	}
	return w.Type(ctx, append(argv, w.credentials(extra)...)...)
}

// credentials adds the environment's MAAS credentials, unless extra contains credentials.
func (w *Walker) credentials(extra []string) []string {
	flags := extra
	if !has(extra, "--maas-endpoint") {
		flags = append([]string{"--maas-endpoint", env.MAASURL}, flags...)
	}
	if !has(extra, "--maas-api-key-file") {
		flags = append([]string{"--maas-api-key-file", w.MAASKeyFile()}, flags...)
	}
	return flags
}

func has(flags []string, name string) bool {
	for _, f := range flags {
		if f == name || strings.HasPrefix(f, name+"=") {
			return true
		}
	}
	return false
}

// FollowCluster waits until a new cluster with one pool has its nodes, with one line for each stage.
func (w *Walker) FollowCluster(ctx context.Context, name string, replicas int) error {
	c, err := w.Management()
	if err != nil {
		return err
	}
	if err := w.Reach(ctx, StageAvailable, availableLimit, ClusterAvailable(c, name)); err != nil {
		return err
	}
	if err := w.FollowMachines(ctx, c, name, name, replicas); err != nil {
		return err
	}
	if err := w.SaveKubeconfig(ctx, name); err != nil {
		return err
	}
	return w.Reach(ctx, StageNodes, nodesLimit, w.PoolNodesReady(name, name, replicas))
}

// FollowPool waits in one stage until a pool has its nodes, according to its status.
func (w *Walker) FollowPool(ctx context.Context, pool string, replicas int32) error {
	c, err := w.Management()
	if err != nil {
		return err
	}
	return w.Reach(ctx, StagePool, nodesLimit, PoolReplicas(c, pool, replicas))
}

// FollowMachines waits until MAAS has deployed a pool's machines.
func (w *Walker) FollowMachines(ctx context.Context, c client.Client, cluster, pool string, count int) error {
	for _, stage := range []struct {
		name  string
		check Check
	}{
		{StageAllocated, MachinesAllocated(c, cluster, pool, count)},
		{StageDeploying, MachinesDeploying(c, cluster, pool, count)},
		{StageDeployed, MachinesDeployed(c, cluster, pool, count)},
	} {
		if err := w.Reach(ctx, stage.name, machinesLimit, stage.check); err != nil {
			return err
		}
	}
	return nil
}

// SaveKubeconfig writes the administrator's kubeconfig of a hosted cluster into the environment's folder.
func (w *Walker) SaveKubeconfig(ctx context.Context, cluster string) error {
	path := w.Path(cluster + ".kubeconfig")
	w.Say("$ hypershift create kubeconfig --name %s > %s", cluster, path)
	kubeconfig, err := w.Read(ctx, "hypershift", "create", "kubeconfig", "--name", cluster, "--namespace", Namespace)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(kubeconfig), 0o600)
}

// DestroyCluster destroys a hosted cluster as a user would, and waits until nothing of it is left.
func (w *Walker) DestroyCluster(ctx context.Context, name string) error {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, destroyLimit)
	defer cancel()
	err := w.Type(ctx, "hypershift", "destroy", "cluster", "maas", "--name", name, "--namespace", Namespace)
	if err != nil {
		return err
	}
	w.reached(StageDestroyed, start)
	return nil
}
