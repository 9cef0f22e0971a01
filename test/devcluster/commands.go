// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/openshift/hypershift/test/devcluster/cluster"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/images"
	"github.com/openshift/hypershift/test/devcluster/netpolicy"
	"github.com/openshift/hypershift/test/devcluster/pki"
	"github.com/openshift/hypershift/test/devcluster/registry"
	"github.com/openshift/hypershift/test/devcluster/volumes"
)

func imagesCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{Use: "images", Short: "Build, push and name the container images"}
	cmd.AddCommand(&cobra.Command{
		Use:   "build",
		Short: "Build the images from the built programs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := o.env()
			if err != nil {
				return err
			}
			releases, err := images.Releases(cmd.Context(), e.Bin)
			if err != nil {
				return err
			}
			recipes, err := images.Recipes(e.Bin, releases)
			if err != nil {
				return err
			}
			return images.Build(e.Images(), recipes)
		},
	}, &cobra.Command{
		Use:   "push",
		Short: "Push the images and the release payload to the environment's registry",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			environment, err := o.environment(cmd)
			if err != nil {
				return err
			}
			return environment.Push(cmd.Context())
		},
	}, &cobra.Command{
		Use:   "list [NAME]",
		Short: "Print the pull specification of the images, or of one; \"release\" is the release payload",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			environment, err := o.environment(cmd)
			if err != nil {
				return err
			}
			return environment.ListImages(cmd.Context(), args)
		},
	})
	return cmd
}

func maasCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{Use: "maas", Short: "Start and stop the MAAS simulator of a running environment"}
	start := &cobra.Command{
		Use:   "start [-- ARGUMENT...]",
		Short: "Start the MAAS simulator; the arguments are added to its command line",
		RunE: func(cmd *cobra.Command, args []string) error {
			environment, err := o.environment(cmd)
			if err != nil {
				return err
			}
			environment.MAASArguments = args
			return environment.StartMAAS(cmd.Context())
		},
	}
	stop := &cobra.Command{
		Use:   "stop",
		Short: "Stop the MAAS simulator; its state and its machines stay",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			environment, err := o.environment(cmd)
			if err != nil {
				return err
			}
			return environment.StopMAAS(cmd.Context())
		},
	}
	cmd.AddCommand(start, stop)
	return cmd
}

// serveCommand runs inside the management machine.
func serveCommand(*options) *cobra.Command {
	var kubeconfig, node string
	var withRegistry bool
	cmd := &cobra.Command{
		Use:    "serve",
		Short:  "Serve the registry, make volumes and enforce NetworkPolicies (run by the management machines)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			group, ctx := errgroup.WithContext(cmd.Context())
			if withRegistry {
				group.Go(func() error { return serveRegistry(ctx) })
			}
			client, err := connect(kubeconfig)
			if err != nil {
				return err
			}
			group.Go(func() error { return serveVolumes(ctx, client, node) })
			group.Go(func() error { return enforcePolicies(ctx, client) })
			return group.Wait()
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the management cluster")
	cmd.Flags().StringVar(&node, "node", "", "node whose volumes are made")
	cmd.Flags().BoolVar(&withRegistry, "registry", false, "serve the registry")
	return cmd
}

func serveRegistry(ctx context.Context) error {
	opened, err := registry.Open(ctx, cluster.RegistryInside)
	if err != nil {
		return err
	}
	authority, err := pki.Ensure(cluster.RegistryInside, "ca")
	if err != nil {
		return err
	}
	pair, err := authority.Issue(cluster.RegistryCertificate)
	if err != nil {
		return err
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return fmt.Errorf("reading the registry's certificate: %w", err)
	}
	return opened.Serve(ctx, env.Registry, certificate)
}

func connect(kubeconfig string) (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", kubeconfig, err)
	}
	return kubernetes.NewForConfig(config)
}

func enforcePolicies(ctx context.Context, client kubernetes.Interface) error {
	agent := &netpolicy.Agent{Client: client, Apply: netpolicy.NFT, Report: func(err error) { fmt.Fprintln(os.Stderr, err) }}
	return agent.Run(ctx)
}

func serveVolumes(ctx context.Context, client kubernetes.Interface, node string) error {
	provisioner := &volumes.Provisioner{
		Client: client, Name: cluster.Provisioner, Class: cluster.StorageClass, Node: node, Dir: filepath.Join("/var/lib", "volumes"),
		Report: func(err error) { fmt.Fprintln(os.Stderr, err) },
	}
	return provisioner.Run(ctx)
}
