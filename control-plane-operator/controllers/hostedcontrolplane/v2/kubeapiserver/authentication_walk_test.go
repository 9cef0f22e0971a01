// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
)

// passive are fields of a provider that do not concern the API server.
var passive = map[string]string{
	"name":                                   "a label, which says of itself that it has no impact on tokens",
	"oidcClients":                            "what OpenShift's console and CLI ask the issuer for; WithoutEffect reports it",
	"issuer.issuerCertificateAuthority.name": "read from its ConfigMap when the configuration is rendered: see TestIssuerCA",
}

// TestEveryProviderFieldCounts checks every field of the type. A new field of the API therefore fails here until it is
// mapped or rejected.
func TestEveryProviderFieldCounts(t *testing.T) {
	bases := map[string]configv1.OIDCProvider{"claims": byClaims(), "expressions": byExpressions()}
	for _, leaf := range leavesOf(reflect.TypeFor[configv1.OIDCProvider](), "", nil) {
		if isPassive(leaf.name) {
			continue
		}
		t.Run("When "+leaf.name+" changes, the API server should change or refuse it", func(t *testing.T) {
			for name, base := range bases {
				before, after := outcome(t, base), outcome(t, leaf.changedIn(base))
				if before == after {
					t.Errorf("with the provider by %s it does nothing; map it in authenticator.go, or refuse it there", name)
				}
			}
		})
	}
}

func isPassive(name string) bool {
	for passive := range passive {
		if name == passive || strings.HasPrefix(name, passive+"[") {
			return true
		}
	}
	return false
}

// outcome returns the API server's file for a provider, or why there is none.
func outcome(t *testing.T, provider configv1.OIDCProvider) string {
	t.Helper()
	hcp := oidcCluster(provider)
	if err := refusals(t, hcp); err != nil {
		return "refused: " + err.Error()
	}
	config, _, err := authenticators(t.Context(), hostedClient(), hcp)
	if err != nil {
		t.Fatal(err)
	}
	text, err := encodeAuthentication(config, "1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// leaf is a field with a value and no nested fields.
type leaf struct {
	name string
	// steps are the field indexes on the path to the field. Nil pointers and empty lists on the path are filled.
	steps []int
}

func leavesOf(t reflect.Type, name string, steps []int) []leaf {
	switch t.Kind() {
	case reflect.Pointer:
		return leavesOf(t.Elem(), name, steps)
	case reflect.Slice:
		return leavesOf(t.Elem(), name+"[]", steps)
	case reflect.Struct:
		var all []leaf
		for i := range t.NumField() {
			all = append(all, leavesOf(t.Field(i).Type, child(name, t.Field(i)), append(append([]int{}, steps...), i))...)
		}
		return all
	default:
		return []leaf{{name: name, steps: steps}}
	}
}

func child(name string, f reflect.StructField) string {
	tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if tag == "" {
		return name
	}
	return strings.TrimPrefix(name+"."+tag, ".")
}

// changedIn returns the provider with a different value in that field.
func (l leaf) changedIn(provider configv1.OIDCProvider) configv1.OIDCProvider {
	changed := *provider.DeepCopy()
	value := reached(reflect.ValueOf(&changed))
	for _, step := range l.steps {
		value = reached(value.Field(step))
	}
	if value.Kind() != reflect.String {
		panic(fmt.Sprintf("%s is a %s: teach this test to change one", l.name, value.Kind()))
	}
	value.SetString("changed")
	return changed
}

// reached follows pointers and lists to a struct or a value.
func reached(value reflect.Value) reflect.Value {
	switch value.Kind() {
	case reflect.Pointer:
		if value.IsNil() {
			value.Set(reflect.New(value.Type().Elem()))
		}
		return reached(value.Elem())
	case reflect.Slice:
		if value.Len() == 0 {
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		}
		return reached(value.Index(0))
	default:
		return value
	}
}
