// SPDX-License-Identifier: Apache-2.0

package units

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
)

const service1 = "[Service]\nExecStart=sleep infinity\n"

// edges lists, for each unit, the units that it starts after, sorted.
func edges(nodes map[string]*node) map[string][]string {
	result := map[string][]string{}
	for name, n := range nodes {
		result[name] = []string{}
		for _, first := range n.after {
			result[name] = append(result[name], first.unit.Name)
		}
		slices.Sort(result[name])
	}
	return result
}

func TestGraph(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		start []string
		want  map[string][]string
	}{
		{
			name:  "When a unit pulls in others, it should start them and what they pull in",
			files: map[string]string{"a.service": "[Unit]\nWants=b.service\n" + service1, "b.service": "[Unit]\nRequires=c.service\n" + service1, "c.service": service1, "d.service": service1},
			start: []string{"a.service"},
			want:  map[string][]string{"a.service": {}, "b.service": {}, "c.service": {}},
		},
		{
			name:  "When units are ordered by Before or by After, the result should be the same",
			files: map[string]string{"a.service": "[Unit]\nBefore=c.service\n" + service1, "b.service": service1, "c.service": "[Unit]\nAfter=b.service\n" + service1},
			start: []string{"a.service", "b.service", "c.service"},
			want:  map[string][]string{"a.service": {}, "b.service": {}, "c.service": {"a.service", "b.service"}},
		},
		{
			name:  "When a unit is ordered after one that does not start, it should not wait",
			files: map[string]string{"a.service": "[Unit]\nAfter=b.service network-online.target system.slice missing.service\nWants=network-online.target\n" + service1, "b.service": service1},
			start: []string{"a.service"},
			want:  map[string][]string{"a.service": {"network-online.target"}, "network-online.target": {}},
		},
		{
			name: "When a target is pulled in, it should wait for the units in its folders, except those that wait for it",
			files: map[string]string{
				"a.service": service1, "multi-user.target.wants/a.service": "-> ../a.service",
				"late.service": "[Unit]\nAfter=multi-user.target\n" + service1, "multi-user.target.wants/late.service": "-> ../late.service",
				"early.service": "[Unit]\nDefaultDependencies=no\nBefore=sysinit.target\n" + service1, "sysinit.target.requires/early.service": "-> ../early.service",
				"other.service": service1, "other.target.wants/other.service": "-> ../other.service",
			},
			start: []string{"multi-user.target"},
			want: map[string][]string{
				"early.service": {}, "sysinit.target": {"early.service"}, "basic.target": {"sysinit.target"},
				"a.service": {"basic.target", "sysinit.target"}, "multi-user.target": {"a.service", "basic.target"},
				"late.service": {"basic.target", "multi-user.target", "sysinit.target"},
			},
		},
		{
			name:  "When a required unit is missing or masked, it should be ignored",
			files: map[string]string{"a.service": "[Unit]\nWants=missing.service masked.service\n" + service1, "masked.service": "-> /dev/null"},
			start: []string{"a.service"},
			want:  map[string][]string{"a.service": {}},
		},
		{
			name:  "When a unit is ordered after itself, it should not wait for itself",
			files: map[string]string{"a.service": "[Unit]\nAfter=a.service\nBefore=a.service\n" + service1},
			start: []string{"a.service"},
			want:  map[string][]string{"a.service": {}},
		},
		{
			name:  "When a unit is bound to another, it should pull in that unit",
			files: map[string]string{"a.service": "[Unit]\nBindsTo=b.service\nAfter=b.service\n" + service1, "b.service": service1},
			start: []string{"a.service"},
			want:  map[string][]string{"a.service": {"b.service"}, "b.service": {}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			manager := &Manager{Dirs: []string{tree(t, tt.files)}}
			if diff := cmp.Diff(tt.want, edges(manager.graph(tt.start, nil))); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGraphReportsWhatCannotStart(t *testing.T) {
	g := NewWithT(t)
	manager := &Manager{Dirs: []string{tree(t, map[string]string{
		"a.service":      "[Unit]\nRequires=missing.service masked.service\n" + service1,
		"masked.service": "-> /dev/null",
		"broken.service": "nonsense",
	})}}
	nodes := manager.graph([]string{"a.service", "broken.service"}, nil)
	g.Expect(nodes["missing.service"].err).To(MatchError(ErrNotFound))
	g.Expect(nodes["masked.service"].err).To(MatchError(ErrMasked))
	g.Expect(nodes["broken.service"].err).To(MatchError(ContainSubstring("line 1")))
	g.Expect(nodes["a.service"].requires).To(ConsistOf(nodes["missing.service"], nodes["masked.service"]))
}

func TestBreakCycles(t *testing.T) {
	g := NewWithT(t)
	manager := &Manager{Dirs: []string{tree(t, map[string]string{
		"a.service": "[Unit]\nAfter=c.service\n" + service1,
		"b.service": "[Unit]\nAfter=a.service\n" + service1,
		"c.service": "[Unit]\nAfter=b.service\n" + service1,
		"d.service": "[Unit]\nAfter=c.service\n" + service1,
	})}}
	for range 20 { // The iteration order of maps is random.
		nodes := manager.graph([]string{"a.service", "b.service", "c.service", "d.service"}, nil)
		count := 0
		for name, after := range edges(nodes) {
			count += len(after)
			for _, first := range nodes[name].after {
				g.Expect(first.before).To(ContainElement(nodes[name]), "both ends of an edge are kept or dropped")
			}
		}
		g.Expect(count).To(Equal(3), "one of the three edges of the circle is dropped, and no other")
		g.Expect(edges(nodes)["d.service"]).To(Equal([]string{"c.service"}))
		started := map[string]bool{}
		for len(started) < len(nodes) {
			before := maps.Clone(started)
			for name, n := range nodes {
				if !slices.ContainsFunc(n.after, func(first *node) bool { return !before[first.unit.Name] }) {
					started[name] = true
				}
			}
			g.Expect(len(started)).To(BeNumerically(">", len(before)), "something can always start")
		}
	}
}

func TestNewService(t *testing.T) {
	for content, want := range map[string]string{
		"[Service]\nType=dbus\nExecStart=/bin/x\n":                         "Type=dbus is not supported",
		"[Service]\nType=simple\n":                                         "with 0 ExecStart commands",
		"[Service]\nType=simple\nExecStart=/bin/a\nExecStart=/bin/b\n":     "with 2 ExecStart commands",
		"[Service]\nExecStart=/bin/sh -c \"oops\n":                         "ExecStart=",
		"[Service]\nExecStart=/bin/x\nRestartSec=soon\n":                   "Service.RestartSec=soon",
		"[Service]\nExecStart=/bin/x\nTimeoutStopSec=never\n":              "Service.TimeoutStopSec=never",
		"[Service]\nExecStart=/bin/x\nEnvironment=\"A=b\n":                 "Environment=",
		"[Service]\nExecStart=/bin/x\nEnvironmentFile=/does/not/exist/x\n": "EnvironmentFile",
	} {
		_, err := newService(unit(t, "x.service", content), "", nil)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)), content)
	}

	g := NewWithT(t)
	s, err := newService(unit(t, "x@1.service", "[Service]\nType=oneshot\nExecStart=/bin/a %i\nExecStart=-/bin/b\nRemainAfterExit=true\nWorkingDirectory=/var/%p\n"), "", nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.start).To(HaveLen(2))
	g.Expect(s.start[0].argv).To(Equal([]string{"/bin/a", "1"}))
	g.Expect(s.remain).To(BeTrue())
	g.Expect(s.dir).To(Equal("/var/x"))
	g.Expect(s.startTimeout).To(BeZero(), "a oneshot may take as long as it needs")
	for _, kind := range []string{"simple", "exec", "idle", ""} {
		s, err := newService(unit(t, "x.service", "[Service]\nType="+kind+"\nExecStart=/bin/a\n"), "", nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.kind).To(Equal("simple"))
		g.Expect(s.startTimeout).To(Equal(defaultStartTimeout))
	}
}

func TestLookPath(t *testing.T) {
	g := NewWithT(t)
	first, second := t.TempDir(), t.TempDir()
	g.Expect(os.Mkdir(filepath.Join(first, "program"), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(first, "plain"), nil, 0o644)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(second, "program"), nil, 0o755)).To(Succeed())
	env := []string{"HOME=/", "PATH=" + first + ":" + second}
	g.Expect(lookPath("program", env)).To(Equal(filepath.Join(second, "program")), "a folder is no program")
	_, err := lookPath("plain", env)
	g.Expect(err).To(HaveOccurred(), "nor is a file that may not be run")
	_, err = lookPath("program", []string{"HOME=/"})
	g.Expect(err).To(HaveOccurred())
}

func TestWorkingDirectory(t *testing.T) {
	w := start(t, map[string]string{"x.service": "[Service]\nType=oneshot\nWorkingDirectory=OUT\nExecStart=/bin/sh -c 'pwd > here'\n"}, "x.service")
	w.eventually(t, "x.service", Inactive)
	NewWithT(t).Expect(w.read("here")).To(Equal(w.out + "\n"))
}

func TestRunWithoutUnits(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	manager := &Manager{LogDir: t.TempDir(), Group: &sessions{}}
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx, nil) }()
	g.Consistently(ended).ShouldNot(Receive(), "a machine without services is on")
	cancel()
	g.Eventually(ended).WithTimeout(settleTimeout).Should(Receive(BeNil()))

	blocked := &Manager{LogDir: filepath.Join(os.DevNull, "log"), Group: &sessions{}}
	g.Expect(blocked.Run(t.Context(), nil)).To(MatchError(ContainSubstring("log folder")))
}
