// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/metrics/metricstest"
)

// samples returns the metrics of a management cluster with these objects.
func samples(t *testing.T, objects ...client.Object) metricstest.Samples {
	t.Helper()
	return metricstest.Of(t, New(fake.NewClientBuilder().WithScheme(scheme()).WithObjects(objects...).Build(), clocktesting.NewFakePassiveClock(now)))
}

// TestUnreadCache checks that no metrics are exported while one kind cannot be read. Partial metrics would look like
// deleted clusters.
func TestUnreadCache(t *testing.T) {
	for _, kind := range []client.ObjectList{&hyperv1.HostedClusterList{}, &hyperv1.NodePoolList{}, &clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}} {
		t.Run("When "+reflect.TypeOf(kind).Elem().Name()+" cannot be read, it should export no metrics", func(t *testing.T) {
			g, broken := NewWithT(t), false
			up := hostedCluster(func(hc *hyperv1.HostedCluster) {
				hc.Status.Conditions = []metav1.Condition{{Type: string(hyperv1.EtcdAvailable), Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)}}
			})
			reader := fake.NewClientBuilder().WithScheme(scheme()).WithObjects(up, nodePool(nil)).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if broken && reflect.TypeOf(list) == reflect.TypeOf(kind) {
						return errors.New("not started")
					}
					return c.List(ctx, list, opts...)
				}}).Build()
			collector := New(reader, clocktesting.NewFakePassiveClock(now))
			before := metricstest.Of(t, collector)
			g.Expect(before).To(HaveKeyWithValue(`hypershift_hosted_cluster_transition_seconds_count{condition="EtcdAvailable"}`, 1.0))
			broken = true
			g.Expect(metricstest.Of(t, collector)).To(BeEmpty())
			broken = false
			g.Expect(metricstest.Of(t, collector)).To(Equal(before), "nothing is counted again")
		})
	}
}

// TestGone checks that the metrics of a cluster disappear with it.
func TestGone(t *testing.T) {
	g, hc := NewWithT(t), hostedCluster(nil)
	c := fake.NewClientBuilder().WithScheme(scheme()).WithObjects(hc, nodePool(nil)).Build()
	collector := New(c, clocktesting.NewFakePassiveClock(now))
	g.Expect(metricstest.Of(t, collector)).To(HaveKey(`hypershift_cluster_available{` + demo + `}`))
	g.Expect(c.Delete(t.Context(), hc)).To(Succeed())
	after := metricstest.Of(t, collector)
	g.Expect(after).NotTo(HaveKey(`hypershift_cluster_available{` + demo + `}`))
	g.Expect(after).To(HaveKeyWithValue(`hypershift_hostedclusters{platform="MAAS"}`, 0.0))
	g.Expect(after).To(HaveKeyWithValue(`hypershift_nodepools{platform="MAAS"}`, 1.0))
}

// TestSeveral checks that clusters and pools are counted by platform, and pools by their own cluster.
func TestSeveral(t *testing.T) {
	other := func(namespace, name, id string, platform hyperv1.PlatformType) client.Object {
		return hostedCluster(func(hc *hyperv1.HostedCluster) {
			hc.Namespace, hc.Name, hc.Spec.ClusterID, hc.Spec.Platform.Type = namespace, name, id, platform
			hc.Status.Conditions = []metav1.Condition{{Type: string(hyperv1.HostedClusterAvailable), Status: metav1.ConditionFalse}}
		})
	}
	of := func(namespace, name, cluster string, machines int32) client.Object {
		return nodePool(func(np *hyperv1.NodePool) {
			np.Namespace, np.Name, np.Spec.ClusterName, np.Status.Replicas = namespace, name, cluster, machines
		})
	}
	got := samples(t, other("clusters", "a", "id-a", hyperv1.MAASPlatform), other("clusters", "b", "id-b", hyperv1.MAASPlatform), other("others", "a", "id-c", hyperv1.KubevirtPlatform),
		of("clusters", "one", "a", 1), of("clusters", "two", "a", 2), of("clusters", "empty", "b", 0), of("others", "one", "a", 1), of("others", "lost", "none", 1))
	wanted := metricstest.Samples{
		`hypershift_hostedclusters{platform="MAAS"}`: 2, `hypershift_hostedclusters{platform="KubeVirt"}`: 1, `hypershift_hostedclusters{platform="AWS"}`: 0,
		`hypershift_hostedclusters_failure_conditions{condition="not_Available",platform="MAAS"}`:                                                  2,
		`hypershift_hostedclusters_failure_conditions{condition="not_Available",platform="KubeVirt"}`:                                              1,
		`hypershift_nodepools{platform="MAAS"}`:                                                                                                    5,
		`hypershift_hostedcluster_nodepools{_id="id-a",name="a",namespace="clusters",platform="MAAS"}`:                                             2,
		`hypershift_hostedcluster_nodepools{_id="id-b",name="b",namespace="clusters",platform="MAAS"}`:                                             1,
		`hypershift_hostedcluster_nodepools{_id="id-c",name="a",namespace="others",platform="KubeVirt"}`:                                           1,
		`hypershift_cluster_vcpus{_id="id-a",name="a",namespace="clusters",platform="MAAS"}`:                                                       -1,
		`hypershift_cluster_vcpus_computation_error{_id="id-a",name="a",namespace="clusters",platform="MAAS",reason="unsupported platform"}`:       1,
		`hypershift_cluster_vcpus{_id="id-b",name="b",namespace="clusters",platform="MAAS"}`:                                                       0,
		`hypershift_nodepools_available_replicas{_id="id-c",cluster_name="a",name="one",namespace="others",platform="MAAS"}`:                       1,
		`hypershift_cluster_vcpus{_id="id-c",name="a",namespace="others",platform="KubeVirt"}`:                                                     -1,
		`hypershift_nodepools_available_replicas{_id="",cluster_name="none",name="lost",namespace="others",platform="MAAS"}`:                       1,
		`hypershift_nodepools_initial_rolling_out_duration_seconds{_id="id-b",cluster_name="b",name="empty",namespace="clusters",platform="MAAS"}`: 3600,
	}
	for sample, want := range wanted {
		NewWithT(t).Expect(got).To(HaveKeyWithValue(sample, want))
	}
	NewWithT(t).Expect(got).NotTo(HaveKey(`hypershift_cluster_vcpus_computation_error{_id="id-b",name="b",namespace="clusters",platform="MAAS",reason="unsupported platform"}`),
		"no machines are 0 CPUs on each platform")
}

// TestWantedMachines checks the desired size of a pool. It is the number of replicas in Cluster API, for in-place and
// replace upgrades, or else in the NodePool.
func TestWantedMachines(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo"}
	elsewhere := metav1.ObjectMeta{Namespace: "clusters-other", Name: "demo"}
	set := func(meta metav1.ObjectMeta, replicas *int32) client.Object {
		return &clusterv1.MachineSet{ObjectMeta: meta, Spec: clusterv1.MachineSetSpec{Replicas: replicas}}
	}
	deployment := func(meta metav1.ObjectMeta, replicas *int32) client.Object {
		return &clusterv1.MachineDeployment{ObjectMeta: meta, Spec: clusterv1.MachineDeploymentSpec{Replicas: replicas}}
	}
	for _, tc := range []struct {
		name    string
		objects []client.Object
		pool    *int32
		want    float64
	}{
		{"When there is no MachineSet or MachineDeployment, it should export the pool's replicas", nil, ptr.To[int32](2), 2},
		{"When the MachineSet has replicas, it should export them", []client.Object{set(meta, ptr.To[int32](4))}, ptr.To[int32](2), 4},
		{"When the MachineDeployment has replicas, it should export them and not those of its MachineSet", []client.Object{set(meta, ptr.To[int32](4)), deployment(meta, ptr.To[int32](5))}, ptr.To[int32](2), 5},
		{"When the MachineDeployment is scaled to zero, it should export 0", []client.Object{deployment(meta, ptr.To[int32](0))}, ptr.To[int32](2), 0},
		{"When neither sets replicas, it should export the pool's replicas", []client.Object{set(meta, nil), deployment(meta, nil)}, ptr.To[int32](2), 2},
		{"When they belong to another cluster, it should export the pool's replicas", []client.Object{set(elsewhere, ptr.To[int32](4)), deployment(elsewhere, ptr.To[int32](5))}, ptr.To[int32](2), 2},
		{"When the pool is autoscaled, it should export the MachineDeployment's replicas", []client.Object{deployment(meta, ptr.To[int32](5))}, nil, 5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := samples(t, append(tc.objects, hostedCluster(nil), nodePool(func(np *hyperv1.NodePool) { np.Spec.Replicas = tc.pool }))...)
			NewWithT(t).Expect(got).To(HaveKeyWithValue(`hypershift_nodepools_size{`+pool+`}`, tc.want))
		})
	}
	t.Run("When nothing sets replicas, it should export no size", func(t *testing.T) {
		NewWithT(t).Expect(samples(t, hostedCluster(nil), nodePool(func(np *hyperv1.NodePool) { np.Spec.Replicas = nil }))).NotTo(HaveKey(`hypershift_nodepools_size{` + pool + `}`))
	})
}

// TestDurations checks that a duration is exported only while the process that it measures runs.
func TestDurations(t *testing.T) {
	const rollingOut, upgrading = "hypershift_cluster_initial_rolling_out_duration_seconds", "hypershift_cluster_upgrading_duration_seconds"
	const deleting, resources = "hypershift_cluster_deleting_duration_seconds", "hypershift_cluster_guest_cloud_resources_deleting_duration_seconds"
	done := func(version string) configv1.UpdateHistory {
		return configv1.UpdateHistory{Version: version, StartedTime: ago(time.Hour), CompletionTime: ptr.To(ago(50 * time.Minute))}
	}
	begun := func(version string, before time.Duration) configv1.UpdateHistory {
		return configv1.UpdateHistory{Version: version, StartedTime: ago(before)}
	}
	gone := func(destroyed metav1.ConditionStatus) func(*hyperv1.HostedCluster) {
		return func(hc *hyperv1.HostedCluster) {
			history(done("1.36.3"))(hc)
			hc.DeletionTimestamp, hc.Finalizers = ptr.To(ago(2*time.Minute)), []string{"a/b"}
			hc.Status.Conditions = []metav1.Condition{{Type: string(hyperv1.CloudResourcesDestroyed), Status: destroyed}}
		}
	}
	for _, tc := range []struct {
		name   string
		change func(*hyperv1.HostedCluster)
		want   metricstest.Samples
	}{
		{"When the release is completely rolled out, it should export no duration", history(done("1.36.3")), metricstest.Samples{}},
		{"When the version history is empty, it should export the initial rollout", history(), metricstest.Samples{rollingOut + `{` + demo + `}`: 3600}},
		{"When the release changes during the initial rollout, it should still export the initial rollout", history(begun("1.36.4", time.Minute), begun("1.36.3", time.Hour)),
			metricstest.Samples{rollingOut + `{` + demo + `}`: 3600}},
		{"When an upgrade is in progress, it should export the duration since its start", history(begun("1.37.0", 10*time.Minute), done("1.36.3")),
			metricstest.Samples{upgrading + `{` + demo + `,new_version="1.37.0",previous_version="1.36.3"}`: 600}},
		{"When an upgrade is complete, it should export no duration", history(done("1.37.0"), done("1.36.3")), metricstest.Samples{}},
		{"When a cluster is deleted with cloud resources left, it should export both durations", gone(metav1.ConditionFalse),
			metricstest.Samples{deleting + `{` + demo + `}`: 120, resources + `{` + demo + `}`: 120}},
		{"When the cloud resources are gone, it should export only the deletion's duration", gone(metav1.ConditionTrue), metricstest.Samples{deleting + `{` + demo + `}`: 120}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, got := NewWithT(t), samples(t, hostedCluster(tc.change))
			told := metricstest.Samples{}
			for sample, value := range got {
				if slices.ContainsFunc([]string{rollingOut, upgrading, deleting, resources}, func(family string) bool { return strings.HasPrefix(sample, family) }) {
					told[sample] = value
				}
			}
			g.Expect(told).To(Equal(tc.want))
		})
	}
}

// TestProxy checks that each proxy field is exported separately, and that the bundle's validity is exported.
func TestProxy(t *testing.T) {
	for _, tc := range []struct {
		name   string
		proxy  configv1.ProxySpec
		labels string
		bundle any
	}{
		{"When only the HTTP proxy is set, it should export only that label", configv1.ProxySpec{HTTPProxy: "http://a"}, `proxy_http="1",proxy_https="",proxy_trusted_ca=""`, nil},
		{"When only the HTTPS proxy is set, it should export only that label", configv1.ProxySpec{HTTPSProxy: "http://a"}, `proxy_http="",proxy_https="1",proxy_trusted_ca=""`, nil},
		{"When a trust bundle is set, it should export whether it is valid", configv1.ProxySpec{TrustedCA: configv1.ConfigMapNameReference{Name: "ca"}},
			`proxy_http="",proxy_https="",proxy_trusted_ca="1"`, 1.0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			got := samples(t, hostedCluster(func(hc *hyperv1.HostedCluster) {
				hc.Spec.Configuration = &hyperv1.ClusterConfiguration{Proxy: &tc.proxy}
				hc.Status.Conditions = []metav1.Condition{{Type: string(hyperv1.ValidProxyConfiguration), Status: metav1.ConditionTrue}}
			}))
			g.Expect(got).To(HaveKeyWithValue(`hypershift_cluster_proxy{`+demo+`,`+tc.labels+`}`, 1.0))
			const valid = `hypershift_cluster_proxy_ca_valid{` + demo + `}`
			if tc.bundle == nil {
				g.Expect(got).NotTo(HaveKey(valid))
				return
			}
			g.Expect(got).To(HaveKeyWithValue(valid, tc.bundle))
		})
	}
}

// TestIdentityProviders checks that each type of OpenShift starts at zero, and that two providers of one type count as
// two.
func TestIdentityProviders(t *testing.T) {
	g := NewWithT(t)
	got, blocks := samples(t), 0
	for field := range reflect.TypeFor[configv1.IdentityProviderConfig]().Fields() {
		if field.Type.Kind() == reflect.Pointer {
			blocks++
			g.Expect(got).To(HaveKeyWithValue(fmt.Sprintf(`hypershift_cluster_identity_providers{identity_provider=%q}`, field.Name), 0.0))
		}
	}
	g.Expect(blocks).To(BeNumerically(">", 5))
	google := configv1.IdentityProvider{IdentityProviderConfig: configv1.IdentityProviderConfig{Type: configv1.IdentityProviderTypeGoogle}}
	got = samples(t, hostedCluster(func(hc *hyperv1.HostedCluster) {
		hc.Spec.Configuration = &hyperv1.ClusterConfiguration{OAuth: &configv1.OAuthSpec{IdentityProviders: []configv1.IdentityProvider{google, google}}}
	}))
	g.Expect(got).To(HaveKeyWithValue(`hypershift_cluster_identity_providers{identity_provider="Google"}`, 2.0))
	g.Expect(got).To(HaveKeyWithValue(`hypershift_cluster_identity_providers{identity_provider="GitHub"}`, 0.0))
}

// TestTransitions checks that transition times are counted separately for each condition, of clusters and of pools.
func TestTransitions(t *testing.T) {
	// Transitions before the start of the process are not counted.
	reached := func(seconds int) metav1.Time { return metav1.NewTime(now.Add(time.Duration(seconds) * time.Second)) }
	var clusterSays []metav1.Condition
	var poolSays []hyperv1.NodePoolCondition
	want := metricstest.Samples{}
	for i, stage := range []string{"EtcdAvailable", "InfrastructureReady", "ExternalDNSReachable", "KubeAPIServerAvailable", "Available"} {
		clusterSays = append(clusterSays, metav1.Condition{Type: stage, Status: metav1.ConditionTrue, LastTransitionTime: reached(i)})
		want[fmt.Sprintf(`hypershift_hosted_cluster_transition_seconds_sum{condition=%q}`, stage)] = float64(3600 + i)
	}
	for i, stage := range []string{"ReachedIgnitionEndpoint", "AllMachinesReady", "AllNodesHealthy"} {
		poolSays = append(poolSays, hyperv1.NodePoolCondition{Type: stage, Status: corev1.ConditionTrue, LastTransitionTime: reached(10 + i)})
		want[fmt.Sprintf(`hypershift_nodepools_transition_seconds_sum{condition=%q}`, stage)] = float64(3610 + i)
	}
	clusterSays = append(clusterSays, metav1.Condition{Type: "ValidConfiguration", Status: metav1.ConditionTrue, LastTransitionTime: reached(1)})
	poolSays = append(poolSays, hyperv1.NodePoolCondition{Type: "Ready", Status: corev1.ConditionTrue, LastTransitionTime: reached(1)})
	got := samples(t, hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Status.Conditions = clusterSays }), nodePool(func(np *hyperv1.NodePool) { np.Status.Conditions = poolSays }))
	sums := metricstest.Samples{}
	for sample, value := range got {
		if strings.Contains(sample, "_transition_seconds_sum{") {
			sums[sample] = value
		}
	}
	NewWithT(t).Expect(sums).To(Equal(want))
}

// TestResolution checks that a quantile between 5 s and 10 min is accurate within a factor of two.
func TestResolution(t *testing.T) {
	g := NewWithT(t)
	for _, wanted := range []string{"hypershift_hosted_cluster_transition_seconds", "hypershift_nodepools_transition_seconds"} {
		bounds := boundsOf(t, wanted)
		g.Expect(bounds[0]).To(Equal(5.0), wanted)
		g.Expect(bounds[len(bounds)-1]).To(Equal(600.0), wanted)
		for i := 1; i < len(bounds); i++ {
			g.Expect(bounds[i]/bounds[i-1]).To(And(BeNumerically(">", 1), BeNumerically("<=", 2)), "%s: %v", wanted, bounds)
		}
	}
}

func boundsOf(t *testing.T, wanted string) []float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	up := metav1.NewTime(now)
	reader := fake.NewClientBuilder().WithScheme(scheme()).WithObjects(
		hostedCluster(func(hc *hyperv1.HostedCluster) {
			hc.Status.Conditions = []metav1.Condition{{Type: "Available", Status: metav1.ConditionTrue, LastTransitionTime: up}}
		}),
		nodePool(func(np *hyperv1.NodePool) {
			np.Status.Conditions = []hyperv1.NodePoolCondition{{Type: "AllMachinesReady", Status: corev1.ConditionTrue, LastTransitionTime: up}}
		})).Build()
	if err := registry.Register(New(reader, clocktesting.NewFakePassiveClock(now))); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != wanted {
			continue
		}
		var bounds []float64
		for _, bucket := range family.Metric[0].Histogram.Bucket {
			bounds = append(bounds, bucket.GetUpperBound())
		}
		return bounds
	}
	t.Fatalf("there is no %s", wanted)
	return nil
}
