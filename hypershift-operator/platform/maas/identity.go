// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/maas"
)

// identityCheck is the time until refused credentials of a pool are compared again. No watch reports that their Secret
// changes.
const identityCheck = time.Minute

// CheckIdentity accepts the name of another Secret than the cluster's if its credentials are of the same MAAS and user.
// All machines of a cluster are made with the cluster's own credentials in any case.
func (p *Platform) CheckIdentity(ctx context.Context, c client.Reader, pool platform.Pool) (string, time.Duration, error) {
	identity, cluster := settings(pool).IdentityRef, spec(pool.HostedCluster).IdentityRef.Name
	if identity == nil || identity.Name == "" || identity.Name == cluster {
		return "", 0, nil
	}
	namespace := pool.HostedCluster.Namespace
	refuse := func(why string) (string, time.Duration, error) {
		return fmt.Sprintf("spec.platform.maas.identityRef names Secret %s, %s: leave the field out, or make another "+
			"HostedCluster for other credentials", identity.Name, why), identityCheck, nil
	}
	theirs, problem, err := readConfig(ctx, c, client.ObjectKey{Namespace: namespace, Name: identity.Name})
	if err != nil {
		return "", 0, err
	}
	if problem != "" {
		return refuse(problem)
	}
	ours, problem, err := readConfig(ctx, c, client.ObjectKey{Namespace: namespace, Name: cluster})
	if err != nil || problem != "" {
		return "", goodFor, err // The HostedCluster reports what is wrong with its Secret.
	}
	switch {
	case !sameEndpoint(theirs, ours):
		return refuse(fmt.Sprintf("whose MAAS is another than that of the cluster's Secret %s", cluster))
	case theirs.APIKey == ours.APIKey:
		return "", goodFor, nil
	}
	return p.compareUsers(ctx, namespace, theirs, ours, refuse)
}

// compareUsers asks MAAS for the users of two keys. While MAAS does not answer, it accepts: no machine is made with the
// pool's key.
func (p *Platform) compareUsers(ctx context.Context, namespace string, theirs, ours maas.Config,
	refuse func(string) (string, time.Duration, error)) (string, time.Duration, error) {
	their, our := p.checks.ask(ctx, namespace, theirs), p.checks.ask(ctx, namespace, ours)
	again := max(min(their.again, our.again), time.Second)
	switch {
	case !their.known || !our.known:
		return "MAAS will be asked shortly whether spec.platform.maas.identityRef names credentials of the cluster's user", again, nil
	case maas.IsUnauthorized(their.err), maas.IsForbidden(their.err):
		return refuse("whose API key MAAS does not accept")
	case their.good() && our.good() && their.value != our.value:
		return refuse(fmt.Sprintf("whose API key belongs to the MAAS user %s, and that of the cluster to %s", their.value, our.value))
	}
	return "", again, nil
}

// sameEndpoint reports whether two endpoints differ by case, or by the path of the API, at most.
func sameEndpoint(a, b maas.Config) bool {
	normal := func(endpoint string) string {
		return strings.ToLower(strings.TrimSuffix(strings.TrimRight(endpoint, "/"), "/api/2.0"))
	}
	return normal(a.Endpoint) == normal(b.Endpoint)
}

// readConfig returns the credentials in a Secret. problem completes "Secret NAME, ..." if there are none.
func readConfig(ctx context.Context, c client.Reader, key client.ObjectKey) (cfg maas.Config, problem string, err error) {
	secret := &corev1.Secret{}
	switch err := c.Get(ctx, key, secret); {
	case apierrors.IsNotFound(err):
		return cfg, "which does not exist in namespace " + key.Namespace, nil
	case err != nil:
		return cfg, "", fmt.Errorf("reading the MAAS credentials in Secret %s: %w", key, err)
	}
	cfg, err = maas.ConfigFromSecret(secret.Data)
	if err != nil {
		return cfg, fmt.Sprintf("which cannot be used (%v)", err), nil
	}
	return cfg, "", nil
}
