// SPDX-License-Identifier: Apache-2.0

package security

import (
	"cmp"
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/tenantlimits"
)

const operatorImage = "registry.example/hypershift:1"

// limits returns the limits of an installation with default flags.
func limits(t *testing.T) *tenantlimits.Limits {
	t.Helper()
	l := &tenantlimits.Limits{
		ImageAnnotations: []string{"cluster-autoscaler-image"}, Domains: []string{"clusters.example"},
		Resources:       []string{"cpu=64", "memory=256Gi"},
		PriorityClasses: []string{"hypershift-control-plane"}, NodeLabels: []string{"hypershift.openshift.io/*", "kubernetes.io/arch"}, Taints: []string{"hypershift.openshift.io/*"},
	}
	if err := l.Complete(operatorImage); err != nil {
		t.Fatal(err)
	}
	return l
}

// choices lists what a tenant tries to choose, and the error for it; empty if it is permitted.
var choices = []struct {
	name, says string
	choose     func(hc *hyperv1.HostedCluster)
}{
	{"a release from a third-party registry", "spec.release.image", func(hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = "evil.example/release:1.36.3" }},
	{"a registry that only starts like ours", "spec.release.image", func(hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = "registry.example.evil.example/release:1" }},
	{"another port of our registry", "spec.release.image", func(hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = "registry.example:666/release:1" }},
	{"a third-party release of the control plane", "spec.controlPlaneRelease.image", func(hc *hyperv1.HostedCluster) {
		hc.Spec.ControlPlaneRelease = &hyperv1.Release{Image: "evil.example/release:1.36.3"}
	}},
	{"a third-party mirror of our registry", "spec.imageContentSources", func(hc *hyperv1.HostedCluster) {
		hc.Spec.ImageContentSources = []hyperv1.ImageContentSource{{Source: "registry.example", Mirrors: []string{"evil.example"}}}
	}},
	{"a third-party plugin beside the API server", "spec.secretEncryption.kms.plugin.image", func(hc *hyperv1.HostedCluster) {
		hc.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{
			Provider: hyperv1.KMSPlugin, Plugin: &hyperv1.KMSPluginSpec{Name: "vault", Image: "evil.example/plugin:1"},
		}}
	}},
	{"an operator image of its own", "--allowed-image-annotations", func(hc *hyperv1.HostedCluster) {
		hc.Annotations = map[string]string{hyperv1.ControlPlaneOperatorImageAnnotation: "evil.example/operator:1"}
	}},
	{"an image for a component", "--allowed-image-annotations", func(hc *hyperv1.HostedCluster) {
		hc.Annotations = map[string]string{hyperv1.ImageOverridesAnnotation: "etcd=evil.example/etcd:1"}
	}},
	{"the priority of node-critical Pods", "--allowed-priority-classes", func(hc *hyperv1.HostedCluster) {
		hc.Annotations = map[string]string{hyperv1.EtcdPriorityClass: "system-node-critical"}
	}},
	{"the nodes of the management control plane", "--allowed-node-labels", func(hc *hyperv1.HostedCluster) {
		hc.Spec.NodeSelector = map[string]string{"node-role.kubernetes.io/control-plane": ""}
	}},
	{"these nodes by annotation", "--allowed-node-labels", func(hc *hyperv1.HostedCluster) {
		hc.Annotations = map[string]string{hyperv1.RequestServingNodeAdditionalSelectorAnnotation: "kubernetes.io/arch=amd64,node-role.kubernetes.io/control-plane="}
	}},
	{"to tolerate their taint", "--allowed-taints", func(hc *hyperv1.HostedCluster) {
		hc.Spec.Tolerations = []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}}
	}},
	{"to tolerate everything", "--allowed-taints", func(hc *hyperv1.HostedCluster) {
		hc.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}},
	{"a label that opens the management network", "spec.labels", func(hc *hyperv1.HostedCluster) {
		hc.Spec.Labels = map[string]string{hyperv1.NeedManagementKASAccessLabel: "true"}
	}},
	{"an image from a third-party registry where the annotation is allowed", "--allowed-registries",
		func(hc *hyperv1.HostedCluster) {
			hc.Annotations = map[string]string{"hypershift.openshift.io/cluster-autoscaler-image": "evil.example/autoscaler:1"}
		}},
	{"to be taken for a virtual machine", "spec.labels", func(hc *hyperv1.HostedCluster) {
		hc.Spec.Labels = map[string]string{"kubevirt.io": "virt-launcher"}
	}},
	{"to be taken for etcd", "spec.labels",
		func(hc *hyperv1.HostedCluster) { hc.Spec.Labels = map[string]string{"app": "etcd"} }},
	{"all CPUs of a node", "--max-resource-request", func(hc *hyperv1.HostedCluster) {
		hc.Annotations = map[string]string{hyperv1.ResourceRequestOverrideAnnotationPrefix +
			"/kube-apiserver.kube-apiserver": "cpu=10000"}
	}},
	{"the host name of another service", "--allowed-domains", func(hc *hyperv1.HostedCluster) {
		hc.Spec.KubeAPIServerDNSName = "console.management.example"
	}},
	{"what is allowed", "", func(hc *hyperv1.HostedCluster) {
		hc.Annotations = map[string]string{
			hyperv1.EtcdPriorityClass: "hypershift-control-plane", hyperv1.DisableProfilingAnnotation: "kube-apiserver", "example.com/my-image": "x",
			hyperv1.RequestServingNodeAdditionalSelectorAnnotation: "kubernetes.io/arch=amd64",
		}
		hc.Spec.ControlPlaneRelease = &hyperv1.Release{Image: "quay.io/openshift-release-dev/ocp-release:4.20.1-x86_64"}
		hc.Spec.NodeSelector = map[string]string{"hypershift.openshift.io/control-plane": "true"}
		hc.Spec.Tolerations = []corev1.Toleration{{Key: "hypershift.openshift.io/reserved", Operator: corev1.TolerationOpExists}}
		hc.Spec.Labels = map[string]string{"team": "metal"}
		hc.Annotations[hyperv1.ResourceRequestOverrideAnnotationPrefix+"/kube-apiserver.kube-apiserver"] = "cpu=2,memory=4Gi"
		hc.Annotations["hypershift.openshift.io/cluster-autoscaler-image"] = "registry.example/autoscaler:1"
		hc.Spec.KubeAPIServerDNSName = "api.demo.clusters.example"
	}},
}

func TestChoicesThatWereThereBefore(t *testing.T) {
	t.Run("When a cluster is older than the policy, the operator should reject it", func(t *testing.T) {
		o, hc := newOperator(t, "before"), fixture.HostedCluster("before")
		o.clusters.Settings.Limits = limits(t)
		hc.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		fixture.Create(t, o.client, append(fixture.Inputs(o.tenant), hc)...)
		o.pass()
		o.Expect(o.condition(hyperv1.ValidHostedClusterConfiguration).Message).To(ContainSubstring("--allowed-taints"))
		deployments := &appsv1.DeploymentList{}
		o.Expect(o.client.List(t.Context(), deployments, client.InNamespace(o.hosted()))).To(Succeed())
		o.Expect(deployments.Items).To(BeEmpty())
	})
	t.Run("When a NodePool is older than the policy, the operator should reject it", func(t *testing.T) {
		o, pool := newOperator(t, "before-pool"), fixture.NodePool("before-pool")
		o.pools.Limits = limits(t)
		pool.Spec.Release.Image = "evil.example/release:1.36.3"
		fixture.Create(t, o.client, append(fixture.Inputs(o.tenant), fixture.HostedCluster(o.tenant), pool)...)
		o.pass()
		o.Expect(o.client.Get(t.Context(), client.ObjectKeyFromObject(pool), pool)).To(Succeed())
		o.Expect(pool.Status.Conditions).To(ContainElement(And(
			HaveField("Type", hyperv1.NodePoolValidReleaseImageConditionType), HaveField("Message", ContainSubstring("--allowed-registries")))))
	})
}

// install adds the policy to the API server that the tests share, and removes it when the test ends.
func install(t *testing.T, c client.Client, l *tenantlimits.Limits) {
	t.Helper()
	g, objects := NewWithT(t), l.Objects()
	for _, obj := range objects {
		g.Expect(c.Create(t.Context(), obj)).To(Succeed())
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, obj := range objects {
			g.Expect(c.Delete(ctx, obj)).To(Succeed())
		}
		hc, pool := fixture.HostedCluster("choices"), fixture.NodePool("choices")
		hc.Spec.Release.Image, pool.Spec.Release.Image = "evil.example/release:1", "evil.example/release:1"
		for _, obj := range []client.Object{hc, pool} {
			g.Eventually(func() error { return c.Create(ctx, obj.DeepCopyObject().(client.Object), client.DryRunAll) }, patience, 50*time.Millisecond).Should(Succeed())
		}
	})
}

func TestChoicesOfATenant(t *testing.T) {
	c, l := fixture.Start(t), limits(t)
	fixture.Create(t, c, fixture.Inputs("choices")...)
	install(t, c, l)
	for _, tt := range choices {
		t.Run("When a tenant chooses "+tt.name+", API server and operator should say the same", func(t *testing.T) {
			g, hc := NewWithT(t), fixture.HostedCluster("choices")
			tt.choose(hc)
			create := func() error { return c.Create(t.Context(), hc.DeepCopy(), client.DryRunAll) }
			if tt.says == "" {
				g.Expect(create()).To(Succeed())
				g.Expect(l.HostedCluster(hc)).To(BeEmpty())
				return
			}
			// The API server enforces a new policy after a short delay.
			g.Eventually(create, patience, 50*time.Millisecond).Should(MatchError(And(ContainSubstring(tenantlimits.Name), ContainSubstring(tt.says))))
			g.Expect(l.HostedCluster(hc)).To(ConsistOf(ContainSubstring(tt.says)))
		})
	}
	t.Run("When a NodePool names a third-party release, it should be rejected", func(t *testing.T) {
		g, pool := NewWithT(t), fixture.NodePool("choices")
		g.Expect(c.Create(t.Context(), pool.DeepCopy(), client.DryRunAll)).To(Succeed())
		pool.Spec.Release.Image = "evil.example/release:1.36.3"
		g.Eventually(func() error { return c.Create(t.Context(), pool.DeepCopy(), client.DryRunAll) }, patience, 50*time.Millisecond).
			Should(MatchError(ContainSubstring("spec.release.image")))
		g.Expect(l.NodePool(pool)).To(ConsistOf(ContainSubstring("--allowed-registries")))
	})
	for _, tt := range virtualMachines {
		t.Run("When virtual machines of a NodePool get "+tt.name+", it should be refused", func(t *testing.T) {
			g, pool := NewWithT(t), fixture.NodePool("choices")
			pool.Spec.Platform = hyperv1.NodePoolPlatform{Type: hyperv1.KubevirtPlatform, Kubevirt: &tt.block}
			pool.Spec.Platform.Kubevirt.RootVolume = cmp.Or(tt.block.RootVolume, &hyperv1.KubevirtRootVolume{})
			g.Eventually(func() error { return c.Create(t.Context(), pool.DeepCopy(), client.DryRunAll) }, patience,
				50*time.Millisecond).
				Should(MatchError(ContainSubstring(tt.says)))
			g.Expect(l.NodePool(pool)).To(ConsistOf(ContainSubstring(tt.says)))
		})
	}
}

// virtualMachines lists what a tenant tries to set for the pods of virtual machines.
var virtualMachines = []struct {
	name, says string
	block      hyperv1.KubevirtNodePoolPlatform
}{
	{"a disk from a third-party registry", "--allowed-registries",
		hyperv1.KubevirtNodePoolPlatform{RootVolume: &hyperv1.KubevirtRootVolume{
			Image: &hyperv1.KubevirtDiskImage{ContainerDiskImage: ptr.To("evil.example/disk:1")}}}},
	{"a disk from a web server", "--allowed-registries",
		hyperv1.KubevirtNodePoolPlatform{RootVolume: &hyperv1.KubevirtRootVolume{
			Image: &hyperv1.KubevirtDiskImage{ContainerDiskImage: ptr.To("https://10.9.8.7/disk")}}}},
	{"the nodes of the management control plane", "--allowed-node-labels", hyperv1.KubevirtNodePoolPlatform{
		NodeSelector: map[string]string{"node-role.kubernetes.io/control-plane": ""}}},
	{"another tenant's network", "--allowed-kubevirt-networks", hyperv1.KubevirtNodePoolPlatform{
		AdditionalNetworks: []hyperv1.KubevirtNetwork{{Name: "victim/storage"}}}},
	{"a host device", "--allowed-host-devices", hyperv1.KubevirtNodePoolPlatform{
		KubevirtHostDevices: []hyperv1.KubevirtHostDevice{{DeviceName: "example.com/gpu"}}}},
}
