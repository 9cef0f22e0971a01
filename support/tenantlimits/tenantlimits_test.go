// SPDX-License-Identifier: Apache-2.0

package tenantlimits

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func TestFlags(t *testing.T) {
	for _, tt := range []struct {
		name, operatorImage string
		args                []string
		registries          []string
		says                string
	}{
		{name: "When no flag is set, it should allow the operator's registry and the OpenShift release registries",
			operatorImage: "registry.example:5000/product/hypershift@sha256:1", registries: []string{"registry.example:5000/product", "quay.io/openshift-release-dev", "quay.io/okd"}},
		{name: "When the operator's image names no registry, it should allow only the release registries", operatorImage: "hypershift-operator:development",
			registries: []string{"quay.io/openshift-release-dev", "quay.io/okd"}},
		{name: "When --allowed-registries is set, it should allow only those registries", args: []string{"--allowed-registries", "a.example,b.example/c"}, registries: []string{"a.example", "b.example/c"}},
		{name: "When an asterisk is not at the end of an entry, it should be rejected", args: []string{"--allowed-registries", "*.example/x"}, says: "an asterisk may only be at the end"},
		{name: "When an entry has a quote that would end the string in a rule, it should be rejected", args: []string{"--allowed-taints", "x'"}, says: `--allowed-taints "x'"`},
		{name: "When a maximum resource request has no quantity, it should be rejected", args: []string{"--max-resource-request",
			"cpu"}, says: "such as cpu=64"},
		{name: "When an allowed registry has a digest, it should be rejected", args: []string{"--allowed-registries", "a.example/b@sha256:1"}, says: "no scheme, tag or digest"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, l, flags := NewWithT(t), &Limits{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
			l.AddFlags(flags)
			g.Expect(flags.Parse(tt.args)).To(Succeed())
			err := l.Complete(tt.operatorImage)
			if tt.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(l.Registries).To(Equal(tt.registries))

			again, handedOn := &Limits{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
			again.AddFlags(handedOn)
			g.Expect(handedOn.Parse(l.Args())).To(Succeed())
			g.Expect(again.Complete("other.example/hypershift:1")).To(Succeed())
			g.Expect(again.Registries).To(Equal(l.Registries), "what is handed on should mean the same")
			g.Expect(again.Taints).To(Equal(l.Taints))
			g.Expect(again.ImageAnnotations).To(BeEmpty())
		})
	}
}

func TestEachFlagIsItsOwn(t *testing.T) {
	for name, list := range map[string]func(*Limits) *[]string{
		"allowed-registries":        func(l *Limits) *[]string { return &l.Registries },
		"allowed-image-annotations": func(l *Limits) *[]string { return &l.ImageAnnotations },
		"allowed-priority-classes":  func(l *Limits) *[]string { return &l.PriorityClasses },
		"allowed-node-labels":       func(l *Limits) *[]string { return &l.NodeLabels },
		"allowed-taints":            func(l *Limits) *[]string { return &l.Taints },
		"allowed-kubevirt-networks": func(l *Limits) *[]string { return &l.Networks },
		"allowed-host-devices":      func(l *Limits) *[]string { return &l.HostDevices },
		"allowed-domains":           func(l *Limits) *[]string { return &l.Domains },
		"max-resource-request":      func(l *Limits) *[]string { return &l.Resources },
	} {
		t.Run("When --"+name+" is given, it should be read and passed on, and no other flag should change", func(t *testing.T) {
			g, before, l := NewWithT(t), &Limits{}, &Limits{}
			flags, silent := pflag.NewFlagSet("test", pflag.ContinueOnError), pflag.NewFlagSet("test", pflag.ContinueOnError)
			l.AddFlags(flags)
			before.AddFlags(silent)
			g.Expect(flags.Parse([]string{"--" + name, "one/x,two*"})).To(Succeed())
			g.Expect(*list(l)).To(Equal([]string{"one/x", "two*"}))
			g.Expect(l.Args()).To(ContainElement("--" + name + "=one/x,two*"))
			*list(l) = *list(before)
			g.Expect(l).To(Equal(before))
		})
	}
}

// TestLimitsOfAnInstallation checks that the default limits allow what a user of HyperShift's own commands requests.
func TestLimitsOfAnInstallation(t *testing.T) {
	g, l, flags := NewWithT(t), &Limits{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
	l.AddFlags(flags)
	g.Expect(l.Complete("registry.example/hypershift:1")).To(Succeed())
	hc := &hyperv1.HostedCluster{}
	hc.Spec.Release.Image = "registry.example/release:1"
	hc.Spec.NodeSelector = map[string]string{corev1.LabelArchStable: "amd64", corev1.LabelTopologyZone: "a", corev1.LabelTopologyRegion: "b"}
	hc.Annotations = map[string]string{hyperv1.ControlPlanePriorityClass: "hypershift-control-plane", hyperv1.APICriticalPriorityClass: "hypershift-api-critical",
		hyperv1.EtcdPriorityClass: "hypershift-etcd"}
	g.Expect(l.HostedCluster(hc)).To(BeEmpty())
	hc.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "one"}
	g.Expect(l.HostedCluster(hc)).To(HaveLen(1))
	l.Taints = []string{""}
	g.Expect(l.Complete("")).To(MatchError(ContainSubstring(`--allowed-taints ""`)), "an empty entry would tolerate everything")
}
