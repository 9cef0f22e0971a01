// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// nodes are the devices of every machine: devices of the host that are safe to share.
var nodes = []struct {
	name         string
	major, minor uint32
	mode         uint32
}{
	{"null", 1, 3, 0o666}, {"zero", 1, 5, 0o666}, {"full", 1, 7, 0o666}, {"random", 1, 8, 0o666}, {"urandom", 1, 9, 0o666},
	{"kmsg", 1, 11, 0o644}, {"tty", 5, 0, 0o666}, {"fuse", 10, 229, 0o666}, {"net/tun", 10, 200, 0o666},
}

func mountDevices(config Config) error {
	dev := config.Path("dev")
	if err := unix.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID, "mode=755"); err != nil {
		return fmt.Errorf("mounting /dev: %w", err)
	}
	for _, node := range nodes {
		if err := makeNode(filepath.Join(dev, node.name), unix.S_IFCHR|node.mode, unix.Mkdev(node.major, node.minor)); err != nil {
			return err
		}
	}
	for _, link := range [][2]string{
		{"/proc/self/fd", "fd"}, {"fd/0", "stdin"}, {"fd/1", "stdout"}, {"fd/2", "stderr"}, {"pts/ptmx", "ptmx"}, {"/proc/kcore", "core"},
	} {
		if err := os.Symlink(link[0], filepath.Join(dev, link[1])); err != nil {
			return err
		}
	}
	for _, m := range []struct{ fstype, target, options string }{
		{"devpts", "pts", "newinstance,ptmxmode=0666,mode=0620,gid=5"},
		{"tmpfs", "shm", "mode=1777"},
		{"mqueue", "mqueue", ""},
	} {
		target := filepath.Join(dev, m.target)
		if err := os.Mkdir(target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.fstype, target, m.fstype, unix.MS_NOSUID|unix.MS_NOEXEC, m.options); err != nil {
			return fmt.Errorf("mounting /dev/%s: %w", m.target, err)
		}
	}
	for _, disk := range config.Disks {
		if err := attach(disk, dev); err != nil {
			return fmt.Errorf("attaching disk %s: %w", disk.Name, err)
		}
	}
	return nil
}

func makeNode(path string, mode uint32, device uint64) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := unix.Mknod(path, mode, int(device)); err != nil {
		return fmt.Errorf("making device %s: %w", path, err)
	}
	return os.Chmod(path, fs.FileMode(mode&0o777)) // This is independent of the umask.
}

// attach provides the disk's image as a block device. A loop device exists as long as it is open. Its file descriptor
// stays open deliberately, for the machine's PID 1, so that the device is removed with the machine in every case. On a
// host without loop devices the image is a file, which partitioning programs also accept.
func attach(disk Disk, dev string) error {
	target := filepath.Join(dev, disk.Name)
	number, err := loop(disk.Image)
	if errors.Is(err, fs.ErrNotExist) && exists(disk.Image) {
		return bind(disk.Image, target, true)
	}
	if err != nil {
		return err
	}
	if err := makeNode(target, unix.S_IFBLK|0o660, unix.Mkdev(loopMajor, uint32(number))); err != nil {
		return err
	}
	return partitionNodes("/sys", number, target)
}

const loopMajor = 7

// loop attaches the image to a free loop device, leaves it open, and returns the device's number.
func loop(image string) (int, error) {
	file, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer control.Close()
	for {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return 0, fmt.Errorf("finding a free loop device: %w", err)
		}
		err = configureLoop(number, file)
		if errors.Is(err, unix.EBUSY) {
			continue // Another process used the device first.
		}
		return number, err
	}
}

// configureLoop leaves the device open across the exec of the machine's PID 1.
func configureLoop(number int, image *os.File) error {
	path := fmt.Sprintf("/dev/loop%d", number)
	device, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer device.Close()
	config := &unix.LoopConfig{Fd: uint32(image.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR | unix.LO_FLAGS_PARTSCAN}}
	if err := unix.IoctlLoopConfigure(int(device.Fd()), config); err != nil {
		return fmt.Errorf("attaching %s to %s: %w", image.Name(), path, err)
	}
	_, err = unix.Dup(int(device.Fd())) // A duplicate is not closed on exec.
	return err
}

// partitionNodes creates a device for every partition that the kernel found on the loop device; some kernels do not
// scan for them.
func partitionNodes(sys string, number int, target string) error {
	found, err := filepath.Glob(filepath.Join(sys, fmt.Sprintf("block/loop%[1]d/loop%[1]dp*/dev", number)))
	if err != nil {
		return err
	}
	for _, path := range found {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var major, minor uint32
		if _, err := fmt.Sscanf(string(data), "%d:%d", &major, &minor); err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		name := filepath.Base(filepath.Dir(path)) // For example loop0p5.
		if err := makeNode(target+name[strings.LastIndexByte(name, 'p')+1:], unix.S_IFBLK|0o660, unix.Mkdev(major, minor)); err != nil {
			return err
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
