// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/openshift/hypershift/support/management"
)

// optional are the kinds of the optional groups that anything here asks for or writes, and whether they are in namespaces.
var optional = map[string]map[string]bool{
	management.Configuration: {"Proxy": false},
	management.Monitoring:    {"ServiceMonitor": true, "PodMonitor": true, "PrometheusRule": true},
	management.Routes:        {"Route": true},
	management.Security:      {"SecurityContextConstraints": false},
}

// Serve has the API server serve optional groups of a management cluster until gone is called, or the test ends. Their objects may hold anything: whether what
// is written is what the kinds take is a matter of their Go types.
func Serve(t testing.TB, config *rest.Config, groups ...string) (gone func()) {
	t.Helper()
	var kinds []*apiextensionsv1.CustomResourceDefinition
	for _, group := range groups {
		for kind, namespaced := range optional[group] {
			kinds = append(kinds, anything(group, kind, namespaced))
		}
	}
	options := envtest.CRDInstallOptions{CRDs: kinds}
	if _, err := envtest.InstallCRDs(config, options); err != nil {
		t.Fatalf("serving %v: %v", groups, err)
	}
	gone = sync.OnceFunc(func() {
		if err := envtest.UninstallCRDs(config, options); err != nil {
			t.Errorf("taking %v away: %v", groups, err)
		}
	})
	t.Cleanup(gone)
	return gone
}

func anything(group, kind string, namespaced bool) *apiextensionsv1.CustomResourceDefinition {
	plural, scope := strings.ToLower(kind)+"s", apiextensionsv1.ClusterScoped
	switch {
	case kind == "Proxy":
		plural = "proxies"
	case strings.HasSuffix(kind, "s"):
		plural = strings.ToLower(kind)
	}
	if namespaced {
		scope = apiextensionsv1.NamespaceScoped
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)},
				},
			}},
		},
	}
}
