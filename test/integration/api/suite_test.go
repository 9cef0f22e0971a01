// SPDX-License-Identifier: Apache-2.0

// Package api tests the CRDs against a real kube-apiserver: every rule accepts valid values and rejects invalid ones.
package api

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

const (
	namespace = "default"
	// patience is the timeout for the server to apply a changed CRD.
	patience = 5 * time.Minute
)

// ours are the folders of support/crds whose rules this project writes.
var ours = []string{crds.HyperShift, crds.Certificates, crds.Infrastructure}

// suite is one file of testdata/rules.
type suite struct {
	// Objects are the files of testdata/objects from which each case starts.
	Objects []base `json:"objects"`
	// Cases contains at least one case for each rule.
	Cases []ruleCase `json:"cases"`
}

// base is a valid object.
type base struct {
	File string `json:"file"`
	// Under is prepended to each path, for kinds that contain the spec of another, e.g. "spec.template".
	Under string `json:"under,omitempty"`
}

// ruleCase tests one rule. Edits map a path such as "spec.services[0].service" to a value; null removes it.
type ruleCase struct {
	// Rule is the message of the rule, or a part of it.
	Rule string `json:"rule"`
	// Given is an edit that is applied to the base first, for both Accept and Refuse.
	Given map[string]any `json:"given,omitempty"`
	// Update stores the given object and then edits it; otherwise the edited object is created.
	Update bool `json:"update,omitempty"`
	// Status makes the edits through the status subresource.
	Status bool `json:"status,omitempty"`
	// Accept is an edit that must be accepted; without it, the given object must be accepted.
	Accept map[string]any `json:"accept,omitempty"`
	// Refuse is an edit that must be rejected with the rule's message.
	Refuse map[string]any `json:"refuse"`
}

// ownData is the folder with the rules and objects of the current version.
const ownData = "testdata"

func readSuites(t *testing.T) map[string]suite {
	t.Helper()
	return readSuitesOf(t, ownData)
}

// readSuitesOf reads the suites of a folder that has the form of testdata.
func readSuitesOf(t *testing.T, data string) map[string]suite {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(data, "rules", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no suites in %s: %v", data, err)
	}
	suites := map[string]suite{}
	for _, path := range paths {
		var s suite
		readYAML(t, path, &s)
		suites[strings.TrimSuffix(filepath.Base(path), ".yaml")] = s
	}
	return suites
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Fatalf("reading %s: %v", path, err)
	}
}

// read reads a base object, without the strict decoding that requires structs.
func (b base) read(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	return b.readOf(t, ownData)
}

// readOf reads a base object of a folder that has the form of testdata.
func (b base) readOf(t *testing.T, data string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	readYAML(t, filepath.Join(data, "objects", b.File+".yaml"), &object.Object)
	object.SetNamespace(namespace)
	return object
}

// edited returns the object with edits at their paths.
func (b base) edited(t *testing.T, object *unstructured.Unstructured, edits ...map[string]any) *unstructured.Unstructured {
	t.Helper()
	out := object.DeepCopy()
	for _, edit := range edits {
		for path, value := range edit {
			if b.Under != "" && strings.HasPrefix(path, "spec") {
				path = b.Under + "." + path
			}
			if err := set(out.Object, path, value); err != nil {
				t.Fatalf("editing %s: %v", b.File, err)
			}
		}
	}
	return out
}

func TestRules(t *testing.T) {
	config := testenv.Start(t, ours...)
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range readSuites(t) {
		for _, object := range s.Objects {
			for i, test := range s.Cases {
				run := runner{client: c, base: object, test: test, name: fmt.Sprintf("%s-%s-%d", object.File, strings.ToLower(name), i)}
				t.Run(object.File+"/"+name+"/"+test.Rule, run.run)
			}
		}
	}
}

type runner struct {
	client client.Client
	base   base
	test   ruleCase
	name   string
}

func (r runner) run(t *testing.T) {
	object := r.base.edited(t, r.base.read(t), r.test.Given)
	if object.GetName() == "" || !touchesName(r.test) {
		object.SetName(r.name)
	}
	accepted := r.base.edited(t, object, r.test.Accept)
	refused := r.base.edited(t, object, r.test.Refuse)
	write := r.create
	if r.test.Update || r.test.Status {
		write = r.update
		if err := r.store(t.Context(), object); err != nil {
			t.Fatalf("When the given object is stored it should be accepted: %v", err)
		}
		t.Cleanup(func() {
			if err := r.client.Delete(context.WithoutCancel(t.Context()), object); err != nil {
				t.Errorf("removing %s: %v", object.GetName(), err)
			}
		})
		accepted.SetResourceVersion(object.GetResourceVersion())
		refused.SetResourceVersion(object.GetResourceVersion())
	}
	if err := write(t.Context(), accepted); err != nil {
		t.Errorf("When the edit keeps the rule it should be accepted: %v", err)
	}
	err := write(t.Context(), refused)
	switch {
	case err == nil:
		t.Errorf("When the edit breaks the rule it should be refused, and was not:\n%s", describe(refused))
	case !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), r.test.Rule):
		t.Errorf("When the edit breaks the rule it should be refused for it, and got: %v", err)
	}
}

// store creates the object, and its status if the case is about the status.
func (r runner) store(ctx context.Context, object *unstructured.Unstructured) error {
	status := object.Object["status"]
	if err := r.client.Create(ctx, object); err != nil || !r.test.Status || status == nil {
		return err
	}
	object.Object["status"] = status
	return r.client.Status().Update(ctx, object)
}

func (r runner) create(ctx context.Context, object *unstructured.Unstructured) error {
	return r.client.Create(ctx, object, client.DryRunAll)
}

func (r runner) update(ctx context.Context, object *unstructured.Unstructured) error {
	if r.test.Status {
		return r.client.Status().Update(ctx, object, client.DryRunAll)
	}
	return r.client.Update(ctx, object, client.DryRunAll)
}

func touchesName(test ruleCase) bool {
	_, accepts := test.Accept["metadata.name"]
	_, refuses := test.Refuse["metadata.name"]
	return accepts || refuses
}

func describe(object *unstructured.Unstructured) []byte {
	data, err := yaml.Marshal(object.Object)
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(data)
}
