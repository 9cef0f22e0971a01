// SPDX-License-Identifier: Apache-2.0

package takeover

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
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/openshift/hypershift/node-agent/host"
)

// Prepared is a takeover that only has to be started.
type Prepared struct {
	// Release is that of the live system, Disk the one that it will write.
	Release, Disk string
	// Kernel and Initramfs are files, CommandLine what the kernel gets; it holds no secret, the initramfs does.
	Kernel, Initramfs, CommandLine string
}

// stalled is how long a server may say nothing.
const stalled = time.Minute

// Prepare brings everything that a takeover needs into a folder of the machine, which takes twice the size of the live system. It changes
// nothing else, and may be called again: what came before is not fetched anew. The installation's disk is found when none is named. Unless all
// went well, there is nothing that could be started, of an earlier call neither.
func Prepare(ctx context.Context, h *host.Host, client *http.Client, live *Live, installation Installation, folder string) (*Prepared, error) {
	initramfs := filepath.Join(folder, "initramfs")
	if err := h.Remove(initramfs); err != nil {
		return nil, err
	}
	if err := Check(h); err != nil {
		return nil, err
	}
	if installation.Disk == "" {
		disk, err := Disk(h)
		if err != nil {
			return nil, fmt.Errorf("finding the disk that the machine starts from: %w", err)
		}
		installation.Disk = disk
	}
	archive, err := installation.Archive()
	if err != nil {
		return nil, err
	}
	if err := whole(h, installation.Disk); err != nil {
		return nil, err
	}
	commandLine, err := commandLine(h)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(h.Path(folder), 0o700); err != nil {
		return nil, err
	}
	f := fetcher{h, client, folder, stalled}
	kernel, err := f.fetch(ctx, "kernel", live.Kernel)
	if err != nil {
		return nil, err
	}
	base, err := f.fetch(ctx, "live-initramfs", live.Initramfs)
	if err != nil {
		return nil, err
	}
	rootFS, err := f.fetch(ctx, "live-rootfs", live.RootFS)
	if err != nil {
		return nil, err
	}
	if err := concatenate(h.Path(initramfs), archive, h.Path(base), h.Path(rootFS)); err != nil {
		return nil, fmt.Errorf("writing %s: %w", initramfs, err)
	}
	return &Prepared{live.Release, installation.Disk, kernel, initramfs, commandLine}, nil
}

// commandLine has the live system run Ignition, which looks for its config in the initramfs, and speak where the machine's system speaks.
func commandLine(h *host.Host) (string, error) {
	running, err := h.Read("/proc/cmdline")
	if err != nil {
		return "", err
	}
	consoles := slices.DeleteFunc(strings.Fields(string(running)), func(a string) bool { return !strings.HasPrefix(a, "console=") })
	return strings.Join(append([]string{"ignition.firstboot", "ignition.platform.id=metal"}, consoles...), " "), nil
}

// fetcher fetches files into a folder.
type fetcher struct {
	host   *host.Host
	client *http.Client
	folder string
	// stalled is how long a server may say nothing.
	stalled time.Duration
}

// fetch returns where the artifact is, and has fetched it if it was not there.
func (f fetcher) fetch(ctx context.Context, name string, artifact Artifact) (string, error) {
	path := filepath.Join(f.folder, name)
	if sum, err := sumOf(f.host.Path(path)); err == nil && sum == artifact.SHA256 {
		return path, nil
	}
	f.host.Say("fetching %s", artifact.Location)
	if err := f.download(ctx, f.host.Path(path), artifact); err != nil {
		return "", fmt.Errorf("fetching %s: %w", artifact.Location, err)
	}
	return path, nil
}

func sumOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// download brings the file to its place when it is whole and what its checksum says.
func (f fetcher) download(ctx context.Context, target string, artifact Artifact) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(f.stalled, func() { cancel(fmt.Errorf("the server has said nothing for %s", f.stalled)) })
	defer watch.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, artifact.Location, nil)
	if err != nil {
		return err
	}
	answer, err := f.client.Do(request)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answered %s", answer.Status)
	}
	return complete(target, func(file io.Writer) error {
		hash := sha256.New()
		if _, err := io.Copy(io.MultiWriter(file, hash), heard{answer.Body, func() { watch.Reset(f.stalled) }}); err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		if sum := hex.EncodeToString(hash.Sum(nil)); sum != artifact.SHA256 {
			return fmt.Errorf("its sha256 is %s, and the stream says %s: is the stream that of the mirror's release?", sum, artifact.SHA256)
		}
		return nil
	})
}

// heard calls a function with each part that a reader gives.
type heard struct {
	io.Reader
	again func()
}

// Read implements io.Reader.
func (h heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	h.again()
	return n, err
}

// concatenate writes what the kernel unpacks one after the other: the files, and then the archive.
func concatenate(target string, archive []byte, files ...string) error {
	return complete(target, func(out io.Writer) error {
		for _, path := range files {
			if err := appendAligned(out, path); err != nil {
				return err
			}
		}
		_, err := out.Write(archive)
		return err
	})
}

func appendAligned(out io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	size, err := io.Copy(out, file)
	if err != nil {
		return err
	}
	_, err = out.Write(make([]byte, (alignment-size%alignment)%alignment))
	return err
}

// complete writes a file that only root reads, and that is there only when it is complete. What a machine that lost its power left of it is
// written over.
func complete(target string, write func(io.Writer) error) error {
	partial, err := os.OpenFile(target+".partial", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(partial.Name()) //nolint:errcheck // Not there any more when all went well.
	if err := errors.Join(write(partial), partial.Sync(), partial.Close()); err != nil {
		return err
	}
	return os.Rename(partial.Name(), target)
}
