// SPDX-License-Identifier: Apache-2.0

package cloudconfig

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden file anew")

func input() Input {
	return Input{
		Endpoint: "172.30.240.1:30443", CA: []byte("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"),
		Token: []byte("5f0c6d3e-1b1a-4c57-a1f5-0d8f7a3c9e21"), NodePool: "clusters/demo", ConfigHash: "0a1b2c3d",
	}
}

func TestRender(t *testing.T) {
	rendered, err := Render(input())
	if err != nil {
		t.Fatal(err)
	}
	t.Run("When the user-data is rendered, it should match the golden file", func(t *testing.T) {
		golden := "testdata/user-data.yaml"
		if *update {
			if err := os.WriteFile(golden, rendered, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(rendered)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("When cloud-init parses the user-data, it should find files and commands", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(string(rendered)).To(HavePrefix("#cloud-config\n"))
		read := config{}
		g.Expect(yaml.UnmarshalStrict(rendered, &read)).To(Succeed())
		g.Expect(read.WriteFiles).To(HaveLen(5))
		g.Expect(read.WriteFiles[3].Content).To(Equal(firstStage), "YAML gives back what was written")
		g.Expect(read.RunCmd).To(ContainElement([]string{"systemctl", "start", "--no-block", UnitName}), "cloud-init's final stage goes on")
	})
	t.Run("When the token is rendered, it should occur once, in a file that only root can read", func(t *testing.T) {
		g := NewWithT(t)
		bearer := "Authorization: Bearer NWYwYzZkM2UtMWIxYS00YzU3LWExZjUtMGQ4ZjdhM2M5ZTIx\n"
		g.Expect(strings.Count(string(rendered), bearer)).To(Equal(1))
		g.Expect(strings.Count(string(rendered), "NWYwYzZk")).To(Equal(1))
		read := config{}
		g.Expect(yaml.Unmarshal(rendered, &read)).To(Succeed())
		for _, f := range read.WriteFiles {
			if strings.Contains(f.Content, "NWYwYzZk") {
				g.Expect(f.Permissions).To(Equal("0600"))
			}
		}
	})
	t.Run("When the CA bundle is too large, it should return an error", func(t *testing.T) {
		in := input()
		in.CA = []byte(strings.Repeat("x", maxSize))
		_, err := Render(in)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("larger than 16 KiB")))
	})
}
