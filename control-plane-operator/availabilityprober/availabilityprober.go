// SPDX-License-Identifier: Apache-2.0

// Package availabilityprober makes a pod wait, in an init container, until the hosted API server can serve it.
package availabilityprober

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/kubeconfig"
	"github.com/openshift/hypershift/support/logging"
)

const (
	interval       = 250 * time.Millisecond
	requestTimeout = 10 * time.Second
	connectTimeout = 2 * time.Second
)

type options struct {
	target             string
	kubeconfig         string
	requiredAPIs       []string
	infrastructure     bool
	clusterRoleBinding string
	log                logging.Options
}

// NewCommand returns the subcommand.
func NewCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "availability-prober",
		Short: "Waits until the hosted API server is ready",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.log.Install(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.target, "target", "", "URL that must answer with a 2xx status; its certificate is not verified. tcp://host:port must accept a connection")
	cmd.Flags().StringVar(&o.kubeconfig, "kubeconfig", "", "Kubeconfig for the checks that need a client")
	cmd.Flags().StringArrayVar(&o.requiredAPIs, "required-api", nil, "API that must be served, as group,version,kind; may be repeated")
	cmd.Flags().BoolVar(&o.infrastructure, "wait-for-infrastructure-resource", false, "Wait until the Infrastructure resource has a name")
	cmd.Flags().StringVar(&o.clusterRoleBinding, "wait-for-cluster-rolebinding", "", "Name of a ClusterRoleBinding that must exist")
	o.log.AddFlags(cmd.Flags())
	return cmd
}

// check is one condition that the prober waits for.
type check struct {
	name string
	run  func(context.Context) error
}

func (o options) run(ctx context.Context) error {
	checks, err := o.checks()
	if err != nil {
		return err
	}
	log := ctrl.Log.WithName("availability-prober")
	var last string
	return wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		for _, c := range checks {
			if err := c.run(ctx); err != nil {
				if because := err.Error(); because != last {
					log.Info("Waiting", "for", c.name, "because", because)
					last = because
				}
				return false, nil
			}
		}
		return true, nil
	})
}

func (o options) checks() ([]check, error) {
	if o.target == "" {
		return nil, errors.New("--target is missing; name the URL to wait for")
	}
	checks := []check{{"an answer of " + o.target, o.probe}}
	needsClient := len(o.requiredAPIs) > 0 || o.infrastructure || o.clusterRoleBinding != ""
	if !needsClient {
		return checks, nil
	}
	access, err := kubeconfig.ReadFile(o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	config, err := access.Config(kubeconfig.Options{Timeout: requestTimeout})
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %s: %w", o.kubeconfig, err)
	}
	for _, api := range o.requiredAPIs {
		gvk, err := parseAPI(api)
		if err != nil {
			return nil, err
		}
		checks = append(checks, check{"API " + api, func(context.Context) error { return served(config, gvk) }})
	}
	if o.infrastructure {
		checks = append(checks, check{"the Infrastructure resource", func(ctx context.Context) error { return infrastructureNamed(ctx, config) }})
	}
	if o.clusterRoleBinding != "" {
		checks = append(checks, check{"ClusterRoleBinding " + o.clusterRoleBinding, func(ctx context.Context) error {
			return exists(ctx, config, &rbacv1.ClusterRoleBinding{}, o.clusterRoleBinding)
		}})
	}
	return checks, nil
}

// probe requests the target without verifying its certificate: the request carries no secret, and the prober does not
// know which CA is right.
//
//nolint:gosec // see above
func (o options) probe(ctx context.Context) error {
	if address, ok := strings.CutPrefix(o.target, "tcp://"); ok {
		return connect(ctx, address)
	}
	httpClient := &http.Client{Timeout: requestTimeout, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.target, nil)
	if err != nil {
		return err
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Errorf("it answered %s", response.Status)
	}
	return nil
}

func connect(ctx context.Context, address string) error {
	dialer := net.Dialer{Timeout: connectTimeout}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return connection.Close()
}

func parseAPI(text string) (schema.GroupVersionKind, error) {
	parts := strings.Split(text, ",")
	if len(parts) != 3 {
		return schema.GroupVersionKind{}, fmt.Errorf("--required-api %q: write it as group,version,kind", text)
	}
	return schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]}, nil
}

func served(config *rest.Config, gvk schema.GroupVersionKind) error {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	resources, err := d.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	if err != nil {
		return err
	}
	for _, resource := range resources.APIResources {
		if resource.Kind == gvk.Kind {
			return nil
		}
	}
	return fmt.Errorf("%s is not served", gvk)
}

func infrastructureNamed(ctx context.Context, config *rest.Config) error {
	infrastructure := &unstructured.Unstructured{}
	infrastructure.SetGroupVersionKind(schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Infrastructure"})
	if err := exists(ctx, config, infrastructure, "cluster"); err != nil {
		return err
	}
	if name, _, _ := unstructured.NestedString(infrastructure.Object, "status", "infrastructureName"); name == "" {
		return errors.New("it has no infrastructureName")
	}
	return nil
}

func exists(ctx context.Context, config *rest.Config, obj client.Object, name string) error {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	err = c.Get(ctx, client.ObjectKey{Name: name}, obj)
	if apierrors.IsNotFound(err) {
		return errors.New("it does not exist")
	}
	return err
}
