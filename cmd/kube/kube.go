// SPDX-License-Identifier: Apache-2.0

// Package kube connects a command to the management cluster.
package kube

import (
	"errors"
	"fmt"
	"net/http"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	certificatesv1alpha1 "github.com/openshift/hypershift/api/certificates/v1alpha1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
)

// Scheme contains every kind that the commands use.
var Scheme = newScheme()

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	err := errors.Join(
		clientgoscheme.AddToScheme(scheme),
		apiextensionsv1.AddToScheme(scheme),
		hyperv1.AddToScheme(scheme),
		infrav1.AddToScheme(scheme),
		certificatesv1alpha1.AddToScheme(scheme),
		clusterv1.AddToScheme(scheme),
		monitoringv1.AddToScheme(scheme),
	)
	if err != nil {
		// Conflicting kinds are a defect of the program that its first run shows.
		panic(err)
	}
	return scheme
}

// Connection holds the flags that select the management cluster.
type Connection struct {
	kubeconfig string
	context    string
}

// AddFlags adds --kubeconfig and --context.
func (c *Connection) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig of the management cluster (default: $KUBECONFIG, ~/.kube/config, or the pod's own cluster)")
	flags.StringVar(&c.context, "context", "", "context in the kubeconfig (default: its current one)")
}

// Config reads the connection's configuration.
func (c *Connection) Config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the management cluster: %w; set --kubeconfig or KUBECONFIG", err)
	}
	config.UserAgent = "hypershift-cli"
	config.QPS, config.Burst = 50, 100
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &retrying{next: next, pause: Pause} })
	return config, nil
}

// Client connects to the management cluster.
func (c *Connection) Client() (client.Client, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	cl, err := client.New(config, client.Options{Scheme: Scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the management cluster at %s: %w", config.Host, err)
	}
	return cl, nil
}
