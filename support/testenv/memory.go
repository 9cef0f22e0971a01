// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift/hypershift/support/crds"
)

// serverVariable, set to "memory", makes tests use controller-runtime's in-memory client instead of a kube-apiserver.
// Mutation testing sets it, because it runs the tests thousands of times. The client sets the defaults of CRDs but
// validates nothing: only results with a real server count.
const serverVariable = "HYPERSHIFT_TEST_SERVER"

// memory is the value of serverVariable for in-memory servers.
const memory = "memory"

// memoryHost is the prefix of the address of an in-memory server, which does not listen.
const memoryHost = "memory:"

func inMemory() bool { return os.Getenv(serverVariable) == memory }

// NeedsServer skips a test that cannot use an in-memory server.
func NeedsServer(t testing.TB, config *rest.Config) {
	t.Helper()
	if config == nil && inMemory() || config != nil && strings.HasPrefix(config.Host, memoryHost) {
		t.Skip("it needs a real kube-apiserver, and " + serverVariable + " is set to memory")
	}
}

// store is an in-memory server.
type store struct {
	once   sync.Once
	client client.WithWatch
	crds   []*apiextensionsv1.CustomResourceDefinition
}

// stores are the in-memory servers of this process, by address.
var stores sync.Map

func startInMemory(t testing.TB, folders ...string) *rest.Config {
	t.Helper()
	s := &store{}
	for _, folder := range folders {
		loaded, err := crds.Load(folder)
		if err != nil {
			t.Fatal(err)
		}
		s.crds = append(s.crds, loaded...)
	}
	config := &rest.Config{Host: memoryHost + uuid.NewString()}
	stores.Store(config.Host, s)
	return config
}

// Memory returns a client of an in-memory server, whatever serverVariable is. It is for tests that do not benefit from
// a kube-apiserver.
func Memory(t testing.TB, scheme *runtime.Scheme, folders ...string) client.WithWatch {
	t.Helper()
	return Client(t, startInMemory(t, folders...), scheme)
}

// Client returns a client of a server that Start returned.
func Client(t testing.TB, config *rest.Config, scheme *runtime.Scheme) client.WithWatch {
	t.Helper()
	if s, ok := stores.Load(config.Host); ok {
		return s.(*store).open(t, scheme)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatalf("connecting to the test's kube-apiserver: %v", err)
	}
	return c
}

// open creates the store, with the kinds of the first caller.
func (s *store) open(t testing.TB, scheme *runtime.Scheme) client.WithWatch {
	t.Helper()
	s.once.Do(func() {
		schemas := map[schema.GroupVersionKind]*structuralschema.Structural{}
		builder := fake.NewClientBuilder().WithScheme(scheme)
		for _, crd := range s.crds {
			for _, version := range crd.Spec.Versions {
				gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
				schemas[gvk] = structural(t, version)
				if obj, err := scheme.New(gvk); err == nil && version.Subresources != nil && version.Subresources.Status != nil {
					builder.WithStatusSubresource(obj.(client.Object))
				}
			}
		}
		s.client = interceptor.NewClient(builder.Build(), asServer(scheme, schemas))
		for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem} {
			if err := s.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
				t.Fatal(err)
			}
		}
	})
	return s.client
}

func structural(t testing.TB, version apiextensionsv1.CustomResourceDefinitionVersion) *structuralschema.Structural {
	t.Helper()
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, props, nil); err != nil {
		t.Fatal(err)
	}
	s, err := structuralschema.NewStructural(props)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asServer returns interceptors that do what a server does on writes.
func asServer(scheme *runtime.Scheme, schemas map[schema.GroupVersionKind]*structuralschema.Structural) interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			obj.SetUID(types.UID(uuid.NewString()))
			obj.SetCreationTimestamp(metav1.Now())
			obj.SetGeneration(1)
			if err := fillIn(obj, scheme, schemas); err != nil {
				return err
			}
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if err := fillIn(obj, scheme, schemas); err != nil {
				return err
			}
			return c.Update(ctx, obj, opts...)
		},
	}
}

// fillIn sets the defaults of the object's CRD.
func fillIn(obj client.Object, scheme *runtime.Scheme, schemas map[schema.GroupVersionKind]*structuralschema.Structural) error {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil || schemas[gvk] == nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return fmt.Errorf("reading %T: %w", obj, err)
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(content, schemas[gvk])
	defaulting.Default(content, schemas[gvk])
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj)
}
