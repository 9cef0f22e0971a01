package resources

import (
	"context"
	"fmt"
	"hash/fnv"
	"net"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubecontrollermanager"
)

const (
	proxyConfigKey   = "config.conf"
	configAnnotation = "hypershift.openshift.io/config-hash"
	// dnsAddressIndex is the place of the DNS Service in the service network, which kubelets are told too.
	dnsAddressIndex = 10
)

// apiEnv makes client-go's in-cluster configuration use the published address, which works before kube-proxy does.
func apiEnv(hcp *hyperv1.HostedControlPlane) []corev1.EnvVar {
	endpoint := hcp.Status.ControlPlaneEndpoint
	return []corev1.EnvVar{
		{Name: "KUBERNETES_SERVICE_HOST", Value: endpoint.Host},
		{Name: "KUBERNETES_SERVICE_PORT", Value: strconv.Itoa(int(endpoint.Port))},
	}
}

func clusterNetworks(hcp *hyperv1.HostedControlPlane) []string {
	var cidrs []string
	for _, entry := range hcp.Spec.Networking.ClusterNetwork {
		cidrs = append(cidrs, entry.CIDR.String())
	}
	return cidrs
}

func (r *Reconciler) applyProxy(ctx context.Context, s *scope) error {
	image, err := s.image("kube-proxy")
	if err != nil {
		return err
	}
	config, err := proxyConfig(s.hcp)
	if err != nil {
		return err
	}
	return r.applyFolder(ctx, "kube-proxy", adapters{
		"30-config.yaml": adapt(func(cm *corev1.ConfigMap) error {
			cm.Data = map[string]string{proxyConfigKey: config}
			return nil
		}),
		"40-daemonset.yaml": adapt(func(set *appsv1.DaemonSet) error {
			container := &set.Spec.Template.Spec.Containers[0]
			container.Image = image
			container.Env = append(container.Env, apiEnv(s.hcp)...)
			set.Spec.Template.Annotations = map[string]string{configAnnotation: hashOf(config)}
			return nil
		}),
	})
}

// fields is a part of KubeProxyConfiguration, whose Go types are not worth a dependency.
type fields map[string]any

// proxyConfig leaves the kernel's connection tracking as the machine's image set it: limits of the host are not for a
// pod to choose, and some machines do not let it.
func proxyConfig(hcp *hyperv1.HostedControlPlane) (string, error) {
	raw, err := yaml.Marshal(fields{
		"apiVersion":         "kubeproxy.config.k8s.io/v1alpha1",
		"kind":               "KubeProxyConfiguration",
		"mode":               "iptables",
		"clusterCIDR":        strings.Join(clusterNetworks(hcp), ","),
		"bindAddress":        "0.0.0.0",
		"healthzBindAddress": "0.0.0.0:10256",
		"conntrack":          fields{"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
	})
	if err != nil {
		return "", fmt.Errorf("rendering the configuration of kube-proxy: %w", err)
	}
	return string(raw), nil
}

// applyNodeNetwork runs the default network where nodes get their pod CIDRs from the control plane, which is what it works
// with, and takes it away where the user brings a network.
func (r *Reconciler) applyNodeNetwork(ctx context.Context, s *scope) error {
	if !kubecontrollermanager.AllocatesNodeCIDRs(s.hcp) {
		return r.removeFolder(ctx, "node-network")
	}
	image, err := s.image("node-network")
	if err != nil {
		return err
	}
	return r.applyFolder(ctx, "node-network", adapters{
		"40-daemonset.yaml": adapt(func(set *appsv1.DaemonSet) error {
			container := &set.Spec.Template.Spec.Containers[0]
			container.Image = image
			container.Env = append(container.Env, apiEnv(s.hcp)...)
			for _, cidr := range clusterNetworks(s.hcp) {
				container.Args = append(container.Args, "--cluster-network="+cidr)
			}
			return nil
		}),
	})
}

func (r *Reconciler) applyDNS(ctx context.Context, s *scope) error {
	image, err := s.image("coredns")
	if err != nil {
		return err
	}
	addresses, err := dnsAddresses(s.hcp)
	if err != nil {
		return err
	}
	var corefile string
	return r.applyFolder(ctx, "coredns", adapters{
		"40-config.yaml": adapt(func(cm *corev1.ConfigMap) error {
			corefile = cm.Data["Corefile"]
			return nil
		}),
		"50-service.yaml": adapt(func(service *corev1.Service) error {
			service.Spec.ClusterIP, service.Spec.ClusterIPs = addresses[0], addresses
			if len(addresses) > 1 {
				service.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack)
			}
			return nil
		}),
		"60-deployment.yaml": adapt(func(deployment *appsv1.Deployment) error {
			deployment.Spec.Replicas = ptr.To(infrastructureReplicas(s.hcp))
			deployment.Spec.Template.Spec.Containers[0].Image = image
			deployment.Spec.Template.Annotations = map[string]string{configAnnotation: hashOf(corefile)}
			return nil
		}),
	})
}

// dnsAddresses is the tenth address of each service network.
func dnsAddresses(hcp *hyperv1.HostedControlPlane) ([]string, error) {
	var addresses []string
	for _, network := range hcp.Spec.Networking.ServiceNetwork {
		address, err := pki.NthAddress(network.CIDR.String(), dnsAddressIndex)
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, net.ParseIP(address).String())
	}
	if len(addresses) == 0 {
		return nil, fmt.Errorf("HostedControlPlane %s has no service network", hcp.Name)
	}
	return addresses, nil
}

func infrastructureReplicas(hcp *hyperv1.HostedControlPlane) int32 {
	if hcp.Spec.InfrastructureAvailabilityPolicy == hyperv1.HighlyAvailable {
		return 2
	}
	return 1
}

func hashOf(text string) string {
	hash := fnv.New64a()
	hash.Write([]byte(text))
	return fmt.Sprintf("%016x", hash.Sum64())
}

// applyNamespaces makes the namespaces that clients of config.openshift.io expect.
func (r *Reconciler) applyNamespaces(ctx context.Context, _ *scope) error {
	for _, name := range []string{"openshift-config", "openshift-config-managed"} {
		if err := r.apply(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	return nil
}
