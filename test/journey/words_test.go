// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestTimeline(t *testing.T) {
	g, line := NewWithT(t), &Timeline{}
	line.Add(Stage{Name: "available", Took: 1500 * time.Millisecond, At: 2 * time.Second})
	line.Add(Stage{Name: "nodes", Took: time.Minute, At: 62 * time.Second})
	line.Add(Stage{Name: "available", Took: time.Hour, At: 2 * time.Hour})
	g.Expect(line.Took("available")).To(Equal(1500*time.Millisecond), "the first time counts")
	g.Expect(line.Took("destroyed")).To(BeZero())
	var out bytes.Buffer
	line.Print(&out)
	var rows []string
	for row := range strings.Lines(out.String()) {
		rows = append(rows, strings.Join(strings.Fields(row), " "))
	}
	g.Expect(rows).To(Equal([]string{"STAGE TOOK SINCE START", "available 1.5s 2.0s", "nodes 60.0s 62.0s", "available 3600.0s 7200.0s"}))
}

// TestQuote checks that a shell parses a command line from the demo into the same words.
func TestQuote(t *testing.T) {
	for want, argv := range map[string][]string{
		`kubectl get nodes`:                         {"/some/folder/bin/kubectl", "get", "nodes"},
		`hypershift create --labels 'a=b c' ''`:     {"hypershift", "create", "--labels", "a=b c", ""},
		`sh -c 'echo '\''it'\'' > "$HOME/x"; true'`: {"sh", "-c", `echo 'it' > "$HOME/x"; true`},
		`kubectl -o 'jsonpath={.items[*]}'`:         {"kubectl", "-o", "jsonpath={.items[*]}"},
		"kubectl apply -f 'a\nb'":                   {"kubectl", "apply", "-f", "a\nb"},
	} {
		given := append([]string{}, argv...)
		if got := quote(argv); got != want {
			t.Errorf("%q is shown as %s and not as %s", argv, got, want)
		}
		if diff := cmp.Diff(given, argv); diff != "" {
			t.Errorf("what is shown is what is run (-want +got):\n%s", diff)
		}
	}
}

func TestIndent(t *testing.T) {
	for text, want := range map[string]string{"a": "  a\n", "a\nb\n\n": "  a\n  b\n", "": "  \n"} {
		if got := indent(text); got != want {
			t.Errorf("%q becomes %q and not %q", text, got, want)
		}
	}
}

// TestProgram checks that our kubectl takes precedence: the user's kubectl may have another version.
func TestProgram(t *testing.T) {
	g, bin := NewWithT(t), t.TempDir()
	put := func(name, script string) {
		t.Helper()
		g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(bin, name)), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script), 0o700)).To(Succeed())
	}
	put("kube/kubectl", "echo kube")
	put("kube/hypershift", "echo kube")
	put("hypershift", `echo "$KUBECONFIG $HYPERSHIFT_DEV_DIR $*"; echo whisper >&2`)
	put("broken", "echo half; echo ' what is wrong ' >&2; exit 3")
	var shown bytes.Buffer
	w := NewWalker(bin, "/dev/dir", &shown)
	g.Expect(w.program("kubectl")).To(Equal(filepath.Join(bin, "kube/kubectl")))
	g.Expect(w.program("hypershift")).To(Equal(filepath.Join(bin, "hypershift")), "ours come first")
	g.Expect(w.program("no-such-program")).To(Equal("no-such-program"))

	g.Expect(w.Read(t.Context(), "hypershift", "create", "x")).To(Equal("/dev/dir/kubeconfig /dev/dir create x\n"), "what it says beside is not read")
	g.Expect(shown.String()).To(BeEmpty(), "to read is quiet")
	out, err := w.Read(t.Context(), "broken", "a b")
	g.Expect(out).To(Equal("half\n"))
	g.Expect(err).To(MatchError("broken 'a b': exit status 3: what is wrong"))

	g.Expect(w.Type(t.Context(), "hypershift", "create")).To(Succeed())
	g.Expect(shown.String()).To(Equal("$ hypershift create\n/dev/dir/kubeconfig /dev/dir create\nwhisper\n"))
	g.Expect(w.Type(t.Context(), "broken")).To(MatchError("broken: exit status 3"))
	g.Expect(w.Type(t.Context(), "no-such-program")).NotTo(Succeed())
	g.Expect(w.Guest("demo", "get", "nodes")).To(Equal(strings.Fields("kubectl --kubeconfig /dev/dir/demo.kubeconfig get nodes")))
}

// TestReachTells checks that each change of progress is printed once, and that an error of a restarting service
// counts as progress.
func TestReachTells(t *testing.T) {
	g := NewWithT(t)
	var shown bytes.Buffer
	w := NewWalker("", "", &shown)
	looks := []Check{
		Quick(func() (bool, string, error) { return true, "", errors.New("refused") }),
		Quick(func() (bool, string, error) { return true, "", nil }),
	}
	g.Expect(w.Reach(t.Context(), "ready", time.Minute, func(ctx context.Context) (bool, string, error) {
		look := looks[0]
		looks = looks[1:]
		return look(ctx)
	})).To(Succeed())
	g.Expect(shown.String()).To(MatchRegexp(`(?s)^ +\S+  ready: refused\n✔ +\S+  ready \(\S+s\)\n$`))
	g.Expect(w.Timeline.stages).To(HaveLen(1))
}

func TestAllStopsAtAnError(t *testing.T) {
	looked := 0
	check := func(done bool, words string, err error) Check {
		return Quick(func() (bool, string, error) { looked++; return done, words, err })
	}
	for _, tc := range []struct {
		name   string
		checks []Check
		done   bool
		words  string
		fails  bool
		looked int
	}{
		{"nothing is checked", nil, true, "", false, 0},
		{"one is not done, the others should be checked", []Check{check(false, "a waits", nil), check(true, "", nil), check(false, "c waits", nil)}, false, "a waits; c waits", false, 3},
		{"one is done after one that is not", []Check{check(false, "", nil), check(true, "b is there", nil)}, false, "b is there", false, 2},
		{"one fails, the others should not be checked", []Check{check(true, "", nil), check(true, "b", errors.New("refused")), check(true, "", nil)}, false, "b", true, 2},
	} {
		t.Run("When "+tc.name, func(t *testing.T) {
			g := NewWithT(t)
			looked = 0
			done, words, err := All(tc.checks...)(t.Context())
			g.Expect(done).To(Equal(tc.done))
			g.Expect(words).To(Equal(tc.words))
			g.Expect(err != nil).To(Equal(tc.fails))
			g.Expect(looked).To(Equal(tc.looked))
		})
	}
}

func TestUnusedRights(t *testing.T) {
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	asked := Asked{Granted: map[string][]string{"/pods": {"watch"}, "apps/deployments": {"get"}, "/pods/log": {"get"}}, Denied: map[string][]string{"/secrets": {"get"}}}
	rules := []rbacv1.PolicyRule{rule("", "pods", "get", "list", "watch", "delete"), rule("apps", "deployments", "get", "patch"), rule("", "pods/log", "get"),
		rule("", "secrets", "get"), rule("apps", "deployments", "patch")}
	want := []string{"delete /pods", "get /secrets", "patch apps/deployments"}
	if diff := cmp.Diff(want, asked.Unused(rules)); diff != "" {
		t.Errorf("rights that nobody used (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"watch"}, asked.Granted["/pods"]); diff != "" {
		t.Errorf("to ask does not change what was asked (-want +got):\n%s", diff)
	}
}
