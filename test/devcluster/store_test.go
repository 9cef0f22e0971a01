// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/devcluster/env"
)

// store returns a client of the environment's object store.
func (w *whole) store(g Gomega, keys *credentials.Credentials) *minio.Client {
	ca, err := os.ReadFile(w.StoreCA())
	g.Expect(err).NotTo(HaveOccurred())
	roots := x509.NewCertPool()
	g.Expect(roots.AppendCertsFromPEM(ca)).To(BeTrue())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
	client, err := minio.New(env.S3, &minio.Options{Creds: keys, Secure: true, Transport: transport, MaxRetries: 1})
	g.Expect(err).NotTo(HaveOccurred())
	return client
}

// keeps uploads an object in parts with the user's credentials. It checks that unknown credentials get no access.
func (w *whole) keeps(g Gomega) {
	store := w.store(g, credentials.NewFileAWSCredentials(w.StoreCredentials(), "default"))
	_, err := store.PutObject(w.t.Context(), env.Bucket, "folder/object", strings.NewReader("kept"), -1, minio.PutObjectOptions{PartSize: 5 << 20})
	g.Expect(err).NotTo(HaveOccurred())
	stranger := w.store(g, credentials.NewStaticV4("STRANGER", "secret", ""))
	_, err = stranger.StatObject(w.t.Context(), env.Bucket, "folder/object", minio.StatObjectOptions{})
	g.Expect(minio.ToErrorResponse(err).StatusCode).To(Equal(http.StatusForbidden))
}

// kept checks that the object that keeps has uploaded can be read.
func (w *whole) kept(g Gomega) {
	store := w.store(g, credentials.NewFileAWSCredentials(w.StoreCredentials(), "default"))
	object, err := store.GetObject(w.t.Context(), env.Bucket, "folder/object", minio.GetObjectOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	defer object.Close()
	g.Expect(io.ReadAll(object)).To(BeEquivalentTo("kept"))
}
