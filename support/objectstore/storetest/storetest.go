// SPDX-License-Identifier: Apache-2.0

// Package storetest provides an object store for tests. It implements the part of the S3 protocol that the product
// needs, over TLS, for clients that have its key.
package storetest

import (
	"bytes"
	"encoding/pem"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openshift/hypershift/support/objectstore"
)

// Store is the server, with one bucket. Its fields may be changed while no request is running.
type Store struct {
	*httptest.Server
	mu sync.Mutex
	// Buckets are the existing buckets.
	Buckets map[string]bool
	// Objects are the stored objects by name, and Marks their user metadata.
	Objects map[string][]byte
	Marks   map[string]http.Header
	// Uploads are the multipart uploads that are not complete.
	Uploads map[string]*Upload
	// Key is the identifier of the access key that the store accepts.
	Key string
	// Answer is the error code with which the store refuses all writes; empty accepts them. Rots corrupts the stored data.
	Answer string
	Rots   bool
	// Unlisted is the status of the response to a list of the uploads; zero lists them.
	Unlisted int
	// Writes and Reads count requests for objects.
	Writes, Reads int
}

// Upload is a multipart upload.
type Upload struct {
	Key   string
	Began time.Time
	parts map[string][]byte
}

// Bucket is the bucket of a new store.
const Bucket = "backups"

// New starts a store and stops it when the test ends.
func New(t testing.TB) *Store {
	t.Helper()
	s := &Store{
		Buckets: map[string]bool{Bucket: true}, Objects: map[string][]byte{}, Marks: map[string]http.Header{}, Uploads: map[string]*Upload{}, Key: "AKIDEXAMPLE",
	}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	return s
}

// Dir returns a folder with the files of a Secret that has access to the store.
func (s *Store) Dir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		objectstore.CredentialsKey: "[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = hunter2\n",
		objectstore.CABundleKey:    string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Names returns the names of the objects, sorted.
func (s *Store) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.Objects))
}

// ServeHTTP implements http.Handler.
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	query := r.URL.Query()
	switch {
	case !strings.Contains(r.Header.Get("Authorization"), "Credential="+s.Key+"/"):
		refuse(w, http.StatusForbidden, "InvalidAccessKeyId")
	case !s.Buckets[bucket]:
		refuse(w, http.StatusNotFound, "NoSuchBucket")
	case s.Answer != "" && r.Method != http.MethodGet:
		refuse(w, http.StatusInsufficientStorage, s.Answer)
	case query.Has("uploads") && r.Method == http.MethodGet:
		s.listUploads(w, query.Get("prefix"))
	case query.Has("uploads"):
		id := fmt.Sprintf("u%d", len(s.Uploads))
		s.Uploads[id] = &Upload{Key: key, Began: time.Now(), parts: map[string][]byte{}}
		_ = xml.NewEncoder(w).Encode(struct {
			XMLName               xml.Name `xml:"InitiateMultipartUploadResult"`
			Bucket, Key, UploadId string
		}{Bucket: bucket, Key: key, UploadId: id})
	case query.Has("uploadId"):
		s.multipart(w, r, query.Get("uploadId"), query.Get("partNumber"), body)
	default:
		s.object(w, r, key, body)
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", code)
}

func (s *Store) listUploads(w http.ResponseWriter, prefix string) {
	if s.Unlisted != 0 {
		refuse(w, s.Unlisted, map[int]string{http.StatusNotFound: "NoSuchUpload", http.StatusNotImplemented: "NotImplemented"}[s.Unlisted])
		return
	}
	fmt.Fprint(w, "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>")
	for id, u := range s.Uploads {
		if strings.HasPrefix(u.Key, prefix) {
			fmt.Fprintf(w, "<Upload><Key>%s</Key><UploadId>%s</UploadId><Initiated>%s</Initiated></Upload>", u.Key, id, u.Began.UTC().Format(time.RFC3339))
		}
	}
	fmt.Fprint(w, "</ListMultipartUploadsResult>")
}

func (s *Store) multipart(w http.ResponseWriter, r *http.Request, id, part string, body []byte) {
	u := s.Uploads[id]
	switch {
	case u == nil:
		refuse(w, http.StatusNotFound, "NoSuchUpload")
	case r.Method == http.MethodPut:
		u.parts[part] = body
		w.Header().Set("ETag", `"`+part+`"`)
	case r.Method == http.MethodDelete:
		delete(s.Uploads, id)
		w.WriteHeader(http.StatusNoContent)
	default:
		var whole []byte
		for i := range len(u.parts) {
			whole = append(whole, u.parts[fmt.Sprint(i+1)]...)
		}
		s.keep(u.Key, whole)
		delete(s.Uploads, id)
		_ = xml.NewEncoder(w).Encode(struct {
			XMLName           xml.Name `xml:"CompleteMultipartUploadResult"`
			Bucket, Key, ETag string
		}{Bucket: Bucket, Key: u.Key, ETag: "e"})
	}
}

func (s *Store) keep(key string, content []byte) {
	if content = bytes.Clone(content); s.Rots {
		content[len(content)/2] ^= 1
	}
	s.Objects[key] = content
}

func (s *Store) object(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	content, ok := s.Objects[key]
	switch {
	case r.Method == http.MethodPut:
		s.Writes++
		s.keep(key, body)
		s.Marks[key] = marks(r.Header)
		w.Header().Set("ETag", `"e"`)
	case r.Method == http.MethodDelete:
		s.Writes++
		delete(s.Objects, key)
		w.WriteHeader(http.StatusNoContent)
	case !ok:
		refuse(w, http.StatusNotFound, "NoSuchKey")
	default:
		s.Reads++
		maps.Copy(w.Header(), s.Marks[key])
		w.Header().Set("ETag", `"e"`)
		http.ServeContent(w, r, "", time.Now(), bytes.NewReader(content))
	}
}

// marks returns the user metadata of an object.
func marks(request http.Header) http.Header {
	kept := http.Header{}
	for name, values := range request {
		if strings.HasPrefix(name, "X-Amz-Meta-") {
			kept[name] = values
		}
	}
	return kept
}
