// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/platform"
)

// cloud is a fake platform that records its calls.
type cloud struct {
	platform.Platform
	asked       []platform.Cluster
	credentials platform.Credentials
	err         error
}

func (c *cloud) ReconcileCredentials(_ context.Context, _ client.Client, cluster platform.Cluster) (platform.Credentials, error) {
	c.asked = append(c.asked, cluster)
	return c.credentials, c.err
}

func TestPlatformCredentials(t *testing.T) {
	found := clustertest.Is(hyperv1.PlatformCredentialsFound, "False", "Expired", "renew them")
	t.Run("When the platform checks the credentials, it should set the condition and check again later", func(t *testing.T) {
		g, s := NewWithT(t), clustertest.Scope()
		c := &cloud{credentials: platform.Credentials{Condition: found, Hash: "h", CheckAgain: time.Minute}}
		s.Platform = c
		result, err := Credentials{clustertest.NewServer().Refusing, operatorImage}.Reconcile(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(Equal(time.Minute))
		g.Expect(s.CredentialsHash).To(Equal("h"))
		g.Expect(s.Conditions).To(HaveKeyWithValue("PlatformCredentialsFound", found))
		g.Expect(c.asked[0].OperatorImage).To(Equal(operatorImage))
	})
	t.Run("When the credentials cannot be checked, it should keep the last condition", func(t *testing.T) {
		s := clustertest.Scope()
		s.Platform = &cloud{credentials: platform.Credentials{Condition: found, Hash: "h"}, err: clustertest.ErrNotNow}
		_, err := Credentials{clustertest.NewServer().Refusing, operatorImage}.Reconcile(t.Context(), s)
		NewWithT(t).Expect(err).To(MatchError(clustertest.ErrNotNow))
		NewWithT(t).Expect(s.Conditions).To(BeEmpty())
	})
}
