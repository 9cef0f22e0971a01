// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/openshift/hypershift/support/containerimage"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/images"
)

// osRelease is the os-release file of an image. The ignition-server reads from it the version of RHEL that the image's
// programs were built for.
var osRelease = []byte("NAME=\"Red Hat Enterprise Linux\"\nID=\"rhel\"\nVERSION_ID=\"9.6\"\nRHEL_VERSION=\"9.6\"\n")

// fakeNames returns the paths of the fake program in its image. The ignition-server extracts programs of the
// machine-config-operator from that image, for both versions of RHEL.
func fakeNames() []string {
	names := []string{"/usr/bin/fake", "/bin/bash", "/bin/sh", "/usr/bin/render", "/usr/bin/cluster-config-operator"}
	for _, part := range []string{"operator", "controller", "server"} {
		names = append(names, "/usr/bin/machine-config-"+part, "/usr/bin/machine-config-"+part+".rhel9")
	}
	return names
}

// payload pushes releases of OpenShift to the environment's registry.
type payload struct {
	sources *sources
	// e is the environment, and fake the path of the built fake program.
	e    env.Env
	fake string
	// components maps tags of the release to images. All other tags have the image fakes.
	components map[string]string
	// fakes is the image of the fake program.
	fakes string
}

// newPayload pushes the images of the components.
func newPayload(ctx context.Context, e env.Env, s *sources, fake string) (*payload, error) {
	p := &payload{sources: s, e: e, fake: fake, components: map[string]string{}}
	base, err := containerimage.Base()
	if err != nil {
		return nil, err
	}
	base = append(base, containerimage.File{Path: "/usr/lib/os-release", Data: osRelease})
	shell := containerimage.File{Path: "/bin/bash", Source: fake}
	kube := slices.Concat(base, []containerimage.File{
		{Path: "/usr/bin/kube", Source: filepath.Join(e.Bin, "kube", "kube")},
		{Path: "/usr/bin/hyperkube", Source: fake},
	})
	for _, program := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		kube = append(kube, containerimage.File{Path: "/usr/bin/" + program, Link: "kube"})
	}
	operators := append(slices.Clone(base), shell)
	for _, program := range stockPrograms {
		operators = append(operators, containerimage.File{Path: "/usr/bin/" + program, Source: filepath.Join(s.bin, program)})
	}
	fakes := append(slices.Clone(base), containerimage.File{Path: "/etc/mcc/templates/none", Data: []byte("none")})
	for _, name := range fakeNames() {
		fakes = append(fakes, containerimage.File{Path: name, Source: fake})
	}
	operator := containerimage.Image{
		Name: "operators", Files: operators, Labels: s.labels, Entrypoint: []string{"/usr/bin/control-plane-operator"},
	}
	for image, tags := range map[*containerimage.Image][]string{
		&operator: {"hypershift"}, {Name: "kubernetes", Files: kube}: {"hyperkube", "etcd", "kube-apiserver"},
	} {
		spec, err := p.push(ctx, *image, s.commit)
		if err != nil {
			return nil, err
		}
		for _, tag := range tags {
			p.components[tag] = spec
		}
	}
	if p.fakes, err = p.push(ctx, containerimage.Image{Name: "fake", Files: fakes}, s.commit); err != nil {
		return nil, err
	}
	specs, err := images.Pullspecs(e.Images(), env.Registry)
	if err != nil {
		return nil, err
	}
	p.components["cluster-capi-controllers"] = specs["cluster-api"]
	return p, nil
}

// release pushes a release of the given version, and returns its pull specification.
func (p *payload) release(ctx context.Context, version string) (string, error) {
	references, err := p.references(version)
	if err != nil {
		return "", err
	}
	metadata, err := json.Marshal(map[string]any{"kind": "cincinnati-metadata-v0", "version": version})
	if err != nil {
		return "", err
	}
	stream := `{"stream":%q,"metadata":{"last-modified":"2026-01-01T00:00:00Z"},` +
		`"architectures":{"x86_64":{"artifacts":{},"images":{}}}}`
	boot, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]string{"namespace": "openshift-machine-config-operator", "name": "coreos-bootimages"},
		"data": map[string]string{
			"releaseVersion": version, "stream": fmt.Sprintf(stream, "rhcos"),
			"streams": fmt.Sprintf(`{"rhel-9":`+stream+`,"rhel-10":`+stream+`}`, "rhel-9", "rhel-10"),
		},
	})
	if err != nil {
		return "", err
	}
	image := containerimage.Image{
		Name: "release", Labels: map[string]string{"io.openshift.release": version},
		Files: []containerimage.File{
			{Path: "/release-manifests/image-references", Data: references},
			{Path: "/release-manifests/release-metadata", Data: metadata},
			{Path: "/release-manifests/0000_50_installer_coreos-bootimages.yaml", Data: boot},
		},
	}
	if _, err := p.push(ctx, image, version); err != nil {
		return "", err
	}
	return repository(image) + ":" + version, nil
}

// references returns the ImageStream of a release.
func (p *payload) references(version string) ([]byte, error) {
	names, err := os.ReadFile(filepath.Join("testdata", "components.txt"))
	if err != nil {
		return nil, err
	}
	annotations := map[string]map[string]string{
		"hyperkube": {"io.openshift.build.versions": "kubernetes=" + p.sources.kubernetes},
		"machine-config-operator": {
			"io.openshift.build.versions":              "machine-os=" + version,
			"io.openshift.build.version-display-names": "machine-os=Red Hat Enterprise Linux CoreOS",
		},
	}
	var tags []map[string]any
	for tag := range strings.FieldsSeq(string(names)) {
		image, ok := p.components[tag]
		if !ok {
			image = p.fakes
		}
		tags = append(tags, map[string]any{
			"name": tag, "from": map[string]string{"kind": "DockerImage", "name": image}, "annotations": annotations[tag],
		})
	}
	return json.Marshal(map[string]any{
		"kind": "ImageStream", "apiVersion": "image.openshift.io/v1",
		"metadata": map[string]any{"name": version, "creationTimestamp": "2026-01-01T00:00:00Z"},
		"spec":     map[string]any{"tags": tags},
	})
}

func repository(image containerimage.Image) string {
	return env.Registry + "/hypershift/openshift-" + image.Name
}

// push pushes an image with the given tag, and returns its pull specification by digest.
func (p *payload) push(ctx context.Context, image containerimage.Image, tag string) (string, error) {
	folder, err := os.MkdirTemp(filepath.Dir(p.fake), "layer")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "layer.tar")
	if err := containerimage.WriteLayer(file, image.Files); err != nil {
		return "", err
	}
	layer, err := tarball.LayerFromFile(file, tarball.WithCompressionLevel(1))
	if err != nil {
		return "", err
	}
	built, err := containerimage.Assemble(image, runtime.GOARCH, layer)
	if err != nil {
		return "", err
	}
	ca, err := os.ReadFile(p.e.RegistryCA())
	if err != nil {
		return "", err
	}
	transport, err := releaseinfo.NewTransport(ca, false)
	if err != nil {
		return "", err
	}
	target, err := name.NewTag(repository(image) + ":" + tag)
	if err != nil {
		return "", err
	}
	if err := remote.Write(target, built, remote.WithContext(ctx), remote.WithTransport(transport)); err != nil {
		return "", fmt.Errorf("pushing image %s: %w", target, err)
	}
	digest, err := built.Digest()
	return target.Context().Digest(digest.String()).Name(), err
}
