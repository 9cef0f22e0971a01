// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/openshift/hypershift/support/logging"
	"github.com/openshift/hypershift/support/maas"
)

// credentialsSecretEnv is the variable with the name of the MAAS credentials Secret, like --credentials-secret.
const credentialsSecretEnv = "MAAS_CREDENTIALS_SECRET"

// credentialsNamespaceEnv is the variable with the namespace of that Secret.
const credentialsNamespaceEnv = "MAAS_CREDENTIALS_NAMESPACE"

// options holds the flags of the process.
type options struct {
	namespace, podNamespace                  string
	credentialsSecret, credentialsNamespace  string
	metricsAddress, healthAddress            string
	leaderElect                              bool
	syncPeriod, deployTimeout, maasDoubt     time.Duration
	composeDoubt                             time.Duration
	releaseTimeout                           time.Duration
	machineConcurrency, deployAttempts       int
	quarantineAfter                          int
	webhookPort                              int
	featureGates                             string
	kubeAPIQPS                               float32
	kubeAPIBurst                             int
	pollInterval, settledInterval            time.Duration
	leaseDuration, renewDeadline, retryDelay time.Duration
	log                                      logging.Options
}

func defaultOptions() *options {
	return &options{
		// NAMESPACE is set through the downward API: the namespace of the pod, used when --namespace is empty.
		podNamespace:         os.Getenv("NAMESPACE"),
		credentialsSecret:    os.Getenv(credentialsSecretEnv),
		credentialsNamespace: os.Getenv(credentialsNamespaceEnv),
	}
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.namespace, "namespace", "", "Namespace to work in, and no other; empty means all.")
	flags.StringVar(&o.credentialsSecret, "credentials-secret", o.credentialsSecret,
		"Secret with MAAS_ENDPOINT, MAAS_API_KEY and optionally MAAS_CA_BUNDLE, in the namespace of --namespace (or of $NAMESPACE); "+
			"a change needs no restart. Default $"+credentialsSecretEnv+"; empty means the environment variables of these names.")
	flags.StringVar(&o.credentialsNamespace, "credentials-namespace", o.credentialsNamespace,
		"Namespace of the Secret of --credentials-secret, where it is another. Default $"+credentialsNamespaceEnv+".")
	flags.StringVar(&o.metricsAddress, "metrics-bind-addr", ":8080", "Address of the metrics endpoint; 0 switches it off.")
	flags.StringVar(&o.healthAddress, "health-addr", ":9440", "Address of /healthz and /readyz.")
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "Elect one leader among several replicas.")
	flags.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", 15*time.Second, "How long other replicas wait before they take over the lease.")
	flags.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 10*time.Second, "How long the leader tries to keep its lease.")
	flags.DurationVar(&o.retryDelay, "leader-elect-retry-period", 2*time.Second, "Pause between two tries to get or keep the lease.")
	flags.DurationVar(&o.syncPeriod, "sync-period", 2*time.Hour, "How often all objects are reconciled although nothing changed.")
	flags.IntVar(&o.machineConcurrency, "machine-concurrency", 30, "MaasMachines worked on at once; a call of MAAS takes seconds.")
	flags.IntVar(&o.deployAttempts, "deploy-attempts", 3, "Machines that are tried for one MaasMachine when deployments fail.")
	flags.IntVar(&o.quarantineAfter, "quarantine-after", 1, "Failed deployments on a machine, of an image that runs on others, after which no cluster takes it until the tag "+
		"hypershift-quarantine is removed from it in MAAS; 0 means never.")
	flags.DurationVar(&o.deployTimeout, "deploy-timeout", time.Hour, "How long MAAS may take to deploy a machine, unless the MaasMachine sets a limit.")
	flags.DurationVar(&o.releaseTimeout, "release-timeout", 10*time.Minute, "How long MAAS may take to release a machine; after that another machine is tried, or the MaasMachine is removed "+
		"and the MaasCluster continues the release.")
	flags.DurationVar(&o.maasDoubt, "allocation-doubt", time.Minute, "How long after an allocation without an answer a machine may still turn up; more than 30s.")
	flags.DurationVar(&o.composeDoubt, "compose-doubt", 150*time.Second, "How long after a call to compose without an answer a virtual machine may still turn up; more than 130s.")
	flags.DurationVar(&o.pollInterval, "poll-interval", 10*time.Second, "How often MAAS is polled while a machine changes its state.")
	flags.DurationVar(&o.settledInterval, "settled-poll-interval", 2*time.Minute, "How often MAAS is polled while no machine changes its state.")
	flags.IntVar(&o.webhookPort, "webhook-port", 0, "Accepted for compatibility: validation is done by the API server, with the rules of the CRDs.")
	flags.StringVar(&o.featureGates, "feature-gates", "", "Accepted for compatibility: this provider has no feature gates.")
	flags.Float32Var(&o.kubeAPIQPS, "kube-api-qps", 100, "Calls a second to the management cluster.")
	flags.IntVar(&o.kubeAPIBurst, "kube-api-burst", 200, "Calls to the management cluster that may exceed --kube-api-qps for a moment.")
	o.log.AddFlags(flags)
}

// environment returns the credentials in the environment of the process.
func environment() map[string][]byte {
	data := map[string][]byte{}
	for _, key := range []string{maas.SecretKeyEndpoint, maas.SecretKeyAPIKey, maas.SecretKeyCABundle} {
		if value, ok := os.LookupEnv(key); ok {
			data[key] = []byte(value)
		}
	}
	return data
}
