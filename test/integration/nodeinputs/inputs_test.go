// SPDX-License-Identifier: Apache-2.0

package nodeinputs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/ignition-server/payload"
	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
)

// TestInputs checks the effect of each input in the table: what a new machine gets after a change, and whether
// running machines are replaced.
func TestInputs(t *testing.T) {
	registry := releasetest.Start(t)
	for i, in := range nodeinput.Inputs {
		if in.Effect == nodeinput.Fixed || i > 0 && in.Field == nodeinput.Inputs[i-1].Field {
			continue
		}
		t.Run("When the input changes: "+in.Field, func(t *testing.T) {
			c, known := cases[in.Field]
			if !known {
				t.Fatal("no case changes this input")
			}
			w := newWorld(t, registry, fmt.Sprintf("input-%d", i))
			if c.prepare != nil {
				c.prepare(w)
				w.settle()
			}
			machines, node := w.userData(), w.node()
			c.change(w)
			w.settle()
			w.Expect(w.condition("ValidGeneratedPayload").Status).To(Equal(corev1.ConditionTrue), w.condition("ValidMachineConfig").Message)
			w.Expect(w.userData() != machines).To(Equal(in.Effect == nodeinput.ReplacesMachines), "the table says that it %s", in.Effect)
			w.compare(in, differences(node, w.node()))
		})
	}
}

// compare checks that exactly the parts of a node changed that the table lists.
func (w *world) compare(in nodeinput.Input, changed []string) {
	w.t.Helper()
	if slices.Contains(in.Renders, "what it says") {
		w.Expect(changed).NotTo(BeEmpty())
		return
	}
	matches := func(part, rendered string) bool {
		return part == rendered || strings.HasSuffix(rendered, "/") && strings.HasPrefix(part, rendered)
	}
	for _, part := range changed {
		w.Expect(slices.ContainsFunc(in.Renders, func(r string) bool { return matches(part, r) })).To(BeTrue(), "%s changes, which the table does not say", part)
	}
	for _, rendered := range in.Renders {
		w.Expect(slices.ContainsFunc(changed, func(part string) bool { return matches(part, rendered) })).To(BeTrue(), "%s does not change, but %v", rendered, changed)
	}
}

// TestOneReader checks that the operator and the ignition-server accept and reject the same documents.
func TestOneReader(t *testing.T) {
	w := newWorld(t, releasetest.Start(t), "reader")
	generator := &payload.Generator{Client: w.client, Namespace: w.hosted()}
	release := w.release("1.36.3", "1")
	for _, tc := range []struct {
		name, text string
		accepted   bool
	}{
		{"When a MachineConfig has an Ignition config, both should accept it", "kind: MachineConfig\nmetadata: {name: a}\nspec: {config: {ignition: {version: 3.2.0}}}", true},
		{"When a MachineConfig selects a kernel, both should reject it", "kind: MachineConfig\nmetadata: {name: a}\nspec: {kernelType: realtime}", false},
		{"When the Ignition version is too old, both should reject it", "kind: MachineConfig\nmetadata: {name: a}\nspec: {config: {ignition: {version: 2.2.0}}}", false},
		{"When a kubelet field is misspelled, both should reject it", "kind: KubeletConfig\nmetadata: {name: a}\nspec: {kubeletConfig: {maxPod: 1}}", false},
		{"When CRI-O is configured, both should reject it", "kind: ContainerRuntimeConfig\nmetadata: {name: a}\nspec: {containerRuntimeConfig: {pidsLimit: 1}}", false},
		{"When image signatures are required, both should reject it", "kind: ClusterImagePolicy\nmetadata: {name: a}", false},
		{"When tags are mirrored, both should accept it", "kind: ImageTagMirrorSet\nmetadata: {name: a}\nspec: {imageTagMirrors: [{source: a.example, mirrors: [b.example]}]}", true},
		{"When a mirror has another repository path, both should reject it", "kind: ImageDigestMirrorSet\nmetadata: {name: a}\nspec: {imageDigestMirrors: [{source: a.example/x, mirrors: [b.example/y]}]}", false},
		{"When the object has another kind, both should reject it", "kind: Deployment\nmetadata: {name: a}", false},
		{"When the config is not YAML, both should reject it", "a: [", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			machines := w.userData()
			configure(tc.text)(w)
			w.settle()
			g.Expect(w.condition("ValidMachineConfig").Status == corev1.ConditionTrue).To(Equal(tc.accepted), "operator: %s", w.condition("ValidMachineConfig").Message)
			if !tc.accepted {
				g.Expect(w.userData()).To(Equal(machines), "machines must stay as they are")
			}

			config, err := payload.Pack([]byte(tc.text))
			g.Expect(err).NotTo(HaveOccurred())
			_, err = generator.Generate(t.Context(), payload.Request{NodePool: w.namespace + "/" + fixture.PoolName, Release: release, Config: config})
			problem, refused := errors.AsType[*payload.Problem](err)
			g.Expect(refused).To(Equal(!tc.accepted), "ignition-server: %v", err)
			if refused {
				g.Expect(problem.Reason).To(Equal(payload.ReasonInvalidConfig))
			}
		})
	}
}
