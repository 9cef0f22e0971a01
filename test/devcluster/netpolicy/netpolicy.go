// SPDX-License-Identifier: Apache-2.0

// Package netpolicy enforces NetworkPolicies on a node with nftables rules. It suits a cluster of one node that routes
// to its pods.
//
// Traffic from the node itself, such as a kubelet's probe, is allowed, and so are all replies. The rules apply after
// Services are resolved to pods, since policies select pods.
package netpolicy

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/openshift/hypershift/test/devcluster/wake"
)

// resync is the interval of a reconcile without changes; retry is the pause after a failure.
const (
	resync = 5 * time.Minute
	retry  = time.Second
)

// Agent keeps the rules in sync with the policies.
type Agent struct {
	// Client is a client of the cluster.
	Client kubernetes.Interface
	// Report is called with failures; they are retried.
	Report func(error)
	// Apply replaces the rules with an nft script.
	Apply func(ctx context.Context, script string) error
}

// Run reconciles the rules until the context ends. It does not remove the rules at the end.
func (a *Agent) Run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(a.Client, resync)
	pods, namespaces, policies := factory.Core().V1().Pods(), factory.Core().V1().Namespaces(), factory.Networking().V1().NetworkPolicies()
	poke := make(chan struct{}, 1)
	for _, informer := range []cache.SharedIndexInformer{pods.Informer(), namespaces.Informer(), policies.Informer()} {
		if _, err := informer.AddEventHandler(wake.OnChange(poke)); err != nil {
			return fmt.Errorf("watching pods, namespaces and policies: %w", err)
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	look := func() (c Cluster, err error) {
		if c.Pods, err = pods.Lister().List(labels.Everything()); err != nil {
			return c, err
		}
		if c.Namespaces, err = namespaces.Lister().List(labels.Everything()); err != nil {
			return c, err
		}
		c.Policies, err = policies.Lister().List(labels.Everything())
		return c, err
	}
	a.loop(ctx, poke, look)
	return nil
}

func (a *Agent) loop(ctx context.Context, poke <-chan struct{}, look func() (Cluster, error)) {
	var applied string
	for {
		var again <-chan time.Time
		seen, err := look()
		if script := seen.Script(); err == nil && script != applied {
			if err = a.Apply(ctx, script); err == nil {
				applied = script
			}
		}
		if err != nil && ctx.Err() == nil {
			a.Report(err)
			again = time.After(retry)
		}
		select {
		case <-ctx.Done():
			return
		case <-poke:
		case <-again:
		}
	}
}

// NFT runs a script atomically in the network namespace of this process.
func NFT(ctx context.Context, script string) error {
	cmd := exec.CommandContext(ctx, "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(script)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("applying NetworkPolicies with nft: %w: %s", err, strings.TrimSpace(said.String()))
	}
	return nil
}
