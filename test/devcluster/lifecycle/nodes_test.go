// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/devcluster/cluster"
	"github.com/openshift/hypershift/test/devcluster/env"
)

// stopped creates the folders of the machines of count nodes, which do not run.
func (e *Environment) stopped(g Gomega, count int) {
	for _, n := range env.Nodes(count)[:count] {
		g.Expect(os.MkdirAll(e.Node(n), 0o755)).To(Succeed())
		state := `{"config":{"name":"` + n.Namespace + `","dir":"` + e.Node(n) + `"}}`
		g.Expect(os.WriteFile(filepath.Join(e.Node(n), "machine.json"), []byte(state), 0o600)).To(Succeed())
	}
}

// TestNodes checks that a cluster only grows, and that one without zones keeps its single node.
func TestNodes(t *testing.T) {
	for name, tc := range map[string]struct {
		there, wanted int
		want          int
		wrong         string
	}{
		"no node exists and no number is requested": {0, 0, 1, ""},
		"no node exists and one is requested":       {0, 1, 1, ""},
		"the maximum is requested":                  {0, env.MaxNodes, env.MaxNodes, ""},
		"more than the maximum are requested":       {0, env.MaxNodes + 1, 0, "--nodes 10: the management cluster has 1 to 9 nodes"},
		"a negative number is requested":            {0, -1, 0, "--nodes -1"},
		"one exists and no number is requested":     {1, 0, 1, ""},
		"one exists and more are requested":         {1, 3, 0, "has one node: take it down first"},
		"three exist and no number is requested":    {3, 0, 3, ""},
		"three exist and fewer are requested":       {3, 2, 3, ""},
		"three exist and one more is requested":     {3, 4, 4, ""},
	} {
		t.Run("When "+name+", it should return the desired nodes or an error", func(t *testing.T) {
			g, e := NewWithT(t), sandbox(t)
			e.stopped(g, tc.there)
			e.Nodes = tc.wanted
			nodes, err := e.nodes()
			if tc.wrong != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.wrong)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(nodes).To(HaveLen(tc.want))
		})
	}
	t.Run("When a machine in the middle is gone, the later ones should still belong to the cluster", func(t *testing.T) {
		g, e := NewWithT(t), sandbox(t)
		e.stopped(g, 3)
		g.Expect(os.RemoveAll(e.Node(env.Nodes(3)[1]))).To(Succeed())
		g.Expect(e.nodesThere()).To(Equal(3))
	})
	t.Run("When the state of a machine cannot be read, it should return an error instead of ignoring the machine", func(t *testing.T) {
		g, e := NewWithT(t), sandbox(t)
		e.stopped(g, 2)
		g.Expect(os.WriteFile(filepath.Join(e.Node(env.Nodes(2)[1]), "machine.json"), []byte("{"), 0o600)).To(Succeed())
		_, err := e.nodes()
		g.Expect(err).To(MatchError(ContainSubstring("management-2/machine.json")))
	})
}

func TestNodeByName(t *testing.T) {
	g, e := NewWithT(t), sandbox(t)
	e.stopped(g, 3)
	n, all, err := e.node("management-3")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(n.Number).To(Equal(3))
	g.Expect(all).To(HaveLen(3))
	want := MatchError(`there is no node "management-4": the nodes are management, management-2, management-3`)
	g.Expect(e.StopNode(t.Context(), "management-4")).To(want)
	g.Expect(e.StartNode(t.Context(), "management-4")).To(want)
	g.Expect(e.WipeNode("management-4")).To(want)
	g.Expect(e.CutNode("management-4", true)).To(want)
	g.Expect(e.StopNode(t.Context(), "management")).To(MatchError(ContainSubstring("is the control plane of the management cluster: stop another one")))
}

// TestWipeNode checks that only the content of volumes is deleted, and that a running node is not wiped.
func TestWipeNode(t *testing.T) {
	g, e := NewWithT(t), sandbox(t)
	e.stopped(g, 2)
	second := env.Nodes(2)[1]
	root := cluster.Machine(e.Env, second).Root()
	for _, file := range []string{"var/lib/volumes/pvc-1/db/member", "var/lib/volumes/pvc-1/lock", "var/lib/volumes/pvc-2/data", "var/lib/kubelet/config"} {
		g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(root, file), nil, 0o600)).To(Succeed())
	}
	g.Expect(e.WipeNode(second.Name)).To(Succeed())
	for _, volume := range []string{"pvc-1", "pvc-2"} {
		left, err := os.ReadDir(filepath.Join(root, "var/lib/volumes", volume))
		g.Expect(err).NotTo(HaveOccurred(), "the volume itself stays")
		g.Expect(left).To(BeEmpty())
	}
	g.Expect(filepath.Join(root, "var/lib/kubelet/config")).To(BeARegularFile())
	g.Expect(e.WipeNode(second.Name)).To(Succeed(), "a second time there is nothing to do")

	g.Expect(os.WriteFile(filepath.Join(root, "var/lib/volumes/pvc-1/new"), nil, 0o600)).To(Succeed())
	writeRunningMachine(g, e.Node(second))
	g.Expect(e.WipeNode(second.Name)).To(MatchError(ContainSubstring("node management-2 runs: stop it first")))
	g.Expect(filepath.Join(root, "var/lib/volumes/pvc-1/new")).To(BeARegularFile())
}

// TestRemoveDirBegunAnew checks that the marker is deleted last, so that the folder is still recognized after an
// interrupted removal.
func TestRemoveDirBegunAnew(t *testing.T) {
	g, e := NewWithT(t), sandbox(t)
	g.Expect(e.claim()).To(Succeed())
	g.Expect(os.MkdirAll(filepath.Join(e.Dir, ".earlier", "a"), 0o755)).To(Succeed())
	g.Expect(os.MkdirAll(filepath.Join(e.Dir, "later"), 0o755)).To(Succeed())
	g.Expect(os.Remove(ownerFile)).To(Succeed())
	g.Expect(e.mayRemove()).To(Succeed(), "known by the marker alone")
	g.Expect(e.removeDir()).To(Succeed())
	g.Expect(e.Dir).NotTo(BeADirectory())
	g.Expect(disown()).To(Succeed(), "nobody owns the host's namespaces already")
	g.Expect(e.removeDir()).To(Succeed())
}

// TestLinesOfALog checks that the end of a log is shown, in complete lines if possible.
func TestLinesOfALog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":                      {"", ""},
		"blank lines":                  {"\n\n", ""},
		"a line without a newline":     {"one", "one"},
		"as many as are shown":         {"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12"},
		"one line more than are shown": {"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n", "2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13"},
	} {
		t.Run("When a log has "+name+", its end should be shown", func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(os.WriteFile(file, []byte(tc.text), 0o600)).To(Succeed())
			g.Expect(tail(file)).To(Equal(tc.want))
		})
	}
	NewWithT(t).Expect(tail(file + ".gone")).To(BeEmpty())
	NewWithT(t).Expect(machines(env.Nodes(1)) + ", " + machines(env.Nodes(2))).To(Equal("management machine, 2 management machines"))
}
