// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/kms/pkg/service"
)

// plugin implements the KMS v2 protocol with keys in memory. It encrypts with the last key.
type plugin struct {
	t      *testing.T
	socket string
	stop   func()

	lock sync.Mutex
	keys map[string]cipher.AEAD
	last string
}

// newPlugin starts a plugin of that name, which serves on its socket below a directory.
func newPlugin(t *testing.T, sockets, name string) *plugin {
	t.Helper()
	p := &plugin{t: t, socket: filepath.Join(sockets, name, "kms.sock"), keys: map[string]cipher.AEAD{}}
	if err := os.MkdirAll(filepath.Dir(p.socket), 0o700); err != nil {
		t.Fatal(err)
	}
	p.take("first")
	p.serve()
	return p
}

func (p *plugin) serve() {
	server := service.NewGRPCService(p.socket, 5*time.Second, p)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.ListenAndServe(); err != nil {
			p.t.Errorf("the plugin does not serve: %v", err)
		}
	}()
	p.stop = sync.OnceFunc(func() {
		server.Close()
		<-done
		os.Remove(p.socket)
	})
	p.t.Cleanup(p.stop)
}

// take adds a key. The plugin encrypts with it from now on.
func (p *plugin) take(id string) {
	key := make([]byte, 32)
	_, err := rand.Read(key)
	block, fault := aes.NewCipher(key)
	aead, wrong := cipher.NewGCM(block)
	if err := errors.Join(err, fault, wrong); err != nil {
		p.t.Fatal(err)
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.keys[id], p.last = aead, id
}

// lose forgets a key.
func (p *plugin) lose(id string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	delete(p.keys, id)
}

func (p *plugin) Encrypt(_ context.Context, _ string, data []byte) (*service.EncryptResponse, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	key := p.keys[p.last]
	nonce := make([]byte, key.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return &service.EncryptResponse{Ciphertext: key.Seal(nonce, nonce, data, nil), KeyID: p.last}, nil
}

func (p *plugin) Decrypt(_ context.Context, _ string, req *service.DecryptRequest) ([]byte, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	key, ok := p.keys[req.KeyID]
	if !ok || len(req.Ciphertext) < key.NonceSize() {
		return nil, fmt.Errorf("there is no key %q", req.KeyID)
	}
	return key.Open(nil, req.Ciphertext[:key.NonceSize()], req.Ciphertext[key.NonceSize():], nil)
}

func (p *plugin) Status(context.Context) (*service.StatusResponse, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	return &service.StatusResponse{Version: "v2", Healthz: "ok", KeyID: p.last}, nil
}
