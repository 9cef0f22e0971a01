// SPDX-License-Identifier: Apache-2.0

// Package pki decides which certificates, keys and kubeconfigs a hosted control plane has, under which names, and keeps
// them there and fresh.
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
	// The signers of break-glass certificates: of who administrates the cluster, and of who runs the management cluster.
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

	// KubeconfigKey is the key of all kubeconfig Secrets but the one for Cluster API.
	KubeconfigKey = hosted.KubeconfigKey
	// AutoscalerKubeconfig is the cluster-autoscaler's.
	AutoscalerKubeconfig = "cluster-autoscaler-kubeconfig"
	// IgnitionKubeconfig is the ignition-server's, which makes bootstrap tokens.
	IgnitionKubeconfig = "ignition-server-kubeconfig"
	// ClusterAPIKey is the key of the kubeconfig Secrets for Cluster API and its provider.
	ClusterAPIKey = "value"
)

// Annotations of the HostedControlPlane that the PKI heeds.
const (
	DisableAnnotation  = hyperv1.DisablePKIReconciliationAnnotation
	ValidityAnnotation = hyperv1.CertificateValidityAnnotation
	RenewalAnnotation  = hyperv1.CertificateRenewalAnnotation
	RotationAnnotation = hyperv1.RotateSignersAnnotation
	OverlapAnnotation  = hyperv1.SignerOverlapAnnotation
)

// NodeCertificateLife is how long a kubelet's certificate is good: long enough for a machine that was off for a long weekend, since a
// kubelet renews after 70 % to 90 % of it, and short enough for one that was stolen.
const NodeCertificateLife = 7 * 24 * time.Hour

// BreakGlassCertificateLife is how long a break-glass certificate is good at most, as upstream has it.
const BreakGlassCertificateLife = 36 * time.Hour

// NodeBootstrapper is the user that nodes request their first certificate as.
const NodeBootstrapper = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"

// BootstrapGroup is the group of users that may request a node's first certificate.
const BootstrapGroup = "system:bootstrappers"

// Users that those are in the guest who work on its nodes from outside. ClusterRoles of the same names say what they may do.
const (
	ClusterAPIUser = "hypershift:cluster-api"
	ProviderUser   = "hypershift:capi-provider"
	AutoscalerUser = "hypershift:cluster-autoscaler"
)

// IgnitionUser is the user that the ignition-server is in the guest, where a Role of the same name in kube-system says what it may do.
const IgnitionUser = "hypershift:ignition-server"

// ConfigOperatorUser is the user that the hosted-cluster-config-operator is in the guest.
const ConfigOperatorUser = "system:hosted-cluster-config"
