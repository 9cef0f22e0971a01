// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/none"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/condition"
)

// plugged is a fake platform that implements all optional interfaces of a plugin, with configurable results.
type plugged struct {
	none.Platform
	infra      *platform.Object
	provider   *component.Component
	machines   client.ObjectList
	connection platform.Connection
	documents  map[string][]byte
	why        metav1.Condition
	// says describes what it waits for, or what it does not honor.
	says string
	// again is the delay until the next check.
	again time.Duration
	err   error
	// seen lists the clusters that were passed to the calls.
	seen []platform.Cluster
	// did lists the names of all calls.
	did []string
}

const pluggedFinalizer = "test/issuer"

func (p *plugged) note(what string, cluster platform.Cluster) {
	p.did, p.seen = append(p.did, what), append(p.seen, cluster)
}

func (p *plugged) Identify(hc *hyperv1.HostedCluster) { hc.Spec.Channel = "identified" }

func (p *plugged) InfraCluster(platform.Cluster) *platform.Object { return p.infra }
func (p *plugged) Provider(platform.Cluster) *component.Component { return p.provider }
func (p *plugged) Machines() client.ObjectList                    { return p.machines }
func (p *plugged) NotHonored(cluster platform.Cluster) string {
	p.note("not honored", cluster)
	return p.says
}

func (p *plugged) Connect(_ context.Context, _ client.Client, cluster platform.Cluster) (platform.Connection, error) {
	p.note("connect", cluster)
	return p.connection, p.err
}

func (p *plugged) Disconnect(_ context.Context, _ client.Client, cluster platform.Cluster) (string, error) {
	p.note("disconnect", cluster)
	return p.says, p.err
}

func (p *plugged) OrphanedMachines(_ context.Context, _ client.Client, cluster platform.Cluster) (string, error) {
	p.note("orphaned machines", cluster)
	return p.says, p.err
}

func (p *plugged) DeleteCredentials(_ context.Context, _ client.Client, cluster platform.Cluster) error {
	p.note("delete credentials", cluster)
	return p.err
}

func (p *plugged) AdaptControlPlaneOperator(cluster platform.Cluster, deployment *appsv1.Deployment) {
	p.note("adapt", cluster)
	deployment.Spec.Template.Spec.HostNetwork = true
}

func (p *plugged) IssuerFinalizer() string { return pluggedFinalizer }

func (p *plugged) IssuerDocuments(_ context.Context, _ client.Reader, cluster platform.Cluster) (map[string][]byte, metav1.Condition, error) {
	p.note("documents", cluster)
	return p.documents, p.why, p.err
}

func (p *plugged) PublishIssuer(_ context.Context, cluster platform.Cluster, documents map[string][]byte) (metav1.Condition, time.Duration) {
	p.note("publish "+string(documents["keys"]), cluster)
	return condition.True(string(hyperv1.ValidOIDCConfiguration), "Published", ""), p.again
}

func (p *plugged) WithdrawIssuer(_ context.Context, cluster platform.Cluster) error {
	p.note("withdraw", cluster)
	return p.err
}

// on returns a scope with this platform.
func on(p platform.Platform, mutate ...func(*scope)) *scope {
	return withScope(append([]func(*scope){func(s *scope) { s.Platform, s.PlatformServed = p, true }}, mutate...)...)
}

func TestConnection(t *testing.T) {
	t.Run("When the platform has a connection, it should copy its conditions, even if it fails", func(t *testing.T) {
		g, d := NewWithT(t), newDesk()
		p := &plugged{err: errNotNow, connection: platform.Connection{
			Conditions: []metav1.Condition{condition.False("A", "Why", "a"), condition.True("B", "Good", "b")},
			Gone:       []hyperv1.ConditionType{"C", "D"}, CheckAgain: time.Minute,
		}}
		s := on(p)
		result, err := d.reconcileConnection(t.Context(), s)
		g.Expect(err).To(MatchError(errNotNow))
		g.Expect(result.RequeueAfter).To(Equal(time.Minute))
		g.Expect(s.Conditions).To(Equal(map[string]metav1.Condition{"A": p.connection.Conditions[0], "B": p.connection.Conditions[1]}))
		g.Expect(s.Cleared).To(Equal([]string{"C", "D"}))
		g.Expect(p.seen).To(Equal([]platform.Cluster{s.ForPlatform(operatorImage)}))
	})
	t.Run("When the platform has no connection, it should do nothing", func(t *testing.T) {
		g, d, s := NewWithT(t), newDesk(), on(none.Platform{})
		result, err := d.reconcileConnection(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.IsZero()).To(BeTrue())
		g.Expect(d.deleteConnection(t.Context(), s)).To(BeEmpty())
		g.Expect(s.Conditions).To(BeEmpty())
	})
	gone := &meta.NoKindMatchError{}
	for name, tc := range map[string]struct {
		p        *plugged
		waitsFor string
		err      error
	}{
		"When the platform still has objects to delete, the deletion should wait": {&plugged{says: "a policy"}, "a policy", nil},
		"When the platform returns an error, the deletion should fail":            {&plugged{says: "a policy", err: errNotNow}, "a policy", errNotNow},
		"When the CRDs of the platform are gone, the deletion should not wait":    {&plugged{says: "a policy", err: gone}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), on(tc.p)
			waitsFor, err := newDesk().deleteConnection(t.Context(), s)
			g.Expect(waitsFor).To(Equal(tc.waitsFor))
			if tc.err == nil {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(tc.err))
			}
			g.Expect(tc.p.seen).To(Equal([]platform.Cluster{s.ForPlatform(operatorImage)}))
		})
	}
}
