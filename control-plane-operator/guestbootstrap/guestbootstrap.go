// SPDX-License-Identifier: Apache-2.0

// Package guestbootstrap makes the hosted-cluster-config-operator an administrator of the guest. Only this step needs
// the administrator's credentials, so that the operator itself never has them.
package guestbootstrap

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/kubeconfig"
	"github.com/openshift/hypershift/support/logging"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	bindingName    = "hcco-cluster-admin"
	interval       = 250 * time.Millisecond
	requestTimeout = 10 * time.Second
)

// NewCommand returns the subcommand.
func NewCommand() *cobra.Command {
	var kubeconfig string
	var log logging.Options
	cmd := &cobra.Command{
		Use:   "guest-bootstrap",
		Short: "Makes the hosted-cluster-config-operator an administrator of the guest",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := log.Install(); err != nil {
				return err
			}
			return run(cmd.Context(), kubeconfig)
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "Kubeconfig of the guest's administrator")
	log.AddFlags(cmd.Flags())
	return cmd
}

// run retries until it succeeds or ctx ends: the API server may be starting.
func run(ctx context.Context, file string) error {
	access, err := kubeconfig.ReadFile(file)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	config, err := access.Config(kubeconfig.Options{Timeout: requestTimeout})
	if err != nil {
		return fmt.Errorf("--kubeconfig %s: %w", file, err)
	}
	log := ctrl.Log.WithName("guest-bootstrap")
	return wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		c, err := client.New(config, client.Options{})
		if err == nil {
			err = Bind(ctx, c)
		}
		if err != nil {
			log.Info("Waiting for the API server", "because", err.Error())
		}
		return err == nil, nil
	})
}

// Bind makes the hosted-cluster-config-operator an administrator of the cluster behind c.
func Bind(ctx context.Context, c client.Client) error {
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: bindingName}}
	_, err := upsert.Object(ctx, c, binding, func() error {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
		binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: pki.ConfigOperatorUser}}
		return nil
	})
	return err
}
