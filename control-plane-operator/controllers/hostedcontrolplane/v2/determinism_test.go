// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// passes is the number of renderings. It is so large that a random map order would show.
const passes = 50

// TestDeterminism renders all components repeatedly. The same input must produce the same output, or pods would roll
// out endlessly.
func TestDeterminism(t *testing.T) {
	scope := newScope(controlPlane(everything, highlyAvailable, severalOfEach), everythingNeeds(t)...)
	scope.Images.(payload)["cluster-autoscaler"] = "registry.example/payload/cluster-autoscaler@sha256:0001"
	var applied []string
	scope.Client = interceptor.NewClient(scope.Client.(client.WithWatch), interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			obj, _ := config.(interface{ UnstructuredContent() map[string]any })
			u := unstructured.Unstructured{Object: obj.UnstructuredContent()}
			applied = append(applied, fmt.Sprintf("%s %s", u.GetKind(), u.GetName()))
			return c.Apply(ctx, config, opts...)
		},
	})
	for pass := range passes {
		applied = nil
		for _, c := range Kubernetes(Config{
			ConfigOperatorImage: "registry.example/hypershift:latest",
			Inherited:           []corev1.EnvVar{{Name: "HTTP_PROXY", Value: "http://proxy"}, {Name: "NO_PROXY", Value: ".svc"}},
		}) {
			if err := c.Reconcile(t.Context(), scope); err != nil {
				t.Fatalf("component %s: %v", c.Name, err)
			}
			ready(t, scope, c.Name)
		}
		if pass == 0 && len(applied) == 0 {
			t.Fatal("the first pass applied nothing, so that this test would prove nothing")
		}
		if pass > 0 && len(applied) > 0 {
			t.Fatalf("nothing changed, and pass %d applied %v", pass+1, applied)
		}
	}
}

// severalOfEach gives every list and map of the spec more than one entry.
func severalOfEach(hcp *hyperv1.HostedControlPlane) {
	hcp.Spec.Labels = map[string]string{"team": "metal", "cost": "7", "row": "3"}
	hcp.Spec.NodeSelector = map[string]string{"pool": "control-planes", "disk": "fast", "zone": "a"}
	hcp.Spec.Configuration.FeatureGate.CustomNoUpgrade = &configv1.CustomFeatureGates{
		Enabled: []configv1.FeatureGateName{"A", "B"}, Disabled: []configv1.FeatureGateName{"C", "D"},
	}
	hcp.Spec.Autoscaling = hyperv1.ClusterAutoscaling{
		BalancingIgnoredLabels: []string{"a", "b", "c"}, Expanders: []hyperv1.ExpanderString{hyperv1.PriorityExpander, hyperv1.RandomExpander},
	}
	hcp.Annotations["resource-request-override.hypershift.openshift.io/etcd.etcd"] = "cpu=1,memory=2Gi"
}
