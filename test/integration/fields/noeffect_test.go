// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	v2 "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// report holds what the operators report for an object in which one field is set.
type report struct{ refused, ineffective string }

// reporters create reports, by the kind of object.
var reporters = map[string]func(path string) (report, error){
	"HostedCluster": func(path string) (report, error) {
		hcp := &hyperv1.HostedControlPlane{}
		// OIDC providers are valid only with this authentication type, and every error about a provider must name it.
		isProvider := strings.HasPrefix(path, "configuration.authentication.oidcProviders")
		if isProvider {
			hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{Authentication: &configv1.AuthenticationSpec{Type: configv1.AuthenticationTypeOIDC}}
		}
		if err := setField(reflect.ValueOf(&hcp.Spec), path); err != nil {
			return report{}, err
		}
		refused := []error{v2.Validate(hcp)}
		if isProvider {
			leftOut, err := v2.Refusals(context.Background(), fake.NewClientBuilder().Build(), hcp)
			if err != nil {
				return report{}, err
			}
			refused = append(refused, leftOut...)
		}
		return report{fmt.Sprint(refused), strings.Join(v2.WithoutEffect(hcp), "\n")}, nil
	},
	"NodePool": func(path string) (report, error) {
		pool := &hyperv1.NodePool{}
		if err := setField(reflect.ValueOf(&pool.Spec), path); err != nil {
			return report{}, err
		}
		// A field that only one distribution uses counts as used, because the condition reports it for the other
		// distribution.
		return report{ineffective: strings.Join(nodepool.WithoutEffect(pool, distributions.Of(releaseinfo.OpenShift)), "\n")}, nil
	},
}

// reported reports whether the operators name a set field, or a field that contains it.
func reported(kind, path string) (bool, error) {
	r, err := reportOn(kind, path)
	return named(r.refused, path) || named(r.ineffective, path), err
}

// reportedIneffective reports whether the operators report that the field has no effect.
func reportedIneffective(kind, path string) (bool, error) {
	r, err := reportOn(kind, path)
	return named(r.ineffective, path), err
}

func reportOn(kind, path string) (report, error) {
	if reporters[kind] == nil {
		return report{}, nil
	}
	r, err := reporters[kind](path)
	if errors.Is(err, errUnknown) {
		return report{}, nil // The control plane never receives it.
	}
	return r, err
}

var (
	index = regexp.MustCompile(`\[\d*\]|\{\}`)
	word  = `($|[^.\w])`
)

// named reports whether a text contains the path, or a parent path, as a word.
func named(text, path string) bool {
	text, path = index.ReplaceAllString(text, ""), index.ReplaceAllString(path, "")
	for ; path != ""; path = path[:max(0, strings.LastIndex(path, "."))] {
		if regexp.MustCompile(`(?m)(^|[^.\w])` + regexp.QuoteMeta(path) + word).MatchString(text) {
			return true
		}
	}
	return false
}

var errUnknown = errors.New("no such field")

// setField sets the value at a path, and creates the values in between.
func setField(value reflect.Value, path string) error {
	value = reach(value)
	if path == "" {
		return fill(value)
	}
	name, rest, _ := strings.Cut(path, ".")
	member, ok := memberOf(value, index.ReplaceAllString(name, ""))
	if !ok {
		return fmt.Errorf("%w: %s in %s", errUnknown, name, value.Type())
	}
	return setField(member, rest)
}

func memberOf(value reflect.Value, name string) (reflect.Value, bool) {
	for i := range value.NumField() {
		tag, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		if tag == name {
			return value.Field(i), true
		}
		if tag == "" {
			if member, ok := memberOf(reach(value.Field(i)), name); ok {
				return member, true
			}
		}
	}
	return reflect.Value{}, false
}

// reach follows pointers and list elements until it finds a struct or a value.
func reach(value reflect.Value) reflect.Value {
	switch value.Kind() {
	case reflect.Pointer:
		if value.IsNil() {
			value.Set(reflect.New(value.Type().Elem()))
		}
		return reach(value.Elem())
	case reflect.Slice:
		if value.Len() == 0 {
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		}
		return reach(value.Index(0))
	}
	return value
}

// fill sets a value that is not the zero value.
func fill(value reflect.Value) error {
	switch value.Kind() {
	case reflect.String:
		value.SetString("set")
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		value.SetInt(1)
	case reflect.Uint8, reflect.Uint32:
		value.SetUint(1)
	case reflect.Map:
		entry := reflect.New(value.Type().Elem()).Elem()
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(reflect.ValueOf("set").Convert(value.Type().Key()), entry)
	case reflect.Struct:
		if value.NumField() > 0 && value.Field(0).CanSet() {
			return fill(reach(value.Field(0)))
		}
	default:
		return fmt.Errorf("teach this test to fill a %s", value.Kind())
	}
	return nil
}
