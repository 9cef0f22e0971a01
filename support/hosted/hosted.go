// SPDX-License-Identifier: Apache-2.0

// Package hosted names the objects of a hosted namespace that more than one program reads or writes. The names are an
// interface between programs: an OpenShift payload's own operators use them too.
package hosted

// Secrets and ConfigMaps of a hosted namespace.
const (
	// PullSecret is the Secret with the cluster's pull secret.
	PullSecret = "pull-secret"
	// UserCABundle is the ConfigMap with the CAs that the user provides, under UserCABundleKey.
	UserCABundle    = "user-ca-bundle"
	UserCABundleKey = "ca-bundle.crt"
	// PayloadTrust is the ConfigMap with all CAs that the operators of an OpenShift payload trust, under PayloadTrustKey.
	// They mount it over the bundle of their image.
	PayloadTrust    = "openshift-config-managed-trusted-ca-bundle"
	PayloadTrustKey = "ca-bundle.crt"
	// ServiceAccountKey is the Secret with the keys of service account tokens.
	ServiceAccountKey = "sa-signing-key"
	// ServiceNetworkKubeconfig is the Secret with an administrator's kubeconfig for the API server's Service in the hosted
	// namespace, under KubeconfigKey.
	ServiceNetworkKubeconfig = "service-network-admin-kubeconfig"
	// IgnitionServerCA is the Secret with the CA with which machines verify the ignition-server.
	IgnitionServerCA = "ignition-server-ca-cert"
	// BootstrapKubeconfig is the Secret with which kubelets request their first certificate, under KubeconfigKey.
	BootstrapKubeconfig = "bootstrap-kubeconfig"
	KubeconfigKey       = "kubeconfig"
	// KubeletClientCA is the ConfigMap with the CAs with which kubelets verify clients.
	KubeletClientCA = "kubelet-client-ca"
	// LastValidSpec is the Secret with the last valid spec of the HostedControlPlane, as JSON under LastValidSpecKey.
	LastValidSpec    = "last-valid-spec"
	LastValidSpecKey = "spec.json"
	// KubevirtCredentials is the Secret with the kubeconfig of the cluster that runs virtual machines. A payload's own
	// operators expect this name.
	KubevirtCredentials = "kubevirt-infra-credentials"
)

// EncryptionConfig is the Secret with the keys with which API servers read and write Secrets of the guest.
const EncryptionConfig = "kas-secret-encryption-config"

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

// IgnitionServer is the service account of the ignition-server, which serves node configuration.
const IgnitionServer = "ignition-server"

// ClusterAPIKubeconfig returns the name of the Secret with the kubeconfig of Cluster API's own controllers, under the
// key value. Cluster API derives this name from the name of its Cluster.
func ClusterAPIKubeconfig(infraID string) string { return infraID + "-kubeconfig" }

// ProviderKubeconfig returns the name of the Secret with the kubeconfig of the platform's infrastructure provider,
// under the key value.
func ProviderKubeconfig(infraID string) string { return infraID + "-provider-kubeconfig" }
