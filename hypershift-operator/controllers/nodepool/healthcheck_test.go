// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"math"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func TestDurationOfAnnotation(t *testing.T) {
	const annotation = hyperv1.MachineHealthCheckTimeoutAnnotation
	for name, tc := range map[string]struct {
		pool, cluster string
		want          time.Duration
		refused       string
	}{
		"When nobody says anything, it should be the platform's":              {want: time.Hour},
		"When the cluster says how long, it should be that":                   {cluster: "90m", want: 90 * time.Minute},
		"When the pool says how long, it should win over the cluster":         {pool: "5m", cluster: "90m", want: 5 * time.Minute},
		"When it is as short as it can be, it should be taken":                {pool: "1ns", want: 1},
		"When it is no time at all, it should be refused":                     {pool: "0s", refused: `"0s": write a duration such as 90m`},
		"When it is negative, it should be refused":                           {pool: "-5m", refused: `"-5m": write a duration such as 90m`},
		"When it is a number without a unit, it should be refused":            {cluster: "90", refused: `"90": write a duration such as 90m`},
		"When the cluster's is bad and the pool's is good, it should be good": {pool: "5m", cluster: "soon", want: 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := &scope{pool: &hyperv1.NodePool{}, hc: &hyperv1.HostedCluster{}}
			s.pool.Annotations, s.hc.Annotations = map[string]string{annotation: tc.pool}, map[string]string{annotation: tc.cluster}
			got, err := s.duration(annotation, time.Hour)
			if tc.refused != "" {
				g.Expect(err).To(MatchError(And(ContainSubstring(annotation), ContainSubstring(tc.refused))))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestWholeSeconds(t *testing.T) {
	g := NewWithT(t)
	g.Expect(wholeSeconds(90 * time.Minute)).To(HaveValue(BeEquivalentTo(5400)))
	g.Expect(wholeSeconds(100*365*24*time.Hour)).To(HaveValue(BeEquivalentTo(math.MaxInt32)), "the API has no more")
}
