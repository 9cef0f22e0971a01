// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/pki"
)

// FuzzLifetime checks the annotations about certificates. Accepted values yield certificates with a positive lifetime
// that are renewed before they expire.
func FuzzLifetime(f *testing.F) {
	for _, texts := range [][2]string{{"8760h", "0.7"}, {"1ns", "99"}, {"-1h", "70"}, {"9999999h", "1"}, {"1h", "NaN"}, {"1h", "0x1p-2"}, {"1h", "1e-300"}, {"", ""}, {"soon", "Inf"}} {
		f.Add(texts[0], texts[1])
	}
	f.Fuzz(func(t *testing.T, validity, renewal string) {
		hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{ValidityAnnotation: validity, RenewalAnnotation: renewal}}}
		lifetime, err := LifetimeOf(hcp, pki.Lifetime{Validity: time.Hour, RenewAfter: 0.5})
		if err != nil {
			return
		}
		// The condition is negated, so that it also rejects NaN, which compares false with everything.
		if !(lifetime.Validity > 0 && lifetime.RenewAfter > 0 && lifetime.RenewAfter < 1) {
			t.Errorf("%q and %q are taken for certificates that live for %s and are renewed after %v of that", validity, renewal, lifetime.Validity, lifetime.RenewAfter)
		}
	})
}
