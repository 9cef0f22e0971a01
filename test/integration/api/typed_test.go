// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	certificatesv1alpha1 "github.com/openshift/hypershift/api/certificates/v1alpha1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/testenv"
)

// TestControllersCanWrite checks that a controller can write each accepted object back through the Go types. These
// drop zero values and normalize networks, which no rule may treat as a change.
func TestControllersCanWrite(t *testing.T) {
	g := NewWithT(t)
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{hyperv1.AddToScheme, certificatesv1alpha1.AddToScheme, infrav1.AddToScheme} {
		g.Expect(add(known)).To(Succeed())
	}
	c, err := client.New(testenv.Start(t, ours...), client.Options{Scheme: known})
	g.Expect(err).NotTo(HaveOccurred())
	for name, s := range readSuites(t) {
		for _, object := range s.Objects {
			for i, test := range s.Cases {
				if test.Status {
					continue
				}
				written := object.edited(t, object.read(t), test.Given, test.Accept)
				written.SetName(fmt.Sprintf("%s-%s-%d", object.File, strings.ToLower(name), i))
				t.Run("When a controller updates an accepted object, the update should be accepted: "+object.File+"/"+test.Rule, func(t *testing.T) {
					g := NewWithT(t)
					g.Expect(c.Create(t.Context(), written)).To(Succeed())
					empty, err := known.New(written.GroupVersionKind())
					g.Expect(err).NotTo(HaveOccurred())
					typed, ok := empty.(client.Object)
					g.Expect(ok).To(BeTrue())
					g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(written), typed)).To(Succeed())
					typed.SetLabels(map[string]string{"tier": "one"})
					g.Expect(c.Update(t.Context(), typed, client.DryRunAll)).To(Succeed())
				})
			}
		}
	}
}
