// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/upsert"
)

var credentialsFound = string(hyperv1.PlatformCredentialsFound)

// CredentialsSecret returns the name in identityRef.
func (*Platform) CredentialsSecret(hc *hyperv1.HostedCluster) string {
	return spec(hc).IdentityRef.Name
}

// ReconcileCredentials checks the credentials with MAAS, and copies them for the provider, with the keys in their
// canonical spelling. The last copy stays while the user's Secret is missing or malformed, or MAAS rejects its
// credentials. The running provider must still be able to release its machines.
func (p *Platform) ReconcileCredentials(ctx context.Context, c client.Client, cluster platform.Cluster) (platform.Credentials, error) {
	name := p.CredentialsSecret(cluster.HostedCluster)
	if name == "" { // The HostedCluster is gone, and its Secret is not recorded anywhere.
		return p.unusable(ctx, c, cluster, "The Secret with the MAAS credentials is not known: set spec.platform.maas.identityRef.name")
	}
	source := &corev1.Secret{}
	key := client.ObjectKey{Namespace: cluster.HostedCluster.Namespace, Name: name}
	err := c.Get(ctx, key, source)
	if apierrors.IsNotFound(err) {
		return p.unusable(ctx, c, cluster, fmt.Sprintf(
			"There is no Secret %s with the MAAS credentials: create it with the keys %s and %s; Secrets of other namespaces, such as the operator's, "+
				"are not read", key, maas.SecretKeyEndpoint, maas.SecretKeyAPIKey))
	}
	if err != nil {
		return platform.Credentials{}, fmt.Errorf("reading the MAAS credentials in Secret %s: %w", key, err)
	}
	cfg, err := maas.ConfigFromSecret(source.Data)
	if err != nil {
		return p.unusable(ctx, c, cluster, fmt.Sprintf("The MAAS credentials in Secret %s cannot be used: %v", key, err))
	}
	result := p.checks.ask(ctx, key.Namespace, cfg)
	if result.refused() {
		return p.unusable(ctx, c, cluster, fmt.Sprintf("The MAAS credentials in Secret %s are not used: %s", key, maas.Public(result.err)))
	}
	found := result.condition(key)
	target, err := p.lastCopy(ctx, c, cluster)
	if err != nil {
		return platform.Credentials{}, err
	}
	strands, err := stranding(ctx, c, cluster, result, movedTo(target, cfg))
	if err != nil {
		return platform.Credentials{}, err
	}
	if strands != "" {
		found = condition.False(credentialsFound, ReasonAnotherUser, fmt.Sprintf(
			"The credentials in Secret %s are not passed to the provider: %s", key, strands))
	}
	// Without an earlier copy, no machine depends on the credentials yet, so the provider may try them.
	if target == nil || result.good() && strands == "" {
		target = p.copyOf(cluster)
		if _, err := upsert.Object(ctx, c, target, func() error { return fill(target, cluster, cfg) }); err != nil {
			return platform.Credentials{}, err
		}
	} else if !holds(target, cfg) {
		found.Message += ". The machines keep using the last valid credentials"
	}
	if warning := maas.PlainHTTP(cfg.Endpoint); warning != "" {
		found.Message += ". " + warning
	}
	credentials := platform.Credentials{Condition: found, Hash: hash(target), CheckAgain: result.again}
	return credentials, p.handOver(ctx, c, cluster, target)
}

// movedTo reports whether both the endpoint and the key differ from the last copy. A key that is valid at both
// endpoints would prove that both are the same MAAS; the same user name does not.
func movedTo(last *corev1.Secret, cfg maas.Config) bool {
	if last == nil {
		return false
	}
	have, err := maas.ConfigFromSecret(last.Data)
	return err == nil && have.Endpoint != cfg.Endpoint && have.APIKey != cfg.APIKey
}

// stranding returns which machine could not be released with the new credentials, and what to do; empty if there is
// none. Such a machine was allocated by another user, or may be in another MAAS.
func stranding(ctx context.Context, c client.Client, cluster platform.Cluster, v checkResult[string], moved bool) (string, error) {
	if !v.good() {
		return "", nil
	}
	machines := &infrav1.MaasMachineList{}
	if err := c.List(ctx, machines, client.InNamespace(cluster.Namespace)); err != nil {
		return "", fmt.Errorf("listing MaasMachines of namespace %s: %w", cluster.Namespace, err)
	}
	for i := range machines.Items {
		m := &machines.Items[i]
		owner := m.Annotations[infrav1.OwnerAnnotation]
		switch {
		case m.Spec.SystemID == nil:
		case owner != "" && owner != v.value:
			return fmt.Sprintf("the API key belongs to the MAAS user %s, but machine %s of MaasMachine %s belongs to the user %s; "+
				"use a key of that user, or delete such machines first",
				v.value, *m.Spec.SystemID, m.Name, owner), nil
		case moved:
			return fmt.Sprintf("endpoint and API key changed at once and may belong to another MAAS than machine %s of MaasMachine %s; "+
				"change the endpoint first, and the key after the endpoint is accepted, or delete the machines first", *m.Spec.SystemID, m.Name), nil
		}
	}
	return "", nil
}

// unusable reports the problem, and keeps using the last valid copy.
func (p *Platform) unusable(ctx context.Context, c client.Client, cluster platform.Cluster, why string) (platform.Credentials, error) {
	credentials := platform.Credentials{Condition: condition.False(credentialsFound, hyperv1.PlatformCredentialsNotFoundReason, why)}
	last, err := p.lastCopy(ctx, c, cluster)
	if err != nil || last == nil {
		return credentials, err
	}
	credentials.Hash = hash(last)
	return credentials, p.handOver(ctx, c, cluster, last)
}

// holds reports whether a copy contains these credentials.
func holds(target *corev1.Secret, cfg maas.Config) bool {
	have, err := maas.ConfigFromSecret(target.Data)
	return err == nil && fingerprint(have) == fingerprint(cfg)
}

func fill(target *corev1.Secret, cluster platform.Cluster, cfg maas.Config) error {
	data := map[string][]byte{
		maas.SecretKeyEndpoint: []byte(cfg.Endpoint),
		maas.SecretKeyAPIKey:   []byte(cfg.APIKey),
	}
	if len(cfg.CABundle) > 0 {
		data[maas.SecretKeyCABundle] = cfg.CABundle
	}
	return claimWith(target, cluster, data)
}

// hash changes with the content of a Secret without revealing it.
func hash(secret *corev1.Secret) string {
	h := sha256.New()
	for _, key := range []string{maas.SecretKeyEndpoint, maas.SecretKeyAPIKey, maas.SecretKeyCABundle} {
		fmt.Fprintf(h, "%d:%s", len(secret.Data[key]), secret.Data[key])
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}
