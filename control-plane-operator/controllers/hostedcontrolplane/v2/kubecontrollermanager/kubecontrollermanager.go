// SPDX-License-Identifier: Apache-2.0

// Package kubecontrollermanager is the component that runs the hosted cluster's controllers, among them the signer of
// the nodes' certificates.
package kubecontrollermanager

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"net/netip"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/podranges"
	"github.com/openshift/hypershift/support/tlsprofile"
)

// Name is the component's name.
const Name = "kube-controller-manager"

const (
	certDir    = "/etc/kubernetes/certs"
	kubeconfig = "/etc/kubernetes/secrets/svc-kubeconfig/kubeconfig"
)

//go:embed manifests
var manifests embed.FS

// New returns the component.
func New() *component.Component {
	files, _ := fs.Sub(manifests, "manifests")
	return &component.Component{
		Name:      Name,
		Manifests: files,
		Adapters: map[string]component.Adapter{
			"deployment.yaml": component.Adapt(adapt),
			"pdb.yaml":        component.DisruptionBudget().When(component.OfSeveral),
		},
		Options: component.Options{MultiZone: true, WaitsFor: component.APIServerReady, WaitsInPod: true},
	}
}

func adapt(_ context.Context, scope *component.Scope, deployment *appsv1.Deployment) error {
	deployment.Spec.Template.Spec.Containers[0].Args = args(scope.HCP)
	return nil
}

func args(hcp *hyperv1.HostedControlPlane) component.Flags {
	tls := tlsprofile.Of(hcp)
	var f component.Flags
	f.Set("kubeconfig", kubeconfig)
	f.Set("authentication-kubeconfig", kubeconfig)
	f.Set("authorization-kubeconfig", kubeconfig)
	f.Set("client-ca-file", certDir+"/client-ca/ca.crt")
	f.Set("requestheader-client-ca-file", certDir+"/aggregator-ca/ca.crt")
	f.Set("secure-port", "10257")
	f.Set("tls-cert-file", certDir+"/server/tls.crt")
	f.Set("tls-private-key-file", certDir+"/server/tls.key")
	f.Set("tls-min-version", tls.MinVersion)
	f.SetUnlessEmpty("tls-cipher-suites", strings.Join(tls.Ciphers, ","))
	f.Set("cluster-signing-cert-file", certDir+"/cluster-signer/ca.crt")
	f.Set("cluster-signing-key-file", certDir+"/cluster-signer/ca.key")
	f.Set("cluster-signing-duration", fmt.Sprintf("%dh", int(pki.NodeCertificateLife.Hours())))
	f.Set("root-ca-file", certDir+"/root-ca/ca.crt")
	f.Set("service-account-private-key-file", certDir+"/service-signer/service-account.key")
	f.Set("use-service-account-credentials", "true")
	f.Set("controllers", "*,bootstrapsigner,tokencleaner")
	f.Set("leader-elect", "true")
	f.Set("leader-elect-resource-lock", "leases")
	f.Set("leader-elect-renew-deadline", "12s")
	f.Set("leader-elect-retry-period", "3s")
	f.Set("kube-api-qps", "150")
	f.Set("kube-api-burst", "300")
	f.Set("configure-cloud-routes", "false")
	f.Set("node-monitor-grace-period", "50s")
	f.Set("terminated-pod-gc-threshold", "1000")
	f.Set("concurrent-gc-syncs", "5")
	network(&f, hcp)
	f.Set("profiling", "false")
	f.Set("v", "2")
	return f
}

// network makes the controllers allocate pod CIDRs to nodes, unless the cluster's own network plugin does that.
func network(f *component.Flags, hcp *hyperv1.HostedControlPlane) {
	var services []string
	for _, entry := range hcp.Spec.Networking.ServiceNetwork {
		services = append(services, entry.CIDR.String())
	}
	f.SetUnlessEmpty("service-cluster-ip-range", strings.Join(services, ","))
	allocate := AllocatesNodeCIDRs(hcp)
	f.Set("allocate-node-cidrs", strconv.FormatBool(allocate))
	if !allocate {
		return
	}
	var pods []string
	for _, entry := range hcp.Spec.Networking.ClusterNetwork {
		pods = append(pods, entry.CIDR.String())
		flag, prefix := maskFlag(entry, len(hcp.Spec.Networking.ClusterNetwork) > 1)
		f.Set(flag, strconv.Itoa(prefix))
	}
	f.SetUnlessEmpty("cluster-cidr", strings.Join(pods, ","))
}

// AllocatesNodeCIDRs reports whether nodes get pod CIDRs from the control plane, and with them the default network.
// With network type Other, the user installs a network plugin, unless allocateNodeCIDRs is enabled. The API rejects
// allocateNodeCIDRs with any other type.
func AllocatesNodeCIDRs(hcp *hyperv1.HostedControlPlane) bool {
	return podranges.FromControlPlane(&hcp.Spec.Networking)
}

// maskFlag returns the flag for the size of a node's share of a network, and its default. Dual stack has a flag for
// each IP family.
func maskFlag(entry hyperv1.ClusterNetworkEntry, dualStack bool) (string, int) {
	const flag = "node-cidr-mask-size"
	prefix := podranges.HostPrefix(entry)
	if !dualStack {
		return flag, prefix
	}
	if address, err := netip.ParsePrefix(entry.CIDR.String()); err == nil && address.Addr().Is6() {
		return flag + "-ipv6", prefix
	}
	return flag + "-ipv4", prefix
}
