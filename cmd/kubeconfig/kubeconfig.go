// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig holds the command that prints kubeconfigs of hosted clusters.
package kubeconfig

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/kube"
)

const secretKey = "kubeconfig"

// NewCreateCommand makes `create kubeconfig`.
func NewCreateCommand() *cobra.Command {
	var connection kube.Connection
	var namespace, name string
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the admin kubeconfig of a hosted cluster, or of all",
		Args:  cobra.NoArgs,
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
		if clusters[i].Status.KubeConfig == nil {
			if name != "" {
				return nil, fmt.Errorf("HostedCluster %s/%s has no kubeconfig yet: its API server is not up; wait for condition Available", namespace, name)
			}
			continue
		}
		if err := add(ctx, c, merged, &clusters[i]); err != nil {
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
	key := client.ObjectKey{Namespace: hc.Namespace, Name: hc.Status.KubeConfig.Name}
	secret := &corev1.Secret{}
	if err := c.Get(ctx, key, secret); err != nil {
		return fmt.Errorf("read Secret %s, the kubeconfig of HostedCluster %s/%s: %w", key, hc.Namespace, hc.Name, err)
	}
	config, err := clientcmd.Load(secret.Data[secretKey])
	if err != nil {
		return fmt.Errorf("the kubeconfig in Secret %s cannot be read: %w", key, err)
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok || config.Clusters[current.Cluster] == nil || config.AuthInfos[current.AuthInfo] == nil {
		return fmt.Errorf("the kubeconfig in Secret %s has no complete current context", key)
	}
	name := hc.Namespace + "-" + hc.Name
	merged.Clusters[name] = config.Clusters[current.Cluster]
	merged.AuthInfos[name] = config.AuthInfos[current.AuthInfo]
	merged.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: current.Namespace}
	if merged.CurrentContext == "" {
		merged.CurrentContext = name
	}
	return nil
}
