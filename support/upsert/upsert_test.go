// SPDX-License-Identifier: Apache-2.0

package upsert_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/support/upsert"
)

// counted counts the writes of a client against a real API server.
func counted(t *testing.T) (client.Client, *int) {
	t.Helper()
	c, err := client.NewWithWatch(testenv.Start(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return testenv.Counted(c)
}

func TestUpsert(t *testing.T) {
	c, writes := counted(t)
	service := func() *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "api"}}
	}
	port := func(s *corev1.Service, number int32) func() error {
		return func() error {
			if len(s.Spec.Ports) == 0 {
				s.Spec.Ports = make([]corev1.ServicePort, 1)
			}
			s.Spec.Ports[0].Port = number
			return nil
		}
	}

	t.Run("When the object does not exist, it should create it", func(t *testing.T) {
		g := NewWithT(t)
		s := service()
		result, err := upsert.Object(t.Context(), c, s, port(s, 6443))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result).To(Equal(upsert.Created))
		g.Expect(s.Spec.ClusterIP).NotTo(BeEmpty())
	})
	t.Run("When the object is up to date, it should write nothing and keep what the server filled in", func(t *testing.T) {
		g := NewWithT(t)
		before, s := *writes, service()
		result, err := upsert.Object(t.Context(), c, s, port(s, 6443))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result).To(Equal(upsert.Unchanged))
		g.Expect(*writes).To(Equal(before))
		g.Expect(s.Spec.ClusterIP).NotTo(BeEmpty())
	})
	t.Run("When the object differs, it should update it", func(t *testing.T) {
		g := NewWithT(t)
		s := service()
		result, err := upsert.Object(t.Context(), c, s, port(s, 443))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result).To(Equal(upsert.Updated))
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(s), s)).To(Succeed())
		g.Expect(s.Spec.Ports[0].Port).To(BeEquivalentTo(443))
	})
	t.Run("When the mutation changes the name, it should return an error", func(t *testing.T) {
		g := NewWithT(t)
		s := service()
		_, err := upsert.Object(t.Context(), c, s, func() error { s.Name = "other"; return nil })
		g.Expect(err).To(MatchError(ContainSubstring("Service default/api")))
	})
	t.Run("When the server rejects the object, the error should name the object and keep the reason", func(t *testing.T) {
		g := NewWithT(t)
		s := service()
		s.Name = "no-ports"
		_, err := upsert.Object(t.Context(), c, s, func() error { s.Spec.Type = "Nonsense"; return nil })
		g.Expect(apierrors.IsInvalid(err)).To(BeTrue())
		g.Expect(err).To(MatchError(ContainSubstring("creating Service default/no-ports")))
	})
	t.Run("When a status or metadata patch changes nothing, it should write nothing", func(t *testing.T) {
		g := NewWithT(t)
		s := service()
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(s), s)).To(Succeed())
		before := *writes
		g.Expect(upsert.Patch(t.Context(), c, s, func() {})).To(Succeed())
		g.Expect(upsert.Status(t.Context(), c, s, func() {})).To(Succeed())
		g.Expect(*writes).To(Equal(before))
		g.Expect(upsert.Patch(t.Context(), c, s, func() { s.Labels = map[string]string{"a": "b"} })).To(Succeed())
		g.Expect(*writes).To(Equal(before + 1))
	})
	t.Run("When an object exists, Gone should delete it and report true once the object is gone", func(t *testing.T) {
		g := NewWithT(t)
		s := service()
		gone, err := upsert.Gone(t.Context(), c, s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(gone).To(BeFalse())
		g.Eventually(func() (bool, error) { return upsert.Gone(t.Context(), c, service()) }).Should(BeTrue())
	})
}
