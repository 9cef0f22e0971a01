// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"fmt"
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/infra"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/tlsprofile"
)

// Paths of files in the container.
const (
	certDir           = "/etc/kubernetes/certs"
	serviceAccountDir = "/etc/kubernetes/secrets/svcacct-key"
	auditDir          = "/etc/kubernetes/audit"
	encryptionDir     = "/etc/kubernetes/secret-encryption"
	authenticationDir = "/etc/kubernetes/auth"
	auditLog          = "/var/log/kube-apiserver/audit.log"
)

const (
	defaultIssuer        = "https://kubernetes.default.svc"
	defaultNodePortRange = "30000-32767"
	defaultVerbosity     = "2"
	annotationPrefix     = "hypershift.openshift.io/kube-apiserver-"
)

// args returns the flags of the API server. replicas is the number of its pods, and webhooks are those that it may
// call.
func args(hcp *hyperv1.HostedControlPlane, replicas int32, webhooks map[string][]byte) component.Flags {
	var f component.Flags
	serving(&f, hcp)
	storage(&f, hcp)
	authentication(&f, hcp)
	audit(&f)
	callWebhooks(&f, webhooks)
	limits(&f, hcp, replicas)
	f.Set("allow-privileged", "true")
	f.Set("authorization-mode", "Node,RBAC")
	f.Set("enable-admission-plugins", "NodeRestriction")
	f.Set("service-cluster-ip-range", serviceCIDRs(hcp))
	f.Set("service-node-port-range", nodePortRange(hcp))
	// Nodes are reached on the machine network; host names of machines may not resolve here.
	f.Set("kubelet-preferred-address-types", "InternalIP")
	f.Set("kubelet-certificate-authority", certDir+"/client-ca/ca.crt")
	f.Set("kubelet-client-certificate", certDir+"/kubelet/tls.crt")
	f.Set("kubelet-client-key", certDir+"/kubelet/tls.key")
	// Guests reach the API at its published address, which the hosted-cluster-config-operator writes into the guest's
	// Endpoints. The pod's own address is not reachable from guests.
	f.Set("endpoint-reconciler-type", "none")
	f.Set("enable-aggregator-routing", "true")
	gates, _ := featureGates(hcp) // ValidateLists has rejected invalid values.
	f.SetUnlessEmpty("feature-gates", gates)
	f.Set("v", annotation(hcp, "verbosity-level", defaultVerbosity))
	return f
}

func serving(f *component.Flags, hcp *hyperv1.HostedControlPlane) {
	tls := tlsprofile.Of(hcp)
	f.Set("secure-port", strconv.Itoa(infra.APIPort))
	f.Set("tls-cert-file", certDir+"/server/tls.crt")
	f.Set("tls-private-key-file", certDir+"/server/tls.key")
	for i, named := range namedCertificates(hcp) {
		pair := namedDir(i) + "/tls.crt," + namedDir(i) + "/tls.key"
		if len(named.Names) > 0 {
			pair += ":" + strings.Join(named.Names, ",")
		}
		f.Set("tls-sni-cert-key", pair)
	}
	f.Set("tls-sni-cert-key", certDir+"/server-private/tls.crt,"+certDir+"/server-private/tls.key")
	f.Set("tls-min-version", tls.MinVersion)
	f.SetUnlessEmpty("tls-cipher-suites", strings.Join(tls.Ciphers, ","))
	origins, _ := corsOrigins(hcp)
	f.SetUnlessEmpty("cors-allowed-origins", origins)
	f.Set("strict-transport-security-directives", "max-age=31536000,includeSubDomains,preload")
	f.Set("profiling", "false")
}

func storage(f *component.Flags, hcp *hyperv1.HostedControlPlane) {
	f.Set("etcd-servers", strings.Join(etcd.URLs(hcp), ","))
	f.Set("etcd-cafile", certDir+"/etcd-ca/ca.crt")
	f.Set("etcd-certfile", certDir+"/etcd/"+pki.EtcdClientCert)
	f.Set("etcd-keyfile", certDir+"/etcd/"+pki.EtcdClientKey)
	f.Set("etcd-prefix", etcd.Prefix)
	f.Set("storage-backend", "etcd3")
	f.Set("storage-media-type", "application/vnd.kubernetes.protobuf")
	f.Set("event-ttl", "3h")
	if hcp.Spec.SecretEncryption != nil {
		f.Set("encryption-provider-config", encryptionDir+"/"+encryptionKey)
		// The operator restarts the pods when the configuration changes, so that all use the same one.
		f.Set("encryption-provider-config-automatic-reload", "false")
	}
}

func authentication(f *component.Flags, hcp *hyperv1.HostedControlPlane) {
	issuer := serviceAccountIssuer(hcp)
	f.Set("client-ca-file", clientCAFile(hcp))
	f.Set("enable-bootstrap-token-auth", "true")
	f.Set("service-account-issuer", issuer)
	f.Set("api-audiences", issuer)
	f.Set("service-account-jwks-uri", strings.TrimSuffix(issuer, "/")+"/openid/v1/jwks")
	f.Set("service-account-lookup", "true")
	f.Set("service-account-key-file", serviceAccountDir+"/service-account.pub")
	f.Set("service-account-signing-key-file", serviceAccountDir+"/service-account.key")
	f.SetUnlessEmpty("service-account-max-token-expiration", hcp.Annotations[annotationPrefix+"service-account-token-max-expiration"])
	if hasProvidersIn(hcp) {
		f.Set("authentication-config", authenticationDir+"/"+authenticationKey)
	}
	f.Set("requestheader-client-ca-file", certDir+"/aggregator-ca/ca.crt")
	f.Set("requestheader-allowed-names", "kube-apiserver-proxy,system:kube-apiserver-proxy,system:openshift-aggregator")
	f.Set("requestheader-extra-headers-prefix", "X-Remote-Extra-")
	f.Set("requestheader-group-headers", "X-Remote-Group")
	f.Set("requestheader-username-headers", "X-Remote-User")
	f.Set("proxy-client-cert-file", certDir+"/aggregator/tls.crt")
	f.Set("proxy-client-key-file", certDir+"/aggregator/tls.key")
}

// serviceAccountIssuer returns the issuer of service account tokens.
func serviceAccountIssuer(hcp *hyperv1.HostedControlPlane) string {
	if hcp.Spec.IssuerURL == "" {
		return defaultIssuer
	}
	return hcp.Spec.IssuerURL
}

func audit(f *component.Flags) {
	f.Set("audit-policy-file", auditDir+"/"+auditPolicyKey)
	f.Set("audit-log-path", auditLog)
	f.Set("audit-log-format", "json")
	f.Set("audit-log-maxbackup", "1")
	f.Set("audit-log-maxsize", "10")
}

func callWebhooks(f *component.Flags, webhooks map[string][]byte) {
	if _, ok := webhooks[auditWebhook]; ok {
		f.Set("audit-webhook-config-file", webhooksDir+"/"+auditWebhook)
		f.Set("audit-webhook-mode", "batch")
		f.Set("audit-webhook-initial-backoff", "5s")
	}
	if _, ok := webhooks[tokenWebhook]; ok {
		f.Set("authentication-token-webhook-config-file", webhooksDir+"/"+tokenWebhook)
		f.Set("authentication-token-webhook-version", "v1")
	}
}

// shutdown holds the shutdown delay and the termination grace period of an API server, in seconds.
type shutdown struct {
	delay, grace int64
}

// shutdownOf returns the shutdown times. With several replicas, a terminating API server keeps serving until load
// balancers have removed it. A single replica has no successor that could take its traffic yet, so waiting would only
// delay an update or a deletion. An API server whose etcd is gone only stops when it is killed.
func shutdownOf(hcp *hyperv1.HostedControlPlane) shutdown {
	if hcp.Spec.ControllerAvailabilityPolicy == hyperv1.HighlyAvailable {
		return shutdown{delay: 70, grace: 135}
	}
	return shutdown{delay: 0, grace: 10}
}

func limits(f *component.Flags, hcp *hyperv1.HostedControlPlane, replicas int32) {
	goaway := "0.001"
	if replicas == 1 {
		// A client that reconnects after a GOAWAY would reach the same server again.
		goaway = "0"
	}
	f.Set("goaway-chance", annotation(hcp, "goaway-chance", goaway))
	f.Set("http2-max-streams-per-connection", "2000")
	f.Set("max-mutating-requests-inflight", annotation(hcp, "max-mutating-requests-inflight", "1000"))
	f.Set("max-requests-inflight", annotation(hcp, "max-requests-inflight", "3000"))
	f.Set("min-request-timeout", "3600")
	f.Set("shutdown-delay-duration", fmt.Sprintf("%ds", shutdownOf(hcp).delay))
	f.Set("shutdown-send-retry-after", "true")
}

func annotation(hcp *hyperv1.HostedControlPlane, key, fallback string) string {
	if value := hcp.Annotations[annotationPrefix+key]; value != "" {
		return value
	}
	return fallback
}

func serviceCIDRs(hcp *hyperv1.HostedControlPlane) string {
	var cidrs []string
	for _, network := range hcp.Spec.Networking.ServiceNetwork {
		cidrs = append(cidrs, network.CIDR.String())
	}
	return strings.Join(cidrs, ",")
}

func nodePortRange(hcp *hyperv1.HostedControlPlane) string {
	if config := hcp.Spec.Configuration; config != nil && config.Network != nil && config.Network.ServiceNodePortRange != "" {
		return config.Network.ServiceNodePortRange
	}
	return defaultNodePortRange
}

func namedCertificates(hcp *hyperv1.HostedControlPlane) []configv1.APIServerNamedServingCert {
	if hcp.Spec.Configuration == nil || hcp.Spec.Configuration.APIServer == nil {
		return nil
	}
	return hcp.Spec.Configuration.APIServer.ServingCerts.NamedCertificates
}

func namedVolume(i int) string { return fmt.Sprintf("named-%d", i) }

func namedDir(i int) string { return fmt.Sprintf("%s/named-%d", certDir, i) }
