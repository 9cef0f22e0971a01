// SPDX-License-Identifier: Apache-2.0

// Package dump holds the command that collects the data for the diagnosis of a cluster's problem.
package dump

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/guest"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/kubeconfig"
)

// dump holds the state of one `dump cluster`.
type dump struct {
	connection        kube.Connection
	name, namespace   string
	operatorNamespace string
	agentNamespace    string
	folder            string
	archive           bool
	guest, all        bool
}

// NewCommand returns the command `dump cluster`.
func NewCommand() *cobra.Command {
	d := &dump{}
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Collect the objects, events and logs of a hosted cluster; Secrets without their values",
		Example: "  hypershift dump cluster --name demo --artifact-dir dump\n" +
			"  # With the nodes and namespaces of the cluster itself\n" +
			"  hypershift dump cluster --name demo --artifact-dir dump --dump-guest-cluster",
		Args: cobra.NoArgs,
		RunE: d.run,
	}
	flags := cmd.Flags()
	flags.StringVar(&d.name, "name", "", "name of the cluster (required)")
	flags.StringVar(&d.namespace, "namespace", "clusters", "namespace of the cluster")
	flags.StringVar(&d.operatorNamespace, "operator-namespace", "hypershift", "namespace of the operator")
	flags.StringVar(&d.agentNamespace, "agent-namespace", "", "namespace of the hosts of the platform Agent, if it is not the one that the HostedCluster names")
	flags.StringVar(&d.folder, "artifact-dir", "", "folder to write to (required)")
	flags.BoolVar(&d.archive, "archive-dump", true, "pack the folder's new files into hypershift-dump.tar.gz")
	flags.BoolVar(&d.guest, "dump-guest-cluster", false, "also collect the guest cluster: its nodes, CSRs and the namespaces of its platform")
	flags.BoolVar(&d.all, "dump-all-guest-namespaces", false, "with --dump-guest-cluster, also collect the namespaces of the guest cluster's users, their ConfigMaps and logs")
	d.connection.AddFlags(flags)
	return cmd
}

func (d *dump) run(cmd *cobra.Command, _ []string) error {
	if d.name == "" || d.folder == "" {
		return exit.UsageError(errors.New("--name and --artifact-dir are required"))
	}
	config, err := d.connection.Config()
	if err != nil {
		return err
	}
	report := progress.New(cmd.ErrOrStderr(), clock.RealClock{})
	name := filepath.Join(d.folder, "hypershift-dump")
	root, err := openFolder(name)
	if err != nil {
		return err
	}
	err = d.collect(cmd.Context(), config, root, report)
	if err == nil && d.archive {
		err = pack(root.FS(), name+".tar.gz")
	}
	if err := errors.Join(err, root.Close()); err != nil {
		return err
	}
	if !d.archive {
		report.Printf("written to %s", name)
		return nil
	}
	if err := os.RemoveAll(name); err != nil {
		return fmt.Errorf("remove what is packed: %w", err)
	}
	report.Printf("written to %s", name+".tar.gz")
	return nil
}

// collect continues after a failure: a partial dump is better than none. The dump also lists the failures.
func (d *dump) collect(ctx context.Context, config *rest.Config, root *os.Root, report *progress.Reporter) error {
	management, err := newCollector(config, root)
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: kube.Scheme})
	if err != nil {
		return err
	}
	cluster := client.ObjectKey{Namespace: d.namespace, Name: d.name}
	hosted := kube.HostedNamespace(d.namespace, d.name)
	namespaces := []string{d.namespace, hosted, d.operatorNamespace}
	if err := guest.CheckNamespace(ctx, c, cluster); errors.Is(err, guest.ErrNone) {
		management.note("collect namespace "+hosted, err)
		namespaces = []string{d.namespace, d.operatorNamespace}
	}
	management.clusterScoped(ctx, managementKinds)
	for _, namespace := range namespaces {
		report.Printf("collecting namespace %s", namespace)
		management.namespace(ctx, namespace)
	}
	hc := &hyperv1.HostedCluster{}
	if err := c.Get(ctx, cluster, hc); err != nil {
		management.note(fmt.Sprintf("read HostedCluster %s", cluster), err)
	}
	if agents := d.agents(hc); agents != "" && agents != hosted {
		report.Printf("collecting the hosts of namespace %s", agents)
		management.hosts(ctx, agents)
	}
	if d.guest {
		report.Printf("collecting the guest cluster")
		management.note("guest cluster", d.collectGuest(ctx, c, cluster, root))
	}
	return management.finish()
}

// agents returns the namespace of the cluster's Agents; empty if there is none.
func (d *dump) agents(hc *hyperv1.HostedCluster) string {
	if d.agentNamespace == "" && hc.Spec.Platform.Agent != nil {
		return hc.Spec.Platform.Agent.AgentNamespace
	}
	return d.agentNamespace
}

// collectGuest does not trust the guest: its API server may be under a tenant's control.
func (d *dump) collectGuest(ctx context.Context, c client.Client, cluster client.ObjectKey, root *os.Root) (err error) {
	access, err := guest.Find(ctx, c, cluster)
	if err != nil {
		return fmt.Errorf("find its kubeconfig: %w", err)
	}
	// Lists of a guest exceed the default response limit; the collector has its own limits.
	config, err := access.Config(kubeconfig.Options{MaxAnswer: -1})
	if err != nil {
		return fmt.Errorf("use its kubeconfig: %w", err)
	}
	name := "hostedcluster-" + d.name
	if err := root.MkdirAll(name, 0o700); err != nil {
		return err
	}
	inner, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inner.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	guest, err := newCollector(config, inner)
	if err != nil {
		return err
	}
	guest.clusterScoped(ctx, guestKinds)
	err = d.collectNamespaces(ctx, guest)
	return errors.Join(err, guest.finish())
}

func (d *dump) collectNamespaces(ctx context.Context, guest *collector) error {
	namespaces, err := guest.clientset.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list its namespaces: %w", err)
	}
	for i := range namespaces.Items {
		name := namespaces.Items[i].Name
		if err := checkName(name); err != nil {
			guest.note("collect a namespace", err)
			continue
		}
		if d.all || ofPlatform(name) {
			guest.namespace(ctx, name)
		}
	}
	return nil
}

// ofPlatform reports whether a namespace of a guest belongs to the platform and not to its users.
func ofPlatform(namespace string) bool {
	return namespace == "openshift" || strings.HasPrefix(namespace, "openshift-") || strings.HasPrefix(namespace, "kube-") ||
		strings.HasPrefix(namespace, "hypershift-")
}
