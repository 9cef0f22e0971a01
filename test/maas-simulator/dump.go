// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/hypershift/test/maas-simulator/dump"
)

func dumpCommand() *cobra.Command {
	var url, keyFile, output string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "Read the inventory of a live MAAS as a seed",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if url == "" || keyFile == "" {
				return errors.New("dump needs --url, such as https://maas.example.com:5443/MAAS, and --api-key-file")
			}
			key, err := os.ReadFile(keyFile)
			if err != nil {
				return err
			}
			out := os.Stdout
			if output != "" {
				if out, err = os.OpenFile(output, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600); err != nil {
					return err
				}
			}
			err = dump.Dump(cmd.Context(), dump.Source{URL: url, APIKey: string(key), Timeout: timeout, Warn: cmd.ErrOrStderr()}, out)
			if output != "" {
				err = errors.Join(err, out.Close())
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&url, "url", "", "URL of MAAS, up to /MAAS")
	f.StringVar(&keyFile, "api-key-file", "", "file with an API key; an administrator's sees most")
	f.StringVar(&output, "output", "", "file to write (default: standard output)")
	f.DurationVar(&timeout, "timeout", 2*time.Minute, "time that one list may take")
	return cmd
}
