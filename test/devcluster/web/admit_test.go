// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
)

func TestReview(t *testing.T) {
	for name, want := range map[string]bool{"any": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			body, err := json.Marshal(admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{UID: "1", Name: name}})
			g.Expect(err).NotTo(HaveOccurred())
			recorder := httptest.NewRecorder()
			review(recorder, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body))))
			answer := &admissionv1.AdmissionReview{}
			g.Expect(json.Unmarshal(recorder.Body.Bytes(), answer)).To(Succeed())
			g.Expect(answer.Response.UID).To(BeEquivalentTo("1"))
			g.Expect(answer.Response.Allowed).To(Equal(want))
		})
	}
	t.Run("something else", func(t *testing.T) {
		recorder := httptest.NewRecorder()
		review(recorder, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}")))
		NewWithT(t).Expect(recorder.Code).To(Equal(http.StatusBadRequest))
	})
}
