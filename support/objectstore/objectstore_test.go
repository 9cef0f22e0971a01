// SPDX-License-Identifier: Apache-2.0

package objectstore_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/objectstore"
)

const keys = "[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = hunter2\n"

func files(t *testing.T, content map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestNew(t *testing.T) {
	// The test must not read the environment or the home folder of the user that runs it.
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY", "AWS_SECRET_KEY"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	good := files(t, map[string]string{"credentials": keys, "other": keys, "ca-bundle.crt": "hunter2"})
	plain := files(t, map[string]string{"credentials": keys})
	for name, tc := range map[string]struct {
		config objectstore.Config
		url    string
		fails  string
	}{
		"When only a region is set, it should use the endpoint of AWS": {objectstore.Config{Region: "eu-west-1", Dir: plain},
			"https://s3.eu-west-1.amazonaws.com", ""},
		"When an endpoint is set, it should use that endpoint": {objectstore.Config{Region: "r",
			Endpoint: "https://store.example:9000", Dir: plain}, "https://store.example:9000", ""},
		"When the endpoint is plain HTTP, it should use HTTP": {objectstore.Config{Region: "r",
			Endpoint: "http://store.example", Dir: plain}, "http://store.example", ""},
		"When the endpoint is not a URL, it should return an error": {objectstore.Config{Endpoint: "http://[", Dir: plain},
			"", "the endpoint is not a URL"},
		"When the endpoint has no scheme, it should return an error": {objectstore.Config{Endpoint: "store.example",
			Dir: plain}, "", "the endpoint: "},
		"When the Secret lacks the key, it should name the key": {objectstore.Config{Region: "r", Dir: plain,
			Key: "cloud"}, "", `key "cloud": it is not an AWS credentials file`},
		"When the Secret has another profile, it should name the required profile": {objectstore.Config{Region: "r", Dir: files(t, map[string]string{"credentials": "[backup]\n" + keys[10:]})}, "", "with a profile [default]"},
		"When the credentials lack a key, it should name the required keys":        {objectstore.Config{Region: "r", Dir: files(t, map[string]string{"credentials": "[default]\nregion = hunter2\n"})}, "", "that has aws_access_key_id"},
		"When the file is not a credentials file, it should not print it":          {objectstore.Config{Region: "r", Dir: files(t, map[string]string{"credentials": "hunter2"})}, "", "is not an AWS credentials file"},
		"When the CA bundle has no certificate, it should name the key":            {objectstore.Config{Region: "r", Dir: good}, "", "key ca-bundle.crt: it has no certificate"},
		"When the CA file does not exist, it should return an error":               {objectstore.Config{Region: "r", Dir: plain, CABundle: filepath.Join(plain, "none.crt")}, "", "reading the CAs of the endpoint"},
		"When there are no credentials, it should name the variables to set":       {objectstore.Config{Region: "r"}, "", "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			client, err := objectstore.New(tc.config)
			if tc.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.fails)))
				g.Expect(err.Error()).NotTo(ContainSubstring("hunter2"))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(client.EndpointURL().String()).To(Equal(tc.url))
		})
	}
	t.Run("When the environment has credentials, it should use them", func(t *testing.T) {
		g := NewWithT(t)
		t.Setenv("AWS_ACCESS_KEY_ID", "AKIDENV")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
		client, err := objectstore.New(objectstore.Config{Region: "r"})
		g.Expect(err).NotTo(HaveOccurred())
		used, err := client.GetCreds()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(used.AccessKeyID).To(Equal("AKIDENV"))
		fromSecret, err := objectstore.New(objectstore.Config{Region: "r", Dir: plain})
		g.Expect(err).NotTo(HaveOccurred())
		used, err = fromSecret.GetCreds()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(used.AccessKeyID).To(Equal("AKIDEXAMPLE"), "a Secret is not mixed with what the operator has")
	})
	t.Run("When the environment names a credentials file, it should read that file", func(t *testing.T) {
		g := NewWithT(t)
		t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(plain, "credentials"))
		client, err := objectstore.New(objectstore.Config{Region: "r"})
		g.Expect(err).NotTo(HaveOccurred())
		used, err := client.GetCreds()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(used.AccessKeyID).To(Equal("AKIDEXAMPLE"))
	})
}

// TestTrust covers a store with a certificate of a private CA, the usual case in a data center.
func TestTrust(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		if signed := r.Header.Get("Authorization"); !strings.Contains(signed, "/eu-west-1/s3/") {
			t.Errorf("it is signed for another region: %s", signed)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	beside := filepath.Join(files(t, map[string]string{"mine.crt": ca}), "mine.crt")
	for name, tc := range map[string]struct {
		dir     map[string]string
		file    string
		trusted bool
	}{
		"the CA is in the Secret":     {map[string]string{"credentials": keys, "ca-bundle.crt": ca}, "", true},
		"the CA is in a file":         {map[string]string{"credentials": keys}, beside, true},
		"there is no CA":              {map[string]string{"credentials": keys}, "", false},
		"the CA is under another key": {map[string]string{"credentials": keys, "ca.crt": ca}, "", false},
	} {
		t.Run("When "+name+", it should trust the store only if it has the CA", func(t *testing.T) {
			g := NewWithT(t)
			client, err := objectstore.New(objectstore.Config{Region: "eu-west-1", Endpoint: server.URL, Dir: files(t, tc.dir), CABundle: tc.file})
			g.Expect(err).NotTo(HaveOccurred())
			calls.Store(0)
			_, err = client.BucketExists(t.Context(), "backups")
			g.Expect(err).To(HaveOccurred())
			g.Expect(calls.Load() > 0).To(Equal(tc.trusted), "%v", err)
			g.Expect(calls.Load()).To(BeNumerically("<=", 3), "who waits for a backup learns soon that the store is down")
			g.Expect(err.Error()).NotTo(ContainSubstring("hunter2"))
		})
	}
}
