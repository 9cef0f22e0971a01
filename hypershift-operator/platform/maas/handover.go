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

// copyPrefix starts the names of the copies, which the hosted namespace's name ends.
const copyPrefix = "maas-credentials-"

// copyOf is where a cluster's credentials are kept: in the operator's namespace, since in the hosted namespace they could be read by
// all who may read Secrets there, Cluster API's own controllers among them, which must list them.
func (p *Platform) copyOf(cluster platform.Cluster) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: p.kept(cluster)}
}

// kept is how the copy, and the right to read it, are called.
func (p *Platform) kept(cluster platform.Cluster) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: p.namespace, Name: copyPrefix + cluster.Namespace}
}

// mirrorOf is where a provider finds the credentials that can only read them from its own namespace. It has no name
// where the HostedCluster names no Secret.
func mirrorOf(cluster platform.Cluster) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace,
		Name: mirrorName(cluster.HostedCluster)}}
}

func mirrorName(hc *hyperv1.HostedCluster) string {
	return hosted.CopyName(hosted.UsePlatform, spec(hc).IdentityRef.Name)
}

// lastCopy is what the provider works with now; nil when there is none. An older operator had it in the hosted namespace.
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

// handOver lets the provider read the credentials, and nobody else.
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

// mirror brings the credentials into the hosted namespace where the provider is not ours, and takes them away where it is, as soon
// as the provider that an older operator ran does not read them any more.
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

// mounts tells whether a provider's pods have a Secret mounted.
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

// DeleteCredentials removes the copy and the right to read it; what is in the hosted namespace goes with that.
func (p *Platform) DeleteCredentials(ctx context.Context, c client.Client, cluster platform.Cluster) error {
	return tenancy.Gone(ctx, c, client.ObjectKeyFromObject(cluster.HostedCluster),
		&rbacv1.RoleBinding{ObjectMeta: p.kept(cluster)}, &rbacv1.Role{ObjectMeta: p.kept(cluster)}, p.copyOf(cluster))
}
