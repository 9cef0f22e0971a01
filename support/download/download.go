// SPDX-License-Identifier: Apache-2.0

// Package download fetches files over HTTP and verifies their checksums.
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

// Getter configures how files are fetched. With only a Client, it tries once and waits until its context ends.
type Getter struct {
	// Client sends the requests. Its configuration decides which server certificates are accepted.
	Client *http.Client
	// Secure refuses all URLs except https.
	Secure bool
	// Limit is the maximum time for all tries of one download; zero leaves the limit to the context.
	Limit time.Duration
	// Silence is the maximum time for which a server may send nothing; zero means no limit.
	Silence time.Duration
	// Retries is the number of tries after the first. A busy server or a broken connection should not fail the complete
	// operation.
	Retries int
	// Pause is the wait before the first retry. It doubles before each further retry.
	Pause time.Duration
	// Mode is the mode of the files that File creates; zero means that only their owner can read them.
	Mode os.FileMode
}

// MismatchError reports content that does not match its checksum.
type MismatchError struct{ Got, Wanted string }

// Error implements error.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("SHA-256 mismatch: got %s, want %s", e.Got, e.Wanted)
}

// Verify returns nil if the file exists and has the given SHA-256 checksum, in hexadecimal.
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

// File downloads url to target. It creates target only if the content is complete and has the given SHA-256 checksum,
// in hexadecimal.
func (g *Getter) File(ctx context.Context, url, target, wanted string) error {
	return g.Get(ctx, url, func(body io.Reader) error {
		return Complete(target, cmp.Or(g.Mode, private), func(file io.Writer) error { return copyVerified(file, body, wanted) })
	})
}

// Get fetches url and calls read with the body, once for each try.
func (g *Getter) Get(ctx context.Context, url string, read func(io.Reader) error) error {
	if g.Secure && !strings.HasPrefix(url, "https://") {
		return errors.New("refusing plain HTTP; use https or a file")
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

// once makes one try. final reports whether a retry would fail in the same way.
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

// listen returns a context that ends when the server has sent nothing for the time Silence. heard restarts that time.
func (g *Getter) listen(parent context.Context) (ctx context.Context, heard, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	if g.Silence == 0 {
		return ctx, func() {}, func() { cancel(nil) }
	}
	watch := time.AfterFunc(g.Silence, func() { cancel(fmt.Errorf("the server has sent nothing for %s", g.Silence)) })
	return ctx, func() { watch.Reset(g.Silence) }, func() { watch.Stop(); cancel(nil) }
}

// listener calls a function after each read.
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
	// private is a mode with which only the owner can read a file.
	private os.FileMode = 0o600
	// partial is the file name suffix of an incomplete file.
	partial = ".partial"
)

// Complete writes a file that exists only when it is complete and synced to disk. It overwrites what a power failure
// left of an earlier try.
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
