// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/releaseinfo"
)

func TestWithoutEffect(t *testing.T) {
	for name, tc := range map[string]struct {
		spec hyperv1.NodePoolSpec
		want []string
	}{
		"When a pool sets neither, it should report nothing":         {hyperv1.NodePoolSpec{TuningConfig: []corev1.LocalObjectReference{}}, nil},
		"When a pool tunes its nodes, it should report that alone":   {hyperv1.NodePoolSpec{TuningConfig: []corev1.LocalObjectReference{{Name: "t"}}}, []string{"tuningConfig"}},
		"When a pool picks a stream, it should report that alone":    {hyperv1.NodePoolSpec{OSImageStream: &hyperv1.OSImageStreamReference{}}, []string{"osImageStream"}},
		"When a pool sets both, it should report both in this order": {hyperv1.NodePoolSpec{TuningConfig: []corev1.LocalObjectReference{{Name: "t"}}, OSImageStream: &hyperv1.OSImageStreamReference{}}, []string{"tuningConfig", "osImageStream"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, WithoutEffect(&hyperv1.NodePool{Spec: tc.spec}, distributions.Of(releaseinfo.Kubernetes))); diff != "" {
				t.Errorf("fields without effect (-want +got):\n%s", diff)
			}
		})
	}
}
