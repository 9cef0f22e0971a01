// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/namespace"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/release"
)

// Levels of Pod Security, and the label that sets the enforced one.
const (
	privileged, baseline, restricted = "privileged", "baseline", "restricted"

	enforceLabel = "pod-security.kubernetes.io/enforce"
)

const restrictedPods = namespace.RestrictedPods

func TestRefusedNamespace(t *testing.T) {
	d, s := newDesk(), withScope(func(s *scope) { s.Refused = "it is another's" })
	_, err := refuseNamespace(t.Context(), s)
	NewWithT(t).Expect(err).To(MatchError("it is another's"))
	NewWithT(t).Expect(s.Conditions).To(HaveKeyWithValue("ValidConfiguration", is("ValidConfiguration", "False", "NamespaceNotOwned", "it is another's")))
	NewWithT(t).Expect(d.Wrote).To(BeEmpty())
}

// operators is a registry with image labels.
type operators struct {
	fixture.Releases
	labels map[string]string
	err    error
}

func (o operators) Labels(context.Context, string, release.Access) (map[string]string, error) {
	return o.labels, o.err
}

// TestPayloadsLevel checks the Pod Security level of a hosted namespace for each payload.
func TestPayloadsLevel(t *testing.T) {
	const said = hyperv1.ControlPlaneOperatorImageLabelsAnnotation
	for name, test := range map[string]struct {
		image       string
		labels      map[string]string
		annotations map[string]string
		err         error
		want        string
	}{
		"the release is Kubernetes, the level should be restricted":                                      {fixture.ReleaseImage, nil, nil, errNotNow, restricted},
		"nothing but a user is added to pods, the level should be baseline":                              {fixture.OCPImage, map[string]string{restrictedPods: "true"}, nil, nil, baseline},
		"the image sets the capability to true, the level should be restricted":                          {fixture.OCPImage, map[string]string{restrictedPods: "true"}, nil, nil, restricted},
		"the image sets the capability to false, the level should be baseline":                           {fixture.OCPImage, map[string]string{restrictedPods: "false"}, nil, nil, baseline},
		"the image does not set the capability, the level should be baseline":                            {fixture.OCPImage, nil, nil, nil, baseline},
		"an annotation of the cluster sets the capability to true, the level should be restricted":       {fixture.OCPImage, nil, map[string]string{said: "a=b," + restrictedPods + "=true"}, errNotNow, restricted},
		"the image sets the capability to true and the cluster to false, the level should be restricted": {fixture.OCPImage, map[string]string{restrictedPods: "true"}, map[string]string{said: restrictedPods + "=false"}, nil, restricted},
		"the cluster overrides the level with a stricter one, the level should be the stricter one":      {fixture.OCPImage, nil, map[string]string{hyperv1.PodSecurityAdmissionLabelOverrideAnnotation: restricted}, nil, restricted},
		"the image cannot be read now, it should return the error":                                       {fixture.OCPImage, nil, nil, errNotNow, ""},
	} {
		t.Run("When "+name, func(t *testing.T) {
			g, d := NewWithT(t), newDesk(clustertest.HostedNamespace("clusters-demo", "clusters/demo", "1001"))
			d.Releases = operators{fixture.Payloads(), test.labels, test.err}
			if !strings.HasPrefix(name, "nothing but a user") {
				d.Client = clustertest.AssigningUsers(d.Client)
			}
			s := withScope(func(s *scope) { s.Release, s.HC.Annotations = fixture.Payloads()[test.image], test.annotations })
			_, err := d.podSecurity(s).Reconcile(t.Context(), s.Scope)
			got := clustertest.HostedNamespace("clusters-demo", "", "")
			g.Expect(d.Has(t, got)).To(BeTrue())
			for _, mode := range []string{"enforce", "audit", "warn"} {
				g.Expect(got.Labels["pod-security.kubernetes.io/"+mode]).To(Equal(test.want))
			}
			if test.want == "" {
				g.Expect(err).To(MatchError(errNotNow))
				g.Expect(err).To(MatchError(ContainSubstring(fixture.OCPOperator)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
	t.Run("When the namespace cannot be written, it should return an error", func(t *testing.T) {
		d := newDesk(clustertest.HostedNamespace("clusters-demo", "clusters/demo", "1001"))
		d.Refuse = "update v1.Namespace"
		s := withScope(func(s *scope) { s.Release = fixture.Payloads()[fixture.ReleaseImage] })
		_, err := d.podSecurity(s).Reconcile(t.Context(), s.Scope)
		NewWithT(t).Expect(err).To(MatchError(errNotNow))
	})
}
