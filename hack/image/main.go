// SPDX-License-Identifier: Apache-2.0

// Command image builds the product's image for several architectures from programs that are already built, and pushes
// it. It adds a bill of materials and a provenance statement. It needs no container engine. The same programs,
// certificates and version give the same digests.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{Use: "image", Short: "Make and push the product's image", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(buildCommand(), pushCommand())
	return root
}

// options holds the flags of the build.
type options struct {
	// programs is the folder with one folder of programs for each architecture.
	programs string
	// to is the OCI layout to write.
	to string
	// architectures are the architectures of the image, in Go's notation (GOARCH).
	architectures []string
	// version, revision and created (Unix seconds) describe the sources.
	version, revision string
	created           int64
}

func (o options) time() time.Time { return time.Unix(o.created, 0).UTC() }

func buildCommand() *cobra.Command {
	o := options{}
	cmd := &cobra.Command{
		Use: "build", Short: "Write the image as an OCI layout", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			digest, err := build(o)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", o.to, digest)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.programs, "programs", "", "folder with a folder of programs for each architecture")
	flags.StringVar(&o.to, "to", "", "folder of the OCI layout, which is replaced")
	flags.StringSliceVar(&o.architectures, "arch", []string{"amd64", "arm64"}, "architectures")
	flags.StringVar(&o.version, "version", "unknown", "version of the sources")
	flags.StringVar(&o.revision, "revision", "", "commit of the sources")
	flags.Int64Var(&o.created, "created", 0, "time of the commit, in seconds since 1970")
	for _, name := range []string{"programs", "to"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
	return cmd
}

func pushCommand() *cobra.Command {
	from := ""
	cmd := &cobra.Command{
		Use: "push IMAGE", Short: "Push the image, its bills of materials and its provenance", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if from == "" {
				return errors.New("--from is missing: name the folder of the OCI layout")
			}
			pushed, err := push(cmd.Context(), from, args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), pushed)
			return err
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "folder of the OCI layout")
	return cmd
}
