// SPDX-License-Identifier: Apache-2.0

// Package fields checks that no field of a spec is silently ignored: each field is used by code, rejected, or
// reported as without effect.
package fields

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
)

// specs lists the specs that users write, by kind.
var specs = []struct {
	kind, path, spec string
	// passedTo is the type to which an operator copies fields of the same name for another operator; empty if none.
	passedTo string
}{
	{"HostedCluster", hypershiftAPI, "HostedClusterSpec", "HostedControlPlaneSpec"},
	{"NodePool", hypershiftAPI, "NodePoolSpec", ""},
	{"MaasCluster", maasAPI, "MaasClusterSpec", ""},
	{"MaasMachine", maasAPI, "MaasMachineSpec", ""},
	{"MaasMachineTemplate", maasAPI, "MaasMachineTemplateSpec", ""},
}

var loaded = sync.OnceValues(load)

func TestEveryFieldHasAnEffectOrSaysThatItHasNone(t *testing.T) {
	s, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range specs {
		fields, err := s.fieldsOf(spec.path, spec.spec, spec.passedTo)
		if err != nil {
			t.Fatal(err)
		}
		if len(fields) < 5 {
			t.Errorf("%s has only %d fields: the walk is broken", spec.kind, len(fields))
		}
		for _, field := range fields {
			if len(field.readers) > 0 {
				continue
			}
			if excuse, err := s.excuse(spec.kind, field.path); err != nil {
				t.Errorf("%s %s: %v", spec.kind, field.path, err)
			} else if excuse == "" {
				t.Errorf("%s %s does nothing, and no component reports it: make some code read it, refuse it, or report it in a %s", spec.kind, field.path, reporter)
			}
		}
	}
}

// TestExcuses checks that the tables have no unneeded entries: a field that is read needs no excuse.
func TestExcuses(t *testing.T) {
	s, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	unread := map[string][]string{}
	for _, spec := range specs {
		fields, err := s.fieldsOf(spec.path, spec.spec, spec.passedTo)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range fields {
			if len(field.readers) == 0 {
				unread[spec.kind] = append(unread[spec.kind], field.path)
			}
		}
	}
	for _, e := range excuses {
		for _, kind := range e.kinds {
			if !slices.ContainsFunc(unread[kind], func(path string) bool { return within(path, e.path) }) {
				t.Errorf("%s %s is read, or gone: remove it from the table of excuses", kind, e.path)
			}
		}
	}
}

// readElsewhere lists fields that are read for OpenShift payloads, and have no effect with other payloads.
var readElsewhere = []string{"networking.apiServer.port", "configuration.featureGate.featureSet"}

// TestReportsAreTrue checks that a field that is read is not reported as without effect.
func TestReportsAreTrue(t *testing.T) {
	s, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range specs {
		fields, err := s.fieldsOf(spec.path, spec.spec, spec.passedTo)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range fields {
			if len(field.readers) == 0 || slices.Contains(readElsewhere, field.path) {
				continue
			}
			if said, err := reportedIneffective(spec.kind, field.path); err != nil {
				t.Errorf("%s %s: %v", spec.kind, field.path, err)
			} else if said {
				t.Errorf("%s %s is read by %v, and reported without effect: fix the %s", spec.kind, field.path, field.readers, reporter)
			}
		}
	}
}

// TestReported checks that the operators' reports name a set field only if it has no effect or is rejected.
func TestReported(t *testing.T) {
	for path, want := range map[string]bool{
		"fips": true, "configuration.oauth.tokenConfig.accessTokenMaxAgeSeconds": true, "secretEncryption.kms.provider": true,
		"configuration.authentication.oidcProviders[].externalClaimsSources[].url.hostname": true,
		"controllerAvailabilityPolicy":                      false,
		"configuration.apiServer.clientCA":                  false,
		"configuration.apiServer.audit.customRules[].group": false,
	} {
		t.Run("When "+path+" is set, the operators should report it only if it has no effect or is rejected", func(t *testing.T) {
			g := NewWithT(t)
			got, err := reported("HostedCluster", path)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(want))
		})
	}
}

func within(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || strings.ContainsAny(rest[:1], ".[{"))
}

// excuse returns the reason why a field without a reader is acceptable; empty if it is not.
func (s *source) excuse(kind, path string) (string, error) {
	for _, e := range excuses {
		if slices.Contains(e.kinds, kind) && within(path, e.path) {
			return e.why(), s.check(e)
		}
	}
	ok, err := reported(kind, path)
	if !ok || err != nil {
		return "", err
	}
	return "reported without effect, or refused", nil
}

// check verifies an excuse against the code, as far as possible.
func (s *source) check(e excuse) error {
	if e.says != "" && !slices.ContainsFunc(s.texts[e.where], func(text string) bool { return strings.Contains(text, e.says) }) {
		return fmt.Errorf("package %s does not say %q any more", e.where, e.says)
	}
	if e.field != "" && !slices.Contains(s.uses[e.field], e.where) {
		return fmt.Errorf("package %s does not read %s any more", e.where, e.field)
	}
	return nil
}
