// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig holds the command that prints kubeconfigs of hosted clusters.
package kubeconfig

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/guest"
	"github.com/openshift/hypershift/cmd/kube"
)

// NewCreateCommand returns the command `create kubeconfig`.
func NewCreateCommand() *cobra.Command {
	var connection kube.Connection
	var namespace, name string
	cmd := &cobra.Command{
		Use:     "kubeconfig",
		Short:   "Print the admin kubeconfig of a hosted cluster, or of all",
		Example: "  hypershift create kubeconfig --name demo > demo.kubeconfig",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := connection.Client()
			if err != nil {
				return err
			}
			merged, err := collect(cmd.Context(), c, namespace, name)
			if err != nil {
				return err
			}
			text, err := clientcmd.Write(*merged)
			if err != nil {
				return fmt.Errorf("encode the kubeconfig: %w", err)
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	cmd.Flags().StringVar(&namespace, "namespace", "clusters", "namespace of the cluster")
	cmd.Flags().StringVar(&name, "name", "", "name of the cluster (default: all clusters of all namespaces that have a kubeconfig)")
	connection.AddFlags(cmd.Flags())
	return cmd
}

// collect merges the kubeconfigs of the clusters, each with a context <namespace>-<name>.
func collect(ctx context.Context, c client.Client, namespace, name string) (*clientcmdapi.Config, error) {
	clusters, err := hostedClusters(ctx, c, namespace, name)
	if err != nil {
		return nil, err
	}
	merged := clientcmdapi.NewConfig()
	for i := range clusters {
		err := add(ctx, c, merged, &clusters[i])
		if err != nil && (name != "" || !errors.Is(err, guest.ErrNone)) {
			return nil, err
		}
	}
	return merged, nil
}

func hostedClusters(ctx context.Context, c client.Client, namespace, name string) ([]hyperv1.HostedCluster, error) {
	if name == "" {
		var list hyperv1.HostedClusterList
		if err := c.List(ctx, &list); err != nil {
			return nil, fmt.Errorf("list HostedClusters: %w", err)
		}
		return list.Items, nil
	}
	hc := &hyperv1.HostedCluster{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, hc); err != nil {
		return nil, fmt.Errorf("read HostedCluster %s/%s: %w", namespace, name, err)
	}
	return []hyperv1.HostedCluster{*hc}, nil
}

func add(ctx context.Context, c client.Client, merged *clientcmdapi.Config, hc *hyperv1.HostedCluster) error {
	cluster := client.ObjectKeyFromObject(hc)
	access, err := guest.Find(ctx, c, cluster)
	if apierrors.IsForbidden(err) {
		// A tenant has no permissions in the hosted namespace.
		access, err = guest.FindAsTenant(ctx, c, hc)
	}
	if err != nil {
		return fmt.Errorf("find the kubeconfig of HostedCluster %s: %w", cluster, err)
	}
	name := hc.Namespace + "-" + hc.Name
	merged.Clusters[name], merged.AuthInfos[name] = access.Cluster(), access.User()
	merged.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: access.Namespace}
	if merged.CurrentContext == "" {
		merged.CurrentContext = name
	}
	return nil
}
