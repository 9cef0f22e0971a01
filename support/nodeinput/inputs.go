// SPDX-License-Identifier: Apache-2.0

package nodeinput

import (
	"fmt"
	"strings"
)

// Effect is what a change of an input does.
type Effect string

// The effects of a change.
const (
	// ReplacesMachines: the input is part of the hash that names a pool's configuration.
	ReplacesMachines Effect = "replaces machines"
	// NewMachines take the change when they are made; those that run keep what they were made with.
	NewMachines Effect = "new machines only"
	// Fixed inputs do not change in the life of a pool.
	Fixed Effect = "cannot change"
	// Nothing: no node of the Kubernetes distribution has it.
	Nothing Effect = "reaches no node"
)

// Files that a change of registries rewrites.
const registryFiles = "/etc/containerd/certs.d/"

// planFile says what of the release a machine installs, and where from.
const planFile = "/var/lib/hypershift/plan.json"

// proxyFiles is what a proxy is rendered to.
var proxyFiles = []string{
	"/etc/kubernetes/proxy.env", planFile,
	"unit hypershift-containerd.service", "unit kubelet.service",
}

// credentialFiles is what a pull secret is rendered to.
var credentialFiles = []string{
	"/var/lib/kubelet/config.json", planFile,
}

// Input is one thing that a node of the Kubernetes distribution is made from.
type Input struct {
	// Field is where the user writes it: kind and path. "Content of" is what the object holds that a field names.
	Field string
	// Feeds names the field of the ignition-server's input that it becomes; empty for none.
	Feeds string
	// Renders are the files that it changes on a machine, a folder for all below it, "unit name" or "user name".
	Renders []string
	Effect  Effect
}

// Inputs is the one table of all that nodes are made from. Tests hold it against what the hash is over, what the ignition-server
// takes, and the files that change.
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

// Table writes the inputs as a table of Markdown.
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
