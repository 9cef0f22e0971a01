// SPDX-License-Identifier: Apache-2.0

package update_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/apply"
	"github.com/openshift/hypershift/node-agent/host/hosttest"
	"github.com/openshift/hypershift/node-agent/update"
	"github.com/openshift/hypershift/support/nodeplan"
)

const (
	dir    = "/var/lib/hypershift/update"
	state  = dir + "/state.json"
	room   = dir + "/room"
	bootID = "/proc/sys/kernel/random/boot_id"
	wants  = nodeplan.UnitDir + "multi-user.target.wants/"
	// requires is a second directory through which a unit can be started.
	requires = nodeplan.UnitDir + "graphical.target.requires/"

	changed = "/etc/app/changed"
)

// world is a machine that runs the configuration "old", with a target configuration.
type world struct {
	*GomegaWithT
	*hosttest.Machine
	t      *testing.T
	update *update.Machine
	target *nodeplan.Plan
	// healthy maps the content of the file that both configurations have to the health of the Node.
	healthy map[string]error
	// brought holds the hashes of the configurations that were applied, in order.
	brought []string
}

func former() *nodeplan.Plan {
	return &nodeplan.Plan{
		Version: nodeplan.Version, ConfigHash: "old",
		Files: []nodeplan.File{
			{Path: changed, Mode: 0o640, Content: []byte("old\n")}, {Path: "/etc/app/only-old", Mode: 0o4755, Content: []byte("old\n")},
			{Path: nodeplan.BootstrapKubeconfig, Mode: 0o600, Content: []byte("token")}, {Path: nodeplan.ServerCA, Mode: 0o644, Content: []byte("ca")},
			{Path: nodeplan.ServerEndpoint, Mode: 0o644, Content: []byte("10.0.0.1")},
		},
		Links: []nodeplan.Link{{Path: "/etc/app/link", Target: "old"}, {Path: "/etc/app/link-old", Target: "changed"}},
		Users: []nodeplan.User{{Name: "me", SSHKeys: []string{"ssh-rsa old"}}},
		Units: []nodeplan.Unit{
			{Name: "kubelet.service", Content: "[Service]\n#old\n", DropIns: []nodeplan.DropIn{{Name: "old.conf", Content: "x"}}},
			{Name: nodeplan.FollowUnit, Content: "[Service]\n#old\n"},
			{Name: "both.service", Content: "[Service]\n#old\n", Enabled: new(true)}, {Name: "same.service", Content: "[Service]\n", Enabled: new(true)},
			{Name: "old.service", Content: "[Service]\n", Enabled: new(true), DropIns: []nodeplan.DropIn{{Name: "1.conf", Content: "x"}}},
			{Name: "mask.service", Content: "[Service]\n", Enabled: new(true)},
		},
	}
}

func next() *nodeplan.Plan {
	return &nodeplan.Plan{
		Version: nodeplan.Version, ConfigHash: "new",
		Files: []nodeplan.File{
			{Path: changed, Mode: 0o600, Content: []byte("new\n"), Keep: true}, {Path: "/etc/app/only-new", Mode: 0o644, Content: []byte("new\n"), Keep: true},
		},
		Links:  []nodeplan.Link{{Path: "/etc/app/link", Target: "new"}, {Path: "/etc/app/link-new", Target: "changed"}},
		Groups: []nodeplan.Group{{Name: "ops"}},
		Users:  []nodeplan.User{{Name: "me", SSHKeys: []string{"ssh-rsa new"}}, {Name: "joe"}},
		Units: []nodeplan.Unit{
			{Name: "kubelet.service", Content: "[Service]\n#new\n"},
			{Name: "both.service", Content: "[Service]\n#old\n", Enabled: new(true), DropIns: []nodeplan.DropIn{{Name: "new.conf", Content: "x"}}},
			{Name: "same.service", Content: "[Service]\n", Enabled: new(true)}, {Name: "new.service", Content: "[Service]\n", Enabled: new(true)},
			{Name: "mask.service", Masked: true},
		},
	}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := newWorldOf(t, hosttest.New(t))
	me := fmt.Sprintf("me:x:%d:%d::/home/me:/bin/sh\n", os.Getuid(), os.Getgid())
	for path, text := range map[string]string{
		"/etc/passwd": "root:x:0:0::/root:/bin/sh\n" + me, "/etc/group": "root:x:0:\n", "/etc/shadow": "root:*:\n", "/etc/gshadow": "root:*::\n", bootID: "first\n", nodeplan.Program: "node-agent",
	} {
		w.Put(path, text)
	}
	w.plan(former())
	w.Expect(w.bring(t.Context())).To(Succeed())
	w.Commands, w.brought = nil, nil
	return w
}

func newWorldOf(t *testing.T, m *hosttest.Machine) *world {
	t.Helper()
	w := &world{GomegaWithT: NewWithT(t), Machine: m, t: t, target: next(), healthy: map[string]error{}}
	w.Machine.Program = w.program
	w.update = &update.Machine{Host: w.Host, Bring: w.bring, Healthy: func(context.Context) error { return w.healthy[w.Text(changed)] }}
	return w
}

func (w *world) plan(p *nodeplan.Plan) {
	w.t.Helper()
	raw, err := json.Marshal(p)
	w.Expect(err).NotTo(HaveOccurred())
	w.PutMode(nodeplan.Path, string(raw), 0o600)
}

// bring applies the plan on the machine. It replaces the parts of node-agent outside of package update.
func (w *world) bring(ctx context.Context) error {
	raw, err := w.Read(nodeplan.Path)
	if err != nil {
		return err
	}
	plan, err := nodeplan.Parse(raw)
	if err != nil {
		return err
	}
	w.brought = append(w.brought, plan.ConfigHash)
	return apply.Plan(ctx, w.Host, plan)
}

// program simulates the effects of systemd and of the user management tools.
func (w *world) program(command string, _ io.Reader) ([]byte, error) {
	words := strings.Fields(command)
	last := words[len(words)-1]
	switch {
	case command == "systemctl enable new.service":
		return nil, errors.Join(w.Link(wants+last, "../"+last), w.Link(requires+last, "../"+last))
	case strings.HasPrefix(command, "systemctl enable"):
		return nil, w.Link(wants+last, "../"+last)
	case strings.HasPrefix(command, "systemctl disable"):
		return nil, w.Remove(wants + last)
	case strings.HasPrefix(command, "systemctl mask"):
		if w.Exists(nodeplan.UnitDir+last) && w.Mode(nodeplan.UnitDir+last).IsRegular() {
			return nil, errors.New("file already exists")
		}
		w.PutLink(nodeplan.UnitDir+last, os.DevNull)
	case words[0] == "useradd":
		w.Put("/etc/passwd", w.Text("/etc/passwd")+last+":x:1200:1200::/home/"+last+":/bin/bash\n")
		w.Put("/etc/shadow", w.Text("/etc/shadow")+last+":!:\n")
	case words[0] == "groupadd":
		w.Put("/etc/group", w.Text("/etc/group")+last+":x:900:\n")
		w.Put("/etc/gshadow", w.Text("/etc/gshadow")+last+":!::\n")
	}
	return nil, nil
}

// boots simulates a new boot of the machine.
func (w *world) boots(id string) {
	w.t.Helper()
	w.Put(bootID, id+"\n")
}

// files returns the files of the machine, without the data of an update and without /proc.
func (w *world) files() map[string]string {
	w.t.Helper()
	return w.Files(dir, "/proc")
}

// kept returns the names of the files that an update has stored.
func (w *world) kept() []string {
	w.t.Helper()
	paths, err := filepath.Glob(w.Path(dir + "/*"))
	w.Expect(err).NotTo(HaveOccurred())
	for i := range paths {
		paths[i] = filepath.Base(paths[i])
	}
	slices.Sort(paths)
	return paths
}

// goes updates the machine to the target configuration, and returns the result.
func (w *world) goes() update.State {
	w.t.Helper()
	w.Expect(w.update.Begin(w.target)).To(Succeed())
	ended, err := w.update.Settle(w.t.Context())
	w.Expect(err).NotTo(HaveOccurred())
	return ended
}

// settles completes the update in progress, and returns the result.
func (w *world) settles() update.State {
	w.t.Helper()
	ended, err := w.update.Settle(w.t.Context())
	w.Expect(err).NotTo(HaveOccurred())
	return ended
}
