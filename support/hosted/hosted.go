// SPDX-License-Identifier: Apache-2.0

// Package hosted names the objects of a hosted namespace that more than one program reads or writes. They are a wire format: an
// OpenShift payload's own operators use the same.
package hosted

// Secrets and ConfigMaps of a hosted namespace.
const (
	// PullSecret is the Secret with the cluster's pull secret.
	PullSecret = "pull-secret"
	// UserCABundle is the ConfigMap with the CAs that the user brought, under UserCABundleKey.
	UserCABundle    = "user-ca-bundle"
	UserCABundleKey = "ca-bundle.crt"
	// PayloadTrust is the ConfigMap with all CAs that the operators of an OpenShift payload trust, under PayloadTrustKey.
	// They mount it over the bundle of their image.
	PayloadTrust    = "openshift-config-managed-trusted-ca-bundle"
	PayloadTrustKey = "ca-bundle.crt"
	// ServiceAccountKey is the Secret with the keys of service account tokens.
	ServiceAccountKey = "sa-signing-key"
	// ServiceNetworkKubeconfig is the Secret with an administrator's kubeconfig that leads through the hosted namespace, under KubeconfigKey.
	ServiceNetworkKubeconfig = "service-network-admin-kubeconfig"
	// IgnitionServerCA is the Secret with the CA that machines trust the ignition-server by.
	IgnitionServerCA = "ignition-server-ca-cert"
	// BootstrapKubeconfig is the Secret with which kubelets ask for their first certificate, under KubeconfigKey.
	BootstrapKubeconfig = "bootstrap-kubeconfig"
	KubeconfigKey       = "kubeconfig"
	// KubeletClientCA is the ConfigMap with the CAs that kubelets trust clients by.
	KubeletClientCA = "kubelet-client-ca"
	// LastValidSpec is the Secret with the last spec of the HostedControlPlane that could work, as JSON under
	// LastValidSpecKey.
	LastValidSpec    = "last-valid-spec"
	LastValidSpecKey = "spec.json"
	// KubevirtCredentials is the Secret with the kubeconfig of the cluster that runs virtual machines. A payload's own
	// operators look there.
	KubevirtCredentials = "kubevirt-infra-credentials"
)

// Secrets of the certificate authorities of a control plane.
const (
	RootCA              = "root-ca"
	ClusterSignerCA     = "cluster-signer-ca"
	EtcdSigner          = "etcd-signer"
	EtcdMetricsSigner   = "etcd-metrics-signer"
	AggregatorSigner    = "kas-aggregator-client-signer"
	ControlPlaneSigner  = "kube-control-plane-signer"
	KubeletClientSigner = "kube-apiserver-to-kubelet-signer"
	SystemAdminSigner   = "system-admin-signer"
	ConfigOperatorCA    = "hcco-signer"
)

// BackupSigner is the Secret with the key that signs backups of the cluster. BackupAuthority is the Secret in the
// operator's namespace with the key that certifies it; see support/bundle.
const (
	BackupSigner    = "backup-signer"
	BackupAuthority = "backup-authority"
)

// IgnitionServer is the service account of the program that serves node configuration.
const IgnitionServer = "ignition-server"

// ClusterAPIKubeconfig names the Secret with the kubeconfig of Cluster API's own controllers, under the key value. Cluster API makes
// the name of its Cluster's.
func ClusterAPIKubeconfig(infraID string) string { return infraID + "-kubeconfig" }

// ProviderKubeconfig names the Secret with the kubeconfig of the platform's provider, under the key value.
func ProviderKubeconfig(infraID string) string { return infraID + "-provider-kubeconfig" }
