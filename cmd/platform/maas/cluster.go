package maas

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/cluster"
	"github.com/openshift/hypershift/cmd/publish"
	"github.com/openshift/hypershift/support/maas"
)

const (
	apiKeyVariable = hyperv1.MAASAPIKeyKey

	endpointKey = hyperv1.MAASEndpointKey
	apiKeyKey   = hyperv1.MAASAPIKeyKey
	caBundleKey = hyperv1.MAASCABundleKey
)

// Cluster is platform MAAS for `create cluster`.
type Cluster struct {
	pool NodePool

	endpoint          string
	apiKey            string
	apiKeyFile        string
	caBundleFile      string
	credentialsName   string
	credentialsSecret string
	zone              string
	dnsDomain         string
	failureDomains    []string
	clusterPool       string
	address           string

	// getenv is os.Getenv; tests set their own.
	getenv   func(string) string
	caBundle []byte
}

// NewCluster makes the platform of the command.
func NewCluster() *Cluster { return &Cluster{getenv: os.Getenv} }

// Type implements cluster.Platform.
func (*Cluster) Type() hyperv1.PlatformType { return hyperv1.MAASPlatform }

// spellings are how users of MAAS's other tools call flags of ours.
var spellings = map[string]string{
	"maas-server-url": "maas-endpoint", "endpoint": "maas-endpoint", "api-key": "maas-api-key",
}

func acceptSpellings(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if ours, known := spellings[name]; known {
		name = ours
	}
	return pflag.NormalizedName(name)
}

// AddFlags implements cluster.Platform.
func (p *Cluster) AddFlags(flags *pflag.FlagSet) {
	flags.SetNormalizeFunc(acceptSpellings)
	flags.StringVar(&p.endpoint, "maas-endpoint", "", "URL of MAAS up to and including /MAAS, e.g. https://maas.example.com:5443/MAAS; --maas-server-url and --endpoint are the same")
	flags.StringVar(&p.apiKeyFile, "maas-api-key-file", "", "file with the MAAS API key (consumer:token:secret), \"-\" for standard input (default: $"+apiKeyVariable+")")
	flags.StringVar(&p.apiKey, "maas-api-key", "", "the MAAS API key itself; other users of this computer can read it, so rather use --maas-api-key-file; --api-key is the same")
	flags.StringVar(&p.caBundleFile, "maas-ca-bundle", "", "file with the CAs of MAAS's certificate (PEM)")
	flags.StringVar(&p.credentialsName, "credentials-name", "", "name of the credentials Secret that is made (default: <name>-maas-credentials)")
	flags.StringVar(&p.credentialsSecret, "credentials-secret", "", "existing Secret with MAAS_ENDPOINT and MAAS_API_KEY to use; none is made")
	flags.StringVar(&p.zone, "maas-zone", "", "MAAS zone of machines whose NodePool names none")
	flags.StringVar(&p.dnsDomain, "maas-dns-domain", "", "MAAS domain that machines are named in")
	flags.StringSliceVar(&p.failureDomains, "maas-failure-domains", nil, "MAAS zones over which machines may be spread (default: all)")
	flags.StringVar(&p.clusterPool, "maas-resource-pool", "", "MAAS resource pool of machines whose NodePool names none")
	flags.StringVar(&p.address, "external-api-server-address", "", "address under which machines reach the management cluster's nodes (default: that of the first Ready node)")
	flags.StringVar(&p.pool.zone, "zone", "", "MAAS zone of the first NodePool's machines (default: --maas-zone, or any)")
	p.pool.addMachineFlags(flags)
}

// Complete implements cluster.Platform.
func (p *Cluster) Complete(ctx context.Context, env cluster.Environment) error {
	if err := p.pool.Complete(); err != nil {
		return err
	}
	if p.apiKey != "" && env.Stderr != nil {
		fmt.Fprintln(env.Stderr, "Warning: other users of this computer can read the key in --maas-api-key, and the shell remembers it: rather use --maas-api-key-file or $"+apiKeyVariable)
	}
	if err := p.completeCredentials(env.Stdin); err != nil {
		return err
	}
	if warning := maas.PlainHTTP(p.endpoint); warning != "" && env.Stderr != nil {
		fmt.Fprintf(env.Stderr, "Warning: %s (--maas-endpoint, --maas-ca-bundle)\n", warning)
	}
	if p.credentialsName == "" {
		p.credentialsName = env.Name + "-maas-credentials"
	}
	if p.address != "" {
		return nil
	}
	c, err := env.Client()
	if err != nil {
		return err
	}
	p.address, err = publish.FindAddress(ctx, c)
	return err
}

func (p *Cluster) completeCredentials(stdin io.Reader) error {
	if p.credentialsSecret != "" {
		if p.endpoint != "" || p.apiKey != "" || p.apiKeyFile != "" || p.caBundleFile != "" || p.credentialsName != "" {
			return errors.New("--credentials-secret names a Secret that holds all: leave out --maas-endpoint, --maas-api-key..., --maas-ca-bundle and --credentials-name")
		}
		return nil
	}
	if err := checkEndpoint(p.endpoint); err != nil {
		return err
	}
	if err := p.readAPIKey(stdin); err != nil {
		return err
	}
	if p.caBundleFile == "" {
		return nil
	}
	var err error
	if p.caBundle, err = os.ReadFile(p.caBundleFile); err != nil {
		return fmt.Errorf("--maas-ca-bundle: %w", err)
	}
	return nil
}

func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return errors.New("--maas-endpoint is required, e.g. https://maas.example.com:5443/MAAS (or name a Secret by --credentials-secret)")
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil {
		return errors.New("--maas-endpoint is no http or https URL without user, e.g. https://maas.example.com:5443/MAAS")
	}
	return nil
}

// readAPIKey never repeats the key in an error.
func (p *Cluster) readAPIKey(stdin io.Reader) error {
	if p.apiKey != "" && p.apiKeyFile != "" {
		return errors.New("set one of --maas-api-key-file and --maas-api-key")
	}
	if p.apiKeyFile != "" {
		raw, err := readFile(p.apiKeyFile, stdin)
		if err != nil {
			return fmt.Errorf("--maas-api-key-file: %w", err)
		}
		p.apiKey = string(raw)
	}
	if p.apiKey == "" {
		p.apiKey = p.getenv(apiKeyVariable)
	}
	p.apiKey = strings.TrimSpace(p.apiKey)
	if p.apiKey == "" {
		return errors.New("the MAAS API key is required: set --maas-api-key-file (\"-\" for standard input) or the environment variable " + apiKeyVariable)
	}
	if parts := strings.Split(p.apiKey, ":"); len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return errors.New("the MAAS API key is not of the form consumer:token:secret; copy it from MAAS, user preferences, API keys")
	}
	return nil
}

func readFile(name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(stdin, 1<<20))
	}
	return os.ReadFile(name)
}

// Apply implements cluster.Platform.
func (p *Cluster) Apply(hc *hyperv1.HostedCluster) {
	spec := &hyperv1.MAASPlatformSpec{
		IdentityRef:  hyperv1.MAASIdentityReference{Name: p.credentialsName},
		DNSDomain:    p.dnsDomain,
		Zone:         hyperv1.MAASName(p.zone),
		ResourcePool: hyperv1.MAASName(p.clusterPool),
	}
	if p.credentialsSecret != "" {
		spec.IdentityRef.Name = p.credentialsSecret
	}
	for _, zone := range p.failureDomains {
		spec.FailureDomains = append(spec.FailureDomains, hyperv1.MAASName(zone))
	}
	hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.MAASPlatform, MAAS: spec}
	hc.Spec.Services = publish.NodePort(p.address)
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
