// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/tenancy"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/syntax/ini"
	"github.com/openshift/hypershift/support/upsert"
)

// credentialsKey is the key in a Secret under which programs read a role's credentials file.
const credentialsKey = "credentials"

// nodePoolManagement is the Secret that the provider's Deployment mounts.
const nodePoolManagement = "node-management-creds"

// role is a role that a component of the control plane assumes, with the Secret that it mounts. The names are those
// that the components of release payloads mount. secret is empty if the payload's config operator creates the Secret in
// the hosted cluster.
type role struct {
	field, arn, secret string
}

func roles(hc *hyperv1.HostedCluster) []role {
	const field = "spec.platform.aws.rolesRef."
	ref := spec(hc).RolesRef
	all := []role{
		{field + "kubeCloudControllerARN", ref.KubeCloudControllerARN, "cloud-controller-creds"},
		{field + "nodePoolManagementARN", ref.NodePoolManagementARN, nodePoolManagement},
		{field + "controlPlaneOperatorARN", ref.ControlPlaneOperatorARN, operatorCredentials},
		{field + "networkARN", ref.NetworkARN, "cloud-network-config-controller-creds"},
		{field + "storageARN", ref.StorageARN, "ebs-cloud-credentials"},
		{field + "ingressARN", ref.IngressARN, ""},
		{field + "imageRegistryARN", ref.ImageRegistryARN, ""},
	}
	if encryption := hc.Spec.SecretEncryption; encryption != nil && encryption.KMS != nil && encryption.KMS.AWS != nil {
		all = append(all, role{"spec.secretEncryption.kms.aws.auth.awsKms", encryption.KMS.AWS.Auth.AWSKMSRoleARN, "kms-creds"})
	}
	return all
}

// file returns the credentials file for AWS's client libraries, which assume the role with a service account token.
func (r role) file(region string) ([]byte, error) {
	return ini.Section("default",
		ini.Pair{Field: r.field, Key: "role_arn", Value: r.arn},
		ini.Pair{Key: "web_identity_token_file", Value: tokenFolder + "/token"},
		ini.Pair{Key: "sts_regional_endpoints", Value: "regional"},
		ini.Pair{Field: "spec.platform.aws.region", Key: "region", Value: region},
	)
}

// CredentialsSecret returns an empty name, because the HostedCluster names roles, which contain no secret.
func (*Platform) CredentialsSecret(*hyperv1.HostedCluster) string { return "" }

// ReconcileCredentials writes the credentials file of each role for the component that assumes it.
func (p *Platform) ReconcileCredentials(ctx context.Context, c client.Client, cluster platform.Cluster) (platform.Credentials, error) {
	found := string(hyperv1.PlatformCredentialsFound)
	if err := p.ValidateHostedCluster(cluster.HostedCluster); err != nil {
		return platform.Credentials{Condition: condition.False(found, hyperv1.PlatformCredentialsNotFoundReason, err.Error())}, nil
	}
	var failures []error
	for _, role := range roles(cluster.HostedCluster) {
		if role.secret != "" {
			failures = append(failures, reconcileRole(ctx, c, cluster, role))
		}
	}
	return platform.Credentials{Condition: condition.True(found, hyperv1.AsExpectedReason, "The roles of the cluster's operators are named")}, errors.Join(failures...)
}

func reconcileRole(ctx context.Context, c client.Client, cluster platform.Cluster, role role) error {
	file, err := role.file(spec(cluster.HostedCluster).Region)
	if err != nil {
		return fmt.Errorf("writing the AWS credentials file for Secret %s/%s: %w", cluster.Namespace, role.secret, err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: role.secret}}
	_, err = upsert.Object(ctx, c, secret, func() error {
		secret.Type = corev1.SecretTypeOpaque
		secret.Data = map[string][]byte{credentialsKey: file}
		hosted.MarkOperatorObject(secret)
		return tenancy.Claim(secret, client.ObjectKeyFromObject(cluster.HostedCluster))
	})
	return err
}

// DeleteCredentials does nothing, because all Secrets are in the hosted control plane namespace.
func (*Platform) DeleteCredentials(context.Context, client.Client, platform.Cluster) error {
	return nil
}

// ReconcileSecretEncryption does nothing, because the role for KMS is one of the cluster's roles.
func (*Platform) ReconcileSecretEncryption(context.Context, client.Client, platform.Cluster) error {
	return nil
}
