// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/metrics/metricstest"
)

// scheme is created only once, because that is slow.
var scheme = sync.OnceValue(fixture.Scheme)

var (
	created = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	now     = created.Add(time.Hour)
)

const (
	demo = `_id="11111111-2222-3333-4444-555555555555",name="demo",namespace="clusters"`
	pool = `_id="11111111-2222-3333-4444-555555555555",cluster_name="demo",name="demo",namespace="clusters",platform="MAAS"`
)

func hostedCluster(change func(*hyperv1.HostedCluster)) *hyperv1.HostedCluster {
	hc := fixture.HostedCluster("clusters")
	hc.Spec.ClusterID = "11111111-2222-3333-4444-555555555555"
	hc.CreationTimestamp, hc.UID = metav1.NewTime(created), "hc"
	if change != nil {
		change(hc)
	}
	return hc
}

func nodePool(change func(*hyperv1.NodePool)) *hyperv1.NodePool {
	np := fixture.NodePool("clusters")
	np.CreationTimestamp, np.UID = metav1.NewTime(created), "np"
	if change != nil {
		change(np)
	}
	return np
}

// ago returns the time d before now.
func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func history(entries ...configv1.UpdateHistory) func(*hyperv1.HostedCluster) {
	return func(hc *hyperv1.HostedCluster) { hc.Status.Version = &hyperv1.ClusterVersionStatus{History: entries} }
}

func deploymentOf(replicas int32) *clusterv1.MachineDeployment {
	return &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo"},
		Spec: clusterv1.MachineDeploymentSpec{Replicas: ptr.To(replicas)}}
}

func TestMetrics(t *testing.T) {
	done := configv1.UpdateHistory{Version: "1.36.3", StartedTime: ago(time.Hour), CompletionTime: ptr.To(ago(50 * time.Minute))}
	partial := configv1.UpdateHistory{Version: "1.37.0", StartedTime: ago(10 * time.Minute)}
	for _, tc := range []struct {
		name    string
		objects []client.Object
		want    metricstest.Samples
		// absent are metrics that must not exist.
		absent []string
	}{
		{
			name: "When there are no objects, it should export zero counts for platforms and failures",
			want: metricstest.Samples{
				`hypershift_hostedclusters{platform="MAAS"}`: 0, `hypershift_nodepools{platform="KubeVirt"}`: 0,
				`hypershift_hostedclusters_failure_conditions{condition="not_Available",platform="MAAS"}`: 0,
				`hypershift_nodepools_failure_conditions{condition="UpdatingConfig",platform="MAAS"}`:     0,
				`hypershift_cluster_identity_providers{identity_provider="HTPasswd"}`:                     0,
			},
			absent: []string{"hypershift_cluster_available", "hypershift_nodepools_size"},
		},
		{
			name:    "When a cluster is new, it should export its initial durations",
			objects: []client.Object{hostedCluster(nil)},
			want: metricstest.Samples{
				`hypershift_hostedclusters{platform="MAAS"}`:                                              1,
				`hypershift_cluster_waiting_initial_availability_duration_seconds{` + demo + `}`:          3600,
				`hypershift_cluster_initial_rolling_out_duration_seconds{` + demo + `}`:                   3600,
				`hypershift_cluster_available{` + demo + `}`:                                              0,
				`hypershift_cluster_limited_support_enabled{` + demo + `}`:                                0,
				`hypershift_cluster_silence_alerts{` + demo + `}`:                                         0,
				`hypershift_hostedcluster_nodepools{` + demo + `,platform="MAAS"}`:                        0,
				`hypershift_cluster_vcpus{` + demo + `,platform="MAAS"}`:                                  0,
				`hypershift_cluster_proxy{` + demo + `,proxy_http="",proxy_https="",proxy_trusted_ca=""}`: 0,
			},
			absent: []string{"hypershift_cluster_upgrading", "hypershift_cluster_deleting", "hypershift_cluster_proxy_ca_valid"},
		},
		{
			name: "When a cluster becomes unavailable again, it should export that and no initial durations",
			objects: []client.Object{hostedCluster(func(hc *hyperv1.HostedCluster) {
				history(done)(hc)
				hc.Annotations = map[string]string{hyperv1.HasBeenAvailableAnnotation: "true"}
				hc.Labels = map[string]string{hyperv1.LimitedSupportLabel: "true", hyperv1.SilenceClusterAlertsLabel: "true"}
				hc.Status.Conditions = []metav1.Condition{
					{Type: string(hyperv1.HostedClusterAvailable), Status: metav1.ConditionFalse},
					{Type: string(hyperv1.PlatformCredentialsFound), Status: metav1.ConditionUnknown},
					{Type: string(hyperv1.HostedClusterDegraded), Status: metav1.ConditionTrue},
					{Type: string(hyperv1.EtcdAvailable), Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)},
					{Type: string(hyperv1.InfrastructureReady), Status: metav1.ConditionTrue, LastTransitionTime: ago(time.Minute)},
				}
			})},
			want: metricstest.Samples{
				`hypershift_cluster_available{` + demo + `}`: 0, `hypershift_cluster_limited_support_enabled{` + demo + `}`: 1,
				`hypershift_cluster_silence_alerts{` + demo + `}`:                                                        1,
				`hypershift_hostedclusters_failure_conditions{condition="not_Available",platform="MAAS"}`:                1,
				`hypershift_hostedclusters_failure_conditions{condition="not_PlatformCredentialsFound",platform="MAAS"}`: 1,
				`hypershift_hostedclusters_failure_conditions{condition="Degraded",platform="MAAS"}`:                     1,
				`hypershift_hostedclusters_failure_conditions{condition="not_EtcdAvailable",platform="MAAS"}`:            0,
				`hypershift_hosted_cluster_transition_seconds_count{condition="EtcdAvailable"}`:                          1,
				`hypershift_hosted_cluster_transition_seconds_sum{condition="EtcdAvailable"}`:                            3600,
			},
			absent: []string{"hypershift_cluster_waiting", "hypershift_cluster_initial", `hypershift_hosted_cluster_transition_seconds_count{condition="InfrastructureReady"}`},
		},
		{
			name:    "When a cluster is being upgraded, it should export both versions and the duration",
			objects: []client.Object{hostedCluster(history(partial, done))},
			want: metricstest.Samples{
				`hypershift_cluster_upgrading_duration_seconds{` + demo + `,new_version="1.37.0",previous_version="1.36.3"}`: 600,
			},
			absent: []string{"hypershift_cluster_initial"},
		},
		{
			name: "When a cluster is being deleted, it should export the duration",
			objects: []client.Object{hostedCluster(func(hc *hyperv1.HostedCluster) {
				hc.DeletionTimestamp, hc.Finalizers = ptr.To(ago(time.Minute)), []string{"a/b"}
			})},
			want: metricstest.Samples{
				`hypershift_cluster_deleting_duration_seconds{` + demo + `}`:                       60,
				`hypershift_cluster_guest_cloud_resources_deleting_duration_seconds{` + demo + `}`: 60,
			},
		},
		{
			name: "When the guest has a proxy, it should export which fields are set and never their values",
			objects: []client.Object{hostedCluster(func(hc *hyperv1.HostedCluster) {
				hc.Spec.Configuration = &hyperv1.ClusterConfiguration{
					Proxy: &configv1.ProxySpec{HTTPProxy: "http://user:hunter2@proxy.example", TrustedCA: configv1.ConfigMapNameReference{Name: "ca"}},
					OAuth: &configv1.OAuthSpec{IdentityProviders: []configv1.IdentityProvider{
						{IdentityProviderConfig: configv1.IdentityProviderConfig{Type: configv1.IdentityProviderTypeHTPasswd}}}},
				}
			})},
			want: metricstest.Samples{
				`hypershift_cluster_proxy{` + demo + `,proxy_http="1",proxy_https="",proxy_trusted_ca="1"}`: 1,
				`hypershift_cluster_proxy_ca_valid{` + demo + `}`:                                           0,
				`hypershift_cluster_identity_providers{identity_provider="HTPasswd"}`:                       1,
			},
			absent: []string{"hunter2"},
		},
		{
			name: "When an autoscaler requests another size than the pool, it should export the requested size",
			objects: []client.Object{hostedCluster(nil), deploymentOf(5), nodePool(func(np *hyperv1.NodePool) {
				np.Spec.Replicas, np.Status.Replicas = ptr.To[int32](2), 3
				np.Status.Conditions = []hyperv1.NodePoolCondition{
					{Type: hyperv1.NodePoolAllMachinesReadyConditionType, Status: corev1.ConditionFalse},
					{Type: hyperv1.NodePoolReachedIgnitionEndpoint, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)},
				}
			})},
			want: metricstest.Samples{
				`hypershift_nodepools{platform="MAAS"}`: 1, `hypershift_nodepools_size{` + pool + `}`: 5,
				`hypershift_nodepools_available_replicas{` + pool + `}`:                                                  3,
				`hypershift_nodepools_initial_rolling_out_duration_seconds{` + pool + `}`:                                3600,
				`hypershift_hostedcluster_nodepools{` + demo + `,platform="MAAS"}`:                                       1,
				`hypershift_cluster_vcpus{` + demo + `,platform="MAAS"}`:                                                 -1,
				`hypershift_cluster_vcpus_computation_error{` + demo + `,platform="MAAS",reason="unsupported platform"}`: 1,
				`hypershift_nodepools_failure_conditions{condition="not_AllMachinesReady",platform="MAAS"}`:              1,
				`hypershift_nodepools_transition_seconds_sum{condition="ReachedIgnitionEndpoint"}`:                       3600,
			},
			absent: []string{"hypershift_nodepools_deleting"},
		},
		{
			name: "When a pool outlives its cluster, it should still export the pool",
			objects: []client.Object{nodePool(func(np *hyperv1.NodePool) {
				np.Spec.Replicas, np.Status.Version = ptr.To[int32](2), "1.36.3"
				np.DeletionTimestamp, np.Finalizers = ptr.To(ago(time.Minute)), []string{"a/b"}
			})},
			want: metricstest.Samples{
				`hypershift_nodepools_size{_id="",cluster_name="demo",name="demo",namespace="clusters",platform="MAAS"}`:                      2,
				`hypershift_nodepools_deleting_duration_seconds{_id="",cluster_name="demo",name="demo",namespace="clusters",platform="MAAS"}`: 60,
			},
			absent: []string{"hypershift_nodepools_initial", "hypershift_hostedcluster_nodepools"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			reader := fake.NewClientBuilder().WithScheme(scheme()).WithObjects(tc.objects...).Build()
			got := metricstest.Of(t, New(reader, clocktesting.NewFakePassiveClock(now)))
			for sample, value := range tc.want {
				g.Expect(got).To(HaveKeyWithValue(sample, value))
			}
			for sample := range got {
				for _, absent := range tc.absent {
					g.Expect(strings.Contains(sample, absent)).To(BeFalse(), sample)
				}
			}
		})
	}
}

func TestInfo(t *testing.T) {
	NewWithT(t).Expect(metricstest.Of(t, Info("registry.example/hypershift:1", "sha256:1", "kubernetes 1.31 or newer"))).To(
		HaveKeyWithValue(MatchRegexp(`^hypershift_operator_info\{goArch=".*",goVersion="go.*",image="registry.example/hypershift:1",imageId="sha256:1",latestSupportedVersion="kubernetes 1.31 or newer",version=".*"\}$`), 1.0))
}
