// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// tree creates a small repository.
func tree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		"docs/reference/metrics.md": "| `a_total` | counter | `namespace`, `name` | text with `code` |\n",
		"docs/reference/cli/hypershift_create.md": "### Options\n\n```\n  -f, --file string   a file, not --this\n" +
			"      --name string   a name\n```\n\n### Examples\n\n  --no-option\n",
		"api/v1/conditions.go": "package v1\n\ntype ConditionType string\n\nconst (\n" +
			"\tAvailable ConditionType = \"Available\"\n\tAsExpectedReason = \"AsExpected\"\n" +
			"\tgroup = \"hypershift.openshift.io\"\n\tPauseAnnotation = group + \"/pause\"\n" +
			"\tSizeLabel = \"hypershift.openshift.io/size\"\n\tFinalizer = \"hypershift.openshift.io/finalizer\"\n)\n",
		"api/v1/conditions_test.go": "package v1\n\nconst TestReason = \"InTests\"\n",
		"hypershift-operator/run.go": "package run\n\nimport v1 \"example.com/api/v1\"\n\nconst reasonPaused = \"Paused\"\n" +
			"const other = v1.AsExpectedReason\n\nfunc f() {\n\tr.Eventf(a, nil, kind, \"Started\", \"Start\", \"text\")\n" +
			"\tr.Eventf(a, nil, kind, reasonPaused, \"Pause\", \"text\")\n}\n",
		"cmd/exit/exit.go": "package exit\n\nconst (\n\tOK = 0\n\tUsage = 2\n)\n",
		"cmd/version/version.go": "package version\n\ntype info struct {\n\tClient string `json:\"client\"`\n" +
			"\tServer string `json:\"server,omitempty\"`\n\thidden string `json:\"-\"`\n}\n",
	}
	for _, folder := range programs {
		NewWithT(t).Expect(os.MkdirAll(filepath.Join(root, folder), 0o755)).To(Succeed())
	}
	for path, content := range files {
		full := filepath.Join(root, path)
		NewWithT(t).Expect(os.MkdirAll(filepath.Dir(full), 0o755)).To(Succeed())
		NewWithT(t).Expect(os.WriteFile(full, []byte(content), 0o600)).To(Succeed())
	}
	return root
}

func TestCollect(t *testing.T) {
	g := NewWithT(t)
	names, err := collect(tree(t))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names).To(Equal([]name{
		{"condition", "Available"},
		{"reason", "AsExpected"}, {"reason", "Paused"}, {"reason", "Started"},
		{"annotation", "hypershift.openshift.io/pause"},
		{"label", "hypershift.openshift.io/size"},
		{"metric", "a_total"}, {"metric", "a_total name"}, {"metric", "a_total namespace"},
		{"flag", "hypershift create --file"}, {"flag", "hypershift create --name"}, {"flag", "hypershift create -f"},
		{"exit-code", "0 OK"}, {"exit-code", "2 Usage"},
		{"json-field", "version client"}, {"json-field", "version server"},
	}))
	g.Expect(parseList(list(names))).To(Equal(names), "a stored list is read as it was written")
	for _, n := range names {
		g.Expect(render(names)).To(ContainSubstring("\n" + n.text + "\n"))
	}
}

const news = "# Changelog\n\n## [Unreleased]\n\n### Changed\n\n- `Paused`\n\n" +
	"### Removed\n\n- The flag `--file` of `hypershift create`;\n" +
	"  the reason `Started`.\n\n## [0.1.1] - 2026-12-01\n\n### Deprecated\n\n- `a_total`\n\n" +
	"## [0.1.0] - 2026-11-26\n\n### Removed\n\n- `OK`\n"

func TestUnannounced(t *testing.T) {
	words := announced(news, "0.1.0")
	lost := func(gone ...name) []name {
		kept := name{"reason", "Kept"}
		return unannounced(append(gone, kept), []name{kept}, words)
	}
	for what, n := range map[string]name{
		"a reason under Removed":                                {"reason", "Started"},
		"a metric under Deprecated of an earlier patch release": {"metric", "a_total"},
		"a flag with its command beside it":                     {"flag", "hypershift create --file"},
	} {
		t.Run("accepts that the changelog names "+what, func(t *testing.T) {
			NewWithT(t).Expect(lost(n)).To(BeEmpty())
		})
	}
	for what, n := range map[string]name{
		"a name that is not in the changelog":                         {"reason", "Gone"},
		"a name under the wrong heading":                              {"reason", "Paused"},
		"a name under the release that is the base of the comparison": {"exit-code", "OK"},
		"a flag of another command":                                   {"flag", "hypershift destroy --file"},
		"a label of a metric when only the metric is named":           {"metric", "a_total name"},
	} {
		t.Run("reports "+what, func(t *testing.T) {
			NewWithT(t).Expect(lost(n)).To(Equal([]name{n}))
		})
	}
}
