// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
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
	"github.com/openshift/hypershift/support/download"
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
	f := fetcher{h, &download.Getter{Client: client, Silence: stalled, Mode: onlyRoot}, folder}
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
	getter *download.Getter
	folder string
}

// fetch returns where the artifact is, and has fetched it if it was not there.
func (f fetcher) fetch(ctx context.Context, name string, artifact Artifact) (string, error) {
	path := filepath.Join(f.folder, name)
	if download.Verify(f.host.Path(path), artifact.SHA256) == nil {
		return path, nil
	}
	f.host.Say("fetching %s", artifact.Location)
	err := f.getter.File(ctx, artifact.Location, f.host.Path(path), artifact.SHA256)
	var mismatch *download.MismatchError
	if errors.As(err, &mismatch) {
		err = fmt.Errorf("%w: is the stream that of the mirror's release?", err)
	}
	if err != nil {
		return "", fmt.Errorf("fetching %s: %w", artifact.Location, err)
	}
	return path, nil
}

// onlyRoot is the mode of a file that none but root reads.
const onlyRoot = 0o600

// concatenate writes what the kernel unpacks one after the other: the files, and then the archive.
func concatenate(target string, archive []byte, files ...string) error {
	return download.Complete(target, onlyRoot, func(out io.Writer) error {
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
