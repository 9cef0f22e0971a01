// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/tenancy"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/upsert"
)

// copyPrefix is the prefix of the copies' names, followed by the hosted control plane namespace.
const copyPrefix = "maas-credentials-"

// copyOf returns the Secret with the copy of a cluster's credentials, in the operator's namespace. In the hosted
// control plane namespace, every program with access to all Secrets could read it, such as Cluster API's own
// controllers.
func (p *Platform) copyOf(cluster platform.Cluster) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: p.kept(cluster)}
}

// kept returns the name of the copy, and of the Role and RoleBinding for reading it.
func (p *Platform) kept(cluster platform.Cluster) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: p.namespace, Name: copyPrefix + cluster.Namespace}
}

// mirrorOf returns the Secret for a provider that can only read credentials from its own namespace. Its name is empty
// if the HostedCluster names no Secret.
func mirrorOf(cluster platform.Cluster) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace,
		Name: mirrorName(cluster.HostedCluster)}}
}

func mirrorName(hc *hyperv1.HostedCluster) string {
	return hosted.CopyName(hosted.UsePlatform, spec(hc).IdentityRef.Name)
}

// lastCopy returns the copy that the provider uses now; nil if there is none. An older operator stored it in the hosted
// control plane namespace.
func (p *Platform) lastCopy(ctx context.Context, c client.Client, cluster platform.Cluster) (*corev1.Secret, error) {
	for _, last := range []*corev1.Secret{p.copyOf(cluster), mirrorOf(cluster)} {
		if last.Name == "" {
			continue
		}
		err := c.Get(ctx, client.ObjectKeyFromObject(last), last)
		if err == nil && tenancy.Owner(last) == client.ObjectKeyFromObject(cluster.HostedCluster).String() {
			return last, nil
		}
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading the copy of the MAAS credentials in Secret %s: %w", client.ObjectKeyFromObject(last), err)
		}
	}
	return nil, nil
}

// handOver allows only the provider to read the credentials.
func (p *Platform) handOver(ctx context.Context, c client.Client, cluster platform.Cluster, credentials *corev1.Secret) error {
	target := p.copyOf(cluster)
	role, binding := &rbacv1.Role{ObjectMeta: p.kept(cluster)}, &rbacv1.RoleBinding{ObjectMeta: p.kept(cluster)}
	owner := client.ObjectKeyFromObject(cluster.HostedCluster)
	_, err := upsert.Object(ctx, c, target, func() error { return claimWith(target, cluster, credentials.Data) })
	if err != nil {
		return err
	}
	if _, err := upsert.Object(ctx, c, role, func() error {
		role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{target.Name}, Verbs: []string{"get"}}}
		return tenancy.Claim(role, owner)
	}); err != nil {
		return err
	}
	if _, err := upsert.Object(ctx, c, binding, func() error {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}
		binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: cluster.Namespace, Name: platform.ProviderName}}
		return tenancy.Claim(binding, owner)
	}); err != nil {
		return err
	}
	return p.mirror(ctx, c, cluster, target)
}

// mirror copies the credentials into the hosted control plane namespace for a third-party provider. For the in-tree
// provider it deletes that copy, once no provider of an older operator mounts it.
func (p *Platform) mirror(ctx context.Context, c client.Client, cluster platform.Cluster, credentials *corev1.Secret) error {
	mirror := mirrorOf(cluster)
	if mirror.Name == "" {
		return nil
	}
	if p.foreign(cluster) {
		_, err := upsert.Object(ctx, c, mirror, func() error {
			hosted.MarkCopy(mirror, spec(cluster.HostedCluster).IdentityRef.Name)
			return claimWith(mirror, cluster, credentials.Data)
		})
		return err
	}
	err := c.Get(ctx, client.ObjectKeyFromObject(mirror), mirror)
	if err != nil || tenancy.Owner(mirror) != client.ObjectKeyFromObject(cluster.HostedCluster).String() {
		return client.IgnoreNotFound(err)
	}
	provider := &appsv1.Deployment{}
	err = c.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: platform.ProviderName}, provider)
	if err == nil && mounts(provider, mirror.Name) {
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Deployment %s/%s: %w", cluster.Namespace, platform.ProviderName, err)
	}
	_, err = upsert.Gone(ctx, c, mirror)
	return err
}

// mounts reports whether a provider's pods mount a Secret.
func mounts(provider *appsv1.Deployment, secret string) bool {
	for _, volume := range provider.Spec.Template.Spec.Volumes {
		if volume.Secret != nil && volume.Secret.SecretName == secret {
			return true
		}
	}
	return false
}

func claimWith(target *corev1.Secret, cluster platform.Cluster, data map[string][]byte) error {
	if err := tenancy.Claim(target, client.ObjectKeyFromObject(cluster.HostedCluster)); err != nil {
		return err
	}
	if target.Type == "" {
		target.Type = corev1.SecretTypeOpaque
	}
	target.Data = data
	return nil
}

// DeleteCredentials deletes the copy and the right to read it. The copy in the hosted control plane namespace is
// deleted with that namespace.
func (p *Platform) DeleteCredentials(ctx context.Context, c client.Client, cluster platform.Cluster) error {
	return tenancy.Gone(ctx, c, client.ObjectKeyFromObject(cluster.HostedCluster),
		&rbacv1.RoleBinding{ObjectMeta: p.kept(cluster)}, &rbacv1.Role{ObjectMeta: p.kept(cluster)}, p.copyOf(cluster))
}
