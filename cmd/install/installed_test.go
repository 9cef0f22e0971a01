// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift/hypershift/support/skew"
)

func TestCheckInstalled(t *testing.T) {
	of := func(version string) metav1.ObjectMeta {
		meta := metav1.ObjectMeta{Namespace: "hypershift", Name: operatorName}
		if version != "" {
			meta.Annotations = map[string]string{skew.Annotation: version}
		}
		return meta
	}
	operator := func(version string) client.Object { return &appsv1.Deployment{ObjectMeta: of(version)} }
	crd := func(version string) client.Object {
		crd := definition(hostedClusterCRD, "", "v1beta1")
		crd.Annotations = of(version).Annotations
		return crd
	}
	for _, tt := range []struct {
		name         string
		have         []client.Object
		funcs        interceptor.Funcs
		before, says string
	}{
		{name: "nothing is installed"},
		{name: "an operator without a version label is from the first release", have: []client.Object{operator("")}, before: skew.First},
		{name: "CRDs without a version and without an operator do not count as an installation", have: []client.Object{crd("")}},
		{name: "the first release can be upgraded", have: []client.Object{operator(""), crd("")}, before: skew.First},
		{name: "an interrupted upgrade can be completed", have: []client.Object{operator(""), crd(skew.Version)}, before: skew.First},
		{
			name: "a minor version must not be skipped", have: []client.Object{operator("0.0.3")},
			says: "an upgrade must not skip a minor version; install the newest version 0.1 first",
		},
		{
			name: "a minor version must not be skipped after an interrupted upgrade",
			have: []client.Object{operator("0.0.3"), crd(skew.Version)}, says: "an upgrade must not skip a minor version",
		},
		{
			name: "a newer operator is not downgraded", have: []client.Object{operator("0.9.1")},
			says: "version 0.9.1 is installed, and this is " + skew.Version,
		},
		{
			name: "newer CRDs are not downgraded", have: []client.Object{operator(skew.Version), crd("0.9.1")},
			says: "version 0.9.1 is installed",
		},
		{name: "the installed version cannot be read", funcs: nothingIsRead, says: "finding the installed version: no rights"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := &install{Options: *installation(t)}
			before, err := i.checkInstalled(t.Context(), cluster(tt.funcs, tt.have...))
			if tt.says != "" {
				NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tt.says)))
				return
			}
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(before).To(Equal(tt.before))
		})
	}
}
