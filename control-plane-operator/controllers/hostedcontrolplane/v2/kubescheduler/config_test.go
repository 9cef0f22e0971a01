// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
)

// read is the part of the scheduler's configuration that depends on the cluster.
type read struct {
	APIVersion, Kind string
	ClientConnection struct{ Kubeconfig string }
	EnableProfiling  *bool
	LeaderElection   struct {
		LeaderElect                               bool
		LeaseDuration, RenewDeadline, RetryPeriod string
	}
	Profiles []struct {
		SchedulerName string
		Plugins       map[string]struct{ Enabled, Disabled []struct{ Name string } }
		PluginConfig  []struct {
			Name string
			Args struct{ ScoringStrategy struct{ Type string } }
		}
	}
}

func configOf(t *testing.T, hcp *hyperv1.HostedControlPlane) read {
	t.Helper()
	file, config := &corev1.ConfigMap{}, read{}
	if err := adaptConfig(t.Context(), &component.Scope{HCP: hcp}, file); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(file.Data["config.json"]), &config); err != nil {
		t.Fatal(err)
	}
	return config
}

func scheduledBy(spec *configv1.SchedulerSpec) *hyperv1.HostedControlPlane {
	hcp := fixture.ControlPlane()
	hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{Scheduler: spec}
	return hcp
}

func TestLeadership(t *testing.T) {
	duration := func(t *testing.T, text string) time.Duration {
		t.Helper()
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	lease := map[hyperv1.AvailabilityPolicy]time.Duration{}
	for _, policy := range []hyperv1.AvailabilityPolicy{hyperv1.SingleReplica, hyperv1.HighlyAvailable, ""} {
		t.Run("When the policy is "+string(policy)+" it should set valid lease times", func(t *testing.T) {
			g, hcp := NewWithT(t), fixture.ControlPlane()
			hcp.Spec.ControllerAvailabilityPolicy = policy
			got := configOf(t, hcp).LeaderElection
			g.Expect(got.LeaderElect).To(BeTrue())
			lease[policy] = duration(t, got.LeaseDuration)
			renew, retry := duration(t, got.RenewDeadline), duration(t, got.RetryPeriod)
			g.Expect(lease[policy]).To(BeNumerically(">", renew))
			g.Expect(renew).To(BeNumerically(">", retry*12/10), "it refuses to start otherwise")
		})
	}
	NewWithT(t).Expect(lease[hyperv1.SingleReplica]).To(BeNumerically("<=", 20*time.Second), "nobody else leads meanwhile")
	NewWithT(t).Expect(lease[hyperv1.HighlyAvailable]).To(BeNumerically(">=", 2*time.Minute), "an API server that is replaced takes no leadership away")
	NewWithT(t).Expect(lease[""]).To(Equal(lease[hyperv1.SingleReplica]))
}

func TestProfiles(t *testing.T) {
	for name, hcp := range map[string]*hyperv1.HostedControlPlane{
		"nothing is configured":              fixture.ControlPlane(),
		"the scheduler has no configuration": scheduledBy(nil),
		"no profile is set":                  scheduledBy(&configv1.SchedulerSpec{}),
		"the profile is LowNodeUtilization":  scheduledBy(&configv1.SchedulerSpec{Profile: configv1.LowNodeUtilization}),
	} {
		t.Run("When "+name+" it should use the default of Kubernetes", func(t *testing.T) {
			NewWithT(t).Expect(configOf(t, hcp).Profiles).To(BeEmpty())
		})
	}
	t.Run("When the profile is HighNodeUtilization, it should prefer the most allocated nodes", func(t *testing.T) {
		g, got := NewWithT(t), configOf(t, scheduledBy(&configv1.SchedulerSpec{Profile: configv1.HighNodeUtilization})).Profiles
		g.Expect(got).To(HaveLen(1))
		g.Expect(got[0].SchedulerName).To(Equal("default-scheduler"), "or pods, which ask for that one, would wait for ever")
		g.Expect(got[0].PluginConfig[0].Name).To(Equal("NodeResourcesFit"))
		g.Expect(got[0].PluginConfig[0].Args.ScoringStrategy.Type).To(Equal("MostAllocated"))
		g.Expect(got[0].Plugins["score"].Disabled).To(ConsistOf(HaveField("Name", "NodeResourcesBalancedAllocation")))
		g.Expect(got[0].Plugins["score"].Enabled).To(ConsistOf(HaveField("Name", "NodeResourcesFit")))
	})
	t.Run("When the profile is NoScoring, it should disable all score plugins", func(t *testing.T) {
		g, got := NewWithT(t), configOf(t, scheduledBy(&configv1.SchedulerSpec{Profile: configv1.NoScoring})).Profiles
		g.Expect(got).To(HaveLen(1))
		g.Expect(got[0].SchedulerName).To(Equal("default-scheduler"))
		for _, point := range []string{"score", "preScore"} {
			g.Expect(got[0].Plugins[point].Disabled).To(ConsistOf(HaveField("Name", "*")), point)
			g.Expect(got[0].Plugins[point].Enabled).To(BeEmpty())
		}
	})
}

func TestConfigurationIsRead(t *testing.T) {
	g, config := NewWithT(t), configOf(t, fixture.ControlPlane())
	g.Expect(config.APIVersion + " " + config.Kind).To(Equal("kubescheduler.config.k8s.io/v1 KubeSchedulerConfiguration"))
	g.Expect(config.ClientConnection.Kubeconfig).NotTo(BeEmpty())
	g.Expect(*config.EnableProfiling).To(BeFalse())
	for profile, want := range map[*configv1.TLSSecurityProfile]int{
		nil: 1, {Type: configv1.TLSProfileModernType, Modern: &configv1.ModernTLSProfile{}}: 0,
	} {
		hcp, deployment := fixture.ControlPlane(), &appsv1.Deployment{}
		hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{TLSSecurityProfile: profile}}
		deployment.Spec.Template.Spec.Containers = make([]corev1.Container, 1)
		g.Expect(adapt(t.Context(), &component.Scope{HCP: hcp}, deployment)).To(Succeed())
		suites := 0
		for _, flag := range deployment.Spec.Template.Spec.Containers[0].Args {
			if len(flag) > 19 && flag[:19] == "--tls-cipher-suites" {
				suites++
			}
		}
		g.Expect(suites).To(Equal(want), "suites of TLS 1.3 cannot be chosen")
	}
}
