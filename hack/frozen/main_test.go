// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const (
	service = "---\nkind: Service\nmetadata: {name: ignition-server, labels: {a: b}}\nspec:\n  type: NodePort\n" +
		"  ports: [{name: https, port: 443}]\n"
	template = "---\nkind: MaasMachineTemplate\nmetadata: {name: demo}\nspec: {image: ubuntu/noble}\n"
	other    = "---\nkind: Deployment\nmetadata: {name: demo}\nspec: {replicas: 1}\n"
)

// golden creates a tree of golden files, some with replaced content.
func golden(t *testing.T, replaced map[string]string) string {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		objectFiles[0].folder + "/maas.yaml":    other + template,
		objectFiles[1].folder + "/minimal.yaml": other + service,
	}
	for _, name := range valueFiles {
		files[name] = "hash: \"1\"\nother: \"2\"\n"
	}
	for _, name := range wholeFiles {
		if filepath.Ext(name) == "" {
			name += "/first-stage.sh"
		}
		files[name] = "text\n"
	}
	for name, content := range replaced {
		files[name] = content
	}
	for name, content := range files {
		full := filepath.Join(root, name)
		NewWithT(t).Expect(os.MkdirAll(filepath.Dir(full), 0o755)).To(Succeed())
		NewWithT(t).Expect(os.WriteFile(full, []byte(content), 0o600)).To(Succeed())
	}
	return root
}

func values(t *testing.T, replaced map[string]string) map[string]string {
	t.Helper()
	collected, err := collect(golden(t, replaced))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return collected
}

func TestJudge(t *testing.T) {
	before := values(t, nil)
	serviceKey := "service/minimal/Service/ignition-server"
	for name, tc := range map[string]struct{ file, content, key string }{
		"a hash of a NodePool":      {valueFiles["api"], "hash: \"9\"\nother: \"2\"\n", "api/hash"},
		"a removed value":           {valueFiles["pki"], "hash: \"1\"\n", "pki/other"},
		"a byte of user data":       {wholeFiles["user-data/cloud-config"], "texT\n", "user-data/cloud-config"},
		"what node-agent reads":     {wholeFiles["node-agent/plan-of-all"], "text\n\n", "node-agent/plan-of-all"},
		"a file of the first stage": {wholeFiles["node-agent/first-stage"] + "/first-stage.sh", "\n", "node-agent/first-stage"},
		"a machine template": {
			objectFiles[0].folder + "/maas.yaml", "---\nkind: MaasMachineTemplate\nmetadata: {name: demo}\nspec: {image: x}\n",
			"template/maas/MaasMachineTemplate/demo",
		},
		"a port of a Service": {
			objectFiles[1].folder + "/minimal.yaml",
			strings.Replace(service, "443", "8443", 1), serviceKey,
		},
		"the name of a Service": {
			objectFiles[1].folder + "/minimal.yaml",
			"---\nkind: Service\nmetadata: {name: ignition}\nspec: {type: NodePort}\n", serviceKey,
		},
	} {
		t.Run("reports "+name, func(t *testing.T) {
			g := NewWithT(t)
			now := values(t, map[string]string{tc.file: tc.content})
			g.Expect(judge(before, now, nil)).To(MatchError(And(HavePrefix("  "+tc.key+" was"), Not(ContainSubstring("\n")))))
			g.Expect(judge(before, now, []entry{{Key: tc.key, Reason: "why", Carried: "how"}})).To(Succeed())
			g.Expect(judge(before, now, []entry{{Key: tc.key,
				Reason: "why"}})).To(MatchError(ContainSubstring("needs key, reason and carried")))
		})
	}
	t.Run("accepts other objects, other fields and new values", func(t *testing.T) {
		now := values(t, map[string]string{
			objectFiles[0].folder + "/maas.yaml":    strings.Replace(other, "1", "9", 1) + template,
			objectFiles[1].folder + "/minimal.yaml": service + strings.Replace(service, "ignition-server", "new", 1),
			valueFiles["api"]:                       "hash: \"1\"\nother: \"2\"\nnew: \"3\"\n",
		})
		NewWithT(t).Expect(judge(before, now, nil)).To(Succeed())
	})
	t.Run("names an entry for a value that did not change", func(t *testing.T) {
		err := judge(before, before, []entry{{Key: "api/*", Reason: "why", Carried: "how"}})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("names no value that changed")))
	})
}
