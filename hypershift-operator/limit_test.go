package main

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

// TestOperatorWithoutMAAS runs the operator where `install --limit-crd-install none` has left out the kinds of MAAS.
func TestOperatorWithoutMAAS(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("PLATFORMS_INSTALLED", "none")
	config := testenv.Start(t, "hypershift", "clusterapi")
	c, err := client.New(config, client.Options{Scheme: fixture.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: fixture.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		// Another test of this process runs controllers of the same names.
		Controller: controllerconfig.Controller{SkipNameValidation: ptr.To(true)},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(addControllers(mgr, &runFlags{namespace: "default"}, "registry.example/hypershift:1", nil, fixture.Payloads())).To(Succeed())
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("the operator ended with: %v", err)
		}
	})
	reason := func(namespace string, conditionType hyperv1.ConditionType) func() string {
		return func() string {
			hc := &hyperv1.HostedCluster{}
			_ = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: fixture.ClusterName}, hc)
			if found := meta.FindStatusCondition(hc.Status.Conditions, string(conditionType)); found != nil {
				return found.Reason
			}
			return ""
		}
	}

	none := fixture.HostedCluster("without-maas")
	none.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.NonePlatform}
	fixture.Create(t, c, append(fixture.Inputs(none.Namespace), none)...)
	g.Eventually(reason(none.Namespace, hyperv1.SupportedHostedCluster), patience, tick).Should(Equal(hyperv1.AsExpectedReason))
	fixture.Create(t, c, fixture.HostedCluster("wants-maas"))
	g.Eventually(reason("wants-maas", hyperv1.SupportedHostedCluster), patience, tick).Should(Equal(hyperv1.UnsupportedHostedClusterReason))
}
