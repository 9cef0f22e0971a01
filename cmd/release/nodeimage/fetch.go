// SPDX-License-Identifier: Apache-2.0

package nodeimage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const (
	// downloadTimeout bounds one file; the largest has some 80 MB.
	downloadTimeout = 30 * time.Minute
	// maxChecksumFile bounds what is read of a file of checksums.
	maxChecksumFile = 1 << 20
	attempts        = 3
)

// Fetcher gets the files of sources and verifies them.
type Fetcher struct {
	// Cache is the folder that keeps downloads by their checksum, so that one that was made is not made again.
	Cache string
	// Client downloads; it must verify certificates.
	Client *http.Client
	// Retry is how long to wait before a download is tried again, which is doubled the next time.
	Retry time.Duration
}

// Fetch returns the path of the file, whose checksum is right.
func (f *Fetcher) Fetch(ctx context.Context, s Source) (string, error) {
	wanted, err := f.checksum(ctx, s)
	if err != nil {
		return "", fmt.Errorf("checksum of %s: %w", s.Place, err)
	}
	if !isURL(s.Place) {
		return s.Place, verify(s.Place, s.Place, wanted)
	}
	cached := filepath.Join(f.Cache, "sha256", wanted)
	if verify(cached, s.Place, wanted) == nil {
		return cached, nil
	}
	if err := os.MkdirAll(filepath.Dir(cached), 0o750); err != nil {
		return "", err
	}
	if err := f.download(ctx, s.Place, cached+".part"); err != nil {
		return "", err
	}
	if err := verify(cached+".part", s.Place, wanted); err != nil {
		return "", errors.Join(err, os.Remove(cached+".part"))
	}
	return cached, os.Rename(cached+".part", cached)
}

func verify(file, place, wanted string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, in); err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != wanted {
		return fmt.Errorf("%s has the SHA-256 %s, and %s is wanted: it is not what its publisher made, or the checksum is that of another version", place, got, wanted)
	}
	return nil
}

// checksum is the wanted SHA-256 in hexadecimal.
func (f *Fetcher) checksum(ctx context.Context, s Source) (string, error) {
	if digest, ok := strings.CutPrefix(s.Checksum, sha256Prefix); ok {
		return strings.ToLower(digest), nil
	}
	content, err := f.small(ctx, s.Checksum)
	if err != nil {
		return "", err
	}
	return findChecksum(string(content), path.Base(s.Place), s.Checksum)
}

var checksumLine = regexp.MustCompile(`^([0-9a-fA-F]{64})(?:\s+\*?(\S+))?$`)

// findChecksum reads what sha256sum writes, of one file or of many, signed or not, and a lone checksum.
func findChecksum(content, file, place string) (string, error) {
	lone := ""
	for line := range strings.Lines(content) {
		found := checksumLine.FindStringSubmatch(strings.TrimSpace(line))
		if found == nil {
			continue
		}
		if path.Base(found[2]) == file {
			return strings.ToLower(found[1]), nil
		}
		if found[2] == "" {
			lone = strings.ToLower(found[1])
		}
	}
	if lone == "" {
		return "", fmt.Errorf("%s has no SHA-256 of %s", place, file)
	}
	return lone, nil
}

func (f *Fetcher) small(ctx context.Context, place string) ([]byte, error) {
	if !isURL(place) {
		return os.ReadFile(place)
	}
	var content []byte
	err := f.get(ctx, place, func(body io.Reader) (err error) {
		content, err = io.ReadAll(io.LimitReader(body, maxChecksumFile))
		return err
	})
	return content, err
}

func (f *Fetcher) download(ctx context.Context, url, target string) error {
	return f.get(ctx, url, func(body io.Reader) error {
		out, err := os.Create(target)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, body)
		return errors.Join(err, out.Close())
	})
}

// get tries a few times: a server that is busy or a connection that breaks is no reason to start all over.
func (f *Fetcher) get(ctx context.Context, url string, read func(io.Reader) error) error {
	if !strings.HasPrefix(url, "https://") {
		return fmt.Errorf("%s is not fetched: use https, or a file", url)
	}
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	var failure error
	for wait, attempt := f.Retry, 1; attempt <= attempts; wait, attempt = 2*wait, attempt+1 {
		var final bool
		if final, failure = f.once(ctx, url, read); final || failure == nil {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("download %s: %w", url, ctx.Err())
		case <-time.After(wait):
		}
	}
	if failure != nil {
		return fmt.Errorf("download %s: %w", url, failure)
	}
	return nil
}

// once says whether a failure would be the same again.
func (f *Fetcher) once(ctx context.Context, url string, read func(io.Reader) error) (final bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return true, err
	}
	response, err := f.Client.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return response.StatusCode < http.StatusInternalServerError && response.StatusCode != http.StatusTooManyRequests, fmt.Errorf("the server answered %s", response.Status)
	}
	return false, read(response.Body)
}
