// SPDX-License-Identifier: Apache-2.0

// Package monitoringcrds has definitions of the kinds that configure the targets of a Prometheus operator. The
// control-plane-operators of OpenShift payloads watch these kinds on every management cluster, and exit if it does not
// serve one. The definitions are minimal: they accept any object, and no program reads the objects.
package monitoringcrds

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/management"
)

const version = "v1"

// Definitions returns the CRDs of PodMonitor, PrometheusRule and ServiceMonitor.
func Definitions() []*apiextensionsv1.CustomResourceDefinition {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, kind := range []string{"PodMonitor", "PrometheusRule", "ServiceMonitor"} {
		all = append(all, definition(kind))
	}
	return all
}

func definition(kind string) *apiextensionsv1.CustomResourceDefinition {
	singular := strings.ToLower(kind)
	plural := singular + "s"
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: plural + "." + management.Monitoring, Labels: map[string]string{hyperv1.MinimalCRDLabel: "true"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: management.Monitoring,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: kind, ListKind: kind + "List", Plural: plural, Singular: singular,
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
				// A Prometheus operator that finds and keeps these definitions writes a status.
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

// Names returns the names of the definitions.
func Names() []string {
	var names []string
	for _, crd := range Definitions() {
		names = append(names, crd.Name)
	}
	return names
}

// Minimal reports whether a CRD of the cluster is still a minimal definition of this package. The label alone does
// not show it: if a Prometheus operator's definition is applied over a minimal one, the label stays. That
// definition's schema has properties.
func Minimal(crd *apiextensionsv1.CustomResourceDefinition) bool {
	if !Labeled(crd) || len(crd.Spec.Versions) != 1 || crd.Spec.Versions[0].Schema == nil {
		return false
	}
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	return schema != nil && len(schema.Properties) == 0 && ptr.Deref(schema.XPreserveUnknownFields, false)
}

// Labeled reports whether a CRD has the label of these definitions.
func Labeled(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Labels[hyperv1.MinimalCRDLabel] == "true"
}
