// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/tenancy"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/kubeconfig"
	"github.com/openshift/hypershift/support/upsert"
	"github.com/openshift/hypershift/support/webhookkubeconfig"
)

const (
	// infraCredentials is the Secret in the hosted control plane namespace with the kubeconfig for the provider and the
	// payload's operators.
	infraCredentials = hosted.KubevirtCredentials
	// kubeconfigKey and namespaceKey are the keys of the Secret that the provider reads.
	kubeconfigKey, namespaceKey = "kubeconfig", "namespace"
)

var credentialsFound = string(hyperv1.PlatformCredentialsFound)

// CredentialsSecret returns the name of the Secret with the external cluster's kubeconfig; empty if there is none.
func (*Platform) CredentialsSecret(hc *hyperv1.HostedCluster) string {
	if credentials := external(hc); credentials != nil && credentials.InfraKubeConfigSecret != nil {
		return credentials.InfraKubeConfigSecret.Name
	}
	return ""
}

// ReconcileCredentials copies the external cluster's kubeconfig for the provider. The last copy stays while the user's
// Secret is missing or unusable, because the running provider must still be able to delete its virtual machines.
func (p *Platform) ReconcileCredentials(ctx context.Context, c client.Client, cluster platform.Cluster) (platform.Credentials, error) {
	if external(cluster.HostedCluster) == nil {
		return platform.Credentials{Condition: condition.True(credentialsFound, hyperv1.AsExpectedReason,
			"Virtual machines in the management cluster need no credentials")}, nil
	}
	key := client.ObjectKey{Namespace: cluster.HostedCluster.Namespace, Name: p.CredentialsSecret(cluster.HostedCluster)}
	data, why, err := userKubeconfig(ctx, c, key, external(cluster.HostedCluster))
	if err != nil {
		return platform.Credentials{}, err
	}
	target := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: infraCredentials}}
	if why != "" {
		return unusable(ctx, c, target, why)
	}
	result, err := upsert.Object(ctx, c, target, func() error {
		target.Data = data
		hosted.MarkOperatorObject(target)
		return tenancy.Claim(target, client.ObjectKeyFromObject(cluster.HostedCluster))
	})
	if err != nil {
		return platform.Credentials{}, err
	}
	if result != upsert.Unchanged {
		p.infra.forget(cluster.Namespace) // The cached results come from the previous kubeconfig.
	}
	found := condition.True(credentialsFound, hyperv1.AsExpectedReason, fmt.Sprintf("The kubeconfig in Secret %s is handed to the provider", key))
	said, again, err := p.checkCluster(ctx, c, infraTarget(cluster), found)
	return platform.Credentials{Condition: said, Hash: hash(target), CheckAgain: again}, err
}

// userKubeconfig returns the data for the provider, or why there is none. A kubeconfig may name commands and files. The
// provider would run and read them with its rights in the management cluster.
func userKubeconfig(ctx context.Context, c client.Client, key client.ObjectKey,
	credentials *hyperv1.KubevirtPlatformCredentials) (data map[string][]byte, why string, err error) {
	source := &corev1.Secret{}
	err = c.Get(ctx, key, source)
	field := credentials.InfraKubeConfigSecret.Key
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Sprintf("There is no Secret %s with the kubeconfig of the cluster for virtual machines: create it with the key %s", key, field), nil
	case err != nil:
		return nil, "", fmt.Errorf("reading the kubeconfig in Secret %s: %w", key, err)
	case len(source.Data[field]) == 0:
		return nil, fmt.Sprintf("Secret %s has no key %s: put the kubeconfig of the cluster for virtual machines there", key, field), nil
	}
	if _, err := kubeconfig.Parse(source.Data[field]); err != nil {
		return nil, fmt.Sprintf("The kubeconfig in key %s of Secret %s is not used: %v", field, key, err), nil
	}
	accepted, err := webhookkubeconfig.Webhook{Decides: true}.Accept(source.Data[field])
	if err != nil {
		return nil, fmt.Sprintf("The kubeconfig in key %s of Secret %s is not used: %v", field, key, err), nil
	}
	data = map[string][]byte{kubeconfigKey: accepted, field: accepted}
	// The namespace is set last, so that no key of the user replaces it.
	data[namespaceKey] = []byte(credentials.InfraNamespace)
	return data, "", nil
}

// unusable reports the problem, and keeps using the last valid copy.
func unusable(ctx context.Context, c client.Client, target *corev1.Secret, why string) (platform.Credentials, error) {
	credentials := platform.Credentials{Condition: condition.False(credentialsFound, hyperv1.PlatformCredentialsNotFoundReason, why)}
	err := c.Get(ctx, client.ObjectKeyFromObject(target), target)
	if apierrors.IsNotFound(err) {
		return credentials, nil
	}
	if err != nil {
		return platform.Credentials{}, fmt.Errorf("reading the last copy of the kubeconfig in Secret %s/%s: %w", target.Namespace, target.Name, err)
	}
	if refused := hosted.Trusted(target); refused != nil {
		credentials.Condition.Message += ". " + capitalized(refused)
		return credentials, nil
	}
	credentials.Hash = hash(target)
	return credentials, nil
}

func capitalized(err error) string { return strings.ToUpper(err.Error()[:1]) + err.Error()[1:] }

// DeleteCredentials does nothing, because the copy is in the hosted control plane namespace.
func (*Platform) DeleteCredentials(context.Context, client.Client, platform.Cluster) error {
	return nil
}

// hash changes with the content of a Secret without revealing it.
func hash(secret *corev1.Secret) string {
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
		fmt.Fprintf(h, "%d:%s%d:%s", len(key), key, len(secret.Data[key]), secret.Data[key])
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}
