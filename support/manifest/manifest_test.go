// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"
	"testing/fstest"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestLoad(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"has a field that its kind lacks", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nspec: {}\n", "unknown field"},
		{"is of an unknown kind", "apiVersion: v1\nkind: Nothing\n", "no kind"},
		{"is of another kind than expected", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "it is a *v1.ConfigMap"},
		{"is a list", "apiVersion: v1\nkind: ConfigMapList\nitems: []\n", "is not an object with metadata"},
		{"has a field twice", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, name: b}\n", "already set"},
		{"is empty", " ", "Object 'Kind' is missing"},
		{"does not exist", "", "file does not exist"},
	}
	for _, tc := range cases {
		t.Run("When a manifest "+tc.name+", it should return an error that names it", func(t *testing.T) {
			g := NewWithT(t)
			files := fstest.MapFS{}
			if tc.text != "" {
				files["d.yaml"] = &fstest.MapFile{Data: []byte(tc.text)}
			}
			_, err := LoadAs[*appsv1.Deployment](scheme.Scheme, files, "d.yaml")
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			g.Expect(err).To(MatchError(ContainSubstring("d.yaml")))
		})
	}
}

func TestLoadAs(t *testing.T) {
	g := NewWithT(t)
	files := fstest.MapFS{"d.yaml": &fstest.MapFile{Data: []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 3}\n")}}
	deployment, err := LoadAs[*appsv1.Deployment](scheme.Scheme, files, "d.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(deployment.Name).To(Equal("a"))
	g.Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
	again, err := LoadAs[*appsv1.Deployment](scheme.Scheme, files, "d.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).NotTo(BeIdenticalTo(deployment), "who changes what he has loaded changes it for nobody else")
}
