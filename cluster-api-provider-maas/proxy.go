// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/support/namespaceproxy"
)

// namespaceProxy runs the subcommand "namespace-proxy", the sidecar of a third-party provider.
func namespaceProxy(ctx context.Context, args []string) error {
	o, ready := namespaceproxy.Options{}, false
	flags := pflag.NewFlagSet("namespace-proxy", pflag.ContinueOnError)
	flags.StringVar(&o.Namespace, "namespace", "", "Namespace to which cluster-wide requests are narrowed.")
	flags.StringVar(&o.Address, "listen", "127.0.0.1:6444", "Loopback address and port to listen on.")
	flags.StringVar(&o.Folder, "folder", "", "Folder for the certificate and the kubeconfig of the program.")
	flags.BoolVar(&ready, "ready", false, "Only check that the proxy of this folder has started.")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("namespace-proxy: %w", err)
	}
	if ready {
		return namespaceproxy.Ready(o.Folder)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the management cluster: %w", err)
	}
	return namespaceproxy.Run(ctx, config, o)
}
