// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/none"
)

// building returns a platform with an infrastructure cluster. It writes its status if status is true, and fails with
// err.
func building(status bool, err error) *plugged {
	infra := &infrav1.MaasCluster{ObjectMeta: inside("demo")}
	object := &platform.Object{Object: infra, Mutate: func() error {
		infra.Spec.DNSDomain = "here"
		return err
	}}
	if status {
		object.MutateStatus = func() { infra.Status.Ready = true }
	}
	return &plugged{Infra: object}
}

// servedAt returns a scope whose control plane has an address, or none if host is empty.
func servedAt(p platform.Platform, host string) *scope {
	return on(p, func(s *scope) {
		s.HC.Spec.InfraID = "infra"
		s.HCP = &hyperv1.HostedControlPlane{Status: hyperv1.HostedControlPlaneStatus{ControlPlaneEndpoint: hyperv1.APIEndpoint{Host: host, Port: 31443}}}
	})
}

func TestClusterIsMade(t *testing.T) {
	t.Run("When the platform has an infrastructure cluster, the Cluster should reference it and the control plane", func(t *testing.T) {
		g, d, s := NewWithT(t), newShop(), servedAt(building(true, nil), "api.example")
		_, err := d.reconcileCAPICluster(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		infra, cluster := &infrav1.MaasCluster{ObjectMeta: inside("demo")}, &clusterv1.Cluster{ObjectMeta: inside("infra")}
		g.Expect(d.Has(t, infra) && d.Has(t, cluster)).To(BeTrue())
		g.Expect(infra.Spec.DNSDomain).To(Equal("here"))
		g.Expect(infra.Status.Ready).To(BeTrue())
		for _, obj := range []client.Object{infra, cluster} {
			g.Expect(obj.GetAnnotations()).To(HaveKeyWithValue(hyperv1.HostedClusterAnnotation, "clusters/demo"))
		}
		g.Expect(cluster.Spec).To(Equal(clusterv1.ClusterSpec{
			ControlPlaneRef:   clusterv1.ContractVersionedObjectReference{APIGroup: "hypershift.openshift.io", Kind: "HostedControlPlane", Name: "demo"},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "MaasCluster", Name: "demo"},
		}), "Cluster API learns the endpoint itself, and whether it is paused is not said")
	})
	for name, tc := range map[string]struct{ host, had, want string }{
		"When the endpoint changes, the Cluster should get the new endpoint":     {"new.example", "old.example", "new.example"},
		"When the endpoint is temporarily unknown, the Cluster should keep it":   {"", "old.example", "old.example"},
		"When the Cluster has no endpoint yet, it should be left to Cluster API": {"new.example", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.Cluster{ObjectMeta: inside("infra")}
			cluster.Spec.Paused = ptr.To(true)
			if tc.had != "" {
				cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: tc.had, Port: 31443}
			}
			g, d := NewWithT(t), newShop(cluster)
			_, err := d.reconcileCAPICluster(t.Context(), servedAt(building(false, nil), tc.host))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(d.Has(t, cluster)).To(BeTrue())
			want := clusterv1.APIEndpoint{}
			if tc.want != "" {
				want = clusterv1.APIEndpoint{Host: tc.want, Port: 31443}
			}
			g.Expect(cluster.Spec.ControlPlaneEndpoint).To(Equal(want))
			g.Expect(cluster.Spec.Paused).To(HaveValue(BeFalse()), "a cluster that comes this far is not paused")
			infra := &infrav1.MaasCluster{ObjectMeta: inside("demo")}
			g.Expect(d.Has(t, infra)).To(BeTrue())
			g.Expect(infra.Status.Ready).To(BeFalse(), "the provider writes it")
		})
	}
}

func TestClusterIsNotMade(t *testing.T) {
	t.Run("When the platform has no infrastructure cluster, it should create nothing", func(t *testing.T) {
		g, d := NewWithT(t), newShop()
		_, err := d.reconcileCAPICluster(t.Context(), servedAt(none.Platform{}, "api.example"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.Wrote).To(BeEmpty())
	})
	for refuse, p := range map[string]*plugged{
		"what the platform wants":      building(true, errNotNow),
		"create v1beta1.MaasCluster":   building(true, nil),
		"patch status v1beta1.MaasClu": building(true, nil),
		"create v1beta2.Cluster":       building(true, nil),
	} {
		t.Run("When the server refuses "+refuse+", it should create no Cluster", func(t *testing.T) {
			g, d := NewWithT(t), newShop()
			d.Refuse = refuse
			_, err := d.reconcileCAPICluster(t.Context(), servedAt(p, "api.example"))
			g.Expect(err).To(MatchError(errNotNow))
			g.Expect(d.Has(t, &clusterv1.Cluster{ObjectMeta: inside("infra")})).To(BeFalse())
		})
	}
	t.Run("When the kind of the infrastructure cluster is unknown, it should return an error that names it", func(t *testing.T) {
		_, err := newShop().contractRef(&strange{})
		NewWithT(t).Expect(err).To(MatchError(HavePrefix("finding the kind of *hostedcluster.strange")))
	})
}

// strange is a kind that is not in the scheme.
type strange struct{ corev1.Pod }
