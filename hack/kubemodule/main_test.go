// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

const theirGoMod = `module k8s.io/kubernetes

go 1.25.0

godebug default=go1.25

require (
	k8s.io/api v0.0.0
	k8s.io/client-go v0.0.0
	example.com/pinned v1.0.0
)

replace (
	example.com/pinned => example.com/pinned v1.2.3
	example.com/one v1.0.0 => example.com/other v1.0.1
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/client-go => ./staging/src/k8s.io/client-go
)
`

const ourGoMod = `module kube-apiserver

go 1.25.0

godebug default=go1.25

require k8s.io/kubernetes v1.35.4

replace (
	example.com/pinned => example.com/pinned v1.2.3
	example.com/one v1.0.0 => example.com/other v1.0.1
	k8s.io/api => k8s.io/api v0.35.4
	k8s.io/client-go => k8s.io/client-go v0.35.4
)
`

func TestRun(t *testing.T) {
	t.Run("replaces the folders of Kubernetes with published versions", func(t *testing.T) {
		g := NewWithT(t)
		publish(t, "v1.35.4", theirGoMod)
		var out bytes.Buffer
		g.Expect(run(&out, "v1.35.4")).To(Succeed())
		g.Expect(out.String()).To(Equal(ourGoMod))
	})
	t.Run("When it prints a go.mod, the go command should accept the file", func(t *testing.T) {
		g := NewWithT(t)
		file := filepath.Join(t.TempDir(), "go.mod")
		g.Expect(os.WriteFile(file, []byte(ourGoMod), 0o600)).To(Succeed())
		var read module
		g.Expect(goCommand(&read, "mod", "edit", "-json", file)).To(Succeed())
		g.Expect(read.Go).To(Equal("1.25.0"))
		g.Expect(read.GoDebug).To(ConsistOf(setting{Key: "default", Value: "go1.25"}))
		g.Expect(read.Replace).To(HaveLen(4))
	})
	t.Run("When a version has no runtime settings, it should print none", func(t *testing.T) {
		text := module{Go: "1.22.0"}.dependent("v1.31.0", "v0.31.0")
		NewWithT(t).Expect(text).To(Equal("module kube-apiserver\n\ngo 1.22.0\n\nrequire k8s.io/kubernetes v1.31.0\n\nreplace (\n)\n"))
	})
	t.Run("When a version was never published, it should return an error and print nothing", func(t *testing.T) {
		g := NewWithT(t)
		publish(t, "v1.35.4", theirGoMod)
		var out bytes.Buffer
		g.Expect(run(&out, "v1.35.99")).To(MatchError(ContainSubstring("k8s.io/kubernetes@v1.35.99")))
		g.Expect(out.String()).To(BeEmpty())
	})
}

func TestLibrariesOf(t *testing.T) {
	for _, test := range []struct{ name, version, want string }{
		{"When a version is complete, it should return the matching library version", "v1.31.14", "v0.31.14"},
		{"When the patch number is missing, it should return an error", "v1.31", ""},
		{"When the prefix v is missing, it should return an error", "1.31.14", ""},
		{"When the version is empty, it should return an error", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := librariesOf(test.version)
			g.Expect(got).To(Equal(test.want))
			if test.want == "" {
				g.Expect(err).To(MatchError(ContainSubstring("name one such as v1.31.14")))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}

// publish makes a folder the only module proxy, and adds one version of Kubernetes.
func publish(t *testing.T, version, goMod string) {
	t.Helper()
	g := NewWithT(t)
	proxy := t.TempDir()
	folder := filepath.Join(proxy, kubernetes, "@v")
	g.Expect(os.MkdirAll(folder, 0o755)).To(Succeed())
	for suffix, content := range map[string][]byte{
		".info": []byte(`{"Version":"` + version + `"}`),
		".mod":  []byte(goMod),
		".zip":  zipped(t, kubernetes+"@"+version+"/go.mod", goMod),
	} {
		g.Expect(os.WriteFile(filepath.Join(folder, version+suffix), content, 0o600)).To(Succeed())
	}
	t.Setenv("GOPROXY", "file://"+proxy)
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw")
}

func zipped(t *testing.T, name, content string) []byte {
	t.Helper()
	var archive bytes.Buffer
	writer := zip.NewWriter(&archive)
	file, err := writer.Create(name)
	if err == nil {
		_, err = file.Write([]byte(content))
	}
	if err == nil {
		err = writer.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}
