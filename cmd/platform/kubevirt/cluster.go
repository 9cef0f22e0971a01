// SPDX-License-Identifier: Apache-2.0

// Package kubevirt implements platform KubeVirt for the commands: virtual machines in the management cluster or another
// cluster.
package kubevirt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/cluster"
	"github.com/openshift/hypershift/cmd/publish"
)

const (
	credentialsSuffix = "-infra-credentials"
	kubeconfigKey     = "kubeconfig"
	// kubeconfigLimit is the maximum size of a kubeconfig, in bytes.
	kubeconfigLimit = 1 << 20
)

// Cluster is platform KubeVirt for `create cluster`.
type Cluster struct {
	pool           NodePool
	publishing     publish.Strategy
	kubeconfigFile string
	namespace      string
	storage        mappings
	kubeconfig     []byte
}

// Type implements cluster.Platform.
func (*Cluster) Type() hyperv1.PlatformType { return hyperv1.KubevirtPlatform }

// Example implements cluster.Platform.
func (*Cluster) Example() string {
	return "--memory 8Gi --cores 4"
}

// AddFlags implements cluster.Platform.
func (p *Cluster) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&p.kubeconfigFile, "infra-kubeconfig-file", "", "kubeconfig of another cluster that runs the virtual machines, or - for standard input (default: the management cluster runs them)")
	flags.StringVar(&p.namespace, "infra-namespace", "", "namespace of the virtual machines in that other cluster; it must be there")
	p.publishing.AddFlags(flags)
	flags.StringVar(&p.publishing.Host, "api-server-address", "", "the flag of the compatible product for --external-api-server-address")
	p.storage.addFlags(flags)
	p.pool.AddFlags(flags)
}

// Complete implements cluster.Platform.
func (p *Cluster) Complete(ctx context.Context, env cluster.Environment) error {
	if err := errors.Join(p.storage.complete(), p.pool.Complete()); err != nil {
		return err
	}
	if err := p.readKubeconfig(env.Stdin); err != nil {
		return err
	}
	return p.publishing.Complete(ctx, env.Client, env.Stderr)
}

// readKubeconfig requires both the kubeconfig of the other cluster and the namespace of the virtual machines there.
func (p *Cluster) readKubeconfig(stdin io.Reader) error {
	switch {
	case p.kubeconfigFile == "" && p.namespace == "":
		return nil
	case p.kubeconfigFile == "":
		return errors.New("--infra-namespace needs --infra-kubeconfig-file: the namespace is in the cluster of that kubeconfig")
	case p.namespace == "":
		return errors.New("--infra-kubeconfig-file needs --infra-namespace: name the namespace of the virtual machines")
	}
	if problems := validation.IsDNS1123Label(p.namespace); len(problems) > 0 {
		return fmt.Errorf("--infra-namespace %q: %s", p.namespace, problems[0])
	}
	var err error
	if p.kubeconfigFile == "-" {
		p.kubeconfig, err = io.ReadAll(io.LimitReader(stdin, kubeconfigLimit))
	} else {
		p.kubeconfig, err = os.ReadFile(p.kubeconfigFile)
	}
	if err != nil {
		return fmt.Errorf("--infra-kubeconfig-file: %w", err)
	}
	if len(p.kubeconfig) == 0 {
		return fmt.Errorf("--infra-kubeconfig-file %s is empty", p.kubeconfigFile)
	}
	return nil
}

// Apply implements cluster.Platform.
func (p *Cluster) Apply(hc *hyperv1.HostedCluster) {
	block := &hyperv1.KubevirtPlatformSpec{StorageDriver: p.storage.driver()}
	if len(p.kubeconfig) > 0 {
		block.Credentials = &hyperv1.KubevirtPlatformCredentials{
			InfraNamespace:        p.namespace,
			InfraKubeConfigSecret: &hyperv1.KubeconfigSecretRef{Name: hc.Name + credentialsSuffix, Key: kubeconfigKey},
		}
	}
	hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.KubevirtPlatform, Kubevirt: block}
	hc.Spec.Services = p.publishing.Services()
}

// ApplyNodePool implements cluster.Platform.
func (p *Cluster) ApplyNodePool(pool *hyperv1.NodePool) { p.pool.Apply(pool) }

// Objects implements cluster.Platform.
func (p *Cluster) Objects(namespace, name string) []client.Object {
	if len(p.kubeconfig) == 0 {
		return nil
	}
	return []client.Object{&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + credentialsSuffix},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{kubeconfigKey: p.kubeconfig},
	}}
}
