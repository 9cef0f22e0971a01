// SPDX-License-Identifier: Apache-2.0

package nodeimage

import (
	"context"
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

	"github.com/openshift/hypershift/support/download"
)

const (
	// downloadTimeout limits the download of one file; the largest has about 80 MB.
	downloadTimeout = 30 * time.Minute
	// maxChecksumFile limits how many bytes of a checksum file are read.
	maxChecksumFile = 1 << 20
	retries         = 2
	// readable is the mode of cached files. They contain no secret: the permissions of the cache folder control the
	// access.
	readable = 0o644
)

// Fetcher downloads the files of sources and verifies them.
type Fetcher struct {
	// Cache is the folder of downloaded files, named by their checksum, so that no file is downloaded twice.
	Cache string
	// Client downloads the files; it must verify certificates.
	Client *http.Client
	// Retry is the pause before a failed download is retried; it doubles for the next retry.
	Retry time.Duration
}

// Fetch returns the path of the verified file.
func (f *Fetcher) Fetch(ctx context.Context, s Source) (string, error) {
	wanted, err := f.checksum(ctx, s)
	if err != nil {
		return "", fmt.Errorf("checksum of %s: %w", s.Place, err)
	}
	if !isURL(s.Place) {
		return s.Place, explain(s.Place, download.Verify(s.Place, wanted))
	}
	cached := filepath.Join(f.Cache, "sha256", wanted)
	if download.Verify(cached, wanted) == nil {
		return cached, nil
	}
	if err := os.MkdirAll(filepath.Dir(cached), 0o750); err != nil {
		return "", err
	}
	return cached, explain(downloading+s.Place, f.getter().File(ctx, s.Place, cached, wanted))
}

// getter retries and has a long timeout: the servers are public, and the files are large.
func (f *Fetcher) getter() *download.Getter {
	return &download.Getter{Client: f.Client, Secure: true, Limit: downloadTimeout, Retries: retries, Pause: f.Retry, Mode: readable}
}

// downloading is the prefix of messages about a failed download.
const downloading = "download "

// explain adds the failed step to an error, and the possible causes of a wrong checksum.
func explain(at string, err error) error {
	if err == nil {
		return nil
	}
	var mismatch *download.MismatchError
	if errors.As(err, &mismatch) {
		return fmt.Errorf("%s: %w: it is not what its publisher made, or the checksum is that of another version", at, err)
	}
	return fmt.Errorf("%s: %w", at, err)
}

// checksum returns the expected SHA-256 in hexadecimal.
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

// findChecksum parses the output of sha256sum, for one file or many, signed or not, and a lone checksum.
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
	err := f.getter().Get(ctx, place, func(body io.Reader) (err error) {
		content, err = io.ReadAll(io.LimitReader(body, maxChecksumFile))
		return err
	})
	return content, explain(downloading+place, err)
}
