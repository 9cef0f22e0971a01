// SPDX-License-Identifier: Apache-2.0

// Package systemtrust reads the CA certificates that a program trusts, as text. Go's certificate pool cannot be written
// out again.
package systemtrust

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
)

// Environment variables with the locations of the certificates, as Go programs read them.
const (
	FileVariable = "SSL_CERT_FILE"
	DirsVariable = "SSL_CERT_DIR"
)

// Store holds the locations of certificates. The zero value has none.
type Store struct {
	// Files are alternatives: only the first readable one is used.
	Files []string
	// Dirs are folders. Every file in them is read.
	Dirs []string
}

// FromEnvironment returns the store that a Go program on Linux reads: the locations in the environment variables, or
// else the locations that common distributions use. getenv is os.Getenv.
func FromEnvironment(getenv func(string) string) Store {
	store := Store{
		Files: []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"},
		Dirs:  []string{"/etc/ssl/certs", "/etc/pki/tls/certs"},
	}
	if file := getenv(FileVariable); file != "" {
		store.Files = []string{file}
	}
	if dirs := getenv(DirsVariable); dirs != "" {
		store.Dirs = filepath.SplitList(dirs)
	}
	return store
}

// Read returns the certificates of the store, each once, as PEM. Like Go, it skips files that are unreadable or contain
// no certificate. It returns an error if a folder exists but cannot be listed.
func (s Store) Read() ([]byte, error) {
	var all [][]byte
	for _, file := range s.Files {
		if text, err := os.ReadFile(file); err == nil {
			all = append(all, text)
			break
		}
	}
	for _, dir := range s.Dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			return nil, fmt.Errorf("reading the trusted certificates in %s: %w", dir, err)
		}
		for _, entry := range entries {
			if text, err := os.ReadFile(filepath.Join(dir, entry.Name())); err == nil {
				all = append(all, text)
			}
		}
	}
	return Merge(all...), nil
}

// Merge returns the certificates of several texts in their order, each once. It drops everything else: a broken block
// or a private key in a bundle would harm the programs that read it.
func Merge(texts ...[]byte) []byte {
	const certificate = "CERTIFICATE"
	var merged bytes.Buffer
	seen := map[string]bool{}
	for _, text := range texts {
		for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
			if block.Type != certificate || seen[string(block.Bytes)] {
				continue
			}
			if _, err := x509.ParseCertificate(block.Bytes); err != nil {
				continue
			}
			seen[string(block.Bytes)] = true
			merged.Write(pem.EncodeToMemory(&pem.Block{Type: certificate, Bytes: block.Bytes}))
		}
	}
	return merged.Bytes()
}
