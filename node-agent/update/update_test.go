// SPDX-License-Identifier: Apache-2.0

package update_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/update"
	"github.com/openshift/hypershift/support/nodeplan"
)

var errUnhealthy = errors.New("the Node is not Ready")

func TestForward(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ended := w.goes()
	t.Run("When the Node is Ready, it should have all of the new configuration and nothing only in the old one", func(t *testing.T) {
		w.Expect(ended).To(Equal(update.State{}))
		got := w.files()
		for path, want := range map[string]string{
			changed: "-rw------- new\n", "/etc/app/only-new": "-rw-r--r-- new\n", "/etc/app/only-old": "", "/etc/app/link": "-> new", "/etc/app/link-new": "-> changed", "/etc/app/link-old": "",
			nodeplan.UnitDir + "kubelet.service": "-rw-r--r-- [Service]\n#new\n", nodeplan.UnitDir + "kubelet.service.d/old.conf": "",
			nodeplan.UnitDir + "both.service.d/new.conf": "-rw-r--r-- x", nodeplan.UnitDir + "old.service": "", nodeplan.UnitDir + "old.service.d/1.conf": "",
			nodeplan.UnitDir + "mask.service": "-> /dev/null", wants + "old.service": "", wants + "new.service": "-> ../new.service", wants + "both.service": "-> ../both.service",
			"/home/me/.ssh/authorized_keys": "-rw------- ssh-rsa old\nssh-rsa new\n",
		} {
			w.Expect(got[path]).To(Equal(want), path)
		}
	})
	t.Run("When the new configuration lacks files that a Node needs to join, it should keep them", func(t *testing.T) {
		for path, want := range map[string]string{
			nodeplan.BootstrapKubeconfig: "token", nodeplan.ServerCA: "ca", nodeplan.ServerEndpoint: "10.0.0.1", nodeplan.Program: "node-agent",
			nodeplan.UnitDir + nodeplan.FollowUnit: "[Service]\n#old\n",
		} {
			w.Expect(w.Text(path)).To(Equal(want), path)
		}
	})
	t.Run("When the update is over, it should keep no rollback files", func(t *testing.T) {
		w.Expect(w.kept()).To(BeEmpty())
		w.Expect(w.brought).To(Equal([]string{"new"}))
		w.Expect(w.Mode(nodeplan.Path).Perm()).To(BeEquivalentTo(0o600), "it has secrets")
	})
	t.Run("When units change, it should restart only those", func(t *testing.T) {
		var restarted []string
		for _, command := range w.Commands {
			if unit, ok := strings.CutPrefix(command, "systemctl try-restart "); ok {
				restarted = append(restarted, unit)
			}
		}
		w.Expect(restarted).To(ConsistOf("both.service", "new.service"))
		w.Expect(w.Commands[0]).To(Equal("systemctl disable --now old.service"), "it is stopped while systemd knows how")
		w.Expect(w.Commands).NotTo(ContainElement(MatchRegexp("disable --now (kubelet|both|mask|hypershift)")))
	})
}

func TestBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.healthy["new\n"] = errUnhealthy
	before := w.files()
	ended := w.goes()
	t.Run("When the Node does not become Ready, it should restore all files, modes and links", func(t *testing.T) {
		w.Expect(ended).To(Equal(update.State{Phase: update.RolledBack, Hash: "new", Message: errUnhealthy.Error()}))
		if diff := cmp.Diff(before, w.files()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		w.Expect(w.brought).To(Equal([]string{"new", "old"}))
		w.Expect(w.Log()).To(ContainSubstring("rolling back to the previous configuration: " + errUnhealthy.Error()))
	})
	t.Run("When the update was rolled back, it should keep the outcome until it is cleared", func(t *testing.T) {
		w.Expect(w.kept()).To(Equal([]string{"state.json"}))
		w.Expect(w.settles()).To(Equal(ended))
		w.Expect(update.Forget(w.Host)).To(Succeed())
		w.Expect(w.settles()).To(Equal(update.State{}))
		w.Expect(update.Forget(w.Host)).To(Succeed(), "what is forgotten may be forgotten again")
	})
	t.Run("When the update was rolled back, it should stop new units and start old ones", func(t *testing.T) {
		w.Expect(w.Commands).To(ContainElements("systemctl disable --now new.service", "systemctl start --no-block old.service", "systemctl start --no-block mask.service"))
		w.Expect(w.Commands).NotTo(ContainElement("systemctl disable --now both.service"))
		w.Expect(w.Commands).NotTo(ContainElement(MatchRegexp("start --no-block .*kubelet")), "the node's own units are for who brings it")
	})
	t.Run("When the update is tried again, it should work the same way", func(t *testing.T) {
		w.Expect(w.goes().Phase).To(Equal(update.RolledBack))
		w.healthy = nil
		w.Expect(w.goes()).To(Equal(update.State{}))
		w.Expect(w.Text(changed)).To(Equal("new\n"))
	})
}

// TestWhatWasThere checks a rollback to a state that only manual changes can have created.
func TestWhatWasThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.healthy["new\n"] = errUnhealthy
	w.PutMode(changed, "by hand\n", 0o604)
	w.PutLink("/etc/app/only-old", "/srv/elsewhere")
	w.PutLink(requires+"both.service", "../both.service")
	w.Expect(w.Remove("/etc/app/link")).To(Succeed())
	if os.Getuid() == 0 {
		w.Expect(os.Chown(w.Path(changed), 1200, 1300)).To(Succeed())
		w.Expect(os.Lchown(w.Path("/etc/app/only-old"), 1200, 1300)).To(Succeed())
	}
	before, owner := w.files(), w.Owner(changed)
	w.Expect(w.goes().Phase).To(Equal(update.RolledBack))
	if diff := cmp.Diff(before, w.files()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.Expect(w.Owner(changed)).To(Equal(owner))
	if os.Getuid() == 0 {
		w.Expect(w.Owner("/etc/app/only-old")).To(Equal("1200:1300"))
	}
}

// TestSecretsOnTheWayBack checks that a restored file is readable only by root until its owner is set, since it may
// contain secrets of one user.
func TestSecretsOnTheWayBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.healthy["new\n"] = errUnhealthy
	back := 0
	w.Host.Changed = func(path string) {
		now, err := update.Load(w.Host)
		if w.Expect(err).NotTo(HaveOccurred()); now.Phase == update.Restoring && (path == changed || path == "/etc/app/only-old") {
			back++
			w.Expect(w.Mode(path)).To(BeEquivalentTo(0o600), path)
		}
	}
	w.goes()
	w.Expect(back).To(Equal(2))
}

// TestUsersOnTheWay checks a user that a third party created during an update. A rollback only removes that user if
// the update itself created users or groups.
func TestUsersOnTheWay(t *testing.T) {
	t.Parallel()
	const guest = "guest:x:1300:1300::/home/guest:/bin/sh\n"
	for name, tt := range map[string]struct {
		users  []nodeplan.User
		groups []nodeplan.Group
		stays  bool
	}{
		"the configuration has no users or groups": {nil, nil, true},
		"the configuration has a user":             {[]nodeplan.User{{Name: "joe"}}, nil, false},
		"the configuration has a group":            {nil, []nodeplan.Group{{Name: "ops"}}, false},
	} {
		t.Run("When the machine rolls back and "+name+", it should keep or remove unrelated users", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.healthy["new\n"] = errUnhealthy
			w.target.Users, w.target.Groups = tt.users, tt.groups
			before := w.files()
			w.update.Bring = func(ctx context.Context) error {
				if !strings.Contains(w.Text("/etc/passwd"), guest) && len(w.brought) == 0 {
					w.Put("/etc/passwd", w.Text("/etc/passwd")+guest)
				}
				return w.bring(ctx)
			}
			w.Expect(w.goes().Phase).To(Equal(update.RolledBack))
			w.Expect(strings.Contains(w.Text("/etc/passwd"), guest)).To(Equal(tt.stays))
			after := w.files()
			delete(before, "/etc/passwd")
			delete(after, "/etc/passwd")
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestNewerProgram checks that a rollback never replaces the node-agent, even if the configuration contains it.
func TestNewerProgram(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plan := former()
	plan.Owned = []string{nodeplan.Program}
	w.plan(plan)
	w.healthy["new\n"] = errUnhealthy
	w.Expect(w.update.Begin(w.target)).To(Succeed())
	w.Put(nodeplan.Program, "newer")
	w.Expect(w.settles().Phase).To(Equal(update.RolledBack))
	w.Expect(w.Text(nodeplan.Program)).To(Equal("newer"))
}

// TestIgnition checks a machine whose files Ignition wrote. Its plan contains only their names.
func TestIgnition(t *testing.T) {
	t.Parallel()
	for name, unhealthy := range map[string]error{"the update succeeds": nil, "the update is rolled back": errUnhealthy} {
		t.Run("When Ignition installed the machine and "+name+", it should find units by file names", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			plan := former()
			w.plan(&nodeplan.Plan{Version: nodeplan.Version, ConfigHash: "old", Owned: append(plan.Paths(), nodeplan.UnitDir+"sshd.service.d/own.conf", nodeplan.UnitDir+"old.service.d/2.conf")})
			w.Put(nodeplan.UnitDir+"sshd.service.d/own.conf", "x")
			w.Put(nodeplan.UnitDir+"sshd.service", "the image's")
			w.healthy["new\n"] = unhealthy
			before := w.files()
			w.goes()
			w.Expect(strings.Count(strings.Join(w.Commands, "\n"), "systemctl disable --now old.service")).To(Equal(1))
			w.Expect(w.Commands).NotTo(ContainElement("systemctl disable --now sshd.service"), "only a drop-in of it is the configuration's")
			w.Expect(w.Text(nodeplan.UnitDir + "sshd.service")).To(Equal("the image's"))
			if unhealthy == nil {
				w.Expect(w.Exists(nodeplan.UnitDir + "sshd.service.d/own.conf")).To(BeFalse())
				w.Expect(w.Exists("/etc/app/only-old")).To(BeFalse())
				return
			}
			// The record of the applied plan differs.
			before["/var/lib/hypershift/applied"] = w.files()["/var/lib/hypershift/applied"]
			if diff := cmp.Diff(before, w.files()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestDeafSystemd checks an update in which all systemctl calls fail. The machine must still end up with one complete
// configuration.
func TestDeafSystemd(t *testing.T) {
	t.Parallel()
	deaf := func(w *world) {
		answer := w.Machine.Program
		w.Machine.Program = func(command string, stdin io.Reader) ([]byte, error) {
			for _, verb := range []string{"disable --now old.service", "disable --now new.service", "try-restart", "start --no-block old.service"} {
				if strings.HasPrefix(command, "systemctl "+verb) {
					return nil, errors.New("connection timed out")
				}
			}
			return answer(command, stdin)
		}
	}
	t.Run("When units cannot be stopped or started, it should complete the update and log the errors", func(t *testing.T) {
		w := newWorld(t)
		deaf(w)
		w.Expect(w.goes()).To(Equal(update.State{}))
		w.Expect(w.Exists(nodeplan.UnitDir + "old.service")).To(BeFalse())
		w.Expect(w.Log()).To(And(ContainSubstring("unit old.service, which the configuration no longer has, is not stopped: connection"), ContainSubstring("unit both.service does not start again")))
	})
	t.Run("When the update is then rolled back, it should restore the old configuration", func(t *testing.T) {
		w := newWorld(t)
		before := w.files()
		w.healthy["new\n"] = errUnhealthy
		answer := w.Machine.Program
		deaf(w)
		w.update.Bring = func(ctx context.Context) error {
			raw, err := w.Read(nodeplan.Path)
			if err == nil && strings.Contains(string(raw), `"configHash":"old"`) {
				deafer := w.Machine.Program
				w.Machine.Program = answer // While the old plan is applied, systemctl works.
				defer func() { w.Machine.Program = deafer }()
			}
			return w.bring(ctx)
		}
		w.Expect(w.goes().Phase).To(Equal(update.RolledBack))
		if diff := cmp.Diff(before, w.files()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		w.Expect(w.Log()).To(And(ContainSubstring("unit new.service, which the previous configuration does not have, is not stopped"), ContainSubstring("unit old.service does not start")))
	})
}
