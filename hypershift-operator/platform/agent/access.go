// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/tenancy"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/platforms"
	"github.com/openshift/hypershift/support/upsert"
)

// namespacePoll is the interval after which a missing or refused namespace of agents is checked again, because it is
// not watched.
const namespacePoll = 30 * time.Second

// roleName returns the name of the Role in the namespace of the agents, which is the same as in upstream HyperShift.
// There is one Role for each hosted control plane namespace.
func roleName(cluster platform.Cluster, agents string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: agents, Name: "capi-provider-role-" + cluster.Namespace}
}

func bindingName(cluster platform.Cluster, agents string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: agents, Name: "cluster-api-agent-" + cluster.Namespace}
}

// CredentialsSecret returns an empty name, because the platform uses access to the agents instead of credentials.
func (*Platform) CredentialsSecret(*hyperv1.HostedCluster) string { return "" }

// ReconcileCredentials allows the provider to use agents of the namespace that the cluster names.
func (*Platform) ReconcileCredentials(ctx context.Context, c client.Client, cluster platform.Cluster) (platform.Credentials, error) {
	found := string(hyperv1.PlatformCredentialsFound)
	name := agentNamespace(cluster.HostedCluster)
	namespace := &corev1.Namespace{}
	err := c.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsNotFound(err) || err == nil && !namespace.DeletionTimestamp.IsZero() {
		return platform.Credentials{CheckAgain: namespacePoll, Condition: condition.False(found, hyperv1.PlatformCredentialsNotFoundReason, fmt.Sprintf(
			"There is no namespace %s: create it and let hosts boot its discovery image, or correct spec.platform.agent.agentNamespace", name))}, nil
	}
	if err != nil {
		return platform.Credentials{}, fmt.Errorf("reading namespace %s of the agents: %w", name, err)
	}
	if err := leaveFormer(ctx, c, cluster); err != nil {
		return platform.Credentials{}, err
	}
	if !offered(namespace, cluster.HostedCluster.Namespace) {
		return platform.Credentials{CheckAgain: namespacePoll, Condition: condition.False(found, hyperv1.PlatformCredentialsNotFoundReason, fmt.Sprintf(
			"The Agents of namespace %s are not for clusters of namespace %s: have an administrator allow it by the annotation %s=%s on namespace %s, "+
				"or correct spec.platform.agent.agentNamespace", name, cluster.HostedCluster.Namespace, hyperv1.AgentsForAnnotation, cluster.HostedCluster.Namespace, name,
		))}, deny(ctx, c, cluster, name)
	}
	if err := allow(ctx, c, cluster); err != nil {
		return platform.Credentials{}, err
	}
	return platform.Credentials{Condition: condition.True(found, hyperv1.AsExpectedReason, "The provider may use the Agents of namespace "+name)}, nil
}

// offered reports whether clusters of another namespace may use the Agents of a namespace. It requires an annotation,
// because a tenant chooses the namespace, and the host of an allocated Agent is reinstalled.
func offered(agents *corev1.Namespace, clusters string) bool {
	if agents.Name == clusters {
		return true
	}
	for name := range strings.SplitSeq(agents.Annotations[hyperv1.AgentsForAnnotation], ",") {
		if name = strings.TrimSpace(name); name == "*" || name == clusters {
			return true
		}
	}
	return false
}

func allow(ctx context.Context, c client.Client, cluster platform.Cluster) error {
	owner := client.ObjectKeyFromObject(cluster.HostedCluster)
	agents := agentNamespace(cluster.HostedCluster)
	role, binding := &rbacv1.Role{ObjectMeta: roleName(cluster, agents)}, &rbacv1.RoleBinding{ObjectMeta: bindingName(cluster, agents)}
	traits, _ := platforms.Of(hyperv1.AgentPlatform)
	if _, err := upsert.Object(ctx, c, role, func() error {
		role.Rules = traits.Passes
		return tenancy.Claim(role, owner)
	}); err != nil {
		return err
	}
	_, err := upsert.Object(ctx, c, binding, func() error {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}
		binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: cluster.Namespace, Name: platform.ProviderName}}
		return tenancy.Claim(binding, owner)
	})
	return err
}

// DeleteCredentials revokes the access to the agents.
func (*Platform) DeleteCredentials(ctx context.Context, c client.Client, cluster platform.Cluster) error {
	return deny(ctx, c, cluster, agentNamespace(cluster.HostedCluster))
}

// leaveFormer revokes the access to the agents of the namespace that the cluster named before. That namespace is still
// in the provider's Deployment, which is written later.
func leaveFormer(ctx context.Context, c client.Client, cluster platform.Cluster) error {
	provider := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: platform.ProviderName}
	if err := c.Get(ctx, key, provider); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading Deployment %s for the namespace of its agents: %w", key, err)
	}
	for _, container := range provider.Spec.Template.Spec.Containers {
		if former := namespaceIn(container.Args); former != agentNamespace(cluster.HostedCluster) {
			return deny(ctx, c, cluster, former)
		}
	}
	return nil
}

// namespaceIn returns the namespace of agents in a provider's arguments. An earlier operator wrote the flag and its
// value as one argument.
func namespaceIn(args []string) string {
	for i, arg := range args {
		if former, found := strings.CutPrefix(arg, namespaceArg+"="); found {
			return former
		}
		if arg == namespaceArg && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

func deny(ctx context.Context, c client.Client, cluster platform.Cluster, agents string) error {
	if agents == "" {
		return nil
	}
	return tenancy.Gone(ctx, c, client.ObjectKeyFromObject(cluster.HostedCluster),
		&rbacv1.RoleBinding{ObjectMeta: bindingName(cluster, agents)}, &rbacv1.Role{ObjectMeta: roleName(cluster, agents)})
}
