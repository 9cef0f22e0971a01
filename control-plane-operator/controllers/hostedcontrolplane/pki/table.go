// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"fmt"
	"net/netip"
	"time"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	endpoints "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/infra"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/pki"
)

// authority is a certificate authority.
type authority struct {
	// secret and commonName are the name of its Secret and its common name.
	secret, commonName string
	// overlap is the minimum time that a previous authority remains trusted after the control plane stops using
	// certificates that it signed.
	overlap time.Duration
	// handedOut reports that users copy the certificates that the authority signs. A previous authority then remains
	// trusted for the lifetime of such a certificate, unless the cluster overrides that.
	handedOut bool
	// life is the lifetime of the certificates that users copy; zero means the cluster's setting for all certificates.
	life time.Duration
	// onNodes reports that machines get the authority only when they are installed.
	onNodes bool
}

var authorities = []authority{
	{secret: RootCA, commonName: "root-ca", onNodes: true},
	{secret: ClusterSignerCA, commonName: "kube-csr-signer", overlap: NodeCertificateLife + 24*time.Hour, onNodes: true},
	{secret: EtcdSigner, commonName: "etcd-signer"},
	{secret: EtcdMetricsSigner, commonName: "etcd-metrics-signer"},
	{secret: AggregatorSigner, commonName: "aggregator-signer"},
	{secret: ControlPlaneSigner, commonName: "kube-control-plane-signer"},
	{secret: KubeletClientSigner, commonName: "kube-apiserver-to-kubelet-signer", onNodes: true},
	{secret: SystemAdminSigner, commonName: "admin-kubeconfig-signer", handedOut: true},
	{secret: CustomerBreakGlassSigner, commonName: "customer-break-glass-signer", handedOut: true, life: BreakGlassCertificateLife},
	{secret: SREBreakGlassSigner, commonName: "sre-break-glass-signer", handedOut: true, life: BreakGlassCertificateLife},
	{secret: ConfigOperatorCA, commonName: "hcco-signer"},
	{secret: IgnitionCA, commonName: "ignition-root-ca", onNodes: true},
}

// bundles lists which authorities each CA ConfigMap trusts.
var bundles = []struct {
	configMap string
	signers   []string
}{
	{RootBundle, []string{RootCA}},
	{EtcdBundle, []string{EtcdSigner}},
	{EtcdMetricsBundle, []string{EtcdMetricsSigner}},
	{AggregatorBundle, []string{AggregatorSigner}},
	{ClientBundle, []string{ControlPlaneSigner, KubeletClientSigner, SystemAdminSigner, ConfigOperatorCA, ClusterSignerCA, CustomerBreakGlassSigner, SREBreakGlassSigner}},
	{KubeletClientBundle, []string{KubeletClientSigner, ClusterSignerCA}},
}

// certificate is a leaf certificate: its Secret, its layout there, its signer, and its usage.
type certificate struct {
	secret string
	keys   pki.Keys
	signer string
	leaf   pki.Leaf
}

func server(secret, signer, commonName string, hosts ...string) certificate {
	return certificate{secret, pki.TLSKeys, signer, pki.Leaf{
		Name: pki.Name{CommonName: commonName, Organizations: []string{"kubernetes"}}, Server: true, Hosts: hosts,
	}}
}

func client(secret, signer, commonName string, groups ...string) certificate {
	return certificate{secret, pki.TLSKeys, signer, pki.Leaf{
		Name: pki.Name{CommonName: commonName, Organizations: groups}, Client: true,
	}}
}

// both makes the certificate a server and client certificate.
func (c certificate) both(organization string) certificate {
	c.leaf.Server, c.leaf.Client = true, true
	c.leaf.Organizations = []string{organization}
	return c
}

// in sets the keys under which the Secret holds the certificate, and omits the CA.
func (c certificate) in(cert, key string) certificate {
	c.keys = pki.Keys{Cert: cert, Key: key}
	return c
}

// certificates returns all leaf certificates of a hosted control plane.
func certificates(hcp *hyperv1.HostedControlPlane, infra *component.Infra) ([]certificate, error) {
	apiHosts, err := publicAPIHosts(hcp, infra)
	if err != nil {
		return nil, err
	}
	ns := hcp.Namespace
	discovery := []string{"*.etcd-discovery." + ns + ".svc", "*.etcd-discovery." + ns + ".svc.cluster.local"}
	list := []certificate{
		server(KASServer, RootCA, "kubernetes", apiHosts...),
		server(KASServerPrivate, RootCA, "kubernetes-private", serviceNames("kube-apiserver", ns)...),
		client(KASKubeletClient, KubeletClientSigner, "system:kube-apiserver", "kubernetes"),
		client(KASAggregator, AggregatorSigner, "system:openshift-aggregator", "kubernetes"),
		client(SchedulerClient, ControlPlaneSigner, "system:kube-scheduler", "kubernetes"),
		client(KCMClient, ControlPlaneSigner, "system:kube-controller-manager", "kubernetes"),
		client(SystemAdminClient, SystemAdminSigner, "system:admin", "system:masters"),
		client(HCCOClient, ConfigOperatorCA, ConfigOperatorUser, "kubernetes", "system:serviceaccounts:openshift"),
		client(ClusterAPIClient, ControlPlaneSigner, ClusterAPIUser),
		client(ProviderClient, ControlPlaneSigner, ProviderUser),
		client(AutoscalerClient, ControlPlaneSigner, AutoscalerUser),
		client(IgnitionClient, ControlPlaneSigner, IgnitionUser),
		client(NodeBootstrap, ClusterSignerCA, NodeBootstrapper,
			"system:serviceaccounts:openshift-machine-config-operator", "system:serviceaccounts", BootstrapGroup),
		client(MetricsClient, ClusterSignerCA, "system:serviceaccount:hypershift:prometheus", "kubernetes"),
		client(EtcdClient, EtcdSigner, "etcd-client", "kubernetes").in(EtcdClientCert, EtcdClientKey),
		client(EtcdMetricsClient, EtcdMetricsSigner, "etcd-metrics-client", "kubernetes").in(EtcdClientCert, EtcdClientKey),
		server(EtcdServer, EtcdSigner, "etcd-server", append(append(serviceNames("etcd-client", ns), discovery...), "localhost")...).
			both("kubernetes").in("server.crt", "server.key"),
		server(EtcdPeer, EtcdSigner, "etcd-discovery", append(append(discovery, etcdPeers(ns)...), "127.0.0.1", "::1")...).
			both("kubernetes").in("peer.crt", "peer.key"),
		server(KCMServer, RootCA, "kube-controller-manager", append(serviceNames("kube-controller-manager", ns), "localhost")...).both("openshift"),
		server(SchedulerServer, RootCA, "kube-scheduler", append(serviceNames("kube-scheduler", ns), "localhost")...).both("openshift"),
		server(IgnitionServer, RootCA, "ignition-server", serviceNames("ignition-server", ns)...).both("openshift"),
	}
	tunnel := serviceNames(endpoints.TunnelService, ns)
	if host := endpoints.TunnelHost(hcp); host != "" {
		tunnel = append(tunnel, host)
	}
	list = append(list, server(TunnelServer, RootCA, endpoints.TunnelService, tunnel...))
	if infra.Ignition.Host != "" {
		list = append(list, server(IgnitionServing, IgnitionCA, "ignition-server", append(append(serviceNames("ignition-server", ns), infra.Ignition.Host), infra.IgnitionNames...)...))
	}
	return list, nil
}

// etcdPeers returns the names of the individual members. A peer's certificate must name the address that the peer
// calls from. If it only had a wildcard name, the check would need reverse DNS. The largest etcd has three members.
func etcdPeers(namespace string) []string {
	var names []string
	for _, pod := range []string{"etcd-0", "etcd-1", "etcd-2"} {
		names = append(names, pod+".etcd-discovery."+namespace+".svc")
	}
	return names
}

func serviceNames(service, namespace string) []string {
	return []string{service, service + "." + namespace + ".svc", service + "." + namespace + ".svc.cluster.local"}
}

// publicAPIHosts returns the names at which guests and users reach the API server.
func publicAPIHosts(hcp *hyperv1.HostedControlPlane, infra *component.Infra) ([]string, error) {
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	for _, service := range []string{"kubernetes", "openshift"} {
		hosts = append(hosts, service, service+".default", service+".default.svc", service+".default.svc.cluster.local")
	}
	hosts = append(hosts, "api."+hcp.Name+".hypershift.local", infra.API.Host, hcp.Spec.KubeAPIServerDNSName)
	hosts = append(hosts, infra.APINames...)
	if api := hcp.Spec.Networking.APIServer; api != nil && api.AdvertiseAddress != nil {
		hosts = append(hosts, *api.AdvertiseAddress)
	}
	for _, network := range hcp.Spec.Networking.ServiceNetwork {
		first, err := NthAddress(network.CIDR.String(), 1)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, first)
	}
	return hosts, nil
}

// NthAddress returns the n-th address of a CIDR; 0 is the network itself.
func NthAddress(cidr string, n int) (string, error) {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return "", fmt.Errorf("service network %q is not a CIDR: %w", cidr, err)
	}
	address := prefix.Masked().Addr()
	for range n {
		address = address.Next()
	}
	if !prefix.Contains(address) {
		return "", fmt.Errorf("service network %q is too small; use one of at least %d addresses", cidr, n+1)
	}
	return address.String(), nil
}
