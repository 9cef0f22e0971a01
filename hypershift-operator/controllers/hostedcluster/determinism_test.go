// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
)

// passes is large enough that a random map order of two entries cannot stay the same by chance.
const passes = 50

// TestDeterminism builds all objects that the operator applies in a hosted namespace, on every platform and for both
// distributions. The same input must always result in the same objects; otherwise the pods of every cluster would
// restart indefinitely.
func TestDeterminism(t *testing.T) {
	for _, platformType := range fixture.Platforms(nil).Supported() {
		for _, image := range []string{fixture.ReleaseImage, fixture.OCPImage} {
			t.Run("When the platform is "+string(platformType)+" and the release "+image+", it should always build the same objects", func(t *testing.T) {
				r := testReconciler()
				first := built(t, r, platformType, image)
				for range passes - 1 {
					if diff := cmp.Diff(first, built(t, r, platformType, image)); diff != "" {
						t.Fatalf("nothing changed, and something else was built (-first +later):\n%s", diff)
					}
				}
			})
		}
	}
}

// severalOfEach sets more than one entry in every list and map that the builders read.
func severalOfEach(platformType hyperv1.PlatformType) func(*hyperv1.HostedCluster) {
	return func(hc *hyperv1.HostedCluster) {
		hc.Labels = map[string]string{"api.openshift.com/a": "1", "api.openshift.com/b": "2"}
		hc.Annotations = map[string]string{
			hyperv1.KubeAPIServerGOGCAnnotation: "50", hyperv1.KubeAPIServerGOMemoryLimitAnnotation: "4GiB",
			hyperv1.ClusterAPIKubeVirtProviderImage:                  "registry.example/capk:1",
			hyperv1.ResourceRequestOverrideAnnotationPrefix + "/a.b": "cpu=1", hyperv1.ResourceRequestOverrideAnnotationPrefix + "/c.d": "cpu=2",
		}
		hc.Spec.Platform.Type = platformType
		hc.Spec.Labels = map[string]string{"team": "a", "row": "7", "cost": "3"}
		hc.Spec.NodeSelector = map[string]string{"disk": "fast", "zone": "a", "pool": "b"}
		hc.Spec.Tolerations = []corev1.Toleration{{Key: "one"}, {Key: "two"}}
		hc.Spec.ImageContentSources = []hyperv1.ImageContentSource{
			{Source: "quay.io", Mirrors: []string{"a.example", "b.example"}}, {Source: "docker.io", Mirrors: []string{"c.example"}},
		}
	}
}

// built returns the YAML of all objects that the builders create in one reconcile with a new scope.
func built(t *testing.T, r *Reconciler, platformType hyperv1.PlatformType, image string) string {
	t.Helper()
	s := managed(t, image, severalOfEach(platformType))
	cluster := s.ForPlatform(operatorImage)
	all := []any{s.HCP, r.managers(t, s)}
	if infra := s.Platform.InfraCluster(cluster); infra != nil {
		all = append(all, infra.Mutate(), infra.Object)
	}
	pool := platform.Pool{NodePool: fixture.NodePool("clusters"), HostedCluster: s.HC}
	pool.NodePool.Spec.NodeLabels = map[string]string{"disk": "ssd", "row": "7"}
	all = append(all, s.Platform.MachineTemplate(pool))
	raw, err := yaml.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
