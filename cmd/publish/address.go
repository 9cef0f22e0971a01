// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/nodeaddress"
)

const addressFlag = "external-api-server-address"

// Address holds the flag with the address of the management cluster's node ports.
type Address struct {
	// Host is a DNS name or an IP address; it is not empty after Complete.
	Host string
}

// AddFlags adds the flag.
func (a *Address) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&a.Host, addressFlag, "", "address under which machines and users reach the management cluster's nodes, for the lifetime of the cluster: "+
		"rather a DNS name or a virtual IP than one node's (default: the virtual IP that install set up, or the address of the first Ready node)")
}

// Complete uses the management cluster's virtual IP if no address is given. Without a virtual IP it uses the address of
// the first Ready node by name. It warns if other nodes could serve instead: the cluster then depends on that node.
func (a *Address) Complete(ctx context.Context, connect func() (client.Client, error), stderr io.Writer) error {
	if a.Host != "" {
		a.warnOfOneNode(ctx, connect, stderr)
		return nil
	}
	c, err := connect()
	if err != nil {
		return err
	}
	virtual, err := nodeaddress.FindVirtual(ctx, c)
	// A user without permission to read the DaemonSet gets the same choice as without a virtual IP.
	if err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; set --%s", err, addressFlag)
	}
	if a.Host = virtual.Host; a.Host != "" {
		if virtual.Fit == 0 && stderr != nil {
			fmt.Fprintf(stderr, "Warning: the cluster is reached by the virtual IP %s, which no node of the management cluster can hold now: "+
				"the log of DaemonSet %s says why\n", a.Host, nodeaddress.VirtualIPComponent)
		}
		return nil
	}
	nodes, err := nodeaddress.All(ctx, c)
	if err != nil {
		return fmt.Errorf("%w; set --%s", err, addressFlag)
	}
	a.Host = nodes[0].Host
	if len(nodes) > 1 {
		warnOf(nodes[0], stderr)
	}
	return nil
}

// asking limits how long a user who passed an address waits for a warning.
const asking = 3 * time.Second

// warnOfOneNode warns if the given address is that of one node among several. It stays silent if the cluster is not
// reachable or the user may not list its nodes.
func (a *Address) warnOfOneNode(ctx context.Context, connect func() (client.Client, error), stderr io.Writer) {
	if net.ParseIP(a.Host) == nil || stderr == nil {
		return
	}
	c, err := connect()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	nodes, err := nodeaddress.All(ctx, c)
	if err != nil || len(nodes) < 2 {
		return
	}
	if i := slices.IndexFunc(nodes, func(n nodeaddress.Address) bool { return n.Host == a.Host }); i >= 0 {
		warnOf(nodes[i], stderr)
	}
}

// warnOf warns that the cluster depends on one node; a nil stderr suppresses it.
func warnOf(node nodeaddress.Address, stderr io.Writer) {
	if stderr == nil {
		return
	}
	fmt.Fprintf(stderr, "Warning: the cluster is reached by the address of one node, %s (%s): while that node is away, so are its API and its new machines. "+
		"Name an address that outlives a node (a DNS name of several, a virtual IP) with --%s\n", node.Host, node.Node, addressFlag)
}
