// Package release holds the commands about release payloads.
package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/blang/semver/v4"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// pushTimeout bounds the push of a payload, which is a few kilobytes.
const pushTimeout = 2 * time.Minute

// NewCommand makes `release`.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "release", Short: "Make and read release payloads"}
	cmd.AddCommand(newBuildCommand(), newInfoCommand())
	return cmd
}

// registryFlags say how to talk to a registry.
type registryFlags struct {
	caFile, pullSecretFile string
	insecure               bool
}

func (r *registryFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&r.caFile, "ca-file", "", "file with CAs of the registry (PEM)")
	flags.StringVar(&r.pullSecretFile, "pull-secret", "", "file with credentials of the registry (.dockerconfigjson)")
	flags.BoolVar(&r.insecure, "insecure", false, "accept any certificate, and plain HTTP")
}

func (r *registryFlags) read() (ca, pullSecret []byte, err error) {
	if r.caFile != "" {
		if ca, err = os.ReadFile(r.caFile); err != nil {
			return nil, nil, fmt.Errorf("--ca-file: %w", err)
		}
	}
	if r.pullSecretFile != "" {
		if pullSecret, err = os.ReadFile(r.pullSecretFile); err != nil {
			return nil, nil, fmt.Errorf("--pull-secret: %w", err)
		}
	}
	return ca, pullSecret, nil
}

// build is the state of one `release build`.
type build struct {
	registry     registryFlags
	version      string
	distribution string
	arch         string
	components   map[string]string
	versions     map[string]string
	to           string
}

func newBuildCommand() *cobra.Command {
	b := &build{}
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Make a release payload, push it, and print its pull spec by digest",
		Example: `  hypershift release build --version 1.36.3 --to registry.example.com/release:1.36.3 \
    --component etcd=registry.example.com/etcd:3.6.8 --component kube-apiserver=registry.example.com/kube-apiserver:1.36.3 ...`,
		Args: cobra.NoArgs,
		RunE: b.run,
	}
	flags := cmd.Flags()
	flags.StringVar(&b.version, "version", "", "version of the release, e.g. 1.36.3 (required)")
	flags.StringVar(&b.distribution, "distribution", "kubernetes", "kubernetes or openshift")
	flags.StringVar(&b.arch, "arch", "amd64", "CPU architecture of the components, or multi")
	flags.StringToStringVar(&b.components, "component", nil, "tag=pull spec of a component; can be given many times")
	flags.StringToStringVar(&b.versions, "component-version", nil, "name=version of a part, e.g. kubernetes=1.36.3")
	flags.StringVar(&b.to, "to", "", "where to push the payload, with a tag (required)")
	b.registry.addFlags(flags)
	return cmd
}

func (b *build) run(cmd *cobra.Command, _ []string) error {
	payload, err := b.payload()
	if err != nil {
		return exit.UsageError(err)
	}
	ca, pullSecret, err := b.registry.read()
	if err != nil {
		return exit.UsageError(err)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), pushTimeout)
	defer cancel()
	spec, err := b.push(ctx, payload, ca, pullSecret)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), spec)
	return err
}

func (b *build) payload() (releaseinfo.Payload, error) {
	p := releaseinfo.Payload{
		Version: b.version, Architecture: b.arch, Components: b.components, ComponentVersions: b.versions,
	}
	if _, err := semver.Parse(b.version); err != nil {
		return p, fmt.Errorf("--version %q is no version such as 1.36.3 (without \"v\"): %w", b.version, err)
	}
	if b.to == "" {
		return p, errors.New("--to is required, e.g. registry.example.com/release:" + b.version)
	}
	if len(b.components) == 0 {
		return p, errors.New("--component is required, e.g. --component etcd=registry.example.com/etcd:3.6.8")
	}
	for _, tag := range slices.Sorted(maps.Keys(b.components)) {
		if _, err := name.ParseReference(b.components[tag]); err != nil {
			return p, fmt.Errorf("--component %s: %w", tag, err)
		}
	}
	switch strings.ToLower(b.distribution) {
	case "kubernetes":
		p.Distribution = releaseinfo.Kubernetes
	case "openshift":
		p.Distribution = releaseinfo.OpenShift
	default:
		return p, fmt.Errorf("--distribution %q: use kubernetes or openshift", b.distribution)
	}
	return p, nil
}

func (b *build) push(ctx context.Context, p releaseinfo.Payload, ca, pullSecret []byte) (string, error) {
	var nameOptions []name.Option
	if b.registry.insecure {
		nameOptions = append(nameOptions, name.Insecure)
	}
	ref, err := name.ParseReference(b.to, nameOptions...)
	if err != nil {
		return "", exit.UsageError(fmt.Errorf("--to: %w", err))
	}
	transport, err := releaseinfo.NewTransport(ca, b.registry.insecure)
	if err != nil {
		return "", exit.UsageError(fmt.Errorf("--ca-file: %w", err))
	}
	keychain, err := releaseinfo.Keychain(pullSecret)
	if err != nil {
		return "", exit.UsageError(fmt.Errorf("--pull-secret: %w", err))
	}
	img, err := releaseinfo.Build(p)
	if err != nil {
		return "", err
	}
	if err := remote.Write(ref, img, remote.WithContext(ctx), remote.WithTransport(transport), remote.WithAuthFromKeychain(keychain)); err != nil {
		return "", fmt.Errorf("push release payload to %s: %w", b.to, err)
	}
	digest, err := img.Digest()
	if err != nil {
		return "", fmt.Errorf("read the digest of the release payload: %w", err)
	}
	return ref.Context().Digest(digest.String()).Name(), nil
}

func newInfoCommand() *cobra.Command {
	var registry registryFlags
	var output string
	cmd := &cobra.Command{
		Use:   "info <release image>",
		Short: "Print what a release payload holds",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name one release image, e.g. hypershift release info registry.example.com/release:1.36.3")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ca, pullSecret, err := registry.read()
			if err != nil {
				return exit.UsageError(err)
			}
			provider, err := releaseinfo.NewRegistry(releaseinfo.Options{CABundle: ca, Insecure: registry.insecure})
			if err != nil {
				return exit.UsageError(fmt.Errorf("--ca-file: %w", err))
			}
			release, err := provider.Lookup(cmd.Context(), args[0], pullSecret)
			if err != nil {
				return err
			}
			return printRelease(cmd.OutOrStdout(), release, output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json (default: text)")
	registry.addFlags(cmd.Flags())
	return cmd
}

func printRelease(w io.Writer, release *releaseinfo.ReleaseImage, output string) error {
	if output == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(map[string]any{
			"image": release.PullSpec(), "version": release.Version(), "distribution": release.Distribution(),
			"architecture": release.Architecture(), "components": release.ComponentImages(), "componentVersions": release.ComponentVersions(),
		})
	}
	if output != "" {
		return exit.UsageError(fmt.Errorf("--output %q: use json", output))
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "Image\t%s\nVersion\t%s\nDistribution\t%s\nArchitecture\t%s\n\nCOMPONENT\tIMAGE\n",
		release.PullSpec(), release.Version(), release.Distribution(), release.Architecture())
	images := release.ComponentImages()
	for _, tag := range slices.Sorted(maps.Keys(images)) {
		fmt.Fprintf(table, "%s\t%s\n", tag, images[tag])
	}
	return table.Flush()
}
