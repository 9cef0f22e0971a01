// SPDX-License-Identifier: Apache-2.0

// Command s3 is the object store of the embedded environment. It serves the S3 protocol over TLS to clients that have
// its key, and stores its data in a folder.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3afero"
)

// options holds the flags.
type options struct{ listen, dir, bucket string }

func main() {
	var o options
	flag.StringVar(&o.listen, "listen", "", "address to serve on")
	flag.StringVar(&o.dir, "dir", "", "folder with the certificate (s3.crt, s3.key) and the credentials; what is stored is below it")
	flag.StringVar(&o.bucket, "bucket", "", "bucket that is there from the beginning")
	flag.Parse()
	if err := o.run(); err != nil {
		log.Fatal(err)
	}
}

func (o options) run() error {
	key, err := accessKey(filepath.Join(o.dir, "credentials"))
	if err != nil {
		return err
	}
	store, err := o.store()
	if err != nil {
		return fmt.Errorf("opening the store in %s: %w", o.dir, err)
	}
	server := &http.Server{Addr: o.listen, Handler: guarded(store, key), ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServeTLS(filepath.Join(o.dir, "s3.crt"), filepath.Join(o.dir, "s3.key"))
}

func (o options) store() (http.Handler, error) {
	folder, err := s3afero.FsPath(filepath.Join(o.dir, "stored"), s3afero.FsPathCreateAll)
	if err != nil {
		return nil, err
	}
	backend, err := s3afero.MultiBucket(folder)
	if err != nil {
		return nil, err
	}
	if err := backend.CreateBucket(o.bucket); err != nil && !gofakes3.IsAlreadyExists(err) {
		return nil, fmt.Errorf("making bucket %s: %w", o.bucket, err)
	}
	return gofakes3.New(backend, gofakes3.WithLogger(gofakes3.GlobalLog(gofakes3.LogErr))).Server(), nil
}

// accessKey reads the key ID from an AWS credentials file.
func accessKey(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(name) == "aws_access_key_id" {
			return strings.TrimSpace(value), nil
		}
	}
	return "", errors.New(file + " has no aws_access_key_id")
}

// guarded serves requests that are signed with the key. It checks the key ID only, and not whether the signature is
// valid.
func guarded(store http.Handler, key string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Authorization"), " Credential="+key+"/") {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, "<Error><Code>InvalidAccessKeyId</Code><Message>There is no such key</Message></Error>")
			return
		}
		store.ServeHTTP(w, r)
	})
}
