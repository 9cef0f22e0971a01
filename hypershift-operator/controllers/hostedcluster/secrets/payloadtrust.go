// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/reference"
	"github.com/openshift/hypershift/support/systemtrust"
	"github.com/openshift/hypershift/support/upsert"
)

// maxPayloadTrust is the size limit of a ConfigMap, minus room for its metadata.
const maxPayloadTrust = 1<<20 - 4096

// PayloadTrust gives the operators of an OpenShift payload the CAs that they trust.
type PayloadTrust struct {
	Client client.Client
	Inputs *Inputs
	// System returns the CAs that the operator trusts, as PEM; nil for none.
	System func() ([]byte, error)
}

// Reconcile writes the CAs that the operators of an OpenShift payload trust. They mount the bundle over the
// bundle of their image. So it contains the CAs of the operator's image, of the installation and of the cluster.
func (r PayloadTrust) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	if !s.Distribution().OwnOperators {
		return ctrl.Result{}, nil
	}
	if reference.Name(s.HC.Spec.AdditionalTrustBundle) != "" && len(r.Inputs.TrustBundle) == 0 {
		return ctrl.Result{}, nil // The phase that reads the trust bundle failed: the previous bundle stays.
	}
	target := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: hosted.PayloadTrust}}
	bundle, err := r.bundle(s)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(bundle) == 0 {
		return ctrl.Result{}, s.Drop(ctx, r.Client, target)
	}
	_, err = upsert.Object(ctx, r.Client, target, func() error {
		target.Data = map[string]string{hosted.PayloadTrustKey: string(bundle)}
		return s.Claim(target)
	})
	return ctrl.Result{}, err
}

// bundle returns the bundle of the CAs that the payload's operators trust; empty if there are no CAs.
func (r PayloadTrust) bundle(s *cluster.Scope) ([]byte, error) {
	var system []byte
	if r.System != nil {
		var err error
		if system, err = r.System(); err != nil {
			return nil, err
		}
	}
	bundle := systemtrust.Merge(system, r.Inputs.TrustBundle)
	if excess := len(bundle) - maxPayloadTrust; excess > 0 {
		return nil, fmt.Errorf("the CAs of the system and of spec.additionalTrustBundle are %d bytes too long for "+
			"ConfigMap %s/%s; "+
			"remove those from spec.additionalTrustBundle that are not needed", excess, s.Namespace, hosted.PayloadTrust)
	}
	return bundle, nil
}
