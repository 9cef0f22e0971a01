// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/skew"
)

// hostedClusterCRD is the CRD that shows the version of the installed CRDs.
const hostedClusterCRD = "hostedclusters.hypershift.openshift.io"

// checkInstalled returns the version of the installed operator; empty if there is none. It returns an error if this
// version must not be installed over it, or over newer CRDs: an installation begins with the CRDs.
func (i *install) checkInstalled(ctx context.Context, c client.Client) (string, error) {
	operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, Name: operatorName}}
	found, before, err := versionOf(ctx, c, operator)
	if err != nil {
		return "", err
	}
	if found {
		before = cmp.Or(before, skew.First)
		if err := skew.CheckInstall(before); err != nil {
			return "", err
		}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: hostedClusterCRD}}
	_, version, err := versionOf(ctx, c, crd)
	if err != nil || version == "" {
		return before, err
	}
	return before, skew.CheckInstall(version)
}

// versionOf returns the version that installed an object; empty if none is recorded.
func versionOf(ctx context.Context, c client.Client, obj client.Object) (found bool, version string, err error) {
	metadata := &metav1.PartialObjectMetadata{}
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return false, "", fmt.Errorf("finding the installed version: %w", err)
	}
	metadata.SetGroupVersionKind(gvk)
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), metadata); apierrors.IsNotFound(err) {
		return false, "", nil
	} else if err != nil {
		return false, "", fmt.Errorf("finding the installed version: %w", err)
	}
	return true, metadata.Annotations[skew.Annotation], nil
}
