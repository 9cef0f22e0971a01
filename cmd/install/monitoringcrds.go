// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/management"
	"github.com/openshift/hypershift/support/monitoringcrds"
)

const monitoringCRDsFlag = "install-monitoring-crds"

// monitoringKinds holds the flag of the monitoring kinds. If the flag is not set, the result depends on the management
// cluster.
type monitoringKinds struct{ set, bring bool }

// bringsMonitoringKinds reports whether the minimal CRDs of the monitoring kinds are installed. OpenShift has these
// kinds, and so does a cluster with a Prometheus operator.
func (o *Options) bringsMonitoringKinds() bool {
	if o.monitoringKinds.set {
		return o.monitoringKinds.bring
	}
	return !o.apis.Has(management.Security) && !o.apis.Has(management.Monitoring)
}

// withoutOwn removes the monitoring group from the discovered APIs if one of our CRDs serves it. A repeated
// installation must have the same result.
func withoutOwn(ctx context.Context, c client.Client, found management.APIs) (management.APIs, error) {
	if !found.Has(management.Monitoring) {
		return found, nil
	}
	crd, name := &apiextensionsv1.CustomResourceDefinition{}, "servicemonitors."+management.Monitoring
	if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		if apierrors.IsNotFound(err) {
			return found, nil // The API is served without a CRD.
		}
		return nil, fmt.Errorf("read CRD %s: %w", name, err)
	}
	if !monitoringcrds.Minimal(crd) {
		return found, nil
	}
	return slices.DeleteFunc(found, func(group string) bool { return group == management.Monitoring }), nil
}

// dropLabel removes the label of minimal CRDs from a CRD that another product has since applied, so that nothing
// deletes it by that label.
func dropLabel(ctx context.Context, c client.Client, name string) error {
	existing := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, existing); err != nil {
		return fmt.Errorf("read CRD %s: %w", name, err)
	}
	if !monitoringcrds.Labeled(existing) {
		return nil
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, hyperv1.MinimalCRDLabel))
	if err := c.Patch(ctx, existing, patch); err != nil {
		return fmt.Errorf("remove the label %s from CRD %s: %w", hyperv1.MinimalCRDLabel, name, err)
	}
	return nil
}
