// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/containerimage"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/images"
)

// withImages builds empty images for the components of a payload.
func withImages(g Gomega, e *Environment) {
	var all []containerimage.Image
	for _, name := range []string{
		"hypershift", "pause", "coredns", "cluster-api", "metrics-server", "web", "etcd",
		"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy",
		"kube-apiserver-previous", "kube-controller-manager-previous", "kube-scheduler-previous", "kube-proxy-previous",
	} {
		all = append(all, containerimage.Image{Name: name, Files: []containerimage.File{{Path: "/name", Data: []byte(name)}}})
	}
	g.Expect(os.MkdirAll(filepath.Dir(e.Images()), 0o755)).To(Succeed())
	g.Expect(images.Build(e.Images(), all)).To(Succeed())
	script(g, filepath.Join(e.Bin, "kube", "kubelet"), "echo Kubernetes v1.36.3")
	script(g, filepath.Join(e.Bin, "kube-previous", "kubelet"), "echo Kubernetes v1.35.0")
	script(g, filepath.Join(e.Bin, "kube-patch", "kubelet"), "echo Kubernetes v1.35.1")
}

func script(g Gomega, path, body string) {
	g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700)).To(Succeed())
}

func TestBuildPayloads(t *testing.T) {
	for name, tc := range map[string]struct{ version, kubelet string }{
		"When the payload is built, it should use the registry's images for the public names": {"1.36.3", "kubelet"},
		"When the payload of the previous minor version is built, it should have its kubelet": {"1.35.0", "kubelet-previous"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e := sandbox(t)
			withImages(g, e)
			said := filepath.Join(e.Bin, "said")
			script(g, e.Program("hypershift"), `for word in "$@"; do echo "$word"; done > `+said+`-$4`)
			g.Expect(e.buildPayloads(t.Context())).To(Succeed())
			data, err := os.ReadFile(said + "-v" + tc.version)
			g.Expect(err).NotTo(HaveOccurred())
			words := strings.Split(string(data), "\n")
			g.Expect(words[:4]).To(Equal([]string{"release", "build", "--kubernetes", "v" + tc.version}))
			g.Expect(words).To(ContainElements(
				"172.30.240.1:5000/hypershift/release:"+tc.version, "172.30.240.1:5000/registry.k8s.io", e.RegistryCA(), "etcd="+images.EtcdVersion,
				filepath.Join(e.Bin, "node", tc.kubelet), MatchRegexp("^172.30.240.1:5000/hypershift/hypershift@sha256:[0-9a-f]{64}$"),
			))
		})
	}
	t.Run("When the patch payload is built, it should have its own kubelet, the previous release's images and a name", func(t *testing.T) {
		g := NewWithT(t)
		e := sandbox(t)
		withImages(g, e)
		said := filepath.Join(e.Bin, "said")
		script(g, e.Program("hypershift"), `for word in "$@"; do echo "$word"; done > `+said)
		g.Expect(e.BuildPatchPayload(t.Context())).To(Equal("172.30.240.1:5000/hypershift/release:1.35.1"))
		data, err := os.ReadFile(said)
		g.Expect(err).NotTo(HaveOccurred())
		words := strings.Split(strings.TrimSpace(string(data)), "\n")
		g.Expect(words).To(ContainElements("v1.35.1", filepath.Join(e.Bin, "node", "kubelet-patch")))
		for i, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler"} {
			pair := words[len(words)-8+2*i:][:2]
			g.Expect(pair).To(HaveExactElements(Equal("--component"), MatchRegexp("^"+component+"=172.30.240.1:5000/hypershift/"+component+"-previous@sha256:")))
		}
	})
	t.Run("When the command fails, the error should include its output", func(t *testing.T) {
		g := NewWithT(t)
		e := sandbox(t)
		withImages(g, e)
		script(g, e.Program("hypershift"), "echo no such registry >&2; exit 1")
		g.Expect(e.buildPayloads(t.Context())).To(MatchError(And(ContainSubstring("hypershift release build"), ContainSubstring("no such registry"))))
	})
}

func TestListImages(t *testing.T) {
	list := func(t *testing.T, args ...string) (string, error) {
		e := sandbox(t)
		withImages(NewWithT(t), e)
		var out strings.Builder
		e.Out = &out
		err := e.ListImages(t.Context(), args)
		return out.String(), err
	}
	t.Run("When no image is named, it should list all images and the payload", func(t *testing.T) {
		g := NewWithT(t)
		out, err := list(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(MatchRegexp("(?m)^release +172.30.240.1:5000/hypershift/release:1.36.3"))
		g.Expect(out).To(And(MatchRegexp("(?m)^hypershift +"), MatchRegexp("(?m)^coredns +"), MatchRegexp("(?m)^web +")))
	})
	t.Run("When an image is named, it should print only the pull spec, for scripts", func(t *testing.T) {
		g := NewWithT(t)
		out, err := list(t, "web")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(MatchRegexp(`^172\.30\.240\.1:5000/hypershift/web@sha256:[0-9a-f]{64}\n$`))
	})
	t.Run("When no image has that name, the error should list the known names", func(t *testing.T) {
		_, err := list(t, "nginx")
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring(`"nginx"`), ContainSubstring("coredns"))))
	})
}

func TestSimulator(t *testing.T) {
	g := NewWithT(t)
	e := sandbox(t)
	e.MAASArguments = []string{"--speed=10"}
	process := e.simulator()
	g.Expect(process.Namespace).To(Equal(env.Namespace), "its machines are plugged into the bridge there")
	g.Expect(process.Command).To(ContainElements("serve", env.MAASListen, env.MAASAdmin, "netns", e.Machines(), "--speed=10"))
	g.Expect(process.Dir).To(Equal(e.MAAS()))
}
