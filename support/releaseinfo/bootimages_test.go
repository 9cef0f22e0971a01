// SPDX-License-Identifier: Apache-2.0

package releaseinfo

import (
	"testing"

	. "github.com/onsi/gomega"
)

func bootImages() BootImages {
	var intel, arm BootArchitecture
	intel.Images.AWS.Regions = map[string]BootImage{"eu-central-1": {Image: "ami-0123"}}
	intel.Images.KubeVirt = BootImage{Image: "quay.example/disk:4.20", DigestRef: "quay.example/disk@sha256:12"}
	arm.Images.KubeVirt = BootImage{Image: "quay.example/disk:4.20-arm"}
	intel.Extensions.Windows.Regions = map[string]BootImage{"eu-central-1": {Image: "ami-windows"}}
	var next BootArchitecture
	next.Images.AWS.Regions = map[string]BootImage{"eu-central-1": {Image: "ami-ten"}}
	return BootImages{
		Architectures: map[string]BootArchitecture{"x86_64": intel, "aarch64": arm},
		Streams:       map[string]BootImages{"rhel-10": {Architectures: map[string]BootArchitecture{"x86_64": next}}},
	}
}

func TestBootImages(t *testing.T) {
	g := NewWithT(t)
	img, err := Build(Payload{Version: "4.20.1", Components: map[string]string{"cli": "quay.example/cli"}, BootImages: bootImages()})
	g.Expect(err).NotTo(HaveOccurred())
	payload, err := Read(img, "r.example/release:1")
	g.Expect(err).NotTo(HaveOccurred())
	release := New("", payload)
	for _, tc := range []struct {
		architecture, region, ami, disk string
	}{
		{"amd64", "eu-central-1", "ami-0123", "quay.example/disk@sha256:12"},
		{"", "eu-central-1", "ami-0123", "quay.example/disk@sha256:12"},
		{"amd64", "mars-1", "", "quay.example/disk@sha256:12"},
		{"arm64", "eu-central-1", "", "quay.example/disk:4.20-arm"},
		{"s390x", "eu-central-1", "", ""},
	} {
		t.Run("When a payload has boot images, it should return those for "+tc.architecture+" in "+tc.region, func(t *testing.T) {
			g := NewWithT(t)
			ami, known := release.AMI("", tc.architecture, tc.region)
			g.Expect(ami).To(Equal(tc.ami))
			g.Expect(known).To(Equal(tc.ami != ""))
			disk, known := release.KubeVirtDisk(tc.architecture)
			g.Expect(disk).To(Equal(tc.disk))
			g.Expect(known).To(Equal(tc.disk != ""))
		})
	}
}

func TestAMIOfStream(t *testing.T) {
	img, err := Build(Payload{Version: "5.0.0", Components: map[string]string{"cli": "quay.example/cli"}, BootImages: bootImages()})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	payload, err := Read(img, "r.example/release:1")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	release := New("", payload)
	for _, tc := range []struct {
		name, stream, architecture, want string
	}{
		{"When the stream is listed, it should return its image", "rhel-10", "amd64", "ami-ten"},
		{"When the stream is not listed, it should return the image of the default stream", "rhel-9", "amd64", "ami-0123"},
		{"When the listed stream lacks the architecture, it should return no image", "rhel-10", "arm64", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			ami, known := release.AMI(tc.stream, tc.architecture, "eu-central-1")
			g.Expect(ami).To(Equal(tc.want))
			g.Expect(known).To(Equal(tc.want != ""))
		})
	}
	t.Run("When the image is for Windows, it should be returned where there is one", func(t *testing.T) {
		g := NewWithT(t)
		ami, known := release.WindowsAMI("amd64", "eu-central-1")
		g.Expect(ami).To(Equal("ami-windows"))
		g.Expect(known).To(BeTrue())
		_, known = release.WindowsAMI("arm64", "eu-central-1")
		g.Expect(known).To(BeFalse())
	})
}

func TestDecodeBootImages(t *testing.T) {
	for _, tc := range []struct {
		name, raw string
		want      int
	}{
		{"When the stream metadata has unknown fields, it should ignore them",
			"data: {stream: '{\"stream\":\"rhcos\",\"architectures\":{\"x86_64\":{\"artifacts\":{},\"images\":{\"gcp\":{\"name\":\"x\"}}}}}'}", 1},
		{"When the stream is not JSON, it should return no images", "data: {stream: '{'}", 0},
		{"When only the list of streams is not JSON, it should return the default stream",
			"data: {stream: '{\"architectures\":{\"x86_64\":{}}}', streams: '['}", 1},
		{"When only a part can be parsed, it should return no images",
			"data: {stream: '{\"architectures\":{\"x86_64\":{},\"aarch64\":7}}'}", 0},
		{"When the stream is missing, it should return no images", "data: {}", 0},
		{"When the file is not YAML, it should return no images", "\t:", 0},
		{"When there is no file, it should return no images", "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(decodeBootImages([]byte(tc.raw)).Architectures).To(HaveLen(tc.want))
		})
	}
}

// TestStreamsAreReadWhole checks that one unreadable stream discards all streams, because the others cannot be trusted
// either.
func TestStreamsAreReadWhole(t *testing.T) {
	images := decodeBootImages([]byte(`data: {stream: '{"architectures":{"x86_64":{"images":{"aws":{"regions":{"r":{"image":"ami-all"}}}}}}}', ` +
		`streams: '{"rhel-10":{"architectures":{"x86_64":{"images":{"aws":{"regions":{"r":{"image":"ami-ten"}}}}}}},"rhel-9":7}'}`))
	ami, _ := New("", Payload{BootImages: images}).AMI("rhel-10", "amd64", "r")
	NewWithT(t).Expect(ami).To(Equal("ami-all"))
}
