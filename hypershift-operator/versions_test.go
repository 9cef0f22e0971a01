// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/releaseversion"
	"github.com/openshift/hypershift/support/skew"
	"github.com/openshift/hypershift/support/supportedversions"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/support/version"
)

func TestPublishVersions(t *testing.T) {
	stale := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "hypershift", Name: supportedversions.Name}, Data: map[string]string{"server-version": "old"},
	}
	for name, have := range map[string][]client.Object{
		"When no versions are published yet, it should publish them": nil, "When an older operator published versions, it should replace them": {stale},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c, writes := testenv.Counted(fake.NewClientBuilder().WithObjects(have...).Build())
			for range 2 {
				g.Expect(publishVersions(t.Context(), c, "hypershift", "registry.example/release:1")).To(Succeed())
			}
			cm := &corev1.ConfigMap{}
			g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "hypershift", Name: "supported-versions"}, cm)).To(Succeed())
			g.Expect(cm.Data).To(HaveKeyWithValue("server-version", version.Commit()))
			g.Expect(cm.Data).To(HaveKeyWithValue("release-version", skew.Version))
			g.Expect(cm.Data).To(HaveKeyWithValue("default-release-image", "registry.example/release:1"))
			g.Expect(cm.Labels).To(HaveKeyWithValue("hypershift.openshift.io/supported-versions", "true"))
			for key, oldest := range map[string]string{"supported-versions": "4.14", "supported-kubernetes-versions": "1.31"} {
				var told struct{ Versions []string }
				g.Expect(json.Unmarshal([]byte(cm.Data[key]), &told)).To(Succeed())
				g.Expect(told.Versions[len(told.Versions)-1]).To(Equal(oldest))
				g.Expect(told.Versions).To(HaveEach(MatchRegexp(`^\d+\.\d+$`)), "what lets people choose a release compares these")
			}
			g.Expect(*writes).To(Equal(1), "what is told already is not written again")
		})
	}
}

// TestToldVersionsAreThoseThatRun checks that the published versions are exactly those that the operator accepts.
func TestToldVersionsAreThoseThatRun(t *testing.T) {
	takes := func(distribution releaseinfo.Distribution, minor string) error {
		return releaseversion.Supported(releaseinfo.New("registry.example/release", releaseinfo.Payload{Version: minor + ".9", Distribution: distribution}), "")
	}
	for distribution, beyond := range map[releaseinfo.Distribution][]string{
		releaseinfo.OpenShift: {"3.11", "4.13"}, releaseinfo.Kubernetes: {"1.30", "0.9"},
	} {
		told := distributions.Of(distribution).Minors
		t.Run("When versions of "+string(distribution)+" are published, the operator should accept them, and they should be sorted from the newest", func(t *testing.T) {
			g := NewWithT(t)
			for _, minor := range told {
				g.Expect(takes(distribution, minor)).To(Succeed())
			}
			g.Expect(slices.IsSortedFunc(told, func(a, b string) int {
				if releaseversion.AtLeast(a+".0", b+".0") {
					return -1
				}
				return 1
			})).To(BeTrue(), "%v", told)
		})
		for _, minor := range beyond {
			t.Run("When a release is of "+string(distribution)+" "+minor+", which is too old, it should be rejected with the oldest supported version", func(t *testing.T) {
				NewWithT(t).Expect(told).NotTo(ContainElement(minor))
				NewWithT(t).Expect(takes(distribution, minor)).To(MatchError(And(ContainSubstring(minor), ContainSubstring("older than "+told[len(told)-1]))))
			})
		}
		next := distributions.Of(distribution).Newest()
		next.Minor++
		minor := fmt.Sprintf("%d.%d", next.Major, next.Minor)
		t.Run("When a release is of "+string(distribution)+" "+minor+", which is too new, it should be rejected with the newest supported version", func(t *testing.T) {
			NewWithT(t).Expect(takes(distribution, minor)).To(MatchError(And(ContainSubstring(minor), ContainSubstring("newer than "+told[0]))))
		})
	}
}

func TestTellVersions(t *testing.T) {
	g := NewWithT(t)
	c := fake.NewClientBuilder().Build()
	go tellVersions(t.Context(), c, "hypershift", "", time.Millisecond, time.Millisecond)
	told := func(g Gomega) *corev1.ConfigMap {
		cm := &corev1.ConfigMap{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "hypershift", Name: "supported-versions"}, cm)).To(Succeed())
		g.Expect(cm.Data).To(HaveKeyWithValue("server-version", version.Commit()))
		g.Expect(cm.Data).NotTo(HaveKey("default-release-image"), "the installer chose none")
		return cm
	}
	g.Eventually(func(g Gomega) { told(g) }).Should(Succeed())
	g.Expect(c.Delete(t.Context(), told(g))).To(Succeed())
	g.Eventually(func(g Gomega) { told(g) }).Should(Succeed(), "somebody deleted it")
}
