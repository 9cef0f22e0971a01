// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// step is a request of a scenario and the expected response.
type step struct {
	user, request string
	form          []string
	code          int
	// says is the complete body. shows lists "field=value" pairs of the object. If the body is a list, value contains
	// the field's value in each element, joined by spaces.
	says  string
	shows []string
}

func ask(user, request string, form ...string) step {
	return step{user: user, request: request, form: form, code: 200}
}

func (s step) is(code int, says string) step {
	s.code, s.says = code, says
	return s
}

func (s step) with(shows ...string) step {
	s.shows = shows
	return s
}

// story sends the requests of the steps in order and checks the responses.
func story(t *testing.T, site *simtest.Site, steps ...step) {
	t.Helper()
	for i, s := range steps {
		g := NewWithT(t)
		method, path, _ := strings.Cut(s.request, " ")
		answer := site.Do(s.user, method, path, s.form...)
		name := fmt.Sprintf("step %d: %s %s %v answers %.300s", i+1, s.user, s.request, s.form, answer.Body)
		g.Expect(answer.Code).To(Equal(s.code), name)
		if s.says != "" {
			g.Expect(answer.Body).To(Equal(s.says), name)
		}
		for _, show := range s.shows {
			field, want, _ := strings.Cut(show, "=")
			if strings.HasPrefix(answer.Body, "[") {
				var values []string
				for _, o := range answer.List() {
					values = append(values, at(o, field))
				}
				g.Expect(strings.Join(values, " ")).To(Equal(want), name+": "+field)
				continue
			}
			g.Expect(at(answer.Object(), field)).To(Equal(want), name+": "+field)
		}
	}
}

// at formats the value at a path such as "zone.name".
func at(o map[string]any, path string) string {
	var value any = o
	for _, key := range strings.Split(path, ".") {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	return fmt.Sprint(value)
}
