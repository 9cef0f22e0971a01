// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// admit serves a validating admission webhook over TLS on :8443, with the certificate and the private key of the
// arguments. It refuses objects named "refused".
func admit(ctx context.Context, args []string, _ io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: admit CERTIFICATE KEY")
	}
	server := &http.Server{Addr: ":8443", Handler: http.HandlerFunc(review), ReadHeaderTimeout: timeout}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ListenAndServeTLS(args[0], args[1]); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the webhook: %w", err)
	}
	return nil
}

func review(w http.ResponseWriter, r *http.Request) {
	asked := &admissionv1.AdmissionReview{}
	if err := json.NewDecoder(r.Body).Decode(asked); err != nil || asked.Request == nil {
		http.Error(w, "not an AdmissionReview with a request", http.StatusBadRequest)
		return
	}
	asked.Response = &admissionv1.AdmissionResponse{UID: asked.Request.UID, Allowed: asked.Request.Name != "refused"}
	if !asked.Response.Allowed {
		asked.Response.Result = &metav1.Status{Message: "the webhook refuses this name"}
	}
	asked.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(asked)
}
