// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	utilversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// Part is what a platform adds to `doctor`.
type Part interface {
	// Type is the platform's type.
	Type() hyperv1.PlatformType
	// AddFlags adds the platform's flags, which are those of `create cluster`.
	AddFlags(flags *pflag.FlagSet)
	// SiteChecks returns the checks of a site. An error is a usage error.
	SiteChecks(site Site) ([]Check, error)
	// ClusterChecks returns the checks of what an existing cluster uses.
	ClusterChecks(c client.Client, hc *hyperv1.HostedCluster, pools []hyperv1.NodePool) []Check
}

// Site is what the flags say about a future cluster.
type Site struct {
	// Namespace is the namespace of the cluster and of its Secrets.
	Namespace string
	// Architecture is that of the machines, and Machines is their number.
	Architecture string
	Machines     int
	// Networks are those of pods and Services.
	Networks []netip.Prefix
	// Client connects to the management cluster.
	Client func() (client.Client, error)
	// Stdin is the input for flags with the value "-". Stderr receives warnings.
	Stdin  io.Reader
	Stderr io.Writer
}

// command holds the flags of `doctor`.
type command struct {
	connection kube.Connection
	parts      []Part

	namespace, arch, output                 string
	releaseImage, pullSecretFile, trustFile string
	mirrorsFile, storageClass, address      string
	serviceCIDR, clusterCIDR                string
	machines                                int
	pullSecret, trustBundle                 []byte
	mirrors                                 []hyperv1.ImageContentSource
	networks                                []netip.Prefix
}

// NewCommand returns the command `doctor`.
func NewCommand(parts ...Part) *cobra.Command {
	d := &command{parts: parts}
	cmd := &cobra.Command{
		Use:     "doctor",
		Aliases: []string{"preflight"},
		Short:   "Check whether a site can run hosted clusters",
		Long: "Check whether a site can run hosted clusters: the management cluster, the registry, the network, and\n" +
			"the platform. The flags are those of `create cluster`. Nothing is changed. The exit code is 1 if a check failed.",
		Example: "  hypershift doctor\n" +
			"  hypershift doctor --maas-endpoint https://maas.example.com:5443/MAAS --maas-api-key-file maas.key",
		Args: cobra.NoArgs,
		RunE: d.run,
	}
	flags := cmd.Flags()
	flags.StringVar(&d.namespace, "namespace", "clusters", "namespace of the cluster and of --credentials-secret")
	flags.StringVar(&d.arch, "arch", "amd64", "CPU architecture of the machines")
	flags.IntVar(&d.machines, "node-pool-replicas", 1, "number of machines that the cluster needs")
	flags.StringVar(&d.releaseImage, "release-image", "", "release payload to read")
	flags.StringVar(&d.pullSecretFile, "pull-secret", "", "file with the pull secret (.dockerconfigjson) (default: none)")
	flags.StringVar(&d.trustFile, "additional-trust-bundle", "", "file with CAs of registries (PEM)")
	flags.StringVar(&d.mirrorsFile, "image-content-sources", "", "file with a YAML list of source and mirrors")
	flags.StringVar(&d.storageClass, "etcd-storage-class", "",
		"StorageClass of etcd's volumes (default: the management cluster's)")
	flags.StringVar(&d.address, "external-api-server-address", "",
		"address under which machines and users reach the management cluster's nodes (default: as for create cluster)")
	flags.StringVar(&d.serviceCIDR, "service-cidr", "172.31.0.0/16", "network of Services")
	flags.StringVar(&d.clusterCIDR, "cluster-cidr", "10.132.0.0/14", "network of pods")
	addOutput(flags, &d.output)
	d.connection.AddFlags(flags)
	for _, part := range parts {
		part.AddFlags(flags)
	}
	cmd.AddCommand(newClusterCommand(parts))
	return cmd
}

func addOutput(flags *pflag.FlagSet, output *string) {
	flags.StringVarP(output, "output", "o", "", "json (default: a table)")
}

func checkOutput(output string) error {
	if output != "" && output != jsonOutput {
		return exit.UsageError(fmt.Errorf("--output %q: use json", output))
	}
	return nil
}

func (d *command) run(cmd *cobra.Command, _ []string) error {
	if err := errors.Join(checkOutput(d.output), d.readFlags()); err != nil {
		return exit.UsageError(err)
	}
	c, version := connect(&d.connection)
	site := Site{
		Namespace: d.namespace, Architecture: d.arch, Machines: d.machines, Networks: d.networks,
		Client: func() (client.Client, error) {
			if c == nil {
				_, err := version(cmd.Context())
				return nil, err
			}
			return c, nil
		},
		Stdin: cmd.InOrStdin(), Stderr: cmd.ErrOrStderr(),
	}
	management := &Management{Client: c, Version: version, StorageClass: d.storageClass}
	network := &Network{Client: c, Host: d.address}
	release := Release{Image: d.releaseImage, Architecture: d.arch, PullSecret: d.pullSecret, TrustBundle: d.trustBundle,
		Mirrors: d.mirrors}
	checks := append(management.Checks(), release.Checks()...)
	checks = append(checks, network.Checks()...)
	for _, part := range d.parts {
		more, err := part.SiteChecks(site)
		if err != nil {
			return exit.UsageError(err)
		}
		checks = append(checks, more...)
	}
	results := Run(cmd.Context(), checks)
	if err := cmd.Context().Err(); err != nil {
		return err
	}
	return newReport(results, "").finish(cmd.OutOrStdout(), d.output)
}

// readFlags checks the flags and reads the files that they name.
func (d *command) readFlags() error {
	if d.machines < 0 {
		return fmt.Errorf("--node-pool-replicas %d: use 0 or more", d.machines)
	}
	for flag, value := range map[string]string{"service-cidr": d.serviceCIDR, "cluster-cidr": d.clusterCIDR} {
		network, err := netip.ParsePrefix(value)
		if err != nil {
			return fmt.Errorf("--%s %q is not a network; write it as 172.31.0.0/16", flag, value)
		}
		d.networks = append(d.networks, network)
	}
	var mirrors []byte
	for _, file := range []struct {
		flag, name string
		into       *[]byte
	}{
		{"pull-secret", d.pullSecretFile, &d.pullSecret}, {"additional-trust-bundle", d.trustFile, &d.trustBundle},
		{"image-content-sources", d.mirrorsFile, &mirrors},
	} {
		if file.name == "" {
			continue
		}
		var err error
		if *file.into, err = os.ReadFile(file.name); err != nil {
			return fmt.Errorf("--%s: %w", file.flag, err)
		}
	}
	if len(d.pullSecret) > 0 {
		if _, err := releaseinfo.Keychain(d.pullSecret); err != nil {
			return fmt.Errorf("--pull-secret %s: %w", d.pullSecretFile, err)
		}
	}
	if err := yaml.UnmarshalStrict(mirrors, &d.mirrors); err != nil {
		return fmt.Errorf("--image-content-sources %s is not a list of source and mirrors: %w", d.mirrorsFile, err)
	}
	return nil
}

// connect returns a client with a time limit for each request, and the function that reads the version. The client is
// nil if there is no kubeconfig; the function then returns the reason.
func connect(connection *kube.Connection) (client.Client, func(context.Context) (string, error)) {
	unusable := func(err error) (client.Client, func(context.Context) (string, error)) {
		return nil, func(context.Context) (string, error) { return "", err }
	}
	config, err := connection.Config()
	if err != nil {
		return unusable(err)
	}
	config.Timeout = defaultLimit
	c, err := client.New(config, client.Options{Scheme: kube.Scheme})
	if err != nil {
		return unusable(err)
	}
	return c, func(ctx context.Context) (string, error) { return serverVersion(ctx, config) }
}

// serverVersion reads the version of an API server.
func serverVersion(ctx context.Context, config *rest.Config) (string, error) {
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", err
	}
	raw, err := c.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	info := utilversion.Info{}
	if err := json.Unmarshal(raw, &info); err != nil {
		return "", fmt.Errorf("the answer is not that of a Kubernetes API server: %w", err)
	}
	return info.GitVersion, nil
}

// clusterCommand holds the flags of `doctor cluster`.
type clusterCommand struct {
	connection        kube.Connection
	parts             []Part
	namespace, output string
}

func newClusterCommand(parts []Part) *cobra.Command {
	d := &clusterCommand{parts: parts}
	cmd := &cobra.Command{
		Use:   "cluster NAME",
		Short: "Find out why a hosted cluster does not run",
		Long: "Find out why a hosted cluster does not run: its conditions, its control plane, its NodePools, and their\n" +
			"machines. Nothing is changed. The exit code is 1 if there is a failure.",
		Example: "  hypershift doctor cluster prod --namespace clusters",
		Args:    cobra.ExactArgs(1),
		RunE:    d.run,
	}
	cmd.Flags().StringVar(&d.namespace, "namespace", "clusters", "namespace of the cluster")
	addOutput(cmd.Flags(), &d.output)
	d.connection.AddFlags(cmd.Flags())
	return cmd
}

func (d *clusterCommand) run(cmd *cobra.Command, args []string) error {
	if err := checkOutput(d.output); err != nil {
		return err
	}
	c, version := connect(&d.connection)
	if c == nil {
		_, err := version(cmd.Context())
		return err
	}
	report := Examine(cmd.Context(), c, client.ObjectKey{Namespace: d.namespace, Name: args[0]}, d.parts)
	if err := cmd.Context().Err(); err != nil {
		return err
	}
	return report.finish(cmd.OutOrStdout(), d.output)
}

// Examine walks down a cluster, and runs the checks of its platform.
func Examine(ctx context.Context, c client.Client, key client.ObjectKey, parts []Part) Report {
	w := walkDown(ctx, c, key)
	results := w.results
	if w.cluster != nil {
		for _, part := range parts {
			if part.Type() == w.cluster.Spec.Platform.Type {
				results = append(results, Run(ctx, part.ClusterChecks(c, w.cluster, w.pools))...)
			}
		}
	}
	return newReport(results, w.cause())
}
