// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/management"
	"github.com/openshift/hypershift/support/monitoringcrds"
	"github.com/openshift/hypershift/support/operatorwebhook"
	"github.com/openshift/hypershift/support/skew"
)

const (
	etcdBackupCRD = "hcpetcdbackups.hypershift.openshift.io"
	capiVersion   = "v1beta2"
)

// definitions returns the CRDs that the flags select.
func (o *Options) definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	folders := []string{crds.HyperShift, crds.Certificates, crds.ClusterAPI}
	for _, traits := range providers() {
		if len(o.platforms) == 0 || slices.Contains(o.platforms, traits.Name()) {
			folders = append(folders, traits.CRDs)
		}
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, folder := range folders {
		loaded, err := crds.Load(folder)
		if err != nil {
			return nil, err
		}
		if folder == crds.HyperShift {
			for _, crd := range loaded {
				metav1.SetMetaDataAnnotation(&crd.ObjectMeta, skew.Annotation, skew.Version)
			}
		}
		all = append(all, loaded...)
	}
	for _, crd := range all {
		o.convert(crd)
	}
	if o.bringsMonitoringKinds() {
		all = append(all, monitoringcrds.Definitions()...)
	}
	if o.excludeEtcd {
		all = slices.DeleteFunc(all, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Name == etcdBackupCRD })
	}
	return all, nil
}

// convert configures the conversion of Cluster API's kinds. If no operator pod runs, only the stored version is served.
func (o *Options) convert(crd *apiextensionsv1.CustomResourceDefinition) {
	switch {
	case !ofClusterAPI(crd):
	case o.development:
		operatorwebhook.OnlyStored(crd)
	default:
		operatorwebhook.Convert(crd, o.namespace)
	}
}

// ofClusterAPI reports whether a CRD is of Cluster API, which several products may install.
func ofClusterAPI(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return strings.HasSuffix(crd.Spec.Group, "cluster.x-k8s.io") && crd.Spec.Group != "infrastructure.cluster.x-k8s.io"
}

// foreign returns the CRDs of Cluster API and of monitoring that another product has installed. They stay unchanged,
// since a replacement would break the other product's conversion webhooks. CRDs of Cluster API must serve the required
// version.
func foreign(ctx context.Context, c client.Client, wanted []*apiextensionsv1.CustomResourceDefinition) (map[string]bool, error) {
	others := map[string]bool{}
	for _, crd := range wanted {
		if !ofClusterAPI(crd) && crd.Spec.Group != management.Monitoring {
			continue
		}
		existing := &apiextensionsv1.CustomResourceDefinition{}
		err := c.Get(ctx, client.ObjectKeyFromObject(crd), existing)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read CRD %s: %w", crd.Name, err)
		}
		if crd.Spec.Group == management.Monitoring {
			if !monitoringcrds.Minimal(existing) {
				others[crd.Name] = true
			}
			continue
		}
		if Owns(existing) {
			continue
		}
		if !serves(existing, capiVersion) {
			return nil, fmt.Errorf("CRD %s belongs to another installation and does not serve %s: upgrade that Cluster API to v1.11 or later, "+
				"or delete the CRD when nothing uses it", crd.Name, capiVersion)
		}
		others[crd.Name] = true
	}
	return others, nil
}

func serves(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == version && v.Served
	})
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}
