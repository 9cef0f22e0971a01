// SPDX-License-Identifier: Apache-2.0

// Package lxdhost creates LXD hosts from MAAS machines, and drains them.
//
// It only calls MAAS, as a user of the MAAS UI would. A host is a resource of MAAS that clusters of many management
// clusters may use, so no management cluster has an object for it.
package lxdhost

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	platform "github.com/openshift/hypershift/cmd/platform/maas"
	"github.com/openshift/hypershift/support/maas"
)

// pollInterval is how often MAAS is polled for progress: operations take minutes.
const pollInterval = 5 * time.Second

// connection holds the flags for the connection to MAAS, and to the management cluster if it is needed.
type connection struct {
	credentials platform.Credentials
	secret      string
	namespace   string
	kube        kube.Connection
	interval    time.Duration
	timeout     time.Duration
}

func newConnection() connection {
	return connection{credentials: platform.NewCredentials(), interval: pollInterval}
}

func (c *connection) addFlags(flags *pflag.FlagSet, what string) {
	c.credentials.AddFlags(flags)
	c.kube.AddFlags(flags)
	flags.StringVar(&c.secret, "credentials-secret", "", "Secret of the management cluster with MAAS_ENDPOINT and MAAS_API_KEY to use instead of the flags")
	flags.StringVar(&c.namespace, "namespace", "clusters", "namespace of --credentials-secret")
	flags.DurationVar(&c.timeout, "timeout", 2*time.Hour, "longest wait until "+what+"; 0 waits indefinitely")
}

// open connects to MAAS as an administrator: all operations on VM hosts require one.
func (c *connection) open(cmd *cobra.Command) (*maas.Client, error) {
	config, err := c.config(cmd)
	if err != nil {
		return nil, err
	}
	m, err := maas.NewClient(config)
	if err != nil {
		return nil, exit.UsageError(err)
	}
	user, err := m.WhoAmI(cmd.Context())
	if err != nil {
		return nil, err
	}
	if !user.IsSuperuser {
		return nil, fmt.Errorf("MAAS user %s is not an administrator; LXD hosts need the API key of a MAAS administrator", user.Username)
	}
	return m, nil
}

func (c *connection) config(cmd *cobra.Command) (maas.Config, error) {
	if c.secret == "" {
		err := c.credentials.Complete(cmd.InOrStdin(), cmd.ErrOrStderr())
		return c.credentials.Config(), exit.UsageError(err)
	}
	if c.credentials.Given() {
		return maas.Config{}, exit.UsageError(errors.New("--credentials-secret names a Secret that holds all: leave out --maas-endpoint, --maas-api-key... and --maas-ca-bundle"))
	}
	k, err := c.kube.Client()
	if err != nil {
		return maas.Config{}, err
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: c.namespace, Name: c.secret}
	if err := k.Get(cmd.Context(), key, secret); err != nil {
		return maas.Config{}, fmt.Errorf("read Secret %s of --credentials-secret: %w", key, err)
	}
	config, err := maas.ConfigFromSecret(secret.Data)
	if err != nil {
		return maas.Config{}, fmt.Errorf("Secret %s: %w", key, err)
	}
	return config, nil
}

// hostOn returns the LXD host that runs on a machine; nil if there is none.
func hostOn(ctx context.Context, m *maas.Client, systemID string) (*maas.VMHost, error) {
	return findHost(ctx, m, func(h *maas.VMHost) bool { return h.Host != nil && h.Host.SystemID == systemID })
}

func findHost(ctx context.Context, m *maas.Client, is func(*maas.VMHost) bool) (*maas.VMHost, error) {
	hosts, err := m.ListVMHosts(ctx)
	if maas.IsGone(err) {
		return nil, errors.New("this MAAS has no VM hosts: they ended with version 3.8")
	}
	if err != nil {
		return nil, err
	}
	for i := range hosts {
		if is(&hosts[i]) {
			return &hosts[i], nil
		}
	}
	return nil, nil
}

// sizes describes the resources of an LXD host.
func sizes(h *maas.VMHost) string {
	return fmt.Sprintf("%d cores, %d MiB, %d GB of disk in zone %s, pool %s", h.Total.Cores, h.Total.Memory, h.Total.LocalStorage/1_000_000_000, h.Zone.Name, h.Pool.Name)
}
