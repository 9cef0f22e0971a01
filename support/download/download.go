// SPDX-License-Identifier: Apache-2.0

// Package download fetches files over HTTP, and knows them by their checksum.
package download

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// Getter says how files are fetched. Without more than a client it tries once, and waits for as long as its context lives.
type Getter struct {
	// Client asks. Whether it verifies certificates, and which, is its own.
	Client *http.Client
	// Secure refuses all but https.
	Secure bool
	// Limit bounds all tries of one download; zero leaves that to the context.
	Limit time.Duration
	// Silence is how long a server may say nothing; zero is as long as it likes.
	Silence time.Duration
	// Retries are the tries after the first: a server that is busy or a connection that breaks is no reason to start all over.
	Retries int
	// Pause comes before the first retry, and is doubled before each that follows.
	Pause time.Duration
	// Mode is that of the files that File makes; zero lets none but their owner read them.
	Mode os.FileMode
}

// MismatchError is of content that is not what its checksum says.
type MismatchError struct{ Got, Wanted string }

// Error implements error.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("its SHA-256 is %s, and %s is wanted", e.Got, e.Wanted)
}

// Verify tells whether a file is there and has a SHA-256, which is given in hexadecimal.
func Verify(path, wanted string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return copyVerified(io.Discard, file, wanted)
}

func copyVerified(to io.Writer, from io.Reader, wanted string) error {
	hash := sha256.New()
	if _, err := io.Copy(io.MultiWriter(to, hash), from); err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != wanted {
		return &MismatchError{Got: got, Wanted: wanted}
	}
	return nil
}

// File brings what is at url to its place, when it is whole and has the SHA-256, which is given in hexadecimal.
func (g *Getter) File(ctx context.Context, url, target, wanted string) error {
	return g.Get(ctx, url, func(body io.Reader) error {
		return Complete(target, cmp.Or(g.Mode, private), func(file io.Writer) error { return copyVerified(file, body, wanted) })
	})
}

// Get has read read what is at url, once for each try.
func (g *Getter) Get(ctx context.Context, url string, read func(io.Reader) error) error {
	if g.Secure && !strings.HasPrefix(url, "https://") {
		return errors.New("it is not fetched: use https, or a file")
	}
	if g.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, g.Limit)
		defer cancel()
	}
	for pause, left := g.Pause, g.Retries; ; pause, left = 2*pause, left-1 {
		final, err := g.once(ctx, url, read)
		if err == nil || final || left == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// once says whether a failure would be the same again.
func (g *Getter) once(ctx context.Context, url string, read func(io.Reader) error) (final bool, err error) {
	ctx, heard, stop := g.listen(ctx)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return true, err
	}
	response, err := g.Client.Do(request)
	if err != nil {
		return false, cmp.Or(context.Cause(ctx), err)
	}
	defer response.Body.Close()
	if code := response.StatusCode; code != http.StatusOK {
		return code < http.StatusInternalServerError && code != http.StatusTooManyRequests, fmt.Errorf("the server answered %s", response.Status)
	}
	if err := read(listener{response.Body, heard}); err != nil {
		var mismatch *MismatchError
		return errors.As(err, &mismatch), cmp.Or(context.Cause(ctx), err)
	}
	return false, nil
}

// listen returns a context that ends when nothing has been heard for too long.
func (g *Getter) listen(parent context.Context) (ctx context.Context, heard, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	if g.Silence == 0 {
		return ctx, func() {}, func() { cancel(nil) }
	}
	watch := time.AfterFunc(g.Silence, func() { cancel(fmt.Errorf("the server has said nothing for %s", g.Silence)) })
	return ctx, func() { watch.Reset(g.Silence) }, func() { watch.Stop(); cancel(nil) }
}

// listener calls a function with each part that a reader gives.
type listener struct {
	io.Reader
	heard func()
}

// Read implements io.Reader.
func (l listener) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	l.heard()
	return n, err
}

const (
	// private is the mode of a file that none but its owner reads.
	private os.FileMode = 0o600
	// partial is what the name of a file ends with that is not complete.
	partial = ".partial"
)

// Complete writes a file that is there only when it is complete, and on the disk. What a machine that lost its power left of it is written over.
func Complete(target string, mode os.FileMode, write func(io.Writer) error) error {
	file, err := os.OpenFile(target+partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // Not there any more when all went well.
	if err := errors.Join(write(file), file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), target)
}
