// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

const (
	etcdSize    = "spec.etcd.managed.storage.persistentVolume.size"
	oauth       = "spec.configuration"
	virtualized = "spec.platform"
)

// TestWrongValuesGetOneSentence checks that the error for an invalid value is one sentence with an example, not a
// regular expression or a parser error.
func TestWrongValuesGetOneSentence(t *testing.T) {
	c, err := client.New(testenv.Start(t, ours...), client.Options{Scheme: scheme.Scheme})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, tc := range []struct {
		file, path string
		values     []any
		sentence   string
	}{
		{"nodepool", "spec.nodeDrainTimeout", durations(),
			"nodeDrainTimeout must be a duration of at most 99999h, such as 30m or 1h30m"},
		{"nodepool", "spec.nodeVolumeDetachTimeout", durations(),
			"nodeVolumeDetachTimeout must be a duration of at most 99999h, such as 30m or 1h30m"},
		{"nodepool", "spec.platform.maas.deployTimeout", durations(),
			"deployTimeout must be a duration of at most 99999h, such as 30m or 1h30m"},
		{"maasmachine", "spec.timeouts.boot", durations(),
			"timeouts.boot must be a duration of at most 99999h, such as 30m or 1h30m"},
		// A rule that parsed one of the last two values as a quantity would block the API server for hours.
		{
			"hostedcluster", etcdSize, []any{"8 GB", "8Gb", "", 0, "1e2000000000", "1e-2000000000"},
			"etcd.managed.storage.persistentVolume.size must be a quantity greater than 0, such as 8Gi",
		},
		{
			"hostedcluster", oauth, under([]string{"oauth", "tokenConfig", "accessTokenInactivityTimeout"}, "5 minutes",
				"99999999999h", ""),
			"accessTokenInactivityTimeout must be a duration of at most 999999h, such as 30m or 1h30m",
		},
		{
			"hostedcluster", oauth, under([]string{"oauth", "tokenConfig", "accessTokenInactivityTimeout"}, "1m", "-10m",
				"299s"),
			"configuration.oauth.tokenConfig.accessTokenInactivityTimeout must be at least 300s",
		},
		{"nodepool", virtualized, memory("a lot", "1e2000000000"), "memory must be a quantity such as 8Gi"},
	} {
		for _, value := range tc.values {
			t.Run(fmt.Sprintf("%s of a %s is %v", tc.path, tc.file, value), func(t *testing.T) {
				g, b := NewWithT(t), base{File: tc.file}
				wrong := b.edited(t, b.read(t), map[string]any{tc.path: value})
				wrong.SetName("wrong")
				var refused *apierrors.StatusError
				g.Expect(errors.As(c.Create(t.Context(), wrong, client.DryRunAll), &refused)).To(BeTrue())
				g.Expect(refused.Status().Details.Causes).To(ConsistOf(HaveField("Message", HaveSuffix(": "+tc.sentence))))
			})
		}
	}
}

// durations returns values that must be rejected: some are not durations, and the others are too long for Go.
func durations() []any {
	return []any{"5 minutes", "5", "", "-1h", "99999999999h", "1000000h1000000h1000000h"}
}

// under nests each value in objects.
func under(keys []string, values ...any) []any {
	for i, value := range values {
		for j := len(keys) - 1; j >= 0; j-- {
			value = map[string]any{keys[j]: value}
		}
		values[i] = value
	}
	return values
}

// memory returns platforms with virtual machines of these sizes.
func memory(sizes ...any) []any {
	for i, compute := range under([]string{"memory"}, sizes...) {
		kubevirt := map[string]any{"rootVolume": map[string]any{"type": "Persistent"}, "compute": compute}
		sizes[i] = map[string]any{"type": "KubeVirt", "kubevirt": kubevirt}
	}
	return sizes
}

// parser matches calls of CEL's parsers on values that may be invalid. Parsing an invalid duration fails, which would
// also reject an update of a finalizer. Parsing a quantity computes a number with as many digits as its exponent
// requests.
var parser = regexp.MustCompile(`\b(quantity|isQuantity|duration)\((self|oldSelf|string\(|[a-z]\b)`)

func TestRulesCheckTheFormFirst(t *testing.T) {
	for _, folder := range ours {
		loaded, err := crds.Load(folder)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, crd := range loaded {
			text, err := json.Marshal(crd.Spec)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			for _, rule := range regexp.MustCompile(`"rule":"(\\.|[^"\\])*"`).FindAllString(string(text), -1) {
				call, form := parser.FindStringIndex(rule), strings.Index(rule, "matches(r'^")
				if call != nil && (form < 0 || call[0] < form) {
					t.Errorf("%s: a rule parses text before it checks its form: %s", crd.Name, rule)
				}
			}
		}
	}
}
