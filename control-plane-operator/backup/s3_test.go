// SPDX-License-Identifier: Apache-2.0

package backup

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

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// store is an object store that speaks what a backup needs of S3's protocol, over TLS, to whoever has its key.
type store struct {
	mu      sync.Mutex
	server  *httptest.Server
	buckets map[string]bool
	objects map[string][]byte
	uploads map[string]*upload
	key     string
	// answers are for the next writes, instead of what they ask for; rots alters what is stored.
	answer string
	rots   bool
}

type upload struct {
	key   string
	began time.Time
	parts map[string][]byte
}

func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{buckets: map[string]bool{"backups": true}, objects: map[string][]byte{}, uploads: map[string]*upload{}, key: "AKIDEXAMPLE"}
	s.server = httptest.NewTLSServer(s)
	t.Cleanup(s.server.Close)
	return s
}

// open is the storage as a pod opens it: with files of a Secret.
func (s *store) open(t *testing.T) Storage {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		CredentialsKey: "[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = hunter2\n",
		CABundleKey:    string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	storage, err := Open(hyperv1.HCPEtcdBackupStorage{StorageType: hyperv1.S3BackupStorage, S3: hyperv1.HCPEtcdBackupS3{
		Bucket: "backups", Region: "eu-central-1", KeyPrefix: "demo/", Endpoint: s.server.URL, Credentials: hyperv1.SecretReference{Name: "s3"},
	}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	return storage
}

func (s *store) names() []string { return slices.Sorted(maps.Keys(s.objects)) }

// ServeHTTP implements http.Handler.
func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	query := r.URL.Query()
	switch {
	case !strings.Contains(r.Header.Get("Authorization"), "Credential="+s.key+"/"):
		refuse(w, http.StatusForbidden, "InvalidAccessKeyId")
	case !s.buckets[bucket]:
		refuse(w, http.StatusNotFound, "NoSuchBucket")
	case s.answer != "" && r.Method != http.MethodGet:
		refuse(w, http.StatusInsufficientStorage, s.answer)
	case query.Has("uploads") && r.Method == http.MethodGet:
		s.listUploads(w, query.Get("prefix"))
	case query.Has("uploads"):
		id := fmt.Sprintf("u%d", len(s.uploads))
		s.uploads[id] = &upload{key: key, began: time.Now(), parts: map[string][]byte{}}
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

func (s *store) listUploads(w http.ResponseWriter, prefix string) {
	fmt.Fprint(w, "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>")
	for id, u := range s.uploads {
		if strings.HasPrefix(u.key, prefix) {
			fmt.Fprintf(w, "<Upload><Key>%s</Key><UploadId>%s</UploadId><Initiated>%s</Initiated></Upload>", u.key, id, u.began.UTC().Format(time.RFC3339))
		}
	}
	fmt.Fprint(w, "</ListMultipartUploadsResult>")
}

func (s *store) multipart(w http.ResponseWriter, r *http.Request, id, part string, body []byte) {
	u := s.uploads[id]
	switch {
	case u == nil:
		refuse(w, http.StatusNotFound, "NoSuchUpload")
	case r.Method == http.MethodPut:
		u.parts[part] = body
		w.Header().Set("ETag", `"`+part+`"`)
	case r.Method == http.MethodDelete:
		delete(s.uploads, id)
		w.WriteHeader(http.StatusNoContent)
	default:
		var whole []byte
		for i := range len(u.parts) {
			whole = append(whole, u.parts[fmt.Sprint(i+1)]...)
		}
		s.keep(u.key, whole)
		delete(s.uploads, id)
		_ = xml.NewEncoder(w).Encode(struct {
			XMLName           xml.Name `xml:"CompleteMultipartUploadResult"`
			Bucket, Key, ETag string
		}{Bucket: "backups", Key: u.key, ETag: "e"})
	}
}

func (s *store) keep(key string, content []byte) {
	if content = bytes.Clone(content); s.rots {
		content[len(content)/2] ^= 1
	}
	s.objects[key] = content
}

func (s *store) object(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	content, ok := s.objects[key]
	switch {
	case r.Method == http.MethodPut:
		s.keep(key, body)
		w.Header().Set("ETag", `"e"`)
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case !ok:
		refuse(w, http.StatusNotFound, "NoSuchKey")
	default:
		w.Header().Set("ETag", `"e"`)
		http.ServeContent(w, r, "", time.Now(), bytes.NewReader(content))
	}
}
