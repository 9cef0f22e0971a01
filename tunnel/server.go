// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/openshift/hypershift/tunnel/frame"
	"github.com/openshift/hypershift/tunnel/server"
)

// serverOptions are the flags of "tunnel server".
type serverOptions struct {
	id, agents, socket, metrics string
	servers                     int
	clusterNetworks             []string
	files                       frame.Files
	grace                       time.Duration
}

func newServer() *cobra.Command {
	o := serverOptions{}
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Pass connections of the API server to the agents on nodes",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.id, "id", os.Getenv("POD_NAME"), "name of this server, unique in the cluster (default $POD_NAME)")
	flags.IntVar(&o.servers, "servers", 1, "number of servers of the cluster")
	flags.StringVar(&o.agents, "listen", ":8091", "address for the agents")
	flags.StringVar(&o.socket, "socket", "", "path of the Unix socket for the API server")
	flags.StringVar(&o.metrics, "metrics-address", ":8092", "address of the metrics; empty for none")
	flags.StringArrayVar(&o.clusterNetworks, "cluster-network", nil, "CIDR of the pods or Services of all nodes (repeatable)")
	flags.StringVar(&o.files.Certificate, "certificate", "", "file of this server's certificate")
	flags.StringVar(&o.files.Key, "key", "", "file of this server's private key")
	flags.StringVar(&o.files.Authorities, "client-authority", "", "file of the authorities of the nodes' certificates")
	flags.DurationVar(&o.grace, "grace", 5*time.Second, "how long open connections may go on after a termination signal")
	return cmd
}

func (o serverOptions) run(ctx context.Context) error {
	networks, err := parseNetworks(o.clusterNetworks)
	err = errors.Join(err, required(map[string]string{
		"id": o.id, "socket": o.socket, "certificate": o.files.Certificate, "key": o.files.Key,
		"client-authority": o.files.Authorities,
	}))
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s := server.New(server.Config{
		ID: o.id, Servers: o.servers, TLS: o.files.Server(), ClusterNetworks: networks, Metrics: registry,
		Log: klog.Background(),
	})
	return o.serve(ctx, s, registry)
}

// serve runs until the context ends, and then until the open connections ended.
func (o serverOptions) serve(ctx context.Context, s *server.Server, registry *prometheus.Registry) error {
	agents, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.agents)
	if err != nil {
		return fmt.Errorf("listening for agents: %w", err)
	}
	api, err := listenUnix(ctx, o.socket)
	if err != nil {
		return fmt.Errorf("listening for the API server: %w", err)
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	failed := make(chan error, 3)
	go func() { failed <- s.ServeAgents(serving, agents) }()
	go func() { failed <- s.ServeAPI(serving, api) }()
	if o.metrics != "" {
		go func() { failed <- serveMetrics(serving, o.metrics, registry) }()
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	draining, cancel := context.WithTimeout(serving, o.grace)
	defer cancel()
	return s.Drain(draining)
}

// listenUnix listens on a Unix socket, in place of a server that was killed.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("removing the socket of the previous server: %w", err)
	}
	return (&net.ListenConfig{}).Listen(ctx, "unix", path)
}

func serveMetrics(ctx context.Context, address string, registry *prometheus.Registry) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	web := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = web.Close() })
	defer stop()
	if err := web.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving metrics: %w", err)
	}
	return nil
}
