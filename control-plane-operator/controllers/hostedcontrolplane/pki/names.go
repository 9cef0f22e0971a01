// SPDX-License-Identifier: Apache-2.0

// Package pki decides which certificates, keys and kubeconfigs a hosted control plane has, and under which names. It
// creates and renews them.
package pki

import (
	"time"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/hosted"
)

// Secrets of certificate authorities.
const (
	RootCA              = hosted.RootCA
	ClusterSignerCA     = hosted.ClusterSignerCA
	EtcdSigner          = hosted.EtcdSigner
	EtcdMetricsSigner   = hosted.EtcdMetricsSigner
	AggregatorSigner    = hosted.AggregatorSigner
	ControlPlaneSigner  = hosted.ControlPlaneSigner
	KubeletClientSigner = hosted.KubeletClientSigner
	SystemAdminSigner   = hosted.SystemAdminSigner
	ConfigOperatorCA    = hosted.ConfigOperatorCA
	// The signers of break-glass certificates: for administrators of the cluster, and for operators of the management
	// cluster.
	CustomerBreakGlassSigner = "customer-system-admin-signer"
	SREBreakGlassSigner      = "sre-system-admin-signer"
	IgnitionCA               = hosted.IgnitionServerCA
)

// Secrets of leaf certificates.
const (
	KASServer          = "kas-server-crt"
	KASServerPrivate   = "kas-server-private-crt"
	KASKubeletClient   = "kas-kubelet-client-crt"
	KASAggregator      = "kas-aggregator-crt"
	SchedulerClient    = "kube-scheduler-client"
	KCMClient          = "kube-controller-manager"
	SystemAdminClient  = "system-admin-client"
	HCCOClient         = "hcco-client"
	ClusterAPIClient   = "cluster-api-client"
	ProviderClient     = "capi-provider-client"
	AutoscalerClient   = "cluster-autoscaler-client"
	IgnitionClient     = "ignition-server-client"
	NodeBootstrap      = "kas-bootstrap-client"
	MetricsClient      = "metrics-client"
	EtcdServer         = "etcd-server-tls"
	EtcdPeer           = "etcd-peer-tls"
	EtcdClient         = "etcd-client-tls"
	EtcdMetricsClient  = "etcd-metrics-client-tls"
	KCMServer          = "kcm-server"
	SchedulerServer    = "scheduler-server"
	IgnitionServer     = "ignition-server"
	TunnelServer       = "tunnel-server"
	IgnitionServing    = "ignition-server-serving-cert"
	ServiceAccountKeys = hosted.ServiceAccountKey
)

// ConfigMaps of CA bundles; each has its bundle under the key ca.crt.
const (
	RootBundle          = "root-ca"
	EtcdBundle          = "etcd-ca"
	EtcdMetricsBundle   = "etcd-metrics-ca"
	AggregatorBundle    = "aggregator-client-ca"
	ClientBundle        = "client-ca"
	KubeletClientBundle = hosted.KubeletClientCA
)

// Secrets of kubeconfigs.
const (
	ServiceNetworkKubeconfig = hosted.ServiceNetworkKubeconfig
	HCCOKubeconfig           = "hcco-kubeconfig"
	AdminKubeconfig          = "admin-kubeconfig"
	CustomAdminKubeconfig    = "custom-admin-kubeconfig"
	BootstrapKubeconfig      = hosted.BootstrapKubeconfig
	KCMKubeconfig            = "kube-controller-manager-kubeconfig"
	SchedulerKubeconfig      = "kube-scheduler-kubeconfig"

	// KubeconfigKey is the key of all kubeconfig Secrets except those for Cluster API.
	KubeconfigKey = hosted.KubeconfigKey
	// AutoscalerKubeconfig is the kubeconfig of the cluster-autoscaler.
	AutoscalerKubeconfig = "cluster-autoscaler-kubeconfig"
	// IgnitionKubeconfig is the kubeconfig of the ignition-server, which creates bootstrap tokens.
	IgnitionKubeconfig = "ignition-server-kubeconfig"
	// ClusterAPIKey is the key of the kubeconfig Secrets for Cluster API and its provider.
	ClusterAPIKey = "value"
)

// Annotations of the HostedControlPlane that the PKI honors.
const (
	DisableAnnotation  = hyperv1.DisablePKIReconciliationAnnotation
	ValidityAnnotation = hyperv1.CertificateValidityAnnotation
	RenewalAnnotation  = hyperv1.CertificateRenewalAnnotation
	RotationAnnotation = hyperv1.RotateSignersAnnotation
	OverlapAnnotation  = hyperv1.SignerOverlapAnnotation
)

// NodeCertificateLife is the lifetime of a kubelet's certificate. A kubelet renews after 70 % to 90 % of it. It is long
// enough for a machine that was off for a long weekend, and short enough to limit the damage of a stolen certificate.
const NodeCertificateLife = 7 * 24 * time.Hour

// BreakGlassCertificateLife is the maximum lifetime of a break-glass certificate, the same as in upstream HyperShift.
const BreakGlassCertificateLife = 36 * time.Hour

// NodeBootstrapper is the user under which nodes request their first certificate.
const NodeBootstrapper = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"

// BootstrapGroup is the group of users that may request a node's first certificate.
const BootstrapGroup = "system:bootstrappers"

// Users in the guest for the components that manage its nodes from outside. ClusterRoles of the same names grant their
// permissions.
const (
	ClusterAPIUser = "hypershift:cluster-api"
	ProviderUser   = "hypershift:capi-provider"
	AutoscalerUser = "hypershift:cluster-autoscaler"
)

// IgnitionUser is the user of the ignition-server in the guest, where a Role of the same name in kube-system grants its
// permissions.
const IgnitionUser = "hypershift:ignition-server"

// ConfigOperatorUser is the user of the hosted-cluster-config-operator in the guest.
const ConfigOperatorUser = "system:hosted-cluster-config"
