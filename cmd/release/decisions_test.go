// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/release/transfer"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// planned returns the plan for these flags of `release build`, without a registry.
func planned(t *testing.T, args ...string) (*build, *plan, error) {
	t.Helper()
	b := &build{programs: map[string]*string{}}
	cmd := newBuildCommand()
	cmd.ResetFlags()
	b.addFlags(cmd)
	if err := cmd.Flags().Parse(append([]string{"--kubernetes=v1.36.3", "--to=r.example/team/release:1", "--product-image=r.example/hypershift:1"}, args...)); err != nil {
		t.Fatal(err)
	}
	p, err := b.plan()
	return b, p, err
}

func TestPlan(t *testing.T) {
	t.Run("When only the required flags are set, it should plan all images of the version for both architectures", func(t *testing.T) {
		g := NewWithT(t)
		_, p, err := planned(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(p.architectures).To(Equal([]string{"amd64", "arm64"}))
		g.Expect(p.architecture()).To(Equal(releaseinfo.ArchitectureMulti))
		g.Expect(p.images).To(And(HaveKeyWithValue("etcd", "registry.k8s.io/etcd:3.6.8-0"),
			HaveKeyWithValue("node-network", "r.example/hypershift:1"), HaveKeyWithValue("tunnel", "r.example/hypershift:1"),
			HaveKeyWithValue("flannel", "ghcr.io/flannel-io/flannel:v0.28.10"),
			HaveKeyWithValue("metrics-server", "registry.k8s.io/metrics-server/metrics-server:v0.9.0")))
		g.Expect(p.sources).To(HaveLen(5))
	})
	for name, tt := range map[string]struct {
		args  []string
		check func(g *GomegaWithT, p *plan)
	}{
		"one architecture is set": {[]string{"--arch=arm64"}, func(g *GomegaWithT, p *plan) {
			g.Expect(p.architectures).To(Equal([]string{"arm64"}))
			g.Expect(p.architecture()).To(Equal("arm64"))
		}},
		"images come from a mirror": {[]string{"--image-repository=mirror.example/k8s"}, func(g *GomegaWithT, p *plan) {
			g.Expect(p.images["coredns"]).To(Equal("mirror.example/k8s/coredns/coredns:v1.14.2"))
			g.Expect(p.images["flannel"]).To(Equal("mirror.example/k8s/flannel-io/flannel:v0.28.10"))
		}},
		"a component is replaced": {[]string{"--component=etcd=r.example/etcd:mine"}, func(g *GomegaWithT, p *plan) {
			g.Expect(p.images["etcd"]).To(Equal("r.example/etcd:mine"))
			g.Expect(p.versions).NotTo(HaveKey("etcd"), "nobody knows its version")
			g.Expect(p.versions).To(HaveKey("coredns"))
		}},
		"a component is replaced whose version has a different key": {[]string{"--component=pod=r.example/pause:mine", "--component=cluster-capi-controllers=r.example/capi:mine"}, func(g *GomegaWithT, p *plan) {
			g.Expect(p.versions).NotTo(Or(HaveKey("pause"), HaveKey("cluster-api")))
		}},
		"a component is added": {[]string{"--component=mine=r.example/mine:1"}, func(g *GomegaWithT, p *plan) {
			g.Expect(p.images).To(And(HaveKey("etcd"), HaveKeyWithValue("mine", "r.example/mine:1")))
		}},
		"what can be left out is": {[]string{"--without=" + strings.Join(optional, ",")}, func(g *GomegaWithT, p *plan) {
			g.Expect(p.images).NotTo(Or(HaveKey("cluster-autoscaler"), HaveKey("flannel"), HaveKey("metrics-server")))
			g.Expect(p.sources).To(HaveLen(4))
			g.Expect(p.versions).NotTo(Or(HaveKey("cluster-autoscaler"), HaveKey("crictl")))
		}},
		"a node image is set": {[]string{"--component=node=r.example/node:1"}, func(g *GomegaWithT, p *plan) {
			g.Expect(p.sources).To(BeEmpty())
			g.Expect(p.versions).NotTo(HaveKey("containerd"))
		}},
		"a program is replaced": {[]string{"--runc=/own/{arch}/runc@/own/{arch}/sums"}, func(g *GomegaWithT, p *plan) {
			g.Expect(p.sources).To(ContainElement(HaveField("Place", "/own/{arch}/runc")))
			g.Expect(p.versions).NotTo(HaveKey("runc"))
			g.Expect(p.versions).To(HaveKey("containerd"))
		}},
	} {
		t.Run("When "+name+" it should be planned so", func(t *testing.T) {
			_, p, err := planned(t, tt.args...)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			tt.check(NewWithT(t), p)
		})
	}
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"another distribution is named":              {[]string{"--distribution=openshift"}, "--kubernetes is not for use with --version or another --distribution"},
		"the target is empty":                        {[]string{"--to="}, "--to is required, e.g. registry.example.com/release:1.36.3"},
		"the target is not a valid reference":        {[]string{"--to=R R"}, "--to: "},
		"a component image is not a valid reference": {[]string{"--component=etcd=A B"}, "image of etcd: "},
		"the image repository is invalid":            {[]string{"--image-repository=A B"}, "image of "},
		"a program's checksum is too short":          {[]string{"--runc=/own/{arch}/runc@sha256:00"}, "--runc: "},
		"a part is unknown":                          {[]string{"--component-version=calico=1"}, `for part "calico"`},
	} {
		t.Run("When "+name+" it should say so in one line", func(t *testing.T) {
			_, _, err := planned(t, tt.args...)
			NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring(tt.says), Not(ContainSubstring("\n")))))
		})
	}
}

// TestRepository checks where images that the command builds are pushed: to a repository that the user may write to.
func TestRepository(t *testing.T) {
	for _, tt := range []struct{ args, tag, want string }{
		{"", "node", "r.example/team/node"},
		{"--to=r.example/release:1", "node", "r.example/node"},
		{"--to=r.example:5000/a/b/release:1", "node-network", "r.example:5000/a/b/node-network"},
		{"--node-to=r.example/mine", "node", "r.example/mine"},
		{"--node-to=r.example/mine", "node-network", "r.example/team/node-network"},
		{"--mirror-to=m.example/rack", "node", "m.example/rack/node"},
		{"--mirror-to=m.example/rack --node-to=r.example/mine", "node", "r.example/mine"},
	} {
		t.Run("When the flags are "+tt.args+" "+tt.tag+" should go there", func(t *testing.T) {
			b, _, err := planned(t, strings.Fields(tt.args)...)
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(b.repository(tt.tag)).To(Equal(tt.want))
		})
	}
}

func TestChanges(t *testing.T) {
	from := map[string]string{"same": "1", "moved": "1", "gone": "1", "emptied": "1"}
	to := map[string]string{"same": "1", "moved": "2", "new": "2", "emptied": ""}
	want := map[string]change{"moved": {"1", "2"}, "gone": {From: "1"}, "new": {To: "2"}, "emptied": {From: "1"}}
	if diff := cmp.Diff(want, changes(from, to)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	g := NewWithT(t)
	g.Expect(changes(nil, nil)).To(BeEmpty())
	var out bytes.Buffer
	g.Expect(difference{Version: change{"1", "2"}, Components: want}.print(&out, "")).To(Succeed())
	g.Expect(out.String()).To(And(MatchRegexp(`(?m)^gone +1 +-$`), MatchRegexp(`(?m)^new +- +2$`), MatchRegexp(`(?m)^moved +1 +2$`), Not(ContainSubstring("same")), Not(ContainSubstring("PART"))))
	g.Expect(exit.Code(difference{}.print(&out, "yaml"))).To(Equal(exit.Usage))
}

// TestArguments checks that the number of images is validated before the command calls a registry.
func TestArguments(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"info of none":  {[]string{"info"}, "name one release image"},
		"info of two":   {[]string{"info", "a", "b"}, "name one release image"},
		"diff of one":   {[]string{"diff", "a"}, "name two release images"},
		"diff of three": {[]string{"diff", "a", "b", "c"}, "name two release images"},
	} {
		t.Run("When it is "+name+" it should say how many", func(t *testing.T) {
			cmd := NewCommand()
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(tt.args)
			NewWithT(t).Expect(cmd.ExecuteContext(t.Context())).To(MatchError(HavePrefix(tt.says)))
		})
	}
	for flag, file := range map[string]string{"--ca-file": "ca", "--pull-secret": "pull"} {
		for content, exists := range map[string]bool{"": false, "sesame": true} {
			t.Run("When the file of "+flag+" holds "+content+" it should be the user's mistake, and not be repeated", func(t *testing.T) {
				g, path := NewWithT(t), filepath.Join(t.TempDir(), file)
				if exists {
					g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
				}
				r := &registryFlags{}
				if flag == "--ca-file" {
					r.caFile = path
				} else {
					r.pullSecretFile = path
				}
				_, err := r.client()
				g.Expect(err).To(MatchError(And(HavePrefix(flag+": "), Not(ContainSubstring("sesame")))))
				g.Expect(exit.Code(err)).To(Equal(exit.Usage))
			})
		}
	}
}

// kept writes images into a folder, each marked as a release of a version. An empty version means an unmarked image.
func kept(t *testing.T, versions ...string) string {
	t.Helper()
	g, dir := NewWithT(t), t.TempDir()
	store, err := layout.Write(dir, empty.Index)
	g.Expect(err).NotTo(HaveOccurred())
	for i, version := range versions {
		annotations := map[string]string{refAnnotation: "r.example/release:" + string(rune('a'+i))}
		if version != "" {
			annotations[releaseAnnotation] = version
		}
		g.Expect(keep(store, &transfer.Image{Content: single(t, "release", string(rune('a'+i)))}, annotations)).To(Succeed())
	}
	return dir
}

// TestFolder checks that a folder without exactly one identifiable release is rejected.
func TestFolder(t *testing.T) {
	for name, tt := range map[string]struct {
		versions []string
		says     string
	}{
		"one release":    {[]string{"", "1.36.3"}, ""},
		"none":           {[]string{"", ""}, "holds no complete release: copy one to it again with --to-dir"},
		"two releases":   {[]string{"1.36.3", "1.36.4"}, "holds 2 releases: give each a folder of its own"},
		"nothing at all": {nil, "holds no complete release"},
	} {
		t.Run("When the folder has "+name+" it should be judged so", func(t *testing.T) {
			g := NewWithT(t)
			f, err := openFolder(kept(t, tt.versions...), &transfer.Client{})
			g.Expect(err).NotTo(HaveOccurred())
			image, err := f.release(t.Context(), nil)
			if tt.says != "" {
				g.Expect(err).To(MatchError(And(HavePrefix("--from-dir: "), ContainSubstring(tt.says))))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(image.Named.Name()).To(Equal("r.example/release:b"))
			_, err = f.image(t.Context(), "r.example/etcd:1")
			g.Expect(err).To(MatchError(ContainSubstring("does not hold r.example/etcd:1: copy the release to it again")))
			first, err := f.image(t.Context(), "r.example/release:a")
			g.Expect(err).NotTo(HaveOccurred())
			byDigest, err := f.image(t.Context(), "elsewhere.example/other@"+first.Ref.DigestStr())
			g.Expect(err).NotTo(HaveOccurred(), "one image may have several names")
			g.Expect(byDigest.Ref.DigestStr()).To(Equal(first.Ref.DigestStr()))
		})
	}
	t.Run("When the same image is written twice, the folder should hold it once", func(t *testing.T) {
		g, dir := NewWithT(t), kept(t, "1.36.3")
		store, err := layout.FromPath(dir)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(keep(store, &transfer.Image{Content: single(t, "release", "a")}, map[string]string{refAnnotation: "r.example/release:a", releaseAnnotation: "1.36.3"})).To(Succeed())
		f, err := openFolder(dir, &transfer.Client{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(f.manifest.Manifests).To(HaveLen(1))
	})
	for name, index := range map[string]string{"is missing": "", "is no index": "{"} {
		t.Run("When the folder's index "+name+" it should say which folder it is about", func(t *testing.T) {
			g, dir := NewWithT(t), t.TempDir()
			if index != "" {
				g.Expect(os.WriteFile(filepath.Join(dir, "index.json"), []byte(index), 0o600)).To(Succeed())
			}
			_, err := openFolder(dir, &transfer.Client{})
			g.Expect(err).To(MatchError(HavePrefix("--from-dir: ")))
		})
	}
}

// TestMirrorDamaged checks that no release is pushed if the content of one of its images does not match.
func TestMirrorDamaged(t *testing.T) {
	w := newWorld(t)
	spec := w.own.PushRelease(t, releaseinfo.Payload{Version: "1.36.3", Distribution: releaseinfo.Kubernetes, Components: map[string]string{"etcd": w.product}})
	dir, ca := filepath.Join(w.dir, "release"), filepath.Join(w.dir, "ca.crt")
	_, _, err := w.run("mirror", spec, "--to-dir", dir, "--ca-file", ca)
	w.Expect(err).NotTo(HaveOccurred())
	damaged := 0
	w.Expect(filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(content, []byte("hypershiftamd64")) {
			return err
		}
		damaged++
		return os.WriteFile(path, []byte("hypershiftAMD64"), 0o600)
	})).To(Succeed())
	w.Expect(damaged).To(Equal(1))
	out, _, err := w.run("mirror", "--from-dir", dir, "--to", w.public.Host+"/rack", "--ca-file", ca)
	w.Expect(err).To(MatchError(ContainSubstring("component etcd: ")))
	w.Expect(out).To(BeEmpty())
	_, err = w.public.Provider(t).Lookup(t.Context(), w.public.Host+"/rack/release:1.36.3", nil)
	w.Expect(err).To(HaveOccurred())
}
