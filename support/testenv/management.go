// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/openshift/hypershift/support/management"
)

// optional maps the kinds of the optional groups that HyperShift reads or writes to whether they are namespaced.
var optional = map[string]map[string]bool{
	management.Configuration: {"Proxy": false},
	management.Monitoring:    {"ServiceMonitor": true, "PodMonitor": true, "PrometheusRule": true},
	management.Routes:        {"Route": true},
	management.Security:      {"SecurityContextConstraints": false},
}

// Serve makes the API server serve optional groups of a management cluster until gone is called or the test ends. Their
// objects may have any content. The kinds' Go types, not the server, check what is written.
func Serve(t testing.TB, config *rest.Config, groups ...string) (gone func()) {
	t.Helper()
	NeedsServer(t, config)
	var kinds []*apiextensionsv1.CustomResourceDefinition
	for _, group := range groups {
		for kind, namespaced := range optional[group] {
			kinds = append(kinds, anything(group, kind, namespaced))
		}
	}
	return Install(t, config, kinds...)
}

// Install makes the API server serve kinds until gone is called or the test ends.
func Install(t testing.TB, config *rest.Config, kinds ...*apiextensionsv1.CustomResourceDefinition) (gone func()) {
	t.Helper()
	NeedsServer(t, config)
	install(t, config, kinds)
	gone = sync.OnceFunc(func() { Uninstall(t, config, kinds...) })
	t.Cleanup(gone)
	return gone
}

// install creates CRDs, and waits until a new client can discover them.
func install(t testing.TB, config *rest.Config, kinds []*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: kinds, MaxTime: startTimeout}); err != nil {
		t.Fatalf("installing CRDs: %v", err)
	}
	known(t, config, "clients to know the CRDs", kinds, func(err error) bool { return err == nil })
}

// Uninstall deletes CRDs, and waits until a new client no longer discovers them. Serving the kinds again earlier would
// delete the new CRDs together with the old objects.
func Uninstall(t testing.TB, config *rest.Config, kinds ...*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	NeedsServer(t, config)
	if err := envtest.UninstallCRDs(config, envtest.CRDInstallOptions{CRDs: kinds}); err != nil {
		t.Errorf("taking CRDs away: %v", err)
		return
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Errorf("connecting to the test's kube-apiserver: %v", err)
		return
	}
	wait(t, "the CRDs to go", func(ctx context.Context) error {
		for _, crd := range kinds {
			err := c.Get(ctx, client.ObjectKeyFromObject(crd), &apiextensionsv1.CustomResourceDefinition{})
			if err == nil {
				return fmt.Errorf("CRD %s is still there", crd.Name)
			}
			if !apierrors.IsNotFound(err) {
				return err
			}
		}
		return nil
	})
	known(t, config, "clients to forget the CRDs", kinds, meta.IsNoMatchError)
}

// known waits until new clients discover the expected state of kinds. A new client reads the list of all groups at
// once. That list includes a kind a moment after its group is served.
func known(t testing.TB, config *rest.Config, what string, kinds []*apiextensionsv1.CustomResourceDefinition, ok func(error) bool) {
	t.Helper()
	requests, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatalf("connecting to the test's kube-apiserver: %v", err)
	}
	wait(t, what, func(context.Context) error {
		mapper, err := apiutil.NewDynamicRESTMapper(config, requests)
		if err != nil {
			return err
		}
		for _, crd := range kinds {
			if _, err := mapper.RESTMapping(schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}); !ok(err) {
				return fmt.Errorf("CRD %s: %w", crd.Name, err)
			}
		}
		return nil
	})
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
