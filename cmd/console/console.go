// SPDX-License-Identifier: Apache-2.0

// Package console holds the command that shows a site in a browser.
//
// The command reads with the rights of the user and serves one page on loopback. Picture is all that the page gets.
package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/capacity"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/look"
)

// maxPort is the highest TCP port.
const maxPort = 65535

// Part is what a platform knows about its sites.
type Part interface {
	// Type is the platform's type.
	Type() hyperv1.PlatformType
	// Kinds returns lists of the infrastructure kinds in hosted namespaces.
	Kinds() []client.ObjectList
	// Quarantined returns the identifiers of the machines that a cluster has quarantined.
	Quarantined(ctx context.Context, c client.Reader, hc *hyperv1.HostedCluster) (map[string]bool, error)
	// Report reads the site of a cluster with the credentials of the cluster, for its NodePools. names has the names of
	// clusters by hosted namespace.
	Report(
		ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, pools []hyperv1.NodePool, names map[string]string,
	) (*capacity.Report, error)
	// Link returns the address of a machine's page; empty if there is none.
	Link(endpoint, systemID string) string
}

type command struct {
	connection kube.Connection
	namespace  string
	port       int
	open       bool
	part       Part
	hardware   []look.HardwareReader
}

// NewCommand returns the command `console`. part reads the sites, and hardware the machines of each platform.
func NewCommand(part Part, hardware []look.HardwareReader) *cobra.Command {
	c := &command{part: part, hardware: hardware}
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Show a site in a browser",
		Long: "Serve a page on loopback that shows the machines of a site by zone and resource pool, the clusters with " +
			"what is not as it should be, upgrades, and capacity. The page follows changes. The command reads with the " +
			"rights of your kubeconfig and changes nothing. Only the printed address opens the page: keep it secret.",
		Example: "  # Print the address of the page, and serve it until Ctrl-C\n" +
			"  hypershift console\n" +
			"  # Open the page in a browser\n" +
			"  hypershift console --open\n" +
			"  # Only the clusters of a namespace, at a fixed port\n" +
			"  hypershift console --namespace clusters --port 8700",
		Args: cobra.NoArgs,
		RunE: c.run,
	}
	flags := cmd.Flags()
	flags.StringVarP(&c.namespace, "namespace", "n", "", "only clusters of this namespace (default: all namespaces)")
	flags.IntVar(&c.port, "port", 0, "port on 127.0.0.1 (default: a free one)")
	flags.BoolVar(&c.open, "open", false, "open the page in a browser")
	c.connection.AddFlags(flags)
	return cmd
}

func (c *command) run(cmd *cobra.Command, _ []string) error {
	if c.port < 0 || c.port > maxPort {
		return exit.UsageError(fmt.Errorf("--port %d: use 1 to %d, or 0 for a free port", c.port, maxPort))
	}
	config, err := c.connection.Config()
	if err != nil {
		return err
	}
	cl, err := client.NewWithWatch(config, client.Options{Scheme: kube.Scheme})
	if err != nil {
		return fmt.Errorf("connect to the management cluster at %s: %w", config.Host, err)
	}
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w; choose another --port", address, err)
	}
	live := NewLive(cl, c.part, c.hardware, c.namespace)
	server := NewServer(listener, live)
	go live.Run(ctx)
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "The console is at %s\nPress Ctrl-C to end it.\n", server.URL())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	if c.open {
		remove, err := openBrowser(ctx, server.URL())
		defer remove()
		if err != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), "No browser was opened:", err)
		}
	}
	return server.Serve(ctx)
}
