// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// TestStreamOfMostNodes: a pool on its way from one stream to the other says what most of its nodes run.
func TestStreamOfMostNodes(t *testing.T) {
	const nine, ten = "Red Hat Enterprise Linux CoreOS 9.6.20260101-0", "Red Hat Enterprise Linux CoreOS 10.1.20260101-0"
	const older, strange = "Red Hat Enterprise Linux CoreOS 418.94.202501010000-0", "Red Hat Enterprise Linux CoreOS 8.4.2021"
	for name, tc := range map[string]struct {
		images []string
		want   string
	}{
		"When there is no node, it should say nothing":                     {nil, ""},
		"When no node says what it runs, it should say nothing":            {[]string{"", ""}, ""},
		"When nodes run something else, it should say nothing":             {[]string{"Ubuntu 24.04", strange}, ""},
		"When all run RHEL 9, it should be that":                           {[]string{nine, older}, "rhel-9"},
		"When one runs RHEL 10 and others something else, it should be it": {[]string{"", "Ubuntu 24.04", ten}, "rhel-10"},
		"When most run RHEL 10, it should be that":                         {[]string{ten, nine, ten}, "rhel-10"},
		"When as many run the one as the other, it should be the older":    {[]string{ten, nine}, "rhel-9"},
		"When most run RHEL 9 in two spellings, it should be that":         {[]string{ten, older, nine}, "rhel-9"},
	} {
		t.Run(name, func(t *testing.T) {
			var machines []*clusterv1.Machine
			for _, image := range tc.images {
				machine := &clusterv1.Machine{}
				if image != "" {
					machine.Status.NodeInfo = &corev1.NodeSystemInfo{OSImage: image}
				}
				machines = append(machines, machine)
			}
			got := osStream(machines)
			if tc.want == "" {
				NewWithT(t).Expect(got).To(BeNil())
				return
			}
			NewWithT(t).Expect(got).To(Equal(&hyperv1.OSImageStreamReference{Name: tc.want}))
		})
	}
}

// TestNoStreams: a release of Kubernetes has no streams, whatever is asked for; that this changes nothing is said elsewhere.
func TestNoStreams(t *testing.T) {
	for _, wanted := range []string{"", "rhel-9", "rhel-10"} {
		t.Run("When "+wanted+" is asked of a release of Kubernetes, it should name none", func(t *testing.T) {
			g, s := NewWithT(t), pass()
			if wanted != "" {
				s.pool.Spec.OSImageStream = &hyperv1.OSImageStreamReference{Name: wanted}
			}
			stream, err := s.chooseStream(nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(stream).To(BeEmpty())
		})
	}
}
