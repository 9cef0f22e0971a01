// SPDX-License-Identifier: Apache-2.0

package update_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/update"
	"github.com/openshift/hypershift/support/nodeplan"
)

func TestBegin(t *testing.T) {
	t.Parallel()
	t.Run("When an update begins, it should change no files in use and store the old ones for root only", func(t *testing.T) {
		w := newWorld(t)
		before := w.files()
		w.Expect(w.update.Begin(w.target)).To(Succeed())
		w.Expect(w.files()).To(Equal(before))
		w.Expect(w.Commands).To(BeEmpty())
		w.Expect(w.kept()).To(Equal([]string{"before", "room", "state.json", "target.json"}))
		w.Expect(w.Mode(dir + "/before").Perm()).To(BeEquivalentTo(0o700))
		err := filepath.WalkDir(w.Path(dir), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				w.Expect(w.Mode(strings.TrimPrefix(path, w.Root)).Perm()).To(BeEquivalentTo(0o600), path)
			}
			return err
		})
		w.Expect(err).NotTo(HaveOccurred())
		now, err := update.Load(w.Host)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(now).To(Equal(update.State{Phase: update.Switching, Hash: "new", Restart: []string{"both.service", "new.service"}}))
	})
	t.Run("When an earlier update was interrupted at its start, it should not restore the stale files", func(t *testing.T) {
		w := newWorld(t)
		before := w.files()
		w.Put(dir+"/before/0", "stale")
		w.Put(dir+"/before/index.json", `[{"path": "/etc/stale", "kind": "file", "content": "0"}]`)
		w.Put(dir+"/before.partial/99", "stale")
		w.healthy["new\n"] = errUnhealthy
		w.Expect(w.goes().Phase).To(Equal(update.RolledBack))
		w.Expect(w.files()).To(Equal(before))
	})
	t.Run("When the image has a conflicting file, it should roll back and keep that file", func(t *testing.T) {
		w := newWorld(t)
		w.Put("/etc/app/only-new", "the image's\n")
		before := w.files()
		ended := w.goes()
		w.Expect(ended.Phase).To(Equal(update.RolledBack))
		w.Expect(ended.Message).To(ContainSubstring("/etc/app/only-new: the image has it with another content"))
		w.Expect(w.files()).To(Equal(before))
	})
}

// TestNotBegun checks that an update changes nothing if it cannot store the previous state, and leaves no data behind.
func TestNotBegun(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		harm func(w *world)
		says string
	}{
		"the plan of the machine is missing":   {func(w *world) { w.Expect(w.Remove(nodeplan.Path)).To(Succeed()) }, "0 bytes are not a node plan"},
		"the plan of the machine is truncated": {func(w *world) { w.Put(nodeplan.Path, `{"version":1`) }, "12 bytes are not a node plan"},
		"a directory is at the path of a file of the configuration": {func(w *world) { w.Put("/etc/app/only-new/x", "") },
			"saving /etc/app/only-new for a rollback: the configuration has a file there, but the path on the machine is neither a file nor a link"},
		"a directory is at the path of the stored plan": {func(w *world) { w.Put(dir+"/target.json/x", "") }, "storing the plan: "},
		"disk space for a rollback cannot be reserved":  {func(w *world) { w.Put(room+"/x", "") }, "reserving disk space for a rollback: "},
		"the state of the update cannot be written":     {func(w *world) { w.Put(state+"/x", "") }, "writing the state of the update: "},
	} {
		t.Run("When "+name+", it should return an error and change nothing", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tt.harm(w)
			before := w.files()
			w.Expect(w.update.Begin(w.target)).To(MatchError(ContainSubstring(tt.says)))
			w.Expect(w.files()).To(Equal(before))
			for _, left := range w.kept() {
				w.Expect(left).To(Equal("state.json"), "only what was in the way")
			}
		})
	}
	t.Run("When the state directory cannot be created, it should return an error", func(t *testing.T) {
		w := newWorld(t)
		w.Put(dir, "in the way")
		w.Expect(w.update.Begin(w.target)).NotTo(Succeed())
		w.Expect(w.brought).To(BeEmpty())
	})
}

// TestDamaged damages the state of an update. The machine must report an error, and must not guess or forget that an
// update is in progress.
func TestDamaged(t *testing.T) {
	t.Parallel()
	begun := func(t *testing.T) *world {
		w := newWorld(t)
		w.healthy["new\n"] = errUnhealthy
		w.Expect(w.update.Begin(w.target)).To(Succeed())
		return w
	}
	t.Run("When the state of the update is corrupt, it should return an error and change nothing", func(t *testing.T) {
		w := begun(t)
		w.Put(state, `{"phase":`)
		before := w.Files()
		_, err := update.Load(w.Host)
		w.Expect(err).To(MatchError(ContainSubstring("reading " + state)))
		w.Expect(w.update.Resume(t.Context())).To(MatchError(ContainSubstring(state)))
		_, err = w.update.Settle(t.Context())
		w.Expect(err).To(MatchError(ContainSubstring(state)))
		w.Expect(w.Files()).To(Equal(before))
	})
	for name, tt := range map[string]struct {
		harm func(w *world)
		says string
	}{
		"the target plan is missing":              {func(w *world) { w.Expect(w.Remove(dir + "/target.json")).To(Succeed()) }, "0 bytes are not a node plan"},
		"the target plan is truncated":            {func(w *world) { w.Put(dir+"/target.json", "{") }, "1 bytes are not a node plan"},
		"the index of saved files is missing":     {func(w *world) { w.Expect(w.Remove(dir + "/before/index.json")).To(Succeed()) }, "reading the files saved for a rollback"},
		"the index of saved files is truncated":   {func(w *world) { w.Put(dir+"/before/index.json", "[{") }, "reading the files saved for a rollback"},
		"the index of saved files lacks the plan": {func(w *world) { w.Put(dir+"/before/index.json", "[]") }, "the previous plan was not saved"},
		"the index of saved files cannot be read": {func(w *world) {
			w.Expect(w.Remove(dir + "/before/index.json")).To(Succeed())
			w.Put(dir+"/before/index.json/x", "")
		}, "is a directory"},
	} {
		t.Run("When "+name+", it should return an error and not report success", func(t *testing.T) {
			w := begun(t)
			tt.harm(w)
			before := w.files()
			_, err := w.update.Settle(t.Context())
			w.Expect(err).To(MatchError(ContainSubstring(tt.says)))
			now, err := update.Load(w.Host)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(now.Underway()).To(BeTrue())
			w.Expect(w.files()).To(Equal(before), "it is what it was")
		})
	}
	t.Run("When a directory blocks a restore, it should return an error and continue once it is removed", func(t *testing.T) {
		w := begun(t)
		w.update.Healthy = func(context.Context) error {
			w.Expect(w.Remove("/etc/app/only-new")).To(Succeed())
			w.Put("/etc/app/only-new/data", "of an application")
			return errUnhealthy
		}
		_, err := w.update.Settle(t.Context())
		w.Expect(err).To(MatchError(ContainSubstring("restoring /etc/app/only-new: ")))
		w.Expect(w.Text("/etc/app/only-new/data")).To(Equal("of an application"))
		w.Expect(os.RemoveAll(w.Path("/etc/app/only-new"))).To(Succeed())
		w.update.Healthy = func(context.Context) error { return nil }
		w.Expect(w.settles().Phase).To(Equal(update.RolledBack), "when it is out of the way, it goes on")
	})
	t.Run("When a file of the old configuration cannot be removed, it should not apply the new one", func(t *testing.T) {
		w := begun(t)
		w.healthy = nil
		w.Expect(w.Remove("/etc/app/only-old")).To(Succeed())
		w.Put("/etc/app/only-old/data", "of an application")
		_, err := w.update.Settle(t.Context())
		w.Expect(err).To(MatchError(ContainSubstring("restoring /etc/app/only-old: ")))
		w.Expect(w.brought).To(BeEmpty())
		w.Expect(os.RemoveAll(w.Path("/etc/app/only-old"))).To(Succeed())
		ended := w.settles()
		w.Expect(ended.Phase).To(Equal(update.RolledBack))
		w.Expect(ended.Message).To(HavePrefix("removing /etc/app/only-old, which the configuration no longer has: "))
	})
	t.Run("When a saved file is missing, it should return an error that names the file", func(t *testing.T) {
		w := begun(t)
		w.update.Healthy = func(context.Context) error {
			found, err := filepath.Glob(w.Path(dir + "/before/*"))
			w.Expect(err).NotTo(HaveOccurred())
			for _, path := range found {
				if content, err := os.ReadFile(path); err == nil && string(content) == "old\n" {
					w.Expect(os.Remove(path)).To(Succeed())
				}
			}
			return errUnhealthy
		}
		_, err := w.update.Settle(t.Context())
		w.Expect(err).To(MatchError(And(ContainSubstring("restoring /etc/app/"), ContainSubstring("no such file"))))
	})
}

func TestUnderway(t *testing.T) {
	t.Parallel()
	for phase, want := range map[update.Phase]bool{"": false, update.Switching: true, update.Restoring: true, update.RolledBack: false, update.Failed: false} {
		if got := (update.State{Phase: phase}).Underway(); got != want {
			t.Errorf("%q: %t", phase, got)
		}
	}
}

// TestChangedUnits checks that a unit is only restarted if it changes.
func TestChangedUnits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		unit nodeplan.Unit
		want bool
	}{
		"When the content of a unit changes, it should be restarted":                      {nodeplan.Unit{Name: "same.service", Content: "[Service]\n#new\n", Enabled: new(true)}, true},
		"When a unit does not change, it should not be restarted":                         {nodeplan.Unit{Name: "same.service", Content: "[Service]\n", Enabled: new(true)}, false},
		"When a drop-in of a unit changes, it should be restarted":                        {nodeplan.Unit{Name: "old.service", Content: "[Service]\n", DropIns: []nodeplan.DropIn{{Name: "1.conf", Content: "y"}}, Enabled: new(true)}, true},
		"When a drop-in of a unit does not change, it should not be restarted":            {nodeplan.Unit{Name: "old.service", Content: "[Service]\n", DropIns: []nodeplan.DropIn{{Name: "1.conf", Content: "x"}}, Enabled: new(true)}, false},
		"When a unit gets a second drop-in, it should be restarted":                       {nodeplan.Unit{Name: "old.service", Content: "[Service]\n", DropIns: []nodeplan.DropIn{{Name: "1.conf", Content: "x"}, {Name: "2.conf", Content: "x"}}, Enabled: new(true)}, true},
		"When a changed unit has no enabled field, it should not be restarted":            {nodeplan.Unit{Name: "same.service", Content: "[Service]\n#new\n"}, false},
		"When a changed unit is disabled, it should not be restarted":                     {nodeplan.Unit{Name: "same.service", Content: "[Service]\n#new\n", Enabled: new(bool)}, false},
		"When a unit is masked, it should not be restarted":                               {nodeplan.Unit{Name: "same.service", Masked: true, Enabled: new(true)}, false},
		"When the kubelet unit changes, it should not be in the list of units to restart": {nodeplan.Unit{Name: "kubelet.service", Content: "[Service]\n#new\n", Enabled: new(true)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Expect(w.update.Begin(&nodeplan.Plan{Version: nodeplan.Version, ConfigHash: "new", Units: []nodeplan.Unit{tt.unit}})).To(Succeed())
			now, err := update.Load(w.Host)
			w.Expect(err).NotTo(HaveOccurred())
			if tt.want {
				w.Expect(now.Restart).To(Equal([]string{tt.unit.Name}))
			} else {
				w.Expect(now.Restart).To(BeEmpty())
			}
		})
	}
}
