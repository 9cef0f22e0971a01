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

// Prepared is a takeover that is ready to start.
type Prepared struct {
	// Release is the release of the live system. Disk is the disk that it overwrites.
	Release, Disk string
	// Kernel and Initramfs are file paths; CommandLine is the kernel command line. Only the initramfs contains secrets.
	Kernel, Initramfs, CommandLine string
}

// stalled is how long a download may make no progress.
const stalled = time.Minute

// Prepare writes everything that a takeover needs to a folder of the machine, which needs twice the size of the live
// system. It changes nothing else and can be repeated, since it keeps completed downloads. If no disk is given,
// Prepare finds it. After a failure no startable initramfs remains, not even from an earlier call.
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

// commandLine returns arguments that make the live system run Ignition, with its config from the initramfs. The
// arguments for consoles are copied from the running system.
func commandLine(h *host.Host) (string, error) {
	running, err := h.Read("/proc/cmdline")
	if err != nil {
		return "", err
	}
	consoles := slices.DeleteFunc(strings.Fields(string(running)), func(a string) bool { return !strings.HasPrefix(a, "console=") })
	return strings.Join(append([]string{"ignition.firstboot", "ignition.platform.id=metal"}, consoles...), " "), nil
}

// fetcher downloads files into a folder.
type fetcher struct {
	host   *host.Host
	getter *download.Getter
	folder string
}

// fetch returns the path of an artifact, and downloads it if it is missing.
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

// onlyRoot is the mode of a file that only root can read.
const onlyRoot = 0o600

// concatenate writes the files and then the archive. The kernel unpacks them in this order.
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
