// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform/none"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/releaseinfo"
)

func TestWithoutEffect(t *testing.T) {
	for name, tc := range map[string]struct {
		spec hyperv1.NodePoolSpec
		want []string
	}{
		"When a pool sets neither field, it should report nothing":          {hyperv1.NodePoolSpec{TuningConfig: []corev1.LocalObjectReference{}}, nil},
		"When a pool sets tuningConfig, it should report only that field":   {hyperv1.NodePoolSpec{TuningConfig: []corev1.LocalObjectReference{{Name: "t"}}}, []string{"tuningConfig"}},
		"When a pool sets osImageStream, it should report only that field":  {hyperv1.NodePoolSpec{OSImageStream: &hyperv1.OSImageStreamReference{}}, []string{"osImageStream"}},
		"When a pool sets both fields, it should report both in this order": {hyperv1.NodePoolSpec{TuningConfig: []corev1.LocalObjectReference{{Name: "t"}}, OSImageStream: &hyperv1.OSImageStreamReference{}}, []string{"tuningConfig", "osImageStream"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, WithoutEffect(&hyperv1.NodePool{Spec: tc.spec}, distributions.Of(releaseinfo.Kubernetes))); diff != "" {
				t.Errorf("fields without effect (-want +got):\n%s", diff)
			}
		})
	}
}

// vain is a platform with fields that have no effect.
type vain struct {
	none.Platform
	fields []string
}

func (v vain) WithoutEffect(*hyperv1.NodePool) []string { return v.fields }

func TestReportFieldsWithoutEffect(t *testing.T) {
	kind := hyperv1.NodePoolAllFieldsHonoredConditionType
	for name, test := range map[string]struct {
		fields []string
		tuned  bool
		image  string
		want   string
	}{
		"every field has an effect":                            {nil, false, fixture.ReleaseImage, ""},
		"the platform has a field without effect":              {[]string{"platform.x"}, false, fixture.ReleaseImage, "spec.platform.x;"},
		"the pool has a field without effect":                  {nil, true, fixture.ReleaseImage, "spec.tuningConfig;"},
		"the platform and the pool have fields without effect": {[]string{"platform.x", "platform.y"}, true, fixture.ReleaseImage, "spec.platform.x, spec.platform.y, spec.tuningConfig;"},
		"the payload's operators use the field":                {nil, true, fixture.OCPImage, ""},
	} {
		t.Run("When "+name+", AllFieldsHonored should list exactly the fields without effect", func(t *testing.T) {
			g, s := NewWithT(t), pass()
			s.Platform, s.Release = vain{fields: test.fields}, fixture.Payloads()[test.image]
			if test.tuned {
				s.Pool.Spec.TuningConfig = []corev1.LocalObjectReference{{Name: "t"}}
			}
			result, err := (&Reconciler{}).reportFieldsWithoutEffect(t.Context(), s)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.IsZero()).To(BeTrue())
			if test.want == "" {
				g.Expect(s.Conditions).To(BeEmpty())
				g.Expect(s.Cleared).To(ConsistOf(kind))
				return
			}
			g.Expect(s.Cleared).To(BeEmpty())
			g.Expect(s.says(kind)).To(And(HavePrefix("False/FieldsWithoutEffect: "), ContainSubstring(": "+test.want), ContainSubstring("Kubernetes")))
		})
	}
}

// contradicted is a platform with a field that another one overrides.
type contradicted struct{ none.Platform }

func (contradicted) Overridden(*hyperv1.NodePool) []string {
	return []string{"spec.platform.x 1 counts, and spec.platform.y 2 has no effect"}
}

func TestReportOverriddenFields(t *testing.T) {
	g, s := NewWithT(t), pass()
	s.Platform, s.Release = contradicted{}, fixture.Payloads()[fixture.OCPImage]
	_, err := (&Reconciler{}).reportFieldsWithoutEffect(t.Context(), s)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.says(hyperv1.NodePoolAllFieldsHonoredConditionType)).
		To(Equal("False/FieldsWithoutEffect: spec.platform.x 1 counts, and spec.platform.y 2 has no effect"))
}

func TestNodeLabelsWithoutEffect(t *testing.T) {
	g, s := NewWithT(t), pass()
	s.Release = fixture.Payloads()[fixture.ReleaseImage]
	s.Pool.Spec.NodeLabels = map[string]string{"rack": "1", "bad key!": "1", "row": "a/b"}
	_, err := (&Reconciler{}).reportFieldsWithoutEffect(t.Context(), s)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.says(hyperv1.NodePoolAllFieldsHonoredConditionType)).To(And(HavePrefix("False/FieldsWithoutEffect: "),
		ContainSubstring("keys \"bad key!\";"), ContainSubstring("values of \"row\";")))
	g.Expect(s.carriedLabels()).To(Equal(map[string]string{"rack": "1"}), "the other labels reach machines")
}
