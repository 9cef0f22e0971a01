// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/support/version"
)

func TestPublishVersions(t *testing.T) {
	stale := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "hypershift", Name: supportedVersions}, Data: map[string]string{"server-version": "old"},
	}
	for name, have := range map[string][]client.Object{
		"When nothing is told yet it should tell": nil, "When an older operator told it should correct that": {stale},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c, writes := testenv.Counted(fake.NewClientBuilder().WithObjects(have...).Build())
			for range 2 {
				g.Expect(publishVersions(t.Context(), c, "hypershift")).To(Succeed())
			}
			cm := &corev1.ConfigMap{}
			g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "hypershift", Name: "supported-versions"}, cm)).To(Succeed())
			g.Expect(cm.Data).To(HaveKeyWithValue("server-version", version.Commit()))
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
