// SPDX-License-Identifier: Apache-2.0

// Package registry is a container registry with TLS that stores its content on disk.
package registry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// maxManifest limits the size of a manifest, in bytes.
const maxManifest = 4 << 20

// Registry serves the images in a folder. Blobs are files there. The library keeps manifests in memory, so the registry
// stores each one on arrival and puts them again at its start.
type Registry struct {
	dir     string
	handler http.Handler
	served  traffic
}

// manifest is a manifest that a client has put.
type manifest struct {
	Path        string `json:"path"`
	ContentType string `json:"contentType"`
	Body        []byte `json:"body"`
}

// Blobs returns the folder of the blobs of a registry in dir.
func Blobs(dir string) string { return filepath.Join(dir, "blobs") }

// Open reads the registry in dir, which is created if it does not exist.
func Open(ctx context.Context, dir string) (*Registry, error) {
	r := &Registry{dir: dir}
	for _, folder := range []string{Blobs(dir), r.manifests()} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, fmt.Errorf("opening the registry in %s: %w", dir, err)
		}
	}
	r.handler = registry.New(
		registry.WithBlobHandler(registry.NewDiskBlobHandler(Blobs(dir))),
		registry.Logger(log.New(io.Discard, "", 0)),
	)
	if err := r.restore(ctx); err != nil {
		return nil, fmt.Errorf("opening the registry in %s: %w", dir, err)
	}
	return r, nil
}

func (r *Registry) manifests() string { return filepath.Join(r.dir, "manifests") }

// restore puts the stored manifests into the library's store, images before the indexes that list them.
func (r *Registry) restore(ctx context.Context) error {
	entries, err := os.ReadDir(r.manifests())
	if err != nil {
		return err
	}
	var kept []keptManifest
	for _, entry := range entries {
		one, err := readManifest(filepath.Join(r.manifests(), entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		kept = append(kept, one)
	}
	sortForPutting(kept)
	for _, one := range kept {
		request := httptest.NewRequestWithContext(ctx, http.MethodPut, one.Path, bytes.NewReader(one.Body))
		request.Header.Set("Content-Type", one.ContentType)
		answer := httptest.NewRecorder()
		r.handler.ServeHTTP(answer, request)
		if answer.Code >= http.StatusMultipleChoices {
			return fmt.Errorf("putting manifest %s again: %s", one.Path, strings.TrimSpace(answer.Body.String()))
		}
	}
	return nil
}

// ServeHTTP serves the registry's API, and at TrafficPath the number of bytes served to each address.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.URL.Path == TrafficPath {
		r.served.report(w)
		return
	}
	w = r.served.count(w, request)
	if request.Method != http.MethodPut || !strings.Contains(request.URL.Path, "/manifests/") {
		r.handler.ServeHTTP(w, request)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxManifest))
	if err != nil {
		http.Error(w, "the manifest cannot be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	r.handler.ServeHTTP(answer, request)
	if answer.Code < http.StatusMultipleChoices {
		err = r.keep(manifest{Path: request.URL.Path, ContentType: request.Header.Get("Content-Type"), Body: body})
	}
	if err != nil {
		http.Error(w, "the manifest cannot be kept: "+err.Error(), http.StatusInternalServerError)
		return
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// keep stores the manifest before the client gets a success response.
func (r *Registry) keep(m manifest) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	target := r.manifestFile(m.Path)
	if err := os.WriteFile(target+".new", data, 0o644); err != nil {
		return err
	}
	return os.Rename(target+".new", target)
}

func (r *Registry) manifestFile(urlPath string) string {
	sum := sha256.Sum256([]byte(urlPath))
	return filepath.Join(r.manifests(), hex.EncodeToString(sum[:])+".json")
}

// Serve listens on address until the context ends.
func (r *Registry) Serve(ctx context.Context, address string, certificate tls.Certificate) error {
	// The library's store accepts one upload at a time. Over one HTTP/2 connection, the other uploads would fill the flow
	// control window that the current one waits for.
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	server := &http.Server{
		Addr:              address,
		Handler:           r,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 10 * time.Second,
		Protocols:         &protocols,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ListenAndServeTLS("", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the registry on %s: %w", address, err)
	}
	return nil
}
