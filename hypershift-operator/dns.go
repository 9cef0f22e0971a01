// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"sigs.k8s.io/controller-runtime/pkg/client"

	maasapi "github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/managementnetwork"
)

// readDNS finds the DNS servers that hosted pods query: the servers of the operator's own pod, and the servers in the
// flag.
func (f *runFlags) readDNS(ctx context.Context, reader client.Reader, file string) error {
	further, err := maasapi.ParsePrefixes(f.dnsServers)
	if err != nil {
		return fmt.Errorf("--hcp-egress-dns-cidrs: %w", err)
	}
	content, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the DNS servers of the operator's pod: %w", err)
	}
	f.dns, err = managementnetwork.ReadDNS(ctx, reader, string(content), further)
	return err
}
