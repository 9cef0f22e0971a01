// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/releaseinfo"
)

var _ platform.IdentityChecker = &Platform{}

// TestCheckIdentity checks which Secret a pool may name beside its cluster's: one of the same MAAS and user.
func TestCheckIdentity(t *testing.T) {
	const endpoint = "https://maas.example:5443/MAAS"
	secret := func(name, endpoint, key string) *corev1.Secret {
		s := credentials(map[string]string{"maas-server-url": endpoint, "maas-api-key": key})
		s.Name = name
		return s
	}
	users := map[string]string{"a:b:c": "ci", "d:e:f": "ci", "g:h:i": "ops"}
	whoAmI := func(_ context.Context, cfg maas.Config) (string, error) {
		switch user, known := users[cfg.APIKey]; {
		case known:
			return user, nil
		case cfg.APIKey == "j:k:l":
			return "", &maas.UnreachableError{Operation: "check the API key", Endpoint: "maas.example", Err: errors.New("refused")}
		}
		return "", &maas.Error{StatusCode: 401}
	}
	ours := secret("creds", endpoint, "a:b:c")
	for _, tc := range []struct {
		name    string
		ref     string
		objects []client.Object
		want    string
	}{
		{"When the pool names the cluster's Secret, it should read nothing", "creds", nil, ""},
		{"When the Secret has the same endpoint and key, it should accept the pool", "maas-credentials",
			[]client.Object{ours, secret("maas-credentials", endpoint+"/", "a:b:c")}, ""},
		{"When the Secret has another key of the same user, it should accept the pool", "maas-credentials",
			[]client.Object{ours, secret("maas-credentials", endpoint, "d:e:f")}, ""},
		{"When MAAS does not answer, it should accept the pool, whose key makes no machine", "maas-credentials",
			[]client.Object{ours, secret("maas-credentials", endpoint, "j:k:l")}, ""},
		{"When the cluster's Secret is missing, the HostedCluster should report it", "maas-credentials",
			[]client.Object{secret("maas-credentials", endpoint, "a:b:c")}, ""},
		{"When the key belongs to another user, it should refuse the pool", "maas-credentials",
			[]client.Object{ours, secret("maas-credentials", endpoint, "g:h:i")}, "belongs to the MAAS user ops, and that of the cluster to ci: leave the field out"},
		{"When MAAS does not know the key, it should refuse the pool", "maas-credentials",
			[]client.Object{ours, secret("maas-credentials", endpoint, "x:y:z")}, "whose API key MAAS does not accept"},
		{"When the Secret is of another MAAS, it should refuse the pool", "maas-credentials",
			[]client.Object{ours, secret("maas-credentials", "https://other.example/MAAS", "a:b:c")}, "whose MAAS is another than that of the cluster's Secret creds"},
		{"When the Secret is missing, it should refuse the pool", "maas-credentials", []client.Object{ours},
			"names Secret maas-credentials, which does not exist in namespace clusters"},
		{"When the Secret has no key, it should refuse the pool", "maas-credentials",
			[]client.Object{ours, secret("maas-credentials", endpoint, "")}, "lacks MAAS_API_KEY"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			pool := testPool(releaseinfo.Kubernetes, hyperv1.MAASNodePoolPlatform{IdentityRef: &hyperv1.MAASIdentityReference{Name: tc.ref}})
			why, _, err := New(Options{WhoAmI: whoAmI}).CheckIdentity(t.Context(), testClient(t, tc.objects...), pool)
			g.Expect(err).NotTo(HaveOccurred())
			if tc.want == "" {
				g.Expect(why).To(BeEmpty())
				return
			}
			g.Expect(why).To(And(ContainSubstring(tc.want), Not(ContainSubstring(":h:"))))
		})
	}
}

// TestZoneAndFailureDomain checks which of both counts, and that a contradiction is reported.
func TestZoneAndFailureDomain(t *testing.T) {
	for _, tc := range []struct {
		name  string
		block hyperv1.MAASNodePoolPlatform
		want  string
		says  []string
	}{
		{"When both differ, the zone should count", hyperv1.MAASNodePoolPlatform{Zone: "zone1", FailureDomain: "rack1"}, "zone1", []string{
			"spec.platform.maas.zone zone1 counts, and spec.platform.maas.failureDomain rack1 has no effect: MAAS allocates machines by zone; remove one of them"}},
		{"When both are the same, there should be nothing to report", hyperv1.MAASNodePoolPlatform{Zone: "zone1", FailureDomain: "zone1"}, "zone1", nil},
		{"When only the failure domain is set, it should be the zone", hyperv1.MAASNodePoolPlatform{FailureDomain: "rack1"}, "rack1", nil},
		{"When only the zone is set, it should be the zone", hyperv1.MAASNodePoolPlatform{Zone: "zone1"}, "zone1", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, pool := NewWithT(t), testPool(releaseinfo.Kubernetes, tc.block)
			g.Expect(machineSpec(t, pool).FailureDomain).To(HaveValue(Equal(tc.want)))
			g.Expect((&Platform{}).Overridden(pool.NodePool)).To(Equal(tc.says))
		})
	}
}
