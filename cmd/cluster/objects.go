// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/rand"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/support/platforms"
)

const (
	trustBundleKey   = "ca-bundle.crt"
	sshPublicKeyKey  = "id_rsa.pub"
	sshPrivateKeyKey = "id_rsa"
	encryptionKeyKey = "key"

	pullSecretSuffix  = "-pull-secret"
	sshKeySuffix      = "-ssh-key"
	encryptionSuffix  = "-etcd-encryption-key"
	trustBundleSuffix = "-user-ca-bundle"

	encryptionKeySize = 32
)

// objects returns all objects of the cluster, in the order in which they are applied.
func (o *Options) objects(platform Platform) ([]client.Object, error) {
	if o.infraID == "" {
		o.infraID = o.name + "-" + utilrand.String(5)
	}
	hc, err := o.hostedCluster(platform)
	if err != nil {
		return nil, err
	}
	objs, err := o.secrets()
	if err != nil {
		return nil, err
	}
	objs = append(objs, platform.Objects(o.namespace, o.name)...)
	objs = append(objs, hc)
	if o.replicas >= 0 {
		objs = append(objs, o.nodePool(platform))
	}
	for _, obj := range objs {
		o.label(obj)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.namespace}}
	return append([]client.Object{namespace}, objs...), nil
}

// label marks the objects that `destroy cluster` may delete.
func (o *Options) label(obj client.Object) {
	labels := maps.Clone(obj.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[hyperv1.AutoCreatedForInfraLabel] = o.infraID
	if _, secret := obj.(*corev1.Secret); secret {
		labels[hyperv1.SafeToDeleteWithClusterLabel] = "true"
	}
	obj.SetLabels(labels)
}

func (o *Options) secrets() ([]client.Object, error) {
	key := make([]byte, encryptionKeySize)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("make the etcd encryption key: %w", err)
	}
	objs := []client.Object{
		o.secret(pullSecretSuffix, corev1.SecretTypeDockerConfigJson, map[string][]byte{corev1.DockerConfigJsonKey: o.pullSecret}),
		o.secret(encryptionSuffix, corev1.SecretTypeOpaque, map[string][]byte{encryptionKeyKey: key}),
	}
	if len(o.sshKey) > 0 {
		data := map[string][]byte{sshPublicKeyKey: o.sshKey}
		if len(o.sshPrivateKey) > 0 {
			data[sshPrivateKeyKey] = o.sshPrivateKey
		}
		objs = append(objs, o.secret(sshKeySuffix, corev1.SecretTypeOpaque, data))
	}
	if len(o.trustBundle) > 0 {
		objs = append(objs, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: o.name + trustBundleSuffix},
			Data:       map[string]string{trustBundleKey: string(o.trustBundle)},
		})
	}
	return objs, nil
}

func (o *Options) secret(suffix string, kind corev1.SecretType, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: o.name + suffix},
		Type:       kind,
		Data:       data,
	}
}

func (o *Options) hostedCluster(platform Platform) (*hyperv1.HostedCluster, error) {
	networking, err := o.networking()
	if err != nil {
		return nil, err
	}
	etcd, err := o.etcd()
	if err != nil {
		return nil, err
	}
	hc := &hyperv1.HostedCluster{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.namespace, Name: o.name, Labels: maps.Clone(o.labels), Annotations: maps.Clone(o.annotations),
		},
		Spec: hyperv1.HostedClusterSpec{
			Release:                          hyperv1.Release{Image: o.releaseImage},
			InfraID:                          o.infraID,
			KubeAPIServerDNSName:             o.kasDNSName,
			DNS:                              o.dns(),
			Networking:                       networking,
			Etcd:                             etcd,
			PullSecret:                       corev1.LocalObjectReference{Name: o.name + pullSecretSuffix},
			FIPS:                             o.fips,
			ControllerAvailabilityPolicy:     hyperv1.AvailabilityPolicy(o.controllerAvailability),
			InfrastructureAvailabilityPolicy: hyperv1.AvailabilityPolicy(o.infraAvailability),
			ImageContentSources:              o.imageContentSources,
			NodeSelector:                     maps.Clone(o.nodeSelector),
			Labels:                           maps.Clone(o.podLabels),
			SecretEncryption: &hyperv1.SecretEncryptionSpec{
				Type:   hyperv1.AESCBC,
				AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: o.name + encryptionSuffix}},
			},
		},
	}
	if len(o.sshKey) > 0 {
		hc.Spec.SSHKey.Name = o.name + sshKeySuffix
	}
	if len(o.trustBundle) > 0 {
		hc.Spec.AdditionalTrustBundle = &corev1.LocalObjectReference{Name: o.name + trustBundleSuffix}
	}
	if o.pausedUntil != "" {
		hc.Spec.PausedUntil = ptr.To(o.pausedUntil)
	}
	if o.controlPlaneOperatorImage != "" {
		metav1.SetMetaDataAnnotation(&hc.ObjectMeta, hyperv1.ControlPlaneOperatorImageAnnotation, o.controlPlaneOperatorImage)
	}
	platform.Apply(hc)
	return hc, nil
}

func (o *Options) dns() hyperv1.DNSSpec {
	spec := hyperv1.DNSSpec{BaseDomain: o.baseDomain}
	switch o.baseDomainPrefix {
	case "":
	case "none":
		spec.BaseDomainPrefix = ptr.To("")
	default:
		spec.BaseDomainPrefix = ptr.To(o.baseDomainPrefix)
	}
	return spec
}

func (o *Options) networking() (hyperv1.ClusterNetworking, error) {
	spec := hyperv1.ClusterNetworking{NetworkType: hyperv1.NetworkType(o.networkType)}
	service, err := ipnet.ParseCIDR(o.serviceCIDR)
	if err != nil {
		return spec, fmt.Errorf("--service-cidr: %w", err)
	}
	spec.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{CIDR: *service}}
	pods, err := ipnet.ParseCIDR(o.clusterCIDR)
	if err != nil {
		return spec, fmt.Errorf("--cluster-cidr: %w", err)
	}
	spec.ClusterNetwork = []hyperv1.ClusterNetworkEntry{{CIDR: *pods}}
	if o.machineCIDR != "" {
		machines, err := ipnet.ParseCIDR(o.machineCIDR)
		if err != nil {
			return spec, fmt.Errorf("--machine-cidr: %w", err)
		}
		spec.MachineNetwork = []hyperv1.MachineNetworkEntry{{CIDR: *machines}}
	}
	if o.allocateNodeCIDRs {
		spec.AllocateNodeCIDRs = ptr.To(hyperv1.AllocateNodeCIDRsEnabled)
	}
	return spec, nil
}

func (o *Options) etcd() (hyperv1.EtcdSpec, error) {
	size, err := resource.ParseQuantity(o.etcdStorageSize)
	if err != nil {
		return hyperv1.EtcdSpec{}, fmt.Errorf("--etcd-storage-size %q is not a size; write it as 8Gi", o.etcdStorageSize)
	}
	volume := &hyperv1.PersistentVolumeEtcdStorageSpec{Size: &size}
	if o.etcdStorageClass != "" {
		volume.StorageClassName = ptr.To(o.etcdStorageClass)
	}
	return hyperv1.EtcdSpec{
		ManagementType: hyperv1.Managed,
		Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{
			Type: hyperv1.PersistentVolumeEtcdStorage, PersistentVolume: volume,
		}},
	}, nil
}

func (o *Options) nodePool(platform Platform) *hyperv1.NodePool {
	traits, _ := platforms.Of(platform.Type())
	upgrade := hyperv1.UpgradeType(o.upgradeType)
	if upgrade == "" {
		upgrade = traits.DefaultUpgradeType
	}
	pool := &hyperv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: o.name},
		Spec: hyperv1.NodePoolSpec{
			ClusterName:             o.name,
			Release:                 hyperv1.Release{Image: o.releaseImage},
			Replicas:                ptr.To(o.replicas),
			Arch:                    o.arch,
			Management:              hyperv1.NodePoolManagement{UpgradeType: upgrade, AutoRepair: o.autoRepair},
			NodeDrainTimeout:        &metav1.Duration{Duration: o.drainTimeout},
			NodeVolumeDetachTimeout: &metav1.Duration{Duration: o.volumeDetachTimeout},
		},
	}
	if o.pausedUntil != "" {
		pool.Spec.PausedUntil = ptr.To(o.pausedUntil)
	}
	platform.ApplyNodePool(pool)
	return pool
}
