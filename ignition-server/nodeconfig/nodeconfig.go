// SPDX-License-Identifier: Apache-2.0

// Package nodeconfig renders the configuration of a node of the Kubernetes distribution as an Ignition config. It is a
// pure function of its input.
package nodeconfig

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"text/template"

	igncfg "github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_4/types"
	"k8s.io/utils/ptr"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/nodeplan"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// Input holds all inputs of a node's configuration.
type Input struct {
	// ConfigHash identifies the configuration within the pool. The machine uses it to identify its current
	// configuration.
	ConfigHash string
	// NodePool is the name of the pool, which is a label of the node.
	NodePool string
	// ServiceCIDRs are the service networks of the guest. The DNS service has the 10th address of each.
	ServiceCIDRs []string
	// BootstrapKubeconfig is the kubeconfig with which the kubelet requests its first certificate.
	BootstrapKubeconfig []byte
	// ClientCA (PEM) signs the clients of the kubelet.
	ClientCA []byte
	// PullSecret is a .dockerconfigjson; empty means anonymous pulls.
	PullSecret []byte
	// TrustBundle holds additional CAs of registries that the operating system does not trust (PEM); may be empty.
	TrustBundle []byte
	// Proxy holds the proxy settings of the node; zero for none.
	Proxy nodeinput.Proxy
	// ProxyCA holds the CAs of the proxy's certificates (PEM); may be empty.
	ProxyCA []byte
	// Image holds the registry settings of the cluster; nil allows all registries.
	Image *configv1.ImageSpec
	// RegistryCAs are the CAs of single registries (PEM), by host[:port].
	RegistryCAs map[string][]byte
	// SSHKeys are authorized for user "core".
	SSHKeys []string
	// Mirrors are alternative locations of images.
	Mirrors []releaseinfo.Mirror
	// NodeImage contains /usr/bin/kubelet.
	NodeImage string
	// PodImage is the sandbox image of each pod.
	PodImage string
	// Config holds the user's YAML documents (MachineConfig, KubeletConfig, ...), separated by lines of three dashes.
	Config string
}

const (
	nodePoolLabel   = hyperv1.NodePoolLabel
	kubeletUnitName = "kubelet.service"
	runtimeUnitName = "hypershift-containerd.service"
)

var (
	//go:embed files/sysctl.conf
	sysctls string
	//go:embed files/modules.conf
	modules string
	//go:embed files/needrestart.conf
	needrestart string
	//go:embed files/hypershift-containerd.service
	runtimeUnit string
	//go:embed files/kubelet.service
	kubeletUnit     string
	kubeletTemplate = template.Must(template.New(kubeletUnitName).Parse(kubeletUnit))
	//go:embed files/hypershift-node-config.service
	followUnit string
)

// Render returns the Ignition config (JSON) of a node. Its errors describe problems of the input and their remedies.
func Render(in Input) ([]byte, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	user, err := nodeinput.Read(in.Config, releaseinfo.Kubernetes)
	if err != nil {
		return nil, err
	}
	base, err := in.model(user)
	if err != nil {
		return nil, err
	}
	rest, err := in.releasePlan(user)
	if err != nil {
		return nil, err
	}
	rest.Owned = owned(base, user.Ignition)
	if err := addAgent(&base, rest); err != nil {
		return nil, err
	}
	return merged(base, user.Ignition)
}

func (in Input) check() error {
	switch {
	case in.NodeImage == "" || in.PodImage == "":
		return errors.New("the release payload names no node or pod image")
	case len(in.BootstrapKubeconfig) == 0:
		return errors.New("the bootstrap kubeconfig is empty")
	case len(in.ClientCA) == 0:
		return errors.New("the CA of the kubelet's clients is empty")
	default:
		return nil
	}
}

// model returns the node's configuration without the user's Ignition configs. node-agent starts its units when all
// their dependencies exist. A container runtime in the machine's image keeps its socket and its folders.
func (in Input) model(user *nodeinput.Config) (types.Config, error) {
	kubelet, err := in.kubeletConfiguration(user.Kubelet)
	if err != nil {
		return types.Config{}, err
	}
	registries, err := in.registryFiles(slices.Concat(in.Mirrors, user.Mirrors))
	if err != nil {
		return types.Config{}, err
	}
	proxy, err := in.proxyFiles()
	if err != nil {
		return types.Config{}, err
	}
	unit := &strings.Builder{}
	if err := kubeletTemplate.Execute(unit, map[string]string{"NodeLabels": nodePoolLabel + "=" + in.NodePool}); err != nil {
		return types.Config{}, fmt.Errorf("render kubelet.service: %w", err)
	}
	files := slices.Concat([]types.File{
		file("/etc/kubernetes/kubelet.yaml", 0o644, kubelet),
		file(bootstrapKubeconfigPath, 0o600, in.BootstrapKubeconfig),
		file(clientCAPath, 0o644, in.ClientCA),
		file("/etc/sysctl.d/90-hypershift-node.conf", 0o644, []byte(sysctls)),
		file("/etc/modules-load.d/90-hypershift-node.conf", 0o644, []byte(modules)),
		file("/etc/needrestart/conf.d/90-hypershift.conf", 0o644, []byte(needrestart)),
	}, registries, in.pullSecretFile(), proxy)
	return types.Config{
		Ignition: types.Ignition{Version: types.MaxVersion.String()},
		Passwd:   in.passwd(),
		Storage: types.Storage{
			Directories: []types.Directory{
				directory("/etc/kubernetes/kubelet.conf.d"),
				directory("/etc/kubernetes/manifests"),
			},
			Files: files,
		},
		Systemd: types.Systemd{Units: append(in.addProxy([]types.Unit{
			{Name: runtimeUnitName, Contents: ptr.To(runtimeUnit)}, {Name: kubeletUnitName, Contents: ptr.To(unit.String())},
		}), types.Unit{Name: nodeplan.FollowUnit, Contents: ptr.To(followUnit)})},
	}, nil
}

func (in Input) passwd() types.Passwd {
	var keys []types.SSHAuthorizedKey
	for _, key := range in.SSHKeys {
		if key = strings.TrimSpace(key); key != "" {
			keys = append(keys, types.SSHAuthorizedKey(key))
		}
	}
	if len(keys) == 0 {
		return types.Passwd{}
	}
	return types.Passwd{Users: []types.PasswdUser{{Name: "core", SSHAuthorizedKeys: keys}}}
}

// clusterDNS returns the addresses of the guest's DNS service: the 10th address of each service network.
func (in Input) clusterDNS() ([]string, error) {
	var addresses []string
	for _, cidr := range in.ServiceCIDRs {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			return nil, fmt.Errorf("service network %q is not a CIDR: %w", cidr, err)
		}
		addr := prefix.Masked().Addr()
		for range 10 {
			addr = addr.Next()
		}
		if !prefix.Contains(addr) {
			return nil, fmt.Errorf("service network %s has no 10th address for the DNS service; use a larger network", cidr)
		}
		addresses = append(addresses, addr.String())
	}
	if len(addresses) == 0 {
		return nil, errors.New("the hosted cluster has no service network; set spec.networking.serviceNetwork")
	}
	return addresses, nil
}

// merged merges the user's configs into the base, in order, and validates the result: two valid configs may contradict
// each other.
func merged(base types.Config, user []types.Config) ([]byte, error) {
	for _, cfg := range user {
		base = igncfg.Merge(base, cfg)
	}
	raw, err := json.Marshal(base)
	if err != nil {
		return nil, fmt.Errorf("encode the Ignition config: %w", err)
	}
	if _, report, err := igncfg.Parse(raw); err != nil {
		return nil, fmt.Errorf("the node's configuration with the MachineConfigs merged in is invalid: %w: %s", err, report.String())
	}
	return raw, nil
}
