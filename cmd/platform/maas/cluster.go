// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/cluster"
	"github.com/openshift/hypershift/cmd/publish"
)

const (
	endpointKey = hyperv1.MAASEndpointKey
	apiKeyKey   = hyperv1.MAASAPIKeyKey
	caBundleKey = hyperv1.MAASCABundleKey
)

// Cluster is platform MAAS for `create cluster`.
type Cluster struct {
	Credentials
	pool NodePool

	credentialsName   string
	credentialsSecret string
	zone              string
	dnsDomain         string
	failureDomains    []string
	clusterPool       string
	address           publish.Address
	loadBalancer      bool
}

// NewCluster returns the platform MAAS for `create cluster`.
func NewCluster() *Cluster { return &Cluster{Credentials: NewCredentials()} }

// Type implements cluster.Platform.
func (*Cluster) Type() hyperv1.PlatformType { return hyperv1.MAASPlatform }

// Example implements cluster.Platform.
func (*Cluster) Example() string {
	return "--maas-endpoint https://maas.example.com:5443/MAAS --maas-api-key-file maas.key"
}

// AddFlags implements cluster.Platform.
func (p *Cluster) AddFlags(flags *pflag.FlagSet) {
	p.Credentials.AddFlags(flags)
	flags.StringVar(&p.credentialsName, "credentials-name", "", "name of the credentials Secret that is made (default: <name>-maas-credentials)")
	flags.StringVar(&p.credentialsSecret, "credentials-secret", "", "existing Secret with MAAS_ENDPOINT and MAAS_API_KEY to use; none is made")
	flags.StringVar(&p.zone, "maas-zone", "", "MAAS zone of machines whose NodePool names none")
	flags.StringVar(&p.dnsDomain, "maas-dns-domain", "", "MAAS domain that machines are named in")
	flags.StringSliceVar(&p.failureDomains, "maas-failure-domains", nil, "MAAS zones over which machines may be spread (default: all)")
	flags.StringVar(&p.clusterPool, "maas-resource-pool", "", "MAAS resource pool of machines whose NodePool names none")
	p.address.AddFlags(flags)
	flags.BoolVar(&p.loadBalancer, "expose-through-load-balancer", false, "publish the API by a load balancer of the management cluster (MetalLB and others); the other services stay on ports of its nodes")
	flags.StringVar(&p.pool.zone, "zone", "", "MAAS zone of the cluster and of its first NodePool; --maas-zone sets that of the cluster alone (default: any)")
	p.pool.addMachineFlags(flags)
}

// Complete implements cluster.Platform.
func (p *Cluster) Complete(ctx context.Context, env cluster.Environment) error {
	if err := p.pool.Complete(); err != nil {
		return err
	}
	if err := p.completeCredentials(env.Stdin, env.Stderr); err != nil {
		return err
	}
	if p.credentialsName == "" {
		p.credentialsName = env.Name + "-maas-credentials"
	}
	return p.address.Complete(ctx, env.Client, env.Stderr)
}

func (p *Cluster) completeCredentials(stdin io.Reader, stderr io.Writer) error {
	if p.credentialsSecret == "" {
		return p.Credentials.Complete(stdin, stderr)
	}
	if p.Given() || p.credentialsName != "" {
		return errors.New("--credentials-secret names a Secret that holds all: leave out --maas-endpoint, --maas-api-key..., --maas-ca-bundle and --credentials-name")
	}
	return nil
}

// Apply implements cluster.Platform.
func (p *Cluster) Apply(hc *hyperv1.HostedCluster) {
	spec := &hyperv1.MAASPlatformSpec{
		IdentityRef:  hyperv1.MAASIdentityReference{Name: p.credentialsName},
		DNSDomain:    p.dnsDomain,
		Zone:         hyperv1.MAASName(cmp.Or(p.zone, p.pool.zone)),
		ResourcePool: hyperv1.MAASName(p.clusterPool),
	}
	if p.credentialsSecret != "" {
		spec.IdentityRef.Name = p.credentialsSecret
	}
	for _, zone := range p.failureDomains {
		spec.FailureDomains = append(spec.FailureDomains, hyperv1.MAASName(zone))
	}
	hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.MAASPlatform, MAAS: spec}
	hc.Spec.Services = publish.NodePort(p.address.Host)
	if p.loadBalancer {
		hc.Spec.Services = publish.LoadBalancedAPI(p.address.Host)
	}
}

// ApplyNodePool implements cluster.Platform.
func (p *Cluster) ApplyNodePool(pool *hyperv1.NodePool) { p.pool.Apply(pool) }

// Objects implements cluster.Platform.
func (p *Cluster) Objects(namespace, _ string) []client.Object {
	if p.credentialsSecret != "" {
		return nil
	}
	data := map[string][]byte{endpointKey: []byte(p.endpoint), apiKeyKey: []byte(p.apiKey)}
	if len(p.caBundle) > 0 {
		data[caBundleKey] = p.caBundle
	}
	return []client.Object{&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.credentialsName},
		Type:       corev1.SecretTypeOpaque,
		Data:       data,
	}}
}
