// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/ignition-server/bootstrap"
	"github.com/openshift/hypershift/ignition-server/endpoint"
	"github.com/openshift/hypershift/ignition-server/identity"
	"github.com/openshift/hypershift/ignition-server/payload"
	"github.com/openshift/hypershift/ignition-server/token"
	"github.com/openshift/hypershift/support/addressguard"
	"github.com/openshift/hypershift/support/kubeconfig"
	"github.com/openshift/hypershift/support/logging"
	"github.com/openshift/hypershift/support/metrics"
	"github.com/openshift/hypershift/support/program"
	"github.com/openshift/hypershift/support/releaseinfo"
)

const (
	namespaceVariable = "MY_NAMESPACE"
	overridesVariable = "OPENSHIFT_IMG_OVERRIDES"
	shutdownTimeout   = 10 * time.Second
	guestTimeout      = 10 * time.Second
)

type options struct {
	addr              string
	metricsAddr       string
	certFile, keyFile string
	guestKubeconfig   string
	registryOverrides string
	imageOverrides    string
	platform          string
	nodeAgentDir      string
	namespace         string
	look              time.Duration
	// guard restricts the addresses of registries; nil allows all.
	guard *addressguard.Guard
	log   logging.Options
}

func command() *cobra.Command {
	o := &options{namespace: os.Getenv(namespaceVariable), imageOverrides: os.Getenv(overridesVariable)}
	cmd := &cobra.Command{
		Use:           "ignition-server",
		Short:         "Serve the configuration of nodes to machines that boot",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.addr, "addr", ":9090", "address of the HTTPS listener")
	flags.StringVar(&o.metricsAddr, "metrics-addr", ":8080", "address of the metrics listener; 0 turns it off")
	flags.StringVar(&o.certFile, "cert-file", "/var/run/secrets/ignition/serving-cert/tls.crt", "serving certificate; a change is picked up")
	flags.StringVar(&o.keyFile, "key-file", "/var/run/secrets/ignition/serving-cert/tls.key", "key of the serving certificate")
	flags.StringVar(&o.guestKubeconfig, "guest-kubeconfig", "/var/run/secrets/guest/kubeconfig", "kubeconfig of the guest, in which machines that join get bootstrap tokens")
	flags.StringVar(&o.registryOverrides, "registry-overrides", "", "source=destination,... : where this process reads release images; nodes are not affected")
	flags.StringVar(&o.nodeAgentDir, "node-agent-dir", "/usr/share/hypershift/node-agent", "folder of node-agent, in a file for each architecture, for machines with cloud-init")
	flags.StringVar(&o.platform, "platform", "", "platform of the hosted cluster, for the log")
	o.log.AddFlags(flags)
	return cmd
}

func (o *options) run(ctx context.Context) error {
	if err := o.log.Install(); err != nil {
		return err
	}
	log := slog.New(logr.ToSlogHandler(ctrl.Log))
	if o.namespace == "" {
		return fmt.Errorf("environment variable %s is empty; set it to the namespace of the hosted control plane", namespaceVariable)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the management cluster: %w", err)
	}
	if o.guard, err = addressguard.ForRegistries(); err != nil {
		return err
	}
	log.Info("starting", "namespace", o.namespace, "platform", o.platform)
	mgr, err := o.manager(config, log)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func (o *options) manager(config *rest.Config, log *slog.Logger) (ctrl.Manager, error) {
	mirrors, err := o.mirrors()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), hyperv1.AddToScheme(scheme), clusterv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register kinds: %w", err)
	}
	mgr, err := program.NewManager(program.Management, config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metrics.Serving(o.metricsAddr, config),
		// Each replica serves from its own memory. Each replica therefore runs the controller, without leader election.
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{o.namespace: {}}},
		// The server may read Secrets only by name.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	if err != nil {
		return nil, fmt.Errorf("make the controller manager: %w", err)
	}
	tokens := token.NewCache(clock.RealClock{})
	reconciler := &token.Reconciler{
		Client: mgr.GetClient(),
		Cache:  tokens,
		Generator: &payload.Generator{
			Client: mgr.GetClient(), Namespace: o.namespace, Mirrors: mirrors, Guard: o.guard,
		},
		Clock:    clock.RealClock{},
		Recorder: mgr.GetEventRecorder("ignition-server"),
		Look:     o.look,
	}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return nil, fmt.Errorf("set up the token controller: %w", err)
	}
	credentials, err := o.credentials(mgr)
	if err != nil {
		return nil, err
	}
	return mgr, o.addServer(mgr, &endpoint.Server{
		Tokens: tokens, Credentials: credentials, Observer: reconciler, Programs: os.DirFS(o.nodeAgentDir), CA: o.ca, Log: log,
		Nodes: &identity.Nodes{Client: mgr.GetClient(), Management: mgr.GetAPIReader(), Namespace: o.namespace, Clock: clock.RealClock{}},
	})
}

// credentials returns the Credentials for joining machines. It does not call the guest, whose API may not be available
// yet.
func (o *options) credentials(mgr ctrl.Manager) (*bootstrap.Credentials, error) {
	access, err := kubeconfig.ReadFile(o.guestKubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--guest-kubeconfig: %w", err)
	}
	config, err := access.Config(kubeconfig.Options{Timeout: guestTimeout})
	if err != nil {
		return nil, fmt.Errorf("--guest-kubeconfig %s: %w", o.guestKubeconfig, err)
	}
	guest, err := logging.NewClient(config, client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return nil, fmt.Errorf("connect to the guest: %w", err)
	}
	return bootstrap.New(guest, mgr.GetAPIReader(), o.namespace, clock.RealClock{}), nil
}

// ca returns the CA next to the serving certificate. If the Secret has none, machines get no CA for later requests.
func (o *options) ca() []byte {
	content, err := os.ReadFile(filepath.Join(filepath.Dir(o.certFile), "ca.crt"))
	if err != nil {
		return nil
	}
	return content
}

// mirrors returns the mirrors from which this process reads release images: first the mirrors in the flag, then the
// mirrors in the environment.
func (o *options) mirrors() ([]releaseinfo.Mirror, error) {
	fromFlag, err := releaseinfo.ParseMirrors(o.registryOverrides)
	if err != nil {
		return nil, fmt.Errorf("flag --registry-overrides: %w", err)
	}
	fromEnvironment, err := releaseinfo.ParseMirrors(o.imageOverrides)
	if err != nil {
		return nil, fmt.Errorf("environment variable %s: %w", overridesVariable, err)
	}
	return slices.Concat(fromFlag, fromEnvironment), nil
}

// addServer runs the HTTPS listener in the manager, with a certificate that may change at any time.
func (o *options) addServer(mgr ctrl.Manager, handler http.Handler) error {
	watcher, err := certwatcher.New(o.certFile, o.keyFile)
	if err != nil {
		return fmt.Errorf("read the serving certificate %s: %w", o.certFile, err)
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      2 * time.Minute,
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){},
		// Machines that boot have no certificate. The handler verifies a client certificate on each request, with the CAs at
		// that time.
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: watcher.GetCertificate, ClientAuth: tls.RequestClientCert},
	}
	return errors.Join(mgr.Add(watcher), mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return serve(ctx, server, o.addr)
	})))
}

func serve(ctx context.Context, server *http.Server, addr string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	failed := make(chan error, 1)
	go func() { failed <- server.ServeTLS(listener, "", "") }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve HTTPS on %s: %w", addr, err)
	case <-ctx.Done():
		shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		return server.Shutdown(shutdown)
	}
}
