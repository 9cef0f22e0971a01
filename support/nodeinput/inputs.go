// SPDX-License-Identifier: Apache-2.0

package nodeinput

import (
	"fmt"
	"strings"
)

// Effect is the effect of a change to an input.
type Effect string

// The effects of a change.
const (
	// ReplacesMachines is the effect of inputs that are part of the hash of a pool's configuration.
	ReplacesMachines Effect = "replaces machines"
	// NewMachines is the effect of inputs that only new machines receive. Running machines keep the values that they were
	// created with.
	NewMachines Effect = "new machines only"
	// Fixed is the effect of inputs that cannot change during the lifetime of a pool.
	Fixed Effect = "cannot change"
	// Nothing is the effect of inputs that no node of the Kubernetes distribution receives.
	Nothing Effect = "reaches no node"
)

// registryFiles is the folder of the files that a change of registries rewrites.
const registryFiles = "/etc/containerd/certs.d/"

// planFile names the parts of the release that a machine installs, and their sources.
const planFile = "/var/lib/hypershift/plan.json"

// proxyFiles are the files that contain the proxy settings.
var proxyFiles = []string{
	"/etc/kubernetes/proxy.env", planFile,
	"unit hypershift-containerd.service", "unit kubelet.service",
}

// credentialFiles are the files that contain the pull secret.
var credentialFiles = []string{
	"/var/lib/kubelet/config.json", planFile,
}

// Input is one input of the configuration of a node of the Kubernetes distribution.
type Input struct {
	// Field is the kind and path of the field that the user sets. The prefix "Content of" means the content of the object
	// that the field names.
	Field string
	// Feeds names the corresponding field of the ignition-server's input; empty for none.
	Feeds string
	// Renders are the files that the input changes on a machine. An entry may also be a folder, for all files in it, "unit
	// name" or "user name".
	Renders []string
	Effect  Effect
}

// Inputs lists all inputs of a node's configuration. Tests compare it with the inputs of the hash, the
// ignition-server's input, and the files that change.
var Inputs = []Input{
	{"NodePool spec.release", "NodeImage", []string{planFile}, ReplacesMachines},
	{"NodePool spec.release", "PodImage", []string{planFile}, ReplacesMachines},
	{"NodePool spec.config: MachineConfig", "Config", []string{"what it says"}, ReplacesMachines},
	{"NodePool spec.config: KubeletConfig", "Config", []string{"/etc/kubernetes/kubelet.yaml"}, ReplacesMachines},
	{"NodePool spec.config: ImageDigestMirrorSet, ImageTagMirrorSet, ImageContentSourcePolicy", "Config", []string{registryFiles}, ReplacesMachines},
	{"NodePool metadata.name", "NodePool", []string{"unit kubelet.service"}, Fixed},

	{"HostedCluster spec.configuration.proxy.httpProxy", "Proxy", proxyFiles, ReplacesMachines},
	{"HostedCluster spec.configuration.proxy.httpsProxy", "Proxy", proxyFiles, ReplacesMachines},
	{"HostedCluster spec.configuration.proxy.noProxy", "Proxy", proxyFiles[:2], ReplacesMachines},
	{"HostedCluster spec.configuration.proxy.trustedCA.name", "ProxyCA", []string{registryFiles, planFile}, ReplacesMachines},
	{"Content of HostedCluster spec.configuration.proxy.trustedCA", "ProxyCA", []string{registryFiles}, NewMachines},
	{"HostedCluster spec.configuration.proxy.readinessEndpoints", "", nil, Nothing},

	{"HostedCluster spec.configuration.image.registrySources.insecureRegistries", "Image", []string{registryFiles}, ReplacesMachines},
	{"HostedCluster spec.configuration.image.registrySources.blockedRegistries", "Image", []string{registryFiles}, ReplacesMachines},
	{"HostedCluster spec.configuration.image.registrySources.allowedRegistries", "Image", []string{registryFiles}, ReplacesMachines},
	{"HostedCluster spec.configuration.image.registrySources.containerRuntimeSearchRegistries", "", nil, Nothing},
	{"HostedCluster spec.configuration.image.additionalTrustedCA.name", "RegistryCAs", []string{registryFiles}, ReplacesMachines},
	{"Content of HostedCluster spec.configuration.image.additionalTrustedCA", "RegistryCAs", []string{registryFiles}, NewMachines},
	{"HostedCluster spec.configuration.image.allowedRegistriesForImport", "", nil, Nothing},
	{"HostedCluster spec.configuration.image.externalRegistryHostnames", "", nil, Nothing},
	{"HostedCluster spec.configuration.image.imageStreamImportMode", "", nil, Nothing},

	{"HostedCluster spec.pullSecret.name", "PullSecret", credentialFiles, ReplacesMachines},
	{"Content of HostedCluster spec.pullSecret", "PullSecret", credentialFiles, NewMachines},
	{"HostedCluster spec.additionalTrustBundle.name", "TrustBundle", []string{registryFiles}, ReplacesMachines},
	{"Content of HostedCluster spec.additionalTrustBundle", "TrustBundle", []string{registryFiles}, NewMachines},
	{"HostedCluster spec.sshKey.name", "SSHKeys", []string{"user core"}, NewMachines},
	{"Content of HostedCluster spec.sshKey", "SSHKeys", []string{"user core"}, NewMachines},
	{"HostedCluster spec.imageContentSources", "Mirrors", []string{registryFiles}, NewMachines},
	{"HostedCluster spec.networking.clusterNetwork", "Proxy", proxyFiles[:2], Fixed},
	{"HostedCluster spec.networking.machineNetwork", "Proxy", proxyFiles[:2], Fixed},
	{"HostedCluster spec.networking.serviceNetwork", "ServiceCIDRs", []string{"/etc/kubernetes/kubelet.yaml"}, Fixed},

	{"The control plane's bootstrap kubeconfig", "BootstrapKubeconfig", []string{"/etc/kubernetes/bootstrap-kubeconfig"}, NewMachines},
	{"The control plane's CA of kubelet clients", "ClientCA", []string{"/etc/kubernetes/pki/kubelet-client-ca.crt"}, NewMachines},
}

// Table renders the inputs as a Markdown table.
func Table() string {
	var b strings.Builder
	b.WriteString("| input | on the machine | a change |\n|---|---|---|\n")
	for _, in := range Inputs {
		rendered := make([]string, 0, len(in.Renders))
		for _, r := range in.Renders {
			rendered = append(rendered, code(r))
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", in.Field, strings.Join(rendered, ", "), in.Effect)
	}
	return b.String()
}

func code(text string) string {
	if strings.HasPrefix(text, "/") {
		return "`" + text + "`"
	}
	return text
}
