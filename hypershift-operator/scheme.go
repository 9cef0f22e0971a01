// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform/registry"
)

// newScheme returns a scheme with all kinds that the operator reads or writes.
func newScheme(platforms registry.Registry) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(
		clientgoscheme.AddToScheme(scheme),
		apiextensionsv1.AddToScheme(scheme),
		hyperv1.AddToScheme(scheme),
		platforms.AddToScheme(scheme),
		clusterv1.AddToScheme(scheme),
		monitoringv1.AddToScheme(scheme),
	)
	if err != nil {
		return nil, fmt.Errorf("registering the kinds that the operator uses: %w", err)
	}
	return scheme, nil
}
