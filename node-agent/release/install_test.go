// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"archive/tar"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/release"
	"github.com/openshift/hypershift/support/nodeplan"
)

func TestUnpack(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		layers []layer
		// want holds the files besides the programs; an empty text means no file.
		want map[string]string
	}{
		"When files have modes, it should keep them but drop setuid and setgid bits": {
			[]layer{programs(layer{"usr/bin/mount": {tar.TypeReg, 0o4755, "m"}, "usr/bin/wall": {tar.TypeReg, 0o2755, "w"}, "etc/secret": {tar.TypeReg, 0o600, "s"}, "etc/read": {tar.TypeReg, 0o444, "r"}})},
			map[string]string{"usr/bin/mount": "-rwxr-xr-x m", "usr/bin/wall": "-rwxr-xr-x w", "etc/secret": "-rw------- s", "etc/read": "-r--r--r-- r"},
		},
		"When the image has devices and pipes, it should skip them": {
			[]layer{programs(layer{"dev/sda": {tar.TypeBlock, 0o666, ""}, "dev/null": {tar.TypeChar, 0o666, ""}, "run/pipe": {tar.TypeFifo, 0o666, ""}})},
			map[string]string{"dev/sda": "", "dev/null": "", "run/pipe": ""},
		},
		"When a symlink is absolute, it should resolve within the image": {
			[]layer{programs(layer{"etc/a": {tar.TypeSymlink, 0, "/usr/bin/runc"}, "b": {tar.TypeSymlink, 0, "/usr/bin/runc"}, "usr/bin/c": {tar.TypeSymlink, 0, "runc"}, "usr/d": {tar.TypeSymlink, 0, "/"}})},
			map[string]string{"etc/a": "-> ../usr/bin/runc", "b": "-> usr/bin/runc", "usr/bin/c": "-> runc", "usr/d": "-> .."},
		},
		"When a file has hard links, it should create all of them": {
			[]layer{programs(layer{"usr/bin/second": {tar.TypeLink, 0, "usr/bin/runc"}, "usr/bin/third": {tar.TypeLink, 0, "/usr/bin/runc"}})},
			map[string]string{"usr/bin/second": "-rwxr-xr-x runc", "usr/bin/third": "-rwxr-xr-x runc"},
		},
		"When a later layer replaces and removes files, it should apply both": {
			[]layer{programs(layer{"etc/gone": program("old"), "etc/new": program("old")}), {"etc/.wh.gone": program(""), "etc/new": program("new")}},
			map[string]string{"etc/gone": "", "etc/.wh.gone": "", "etc/new": "-rwxr-xr-x new"},
		},
		"When paths start with a dot or a slash, it should unpack them below the target directory": {
			[]layer{programs(layer{"./": {tar.TypeDir, 0o700, ""}, "./etc/a": program("a"), "/etc/b": program("b")})},
			map[string]string{"etc/a": "-rwxr-xr-x a", "etc/b": "-rwxr-xr-x b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Expect(w.install(w.push("node", tt.layers...))).To(Succeed())
			got := w.installed()
			for path, want := range tt.want {
				w.Expect(got[path]).To(Equal(want), path)
			}
			w.Expect(got["usr/bin/kubelet"]).To(Equal("-rwxr-xr-x kubelet"))
			for _, folder := range []string{nodeDir, nodeDir + "/" + w.slots()[0], current + "/usr", current + "/usr/bin"} {
				w.Expect(w.Mode(folder).Perm()).To(BeEquivalentTo(0o755), "programs are for all to run")
			}
		})
	}
}

// TestHostileImage unpacks images that try to write outside of their directory. Either nothing is written there, or no
// part of the image is used.
func TestHostileImage(t *testing.T) {
	t.Parallel()
	up := strings.Repeat("../", 12)
	for name, evil := range map[string]layer{
		"has a name with ..":                       {up + "etc/passwd": program("evil")},
		"writes through a relative link":           {"out": {tar.TypeSymlink, 0, up + "etc"}, "out/passwd": program("evil")},
		"writes through an absolute link":          {"out": {tar.TypeSymlink, 0, "/etc"}, "out/passwd": program("evil")},
		"creates folders through a link":           {"out": {tar.TypeSymlink, 0, up + "etc"}, "out/evil/": {tar.TypeDir, 0o777, ""}},
		"has a hard link to a file of the machine": {"out": {tar.TypeLink, 0, up + "etc/passwd"}},
	} {
		t.Run("When an image "+name+", the machine's files should not change", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Put("/etc/passwd", "root:x:0:0::/root:/bin/sh\n")
			_ = w.install(w.push("node", programs(evil)))
			w.Expect(w.Text("/etc/passwd")).To(Equal("root:x:0:0::/root:/bin/sh\n"))
			w.Expect(w.Exists("/etc/evil")).To(BeFalse())
			links := 0
			for _, text := range w.Files("/etc") {
				if strings.Contains(text, "root:x:0:0") {
					links++
				}
			}
			w.Expect(links).To(BeZero(), "it has no other name")
		})
	}
}

// TestIncomplete installs images that cannot run a node. The current installation stays in use.
func TestIncomplete(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"kubelet", "containerd", "containerd-shim-runc-v2", "ctr", "runc"} {
		for why, harm := range map[string]func(layer){
			"has no " + name:                    func(l layer) { delete(l, "usr/bin/"+name) },
			"has a " + name + " without mode x": func(l layer) { l["usr/bin/"+name] = file{tar.TypeReg, 0o644, name} },
			"has a broken link for " + name:     func(l layer) { l["usr/bin/"+name] = file{tar.TypeSymlink, 0, "/usr/bin/nowhere"} },
		} {
			t.Run("When an image "+why+", the error should name the command that builds a valid one", func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				files := programs()
				harm(files)
				w.Expect(w.install(w.push("node", files))).To(MatchError(ContainSubstring("no program /usr/bin/" + name + ": make the payload with")))
				w.Expect(w.slots()).To(BeEmpty(), "half of it is of no use")
				w.Expect(w.Exists(current)).To(BeFalse())
			})
		}
	}
	t.Run("When a later release has no kubelet, it should keep the current release", func(t *testing.T) {
		w := newWorld(t)
		w.Expect(w.install(w.push("node", programs()))).To(Succeed())
		w.Expect(w.install(w.push("next", layer{"usr/bin/runc": program("next")}))).NotTo(Succeed())
		w.Expect(w.installed()).To(Equal(whole()))
		w.Expect(w.slots()).To(HaveLen(1))
	})
}

// TestCannotUnpack checks that an installation does not count as complete if one of its files could not be written.
func TestCannotUnpack(t *testing.T) {
	t.Parallel()
	long := "usr/share/" + strings.Repeat("x", 300)
	for name, entry := range map[string]layer{
		"a file":                       {long: program("x")},
		"a link":                       {long: {tar.TypeSymlink, 0, "/usr/bin/runc"}},
		"a hard link":                  {long: {tar.TypeLink, 0, "usr/bin/runc"}},
		"a hard link without a target": {"usr/bin/second": {tar.TypeLink, 0, "usr/bin/nothing"}},
		"a folder":                     {long + "/": {tar.TypeDir, 0o755, ""}},
		"a file below another file":    {long + "/x": program("x")},
	} {
		t.Run("When "+name+" of an image cannot be created, it should use nothing of the image", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Expect(w.install(w.push("node", programs(entry)))).To(MatchError(ContainSubstring("unpacking usr/")))
			w.Expect(w.slots()).To(BeEmpty())
			w.Expect(w.Exists(current)).To(BeFalse())
		})
	}
}

func TestInstallAgain(t *testing.T) {
	t.Parallel()
	t.Run("When the release is already installed, it should not access the registry", func(t *testing.T) {
		w := newWorld(t)
		image := w.push("node", programs())
		w.Expect(w.install(image)).To(Succeed())
		w.Expect(w.installed()).To(Equal(whole()))
		w.Expect(w.Log()).To(ContainSubstring("installing " + image.Name + ": nothing is installed yet"))
		w.Expect(w.Mode(current + "/installed.json").Perm()).To(BeEquivalentTo(0o644))
		before, requests := w.Files(), w.registry.Requests()
		image.Sources = nil
		w.Expect(w.install(image)).To(Succeed())
		w.Expect(w.Files()).To(Equal(before))
		w.Expect(w.registry.Requests()).To(Equal(requests))
	})
	t.Run("When another release is fetched, it should keep the current one and later switch without a registry", func(t *testing.T) {
		w := newWorld(t)
		first, second := w.push("node", programs()), w.push("next", programs(layer{"usr/bin/kubelet": program("next")}))
		w.Expect(w.install(first)).To(Succeed())
		w.Expect(release.Fetch(t.Context(), w.Host, &nodeplan.Plan{Node: second})).To(Succeed())
		w.Expect(w.Text(release.Program(w.Host, "kubelet")[len(w.Root):])).To(Equal("kubelet"))
		w.Expect(w.slots()).To(HaveLen(2))
		requests := w.registry.Requests()
		for range 2 {
			w.Expect(w.install(second)).To(Succeed())
			w.Expect(w.Text(current + "/usr/bin/kubelet")).To(Equal("next"))
			w.Expect(w.install(first)).To(Succeed())
			w.Expect(w.Text(current+"/usr/bin/kubelet")).To(Equal("kubelet"), "going back needs no registry either")
		}
		w.Expect(w.registry.Requests()).To(Equal(requests))
	})
	for name, harm := range map[string]func(w *world){
		"a program has other content":                func(w *world) { w.PutMode(current+"/usr/bin/runc", "rumc", 0o755) },
		"a program is empty":                         func(w *world) { w.PutMode(current+"/usr/bin/runc", "", 0o755) },
		"a program is missing":                       func(w *world) { w.Expect(w.Remove(current + "/usr/bin/runc")).To(Succeed()) },
		"the source of a plugin is corrupt":          func(w *world) { w.Put(current+"/opt/cni/bin/ptp", "\x00") },
		"the list of files is missing":               func(w *world) { w.Expect(w.Remove(current + "/installed.json")).To(Succeed()) },
		"the list of files is truncated":             func(w *world) { w.Put(current+"/installed.json", `{"image":`) },
		"the list of files belongs to another image": func(w *world) { w.Put(current+"/installed.json", `{"image":"other"}`) },
		"the release directory is missing": func(w *world) {
			folder, err := filepath.EvalSymlinks(w.Path(current))
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(os.RemoveAll(folder)).To(Succeed())
		},
		"there is no current link":                     func(w *world) { w.Expect(w.Remove(current)).To(Succeed()) },
		"there is a partial release":                   func(w *world) { w.Put(nodeDir+"/.partial/usr/bin/kubelet", "ku") },
		"the current link points to a partial release": func(w *world) { w.Put(nodeDir+"/.partial/usr/bin/kubelet", "ku"); w.PutLink(current, ".partial") },
	} {
		t.Run("When "+name+", the release should be complete after the next start", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			image := w.push("node", programs())
			w.Expect(w.install(image)).To(Succeed())
			harm(w)
			w.Expect(w.install(image)).To(Succeed())
			if diff := cmp.Diff(whole(), w.installed()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			w.Expect(release.RemoveOthers(t.Context(), w.Host, nil)).To(Succeed())
			w.Expect(w.slots()).To(HaveLen(1))
		})
	}
	t.Run("When another installed release is corrupt, it should be repaired before it becomes current", func(t *testing.T) {
		w := newWorld(t)
		first, second := w.push("node", programs()), w.push("next", programs(layer{"usr/bin/kubelet": program("next")}))
		w.Expect(w.install(second)).To(Succeed())
		w.PutMode(current+"/usr/bin/kubelet", "nex", 0o755)
		w.Expect(w.install(first)).To(Succeed())
		w.Expect(w.install(second)).To(Succeed())
		w.Expect(w.Text(current + "/usr/bin/kubelet")).To(Equal("next"))
	})
}

// TestInstallLostPower simulates a power loss at each change. The current installation must be complete at any time.
func TestInstallLostPower(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.push("node", programs()), w.push("next", programs(layer{"usr/bin/kubelet": program("next"), "opt/cni/bin/ptp": program("next")}))
	w.Expect(w.install(first)).To(Succeed())
	next := whole()
	next["usr/bin/kubelet"], next["opt/cni/bin/ptp"] = "-rwxr-xr-x next", "-rwxr-xr-x next"
	cuts := 1
	for w.Cut(cuts, func() { w.Expect(w.install(second)).To(Succeed()) }) {
		got := w.installed()
		if !maps.Equal(got, whole()) && !maps.Equal(got, next) {
			t.Errorf("cut off at change %d, what is current is %v", cuts, got)
		}
		w.Expect(w.install(second)).To(Succeed(), "cut off at change %d", cuts)
		w.Expect(w.installed()).To(Equal(next))
		w.Expect(w.Text("/opt/cni/bin/ptp")).To(Equal("next"))
		w.Expect(w.install(first)).To(Succeed())
		w.Expect(release.RemoveOthers(t.Context(), w.Host, nil)).To(Succeed())
		cuts++
	}
	w.Expect(cuts).To(BeNumerically(">", 3), "the list, the link and the plugins are changes")
}

func TestPlugins(t *testing.T) {
	t.Parallel()
	t.Run("When the site has its own CNI plugins, it should keep them and add those of the release", func(t *testing.T) {
		w := newWorld(t)
		w.Put("/opt/cni/bin/calico", "theirs")
		w.Put("/opt/cni/bin/ptp", "damaged")
		w.Expect(w.install(w.push("node", programs()))).To(Succeed())
		for name, want := range map[string]string{"calico": "-rw-r--r-- theirs", "ptp": "-rwxr-xr-x ptp", "bridge": "-rwxr-xr-x bridge"} {
			w.Expect(w.Files()["/opt/cni/bin/"+name]).To(Equal(want))
		}
	})
	t.Run("When a plugin cannot be written, it should return an error and retry at the next start", func(t *testing.T) {
		w := newWorld(t)
		image := w.push("node", programs())
		w.Put("/opt/cni/bin/ptp/x", "in the way")
		w.Expect(w.install(image)).To(MatchError(ContainSubstring("installing the CNI plugins: ")))
		w.Expect(os.RemoveAll(w.Path("/opt/cni/bin/ptp"))).To(Succeed())
		w.Expect(w.install(image)).To(Succeed())
		w.Expect(w.Text("/opt/cni/bin/ptp")).To(Equal("ptp"))
	})
	t.Run("When a plugin cannot be read, it should return an error", func(t *testing.T) {
		w := newWorld(t)
		image := w.push("node", programs(layer{"opt/cni/bin/a/b": program("x")}))
		w.Expect(w.install(image)).To(MatchError(ContainSubstring("installing the CNI plugins: ")))
	})
}

func TestRemoveOthers(t *testing.T) {
	t.Parallel()
	t.Run("When there are other and partial releases, it should keep only the current one", func(t *testing.T) {
		w := newWorld(t)
		w.Expect(w.install(w.push("node", programs()))).To(Succeed())
		w.Put(nodeDir+"/sha256-0/usr/bin/kubelet", "old")
		w.Put(nodeDir+"/.partial/usr/bin/kubelet", "half")
		w.Put(nodeDir+"/notes", "a file of somebody's")
		w.Expect(release.RemoveOthers(t.Context(), w.Host, nil)).To(Succeed())
		w.Expect(w.slots()).To(ConsistOf(HavePrefix("sha256-"), "notes"))
		w.Expect(w.installed()).To(Equal(whole()))
	})
	t.Run("When no release is current, it should remove nothing", func(t *testing.T) {
		w := newWorld(t)
		w.Put(nodeDir+"/sha256-0/usr/bin/kubelet", "old")
		w.Expect(release.RemoveOthers(t.Context(), w.Host, nil)).To(MatchError(os.ErrNotExist))
		w.Expect(w.slots()).To(HaveLen(1))
	})
}

// TestNoRoom checks errors of directories and links that cannot be created.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	t.Run("When the target directory cannot be created, it should return an error", func(t *testing.T) {
		w := newWorld(t)
		image := w.push("node", programs())
		w.Put(nodeDir, "in the way")
		w.Expect(w.install(image)).NotTo(Succeed())
		w.Expect(w.Text(nodeDir)).To(Equal("in the way"))
	})
	t.Run("When the link to the current release cannot be created, it should return an error", func(t *testing.T) {
		w := newWorld(t)
		image := w.push("node", programs())
		w.Put(current+"/x", "in the way")
		err := w.install(image)
		linkError := &os.LinkError{}
		w.Expect(errors.As(err, &linkError)).To(BeTrue(), "%v", err)
		w.Expect(w.Exists("/opt/cni/bin/ptp")).To(BeFalse(), "the plugins are those of what is current")
	})
}
