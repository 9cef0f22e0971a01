// SPDX-License-Identifier: Apache-2.0

package autoscaler_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/syntax/autoscaler"
)

// refused reports whether err is not nil. An error must name the field.
func refused(t *testing.T, err error) bool {
	t.Helper()
	if err != nil && !strings.HasPrefix(err.Error(), "spec.field ") {
		t.Errorf("the error names no field: %v", err)
	}
	return err != nil
}

func FuzzLabels(f *testing.F) {
	f.Add("example.com/rack", "r1")
	f.Add("rack", "")
	f.Add("rack", "r1,node-role.kubernetes.io/master=")
	f.Add("rack=r1,evil", "x")
	f.Add("", "x")
	f.Add("rack", "r1\n")
	f.Fuzz(func(t *testing.T, key, value string) {
		if key == "zone" {
			t.Skip("the key of the other label")
		}
		text, err := autoscaler.Labels("spec.field", map[string]string{key: value, "zone": "az1"})
		if refused(t, err) {
			return
		}
		read := map[string]string{}
		for item := range strings.SplitSeq(text, ",") {
			k, v, _ := strings.Cut(item, "=")
			read[k] = v
		}
		NewWithT(t).Expect(read).To(Equal(map[string]string{key: value, "zone": "az1"}), "%q", text)
	})
}

func FuzzTaints(f *testing.F) {
	f.Add("dedicated", "gpu", "NoSchedule")
	f.Add("example.com/own", "", "NoExecute")
	f.Add("own", "a:NoSchedule,b=c", "PreferNoSchedule")
	f.Add("own:NoSchedule,b", "c", "NoSchedule")
	f.Add("own", "", "NoSchedule,b:NoSchedule")
	f.Fuzz(func(t *testing.T, key, value, effect string) {
		want := []hyperv1.Taint{
			{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}, {Key: "last", Effect: corev1.TaintEffectNoExecute},
		}
		text, err := autoscaler.Taints("spec.field", want)
		if refused(t, err) {
			return
		}
		var read []hyperv1.Taint
		for item := range strings.SplitSeq(text, ",") {
			pair, effect, _ := strings.Cut(item, ":")
			key, value, _ := strings.Cut(pair, "=")
			read = append(read, hyperv1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
		}
		NewWithT(t).Expect(read).To(Equal(want), "%q", text)
	})
}

func TestRefusals(t *testing.T) {
	for name, labels := range map[string]map[string]string{
		"another label in a value": {"rack": "r1,node-role.kubernetes.io/control-plane="},
		"another label in a key":   {"rack=r1,evil": "x"},
		"an empty key":             {"": "x"},
		"a line break":             {"rack": "r1\nevil"},
		"a value that is too long": {"rack": strings.Repeat("r", 64)},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			_, err := autoscaler.Labels("spec.field", labels)
			NewWithT(t).Expect(refused(t, err)).To(BeTrue())
		})
	}
	t.Run("refuses an effect that Kubernetes does not know", func(t *testing.T) {
		_, err := autoscaler.Taints("spec.field", []hyperv1.Taint{{Key: "own", Effect: "NoSchedule,b:NoSchedule"}})
		NewWithT(t).Expect(err).To(MatchError("spec.field has an unknown effect; use NoSchedule, PreferNoSchedule or NoExecute"))
	})
}
