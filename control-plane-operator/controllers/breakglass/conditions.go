// SPDX-License-Identifier: Apache-2.0

package breakglass

import (
	"bytes"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	certificatesv1alpha1 "github.com/openshift/hypershift/api/certificates/v1alpha1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
	supportpki "github.com/openshift/hypershift/support/pki"
)

// Reasons, as HyperShift names them.
const (
	reasonSignerUnknown = "SignerClassUnknown"
	reasonRootStale     = "RootCertificatesStale"
	reasonLeavesStale   = "LeafCertificatesStale"
	reasonWaiting       = "WaitingForAvailable"
)

// conditions returns the conditions that report the progress of a revocation, from the signer and from the pods and
// workloads that must load the result.
func conditions(s *scope) []metav1.Condition {
	if _, known := signers[s.request.Spec.SignerClass]; !known {
		return []metav1.Condition{condition.False(certificatesv1alpha1.SignerClassValidType, reasonSignerUnknown,
			fmt.Sprintf("There is no signer %q, so nothing is revoked: delete this request", s.request.Spec.SignerClass))}
	}
	valid := condition.True(certificatesv1alpha1.SignerClassValidType, hyperv1.AsExpectedReason, "")
	switch {
	case s.signer == nil:
		return []metav1.Condition{valid, stage(certificatesv1alpha1.RootCertificatesRegeneratedType, false, reasonWaiting, "The signer has not been made yet")}
	case s.before != "":
		return []metav1.Condition{valid, stage(certificatesv1alpha1.RootCertificatesRegeneratedType, false, reasonWaiting,
			"Waiting for CertificateRevocationRequest "+s.before+", which revokes the same signer")}
	}
	// The next signer signs only when all pods trust it.
	signs := len(s.previous) > 0 && !bytes.Equal(s.previous, s.signer.Data[supportpki.CACertKey])
	made := signs || supportpki.StageOf(s.signer) == supportpki.Trusting
	dropped := supportpki.Revoked(s.signer, string(s.request.UID))
	waiting := "Waiting until no pod trusts the previous signer"
	if len(s.outdated) > 0 {
		waiting += "; still outdated: " + strings.Join(s.outdated, ", ")
	}
	return []metav1.Condition{
		valid,
		stage(certificatesv1alpha1.RootCertificatesRegeneratedType, made, reasonRootStale, "The next signer has not been created yet"),
		stage(certificatesv1alpha1.NewCertificatesTrustedType, signs, reasonWaiting, "Waiting until all pods trust the next signer"),
		stage(certificatesv1alpha1.LeafCertificatesRegeneratedType, signs, reasonLeavesStale, "The previous signer still signs certificates"),
		stage(certificatesv1alpha1.PreviousCertificatesRevokedType, dropped && len(s.outdated) == 0, reasonWaiting, waiting),
	}
}

func stage(conditionType string, reached bool, reason, message string) metav1.Condition {
	if reached {
		return condition.True(conditionType, hyperv1.AsExpectedReason, "")
	}
	return condition.False(conditionType, reason, message)
}
