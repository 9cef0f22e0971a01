package maas

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/upsert"
)

var credentialsFound = string(hyperv1.PlatformCredentialsFound)

// CredentialsSecret is the Secret that identityRef names.
func (*Platform) CredentialsSecret(hc *hyperv1.HostedCluster) string {
	return spec(hc).IdentityRef.Name
}

// ReconcileCredentials copies the credentials into the hosted namespace under the same name, with the keys in their first
// spelling, and asks MAAS whether it knows them. While the user's Secret is missing or malformed the last copy stays: what
// runs must still be able to release its machines.
func (p *Platform) ReconcileCredentials(ctx context.Context, c client.Client, cluster platform.Cluster) (platform.Credentials, error) {
	name := p.CredentialsSecret(cluster.HostedCluster)
	source := &corev1.Secret{}
	key := client.ObjectKey{Namespace: cluster.HostedCluster.Namespace, Name: name}
	err := c.Get(ctx, key, source)
	if apierrors.IsNotFound(err) {
		return p.unusable(ctx, c, cluster, fmt.Sprintf(
			"There is no Secret %s with the MAAS credentials: create it with the keys %s and %s", key, maas.SecretKeyEndpoint, maas.SecretKeyAPIKey))
	}
	if err != nil {
		return platform.Credentials{}, fmt.Errorf("reading the MAAS credentials in Secret %s: %w", key, err)
	}
	cfg, err := maas.ConfigFromSecret(source.Data)
	if err != nil {
		return p.unusable(ctx, c, cluster, fmt.Sprintf("The MAAS credentials in Secret %s cannot be used: %v", key, err))
	}
	target := copyOf(cluster, name)
	if _, err := upsert.Object(ctx, c, target, func() error { fill(target, cluster, cfg); return nil }); err != nil {
		return platform.Credentials{}, err
	}
	verdict := p.checks.ask(ctx, cfg)
	return platform.Credentials{Condition: verdict.condition(key), Hash: hash(target), CheckAgain: verdict.again}, nil
}

// unusable tells what is wrong, and goes on with the last good copy.
func (*Platform) unusable(ctx context.Context, c client.Client, cluster platform.Cluster, why string) (platform.Credentials, error) {
	credentials := platform.Credentials{Condition: condition.False(credentialsFound, hyperv1.PlatformCredentialsNotFoundReason, why)}
	last := copyOf(cluster, spec(cluster.HostedCluster).IdentityRef.Name)
	err := c.Get(ctx, client.ObjectKeyFromObject(last), last)
	if client.IgnoreNotFound(err) != nil {
		return platform.Credentials{}, fmt.Errorf("reading the copy of the MAAS credentials in namespace %s: %w", cluster.Namespace, err)
	}
	if err == nil {
		credentials.Hash = hash(last)
	}
	return credentials, nil
}

func copyOf(cluster platform.Cluster, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: name}}
}

func fill(target *corev1.Secret, cluster platform.Cluster, cfg maas.Config) {
	if target.Annotations == nil {
		target.Annotations = map[string]string{}
	}
	target.Annotations[hyperv1.HostedClusterAnnotation] = client.ObjectKeyFromObject(cluster.HostedCluster).String()
	if target.Type == "" {
		target.Type = corev1.SecretTypeOpaque
	}
	target.Data = map[string][]byte{
		maas.SecretKeyEndpoint: []byte(cfg.Endpoint),
		maas.SecretKeyAPIKey:   []byte(cfg.APIKey),
	}
	if len(cfg.CABundle) > 0 {
		target.Data[maas.SecretKeyCABundle] = cfg.CABundle
	}
}

// hash changes with the content and tells nothing of it.
func hash(secret *corev1.Secret) string {
	h := sha256.New()
	for _, key := range []string{maas.SecretKeyEndpoint, maas.SecretKeyAPIKey, maas.SecretKeyCABundle} {
		fmt.Fprintf(h, "%d:%s", len(secret.Data[key]), secret.Data[key])
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// DeleteCredentials has nothing to delete: the copy goes with the hosted namespace.
func (*Platform) DeleteCredentials(context.Context, client.Client, platform.Cluster) error {
	return nil
}
