// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hashOf returns the hash of the objects that a pod mounts, in a cluster with these objects.
func hashOf(t *testing.T, pod corev1.PodSpec, objects ...client.Object) string {
	t.Helper()
	hash, err := configHash(t.Context(), newScope(objects...).Client, namespace, &pod)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func mountsConfigMap(name string) corev1.Volume {
	return corev1.Volume{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}
}

func mountsSecret(name string) corev1.Volume {
	return corev1.Volume{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}}
}

func settings(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

func credentials(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

// TestWhatRollsPods checks that pods roll when mounted data changes, and only then.
func TestWhatRollsPods(t *testing.T) {
	pod := corev1.PodSpec{Volumes: []corev1.Volume{mountsConfigMap("a"), mountsSecret("b"), {Name: "scratch"}}}
	binary := settings("a", nil)
	binary.BinaryData = map[string][]byte{"k": []byte("v")}
	before := hashOf(t, pod, settings("a", map[string]string{"k": "v"}), credentials("b", map[string][]byte{"x": []byte("y")}))
	b := credentials("b", map[string][]byte{"x": []byte("y")})
	for name, tc := range map[string]struct {
		objects []client.Object
		rolls   bool
	}{
		"nothing changes": {[]client.Object{settings("a", map[string]string{"k": "v"}), b}, false},
		"an object that it does not mount changes": {[]client.Object{
			settings("a", map[string]string{"k": "v"}), b, settings("c", map[string]string{"k": "w"}), credentials("a", map[string][]byte{"k": []byte("w")})}, false},
		"a value changes":                              {[]client.Object{settings("a", map[string]string{"k": "w"}), b}, true},
		"a value moves to another key":                 {[]client.Object{settings("a", map[string]string{"l": "v"}), b}, true},
		"a key is added":                               {[]client.Object{settings("a", map[string]string{"k": "v", "l": ""}), b}, true},
		"all data of the ConfigMap is removed":         {[]client.Object{settings("a", nil), b}, true},
		"the Secret is deleted":                        {[]client.Object{settings("a", map[string]string{"k": "v"})}, true},
		"a value of the Secret changes":                {[]client.Object{settings("a", map[string]string{"k": "v"}), credentials("b", map[string][]byte{"x": []byte("z")})}, true},
		"a value moves from data to binaryData":        {[]client.Object{binary, b}, false},
		"a part of a value moves into its key":         {[]client.Object{settings("a", map[string]string{"k 1 v": ""}), b}, true},
		"a value moves from the ConfigMap to a Secret": {[]client.Object{b, credentials("a", map[string][]byte{"k": []byte("v")})}, true},
	} {
		t.Run("When "+name+", it should roll the Pod only if mounted data changed", func(t *testing.T) {
			NewWithT(t).Expect(hashOf(t, pod, tc.objects...) != before).To(Equal(tc.rolls))
		})
	}
	t.Run("When a Secret has the name and content of a previous ConfigMap, it should have a different hash", func(t *testing.T) {
		asMap := hashOf(t, corev1.PodSpec{Volumes: []corev1.Volume{mountsConfigMap("a")}}, settings("a", map[string]string{"k": "v"}))
		asSecret := hashOf(t, corev1.PodSpec{Volumes: []corev1.Volume{mountsSecret("a")}}, credentials("a", map[string][]byte{"k": []byte("v")}))
		NewWithT(t).Expect(asMap).NotTo(Equal(asSecret))
	})
	t.Run("When volumes are reordered or one is mounted twice, it should return the same hash", func(t *testing.T) {
		objects := []client.Object{settings("a", map[string]string{"k": "v"}), settings("c", map[string]string{"k": "v"}), b, credentials("d", map[string][]byte{"x": []byte("y")})}
		one := corev1.PodSpec{Volumes: []corev1.Volume{mountsConfigMap("a"), mountsConfigMap("c"), mountsSecret("b"), mountsSecret("d")}}
		other := corev1.PodSpec{Volumes: []corev1.Volume{mountsSecret("d"), mountsConfigMap("c"), mountsSecret("b"), mountsConfigMap("a"), mountsConfigMap("c"), mountsSecret("d")}}
		NewWithT(t).Expect(hashOf(t, other, objects...)).To(Equal(hashOf(t, one, objects...)))
	})
	t.Run("When a ConfigMap is marked as reloaded, it should not restart running Pods", func(t *testing.T) {
		marked := func(value string) *corev1.ConfigMap {
			cm := settings("a", map[string]string{"k": value})
			cm.Annotations = map[string]string{ReloadedAnnotation: "true"}
			return cm
		}
		g := NewWithT(t)
		g.Expect(hashOf(t, pod, marked("v"), b)).To(Equal(hashOf(t, pod, marked("w"), b)))
		g.Expect(hashOf(t, pod, marked("v"), b)).NotTo(Equal(hashOf(t, pod, marked("v"))), "the Secret beside it counts")
	})
}

// TestWhatCannotBeReadRollsNothing checks that a failed read is an error. A hash without the unread object would
// restart all pods, and again after the next successful read.
func TestWhatCannotBeReadRollsNothing(t *testing.T) {
	for name, volume := range map[string]corev1.Volume{"a ConfigMap": mountsConfigMap("a"), "a Secret": mountsSecret("a")} {
		t.Run("When "+name+" cannot be read it should be an error", func(t *testing.T) {
			s := newScope(settings("a", nil), credentials("a", nil))
			_, err := configHash(t.Context(), (&outage{}).through(s.Client), namespace, &corev1.PodSpec{Volumes: []corev1.Volume{volume}})
			g := NewWithT(t)
			g.Expect(errors.Is(err, errAway)).To(BeTrue())
			g.Expect(err).To(MatchError(ContainSubstring("clusters-demo/a for the config hash")))
		})
	}
}
