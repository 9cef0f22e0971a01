// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"crypto/x509"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/secrets"
	"github.com/openshift/hypershift/hypershift-operator/naming"
)

// validateProxy checks the CA bundle of the guest's proxy. The condition exists only while the proxy names a CA bundle.
func (r *Reconciler) validateProxy(ctx context.Context, s *scope) (ctrl.Result, error) {
	configuration := s.HC.Spec.Configuration
	if configuration == nil || configuration.Proxy == nil || configuration.Proxy.TrustedCA.Name == "" {
		s.Clear(hyperv1.ValidProxyConfiguration)
		return ctrl.Result{}, nil
	}
	name := configuration.Proxy.TrustedCA.Name
	bundle, err := secrets.Sources{Client: r.Client}.ConfigMap(ctx, s.Scope, name, naming.TrustBundleKey)
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM([]byte(bundle.Data[naming.TrustBundleKey])) {
		err = fmt.Errorf("the ConfigMap %s/%s holds no PEM certificate under %q: put the CA of the proxy there", s.HC.Namespace, name, naming.TrustBundleKey)
	}
	if err != nil {
		s.Reject(hyperv1.ValidProxyConfiguration, hyperv1.ProxyCABundleInvalidReason, fmt.Sprintf("spec.configuration.proxy.trustedCA: %v", err))
		return ctrl.Result{}, nil
	}
	s.Accept(hyperv1.ValidProxyConfiguration)
	return ctrl.Result{}, nil
}
