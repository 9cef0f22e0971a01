// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/hypershift-operator/platform/registry"
)

const initPoll = 2 * time.Second

// coreCRDs are the kinds that the controllers watch on every platform.
var coreCRDs = []string{
	"hostedclusters.hypershift.openshift.io", "nodepools.hypershift.openshift.io", "hostedcontrolplanes.hypershift.openshift.io",
	"clusters.cluster.x-k8s.io", "machines.cluster.x-k8s.io", "machinesets.cluster.x-k8s.io", "machinedeployments.cluster.x-k8s.io",
	"machinehealthchecks.cluster.x-k8s.io",
}

func newInitCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Wait until the management cluster serves the kinds that the operator needs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := ctrl.GetConfig()
			if err != nil {
				return fmt.Errorf("finding the management cluster: %w", err)
			}
			platforms, err := (&runFlags{platforms: registry.All()}).plugins(nil)
			if err != nil {
				return err
			}
			scheme, err := newScheme(platforms)
			if err != nil {
				return err
			}
			c, err := client.New(config, client.Options{Scheme: scheme})
			if err != nil {
				return fmt.Errorf("connecting to the management cluster: %w", err)
			}
			return waitForCRDs(cmd.Context(), c, platforms, timeout)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait")
	return cmd
}

// waitForCRDs waits until all kinds that the controllers watch are served, and all existing kinds of platforms too. It
// does not wait for kinds of platforms that are not installed.
func waitForCRDs(ctx context.Context, c client.Reader, platforms registry.Registry, timeout time.Duration) error {
	var missing []string
	err := wait.PollUntilContextTimeout(ctx, initPoll, timeout, true, func(ctx context.Context) (bool, error) {
		ofPlatforms, err := present(ctx, c, platforms.CRDs())
		if err != nil {
			return false, nil //nolint:nilerr // The poll repeats the request until its timeout.
		}
		missing, err = registry.Missing(ctx, c, append(ofPlatforms, coreCRDs...))
		return err == nil && len(missing) == 0, nil
	})
	if err != nil && len(missing) > 0 {
		return fmt.Errorf("the management cluster lacks the CRDs %s: run `hypershift install` again", strings.Join(missing, ", "))
	}
	if err != nil {
		return errors.New("the CRDs of the management cluster could not be read: check the rights of the operator's service account")
	}
	return nil
}

// present returns the names of existing CRDs, whether or not they are served yet.
func present(ctx context.Context, c client.Reader, names []string) ([]string, error) {
	var there []string
	for _, name := range names {
		err := c.Get(ctx, client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading CRD %s: %w", name, err)
		}
		if err == nil {
			there = append(there, name)
		}
	}
	return there, nil
}
