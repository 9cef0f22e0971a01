// SPDX-License-Identifier: Apache-2.0

package update_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/update"
)

// starts simulates the start of node-agent at boot. First it resumes the update, as before the kubelet starts; then it
// settles the update.
func (w *world) starts() (update.State, error) {
	before, err := update.Load(w.Host)
	if err != nil {
		return before, err
	}
	if before.Underway() {
		if err := w.update.Resume(w.t.Context()); err != nil {
			return before, err
		}
		now, err := update.Load(w.Host)
		if err != nil || now.Underway() && now.Boot == "" {
			return now, fmt.Errorf("it was brought to nothing: %w", err)
		}
	}
	return w.update.Settle(w.t.Context())
}

// TestCutOff simulates a power loss at each step of an update, and a second one at some later step, and starts the
// machine again. It must end up with one complete configuration or the other.
func TestCutOff(t *testing.T) {
	t.Parallel()
	for name, unhealthy := range map[string]error{"to a configuration": nil, "to a configuration and back": errUnhealthy} {
		t.Run("When power is lost during an update "+name+", it should reach the same end or not have begun", func(t *testing.T) {
			t.Parallel()
			start := newWorld(t)
			whole, old := newWorldOf(t, start.Copy(t)), start.files()
			whole.healthy["new\n"] = unhealthy
			want := whole.goes()
			// An update and its rollback have the same steps, so the first cut skips steps. The second cut covers the others.
			all, steps, each, cuts, underway := whole.files(), 1, 3, 0, 0
			if unhealthy == nil {
				each = 5
			}
			for ; ; steps += each {
				w := newWorldOf(t, start.Copy(t))
				w.healthy["new\n"] = unhealthy
				if !w.Cut(steps, func() { w.goes() }) {
					break
				}
				cuts++
				began, err := update.Load(w.Host)
				w.Expect(err).NotTo(HaveOccurred())
				w.boots("second")
				w.Cut(1+steps*7%29, func() { _, _ = w.starts() })
				w.boots("third")
				ended, err := w.starts()
				w.Expect(err).NotTo(HaveOccurred(), "cut off at step %d", steps)
				files, wanted, outcome := all, "the new configuration", want
				if unhealthy != nil {
					files, wanted = old, "the old configuration"
				}
				if began.Underway() {
					underway++
				} else if w.Text(changed) == "old\n" && unhealthy == nil {
					files, wanted, outcome = old, "the old configuration, as nothing had begun", update.State{}
				} else if unhealthy != nil && began.Phase == "" {
					outcome = update.State{}
				}
				if diff := cmp.Diff(files, w.files()); diff != "" {
					t.Errorf("cut off at step %d, it should be %s: -want +got:\n%s", steps, wanted, diff)
				}
				if diff := cmp.Diff(outcome, ended); diff != "" {
					t.Errorf("cut off at step %d, on the way to %s: -want +got:\n%s", steps, wanted, diff)
				}
				left := w.kept()
				if len(left) > 0 && (unhealthy == nil || strings.Join(left, "") != "state.json") {
					t.Errorf("cut off at step %d, %v is left", steps, left)
				}
			}
			if underway < 5 || cuts-underway < 4 {
				t.Errorf("it was cut off %d times, of which %d on the way: there are more steps", cuts, underway)
			}
		})
	}
}

func TestStarts(t *testing.T) {
	t.Parallel()
	loses := errors.New("the machine loses its power")
	// goesOut makes the machine lose power each time after it applied the new configuration.
	goesOut := func(w *world) *int {
		died := new(int)
		w.update.Bring = func(ctx context.Context) error {
			if err := w.bring(ctx); err != nil || w.Text(changed) == "old\n" {
				return err
			}
			*died++
			panic(loses)
		}
		return died
	}
	t.Run("When a configuration crashes the machine three times, it should roll back at the fourth start", func(t *testing.T) {
		w := newWorld(t)
		before := w.files()
		died := goesOut(w)
		w.Expect(w.update.Begin(w.target)).To(Succeed())
		for i := range 3 {
			w.boots(fmt.Sprint(i))
			w.Expect(func() { _, _ = w.starts() }).To(PanicWith(loses))
		}
		w.boots("last")
		ended, err := w.starts()
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(*died).To(Equal(3))
		w.Expect(ended.Phase).To(Equal(update.RolledBack))
		w.Expect(ended.Message).To(Equal("the machine was started 3 times during the update and did not reach the configuration"))
		if diff := cmp.Diff(before, w.files()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("When the wait for the Node is interrupted, it should wait again without applying twice in one boot", func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		w.update.Healthy = func(context.Context) error { cancel(); return errUnhealthy }
		w.Expect(w.update.Begin(w.target)).To(Succeed())
		_, err := w.update.Settle(ctx)
		w.Expect(err).To(MatchError(context.Canceled), "who was stopped has not seen that the Node is not Ready")
		now, err := update.Load(w.Host)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect([]any{now.Phase, now.Starts, now.Boot}).To(Equal([]any{update.Switching, 1, "first"}))
		w.update.Healthy = func(context.Context) error { return nil }
		w.Expect(w.settles()).To(Equal(update.State{}))
		w.Expect(w.brought).To(Equal([]string{"new"}), "in the same boot it was brought to it before")
	})
	t.Run("When the configuration was applied in an earlier boot, it should be applied again", func(t *testing.T) {
		w := newWorld(t)
		w.Expect(w.update.Begin(w.target)).To(Succeed())
		w.Expect(w.update.Resume(t.Context())).To(Succeed())
		w.boots("second")
		w.Expect(w.settles()).To(Equal(update.State{}))
		w.Expect(w.brought).To(Equal([]string{"new", "new"}))
	})
	for name, harm := range map[string]func(w *world){
		"reports no boot ID":       func(w *world) { w.Expect(w.Remove(bootID)).To(Succeed()) },
		"reports an empty boot ID": func(w *world) { w.Put(bootID, "") },
	} {
		t.Run("When the kernel "+name+", it should apply the configuration before the Node is checked", func(t *testing.T) {
			w := newWorld(t)
			harm(w)
			w.Expect(w.goes()).To(Equal(update.State{}))
			w.Expect(w.brought).To(Equal([]string{"new"}))
		})
	}
	t.Run("When no update is in progress, it should apply nothing and remove leftover files", func(t *testing.T) {
		w := newWorld(t)
		w.Put(dir+"/before.partial/0", "x")
		w.Put(dir+"/before/0", "x")
		w.Put(dir+"/target.json", "{")
		w.Put(room, "x")
		before := w.files()
		w.Expect(w.update.Resume(t.Context())).To(Succeed())
		w.Expect(w.kept()).To(BeEmpty())
		w.Expect(w.files()).To(Equal(before))
		w.Expect(w.brought).To(BeEmpty())
	})
}

// TestBringFails checks a configuration that cannot be applied, and a previous configuration that cannot be restored.
func TestBringFails(t *testing.T) {
	t.Parallel()
	full, worse := errors.New("no space left on device"), errors.New("the registry is away")
	t.Run("When applying a configuration fails, it should roll back without a check of the Node", func(t *testing.T) {
		w := newWorld(t)
		before := w.files()
		w.update.Bring = func(ctx context.Context) error {
			if err := w.bring(ctx); err != nil || len(w.brought) > 1 {
				return err
			}
			return full
		}
		asked := 0
		w.update.Healthy = func(context.Context) error { asked++; w.Expect(w.Text(changed)).To(Equal("old\n")); return nil }
		w.Expect(w.goes()).To(Equal(update.State{Phase: update.RolledBack, Hash: "new", Message: full.Error()}))
		w.Expect(asked).To(Equal(1))
		w.Expect(w.files()).To(Equal(before))
	})
	t.Run("When the rollback fails too, it should retry until it succeeds and report the first reason", func(t *testing.T) {
		w := newWorld(t)
		before, attempts := w.files(), 0
		w.update.Bring = func(ctx context.Context) error {
			if attempts++; attempts == 1 {
				return full
			}
			if attempts < 6 {
				return worse
			}
			return w.bring(ctx)
		}
		w.Expect(w.update.Begin(w.target)).To(Succeed())
		for range 4 {
			_, err := w.update.Settle(t.Context())
			w.Expect(err).To(MatchError(worse))
			now, err := update.Load(w.Host)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect([]any{now.Phase, now.Message}).To(Equal([]any{update.Restoring, full.Error()}))
		}
		w.Expect(w.settles().Message).To(Equal(full.Error()))
		w.Expect(w.files()).To(Equal(before))
	})
	t.Run("When the context is cancelled during an update, it should not roll back", func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		w.update.Bring = func(ctx context.Context) error { cancel(); return ctx.Err() }
		w.Expect(w.update.Begin(w.target)).To(Succeed())
		w.Expect(w.update.Resume(ctx)).To(MatchError(context.Canceled))
		now, err := update.Load(w.Host)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(now.Phase).To(Equal(update.Switching))
		w.update.Bring = w.bring
		w.Expect(w.settles()).To(Equal(update.State{}))
	})
	t.Run("When the Node is not Ready after the rollback either, it should fail with both reasons", func(t *testing.T) {
		w := newWorld(t)
		w.healthy["new\n"], w.healthy["old\n"] = errUnhealthy, errors.New("the API server is away")
		ended := w.goes()
		w.Expect(ended).To(Equal(update.State{Phase: update.Failed, Hash: "new", Message: "the Node is not Ready; with its previous configuration the API server is away"}))
		w.Expect(w.kept()).To(Equal([]string{"state.json"}))
		w.Expect(w.settles()).To(Equal(ended))
		w.Expect(w.brought).To(Equal([]string{"new", "old"}))
	})
	t.Run("When the machine rolls back, it should free the reserved disk space, and not earlier", func(t *testing.T) {
		w := newWorld(t)
		w.healthy["new\n"] = errUnhealthy
		var rooms []int
		w.update.Bring = func(ctx context.Context) error {
			content, err := w.Read(room)
			w.Expect(err).NotTo(HaveOccurred())
			rooms = append(rooms, len(content))
			return w.bring(ctx)
		}
		w.goes()
		w.Expect(rooms).To(Equal([]int{1 << 20, 0}))
	})
}
