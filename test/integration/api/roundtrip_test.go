// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	certificatesv1alpha1 "github.com/openshift/hypershift/api/certificates/v1alpha1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

const rounds = 50

// TestRoundTrip checks that random objects do not change when they are written as JSON and read again. The CRD's
// schema may drop no field: a dropped field would mean that a field of the Go type is missing from the CRD.
func TestRoundTrip(t *testing.T) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{hyperv1.AddToScheme, certificatesv1alpha1.AddToScheme, infrav1.AddToScheme} {
		NewWithT(t).Expect(add(known)).To(Succeed())
	}
	for _, folder := range ours {
		loaded, err := crds.Load(folder)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, crd := range loaded {
			t.Run("When a random "+crd.Spec.Names.Kind+" is written and read, it should not change", func(t *testing.T) {
				served, filler := structural(t, crd), newFiller(testenv.Random(t).Int64())
				kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Kind: crd.Spec.Names.Kind}
				for range rounds {
					object, err := known.New(kind)
					if err != nil {
						t.Fatal(err)
					}
					filler.Fill(object)
					object.GetObjectKind().SetGroupVersionKind(kind)
					roundTrip(t, object, served)
				}
			})
		}
	}
}

func roundTrip(t *testing.T, object runtime.Object, served *structuralschema.Structural) {
	t.Helper()
	copied := object.DeepCopyObject()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(copied, object, exported()); diff != "" {
		t.Fatalf("writing changed the object:\n%s", diff)
	}
	read := reflect.New(reflect.TypeOf(object).Elem()).Interface()
	if err := json.Unmarshal(data, read); err != nil {
		t.Fatalf("reading %s: %v", data, err)
	}
	again, err := json.Marshal(read)
	if err != nil {
		t.Fatal(err)
	}
	if string(again) != string(data) {
		t.Fatalf("reading changed the object:\n%s", cmp.Diff(string(data), string(again)))
	}
	var generic map[string]any
	if err := json.Unmarshal(data, &generic); err != nil {
		t.Fatal(err)
	}
	dropped := pruning.PruneWithOptions(generic, served, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range dropped {
		if !isTheirs(path) {
			t.Fatalf("the CRD's schema drops %s", path)
		}
	}
}

// isTheirs reports whether a field belongs to an OpenShift type and is behind a feature gate. OpenShift's own CRDs
// drop such fields too.
func isTheirs(path string) bool {
	for _, prefix := range theirs {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// exported returns an option that also compares unexported fields.
func exported() cmp.Option {
	return cmp.Exporter(func(reflect.Type) bool { return true })
}

func newFiller(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.3).NumElements(1, 3).Funcs(
		func(t *metav1.Time, c randfill.Continue) { t.Time = time.Unix(int64(c.Rand.Int31()), 0).UTC() },
		func(d *metav1.Duration, c randfill.Continue) {
			d.Duration = time.Duration(c.Rand.Int31()) * time.Second
		},
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse(fmt.Sprintf("%dMi", c.Rand.Int31()))
			_ = q.String() // String caches its result; the call makes the cache equal to that of the written object.
		},
		func(i *intstr.IntOrString, c randfill.Continue) {
			*i = intstr.FromInt32(c.Rand.Int31())
			if c.Bool() {
				*i = intstr.FromString("25%")
			}
		},
		func(n *ipnet.IPNet, c randfill.Continue) {
			*n = ipnet.IPNet{IP: net.IPv4(10, byte(c.Rand.Intn(256)), 0, 0).To4(), Mask: net.CIDRMask(16, 32)}
		},
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawString("{}") },
	)
}

func structural(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *structuralschema.Structural {
	t.Helper()
	internal := &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, internal, nil)
	if err != nil {
		t.Fatal(err)
	}
	served, err := structuralschema.NewStructural(internal)
	if err != nil {
		t.Fatal(err)
	}
	return served
}
