// SPDX-License-Identifier: Apache-2.0

// Package hostedclusterconfigoperator is the subcommand that configures a guest cluster through its API. It has two
// clients: one for the hosted namespace of the management cluster, one for the guest.
package hostedclusterconfigoperator

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openshift/hypershift/support/addressguard"
	"github.com/openshift/hypershift/support/logging"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// options are the flags and the environment of the operator.
type options struct {
	namespace         string
	controlPlane      string
	targetKubeconfig  string
	initialCAFile     string
	signerCAFile      string
	platformType      string
	registryOverrides string
	ciDebugOutput     bool
	metricsAddr       string
	healthAddr        string
	controllers       []string

	konnectivityAddress, oauthAddress string
	konnectivityPort, oauthPort       int

	operateOnRelease string
	imageMirrors     string
	countsNodes      bool
	log              logging.Options
}

// NewCommand returns the subcommand.
func NewCommand() *cobra.Command {
	o := &options{
		operateOnRelease: os.Getenv("OPERATE_ON_RELEASE_IMAGE"),
		imageMirrors:     os.Getenv("OPENSHIFT_IMG_OVERRIDES"),
		countsNodes:      os.Getenv("ENABLE_SIZE_TAGGING") == "1",
	}
	cmd := &cobra.Command{
		Use:   "hosted-cluster-config-operator",
		Short: "Configures a guest cluster from inside",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.log.Install(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	const ignored = "Accepted for compatibility; it has no effect in this distribution"
	flags.StringVar(&o.namespace, "namespace", os.Getenv("POD_NAMESPACE"), "Namespace of the hosted control plane [POD_NAMESPACE]")
	flags.StringVar(&o.controlPlane, "hosted-control-plane", "", "Name of the HostedControlPlane")
	flags.StringVar(&o.targetKubeconfig, "target-kubeconfig", "", "Kubeconfig of the guest")
	flags.StringSliceVar(&o.controllers, "controllers", nil, "Controllers to run; all if empty")
	flags.StringVar(&o.registryOverrides, "registry-overrides", "", "Prefixes of images and what replaces them: source=destination,...")
	flags.StringVar(&o.metricsAddr, "metrics-addr", "0.0.0.0:8080", "Address that serves metrics")
	flags.StringVar(&o.healthAddr, "health-probe-addr", "0.0.0.0:6060", "Address that serves health probes")
	flags.StringVar(&o.initialCAFile, "initial-ca-file", "", ignored)
	flags.StringVar(&o.signerCAFile, "cluster-signer-ca-file", "", ignored)
	flags.StringVar(&o.platformType, "platform-type", "", ignored)
	flags.BoolVar(&o.ciDebugOutput, "enable-ci-debug-output", false, ignored)
	flags.StringVar(&o.konnectivityAddress, "konnectivity-address", "", ignored)
	flags.IntVar(&o.konnectivityPort, "konnectivity-port", 0, ignored)
	flags.StringVar(&o.oauthAddress, "oauth-address", "", ignored)
	flags.IntVar(&o.oauthPort, "oauth-port", 0, ignored)
	o.log.AddFlags(flags)
}

func (o *options) validate() error {
	missing := func(flag, what string) error {
		return fmt.Errorf("--%s is missing; name %s", flag, what)
	}
	var failures []error
	if o.namespace == "" {
		failures = append(failures, missing("namespace", "the namespace of the hosted control plane"))
	}
	if o.controlPlane == "" {
		failures = append(failures, missing("hosted-control-plane", "the HostedControlPlane"))
	}
	if o.targetKubeconfig == "" {
		failures = append(failures, missing("target-kubeconfig", "the kubeconfig of the guest"))
	}
	return errors.Join(failures...)
}

func (o *options) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	overrides, err := releaseinfo.ParseOverrides(o.registryOverrides)
	if err != nil {
		return fmt.Errorf("--registry-overrides: %w", err)
	}
	mirrors, err := releaseinfo.ParseMirrors(o.imageMirrors)
	if err != nil {
		return fmt.Errorf("OPENSHIFT_IMG_OVERRIDES: %w", err)
	}
	guard, err := addressguard.ForRegistries()
	if err != nil {
		return err
	}
	releases, err := releaseinfo.NewRegistry(releaseinfo.Options{Overrides: overrides, Mirrors: mirrors, Guard: guard})
	if err != nil {
		return err
	}
	return o.manage(ctx, releases)
}
