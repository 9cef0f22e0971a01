// SPDX-License-Identifier: Apache-2.0

package releaseinfo

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	// bootImagesFile is a ConfigMap with the stream metadata of the CoreOS version from which the machines of a release
	// boot.
	bootImagesFile = "release-manifests/0000_50_installer_coreos-bootimages.yaml"
	// bootImagesKey holds the stream that every release has. streamsKey holds several streams by name, in releases that
	// have more than one.
	bootImagesKey = "stream"
	streamsKey    = "streams"
)

// machineArchitectures maps Go's architecture names to those of stream metadata.
var machineArchitectures = map[string]string{"": "x86_64", "amd64": "x86_64", "arm64": "aarch64", "ppc64le": "ppc64le", "s390x": "s390x"}

// BootImages are the images from which machines of a release boot: the part of CoreOS's stream metadata that platforms
// use. A payload without boot images, such as one of upstream Kubernetes, has the zero value.
type BootImages struct {
	// Architectures maps architecture names of stream metadata, such as x86_64, to images.
	Architectures map[string]BootArchitecture `json:"architectures,omitempty"`
	// Streams maps each stream of the operating system, such as rhel-10, to its images; empty for a payload with one
	// stream.
	Streams map[string]BootImages `json:"-"`
}

// BootArchitecture are the images for one architecture.
type BootArchitecture struct {
	// Images are the images of platforms that have their own image store.
	Images struct {
		// AWS maps regions to AMIs.
		AWS struct {
			Regions map[string]BootImage `json:"regions,omitempty"`
		} `json:"aws,omitzero"`
		// KubeVirt is a container disk.
		KubeVirt BootImage `json:"kubevirt,omitzero"`
	} `json:"images,omitzero"`
	// Artifacts are disk images that are downloaded as files.
	Artifacts struct {
		OpenStack struct {
			// Formats maps a disk format, such as qcow2.gz, and a part to a file.
			Formats map[string]map[string]BootFile `json:"formats,omitempty"`
		} `json:"openstack,omitzero"`
	} `json:"artifacts,omitzero"`
	// Extensions are images of other operating systems than CoreOS.
	Extensions struct {
		// Windows maps regions to AMIs of Windows with a license.
		Windows struct {
			Regions map[string]BootImage `json:"regions,omitempty"`
		} `json:"aws-winli,omitzero"`
	} `json:"rhel-coreos-extensions,omitzero"`
}

// BootFile is a file on a web server.
type BootFile struct {
	Location string `json:"location,omitempty"`
}

// BootImage is one image.
type BootImage struct {
	// Image is the image's name in the store.
	Image string `json:"image,omitempty"`
	// DigestRef is an image reference with a digest; empty for images that are not containers.
	DigestRef string `json:"digest-ref,omitempty"`
}

// AMI returns the AWS image for an architecture, in Go's spelling, and a region. stream is a stream of the operating
// system. If it is empty or not in the payload, AMI uses the stream that every payload has. The result is false if the
// payload has no such image.
func (r *ReleaseImage) AMI(stream, architecture, region string) (string, bool) {
	images := r.payload.BootImages
	if named, listed := images.Streams[stream]; listed {
		images = named
	}
	image := images.Architectures[machineArchitectures[architecture]].Images.AWS.Regions[region].Image
	return image, image != ""
}

// WindowsAMI returns the AWS image of Windows for an architecture, in Go's spelling, and a region. The result is false
// if the payload has no such image.
func (r *ReleaseImage) WindowsAMI(architecture, region string) (string, bool) {
	image := r.payload.BootImages.Architectures[machineArchitectures[architecture]].Extensions.Windows.Regions[region].Image
	return image, image != ""
}

// KubeVirtDisk returns the container disk for an architecture, in Go's spelling. It returns the reference with a digest
// if the payload has one. The result is false if the payload has no such image.
func (r *ReleaseImage) KubeVirtDisk(architecture string) (string, bool) {
	disk := r.payload.BootImages.Architectures[machineArchitectures[architecture]].Images.KubeVirt
	if disk.DigestRef != "" {
		return disk.DigestRef, true
	}
	return disk.Image, disk.Image != ""
}

// OpenStackDisk returns the URL of the OpenStack disk for an architecture, in Go's spelling. The result is false if the
// payload has no such disk.
func (r *ReleaseImage) OpenStackDisk(architecture string) (string, bool) {
	artifacts := r.payload.BootImages.Architectures[machineArchitectures[architecture]].Artifacts
	url := artifacts.OpenStack.Formats["qcow2.gz"]["disk"].Location
	return url, url != ""
}

// decodeBootImages reads the ConfigMap of a payload. Unreadable parts yield no images. They are no reason to reject the
// release, because most platforms need no boot images.
func decodeBootImages(raw []byte) BootImages {
	var config corev1.ConfigMap
	if yaml.Unmarshal(raw, &config) != nil {
		return BootImages{}
	}
	var images BootImages
	if json.Unmarshal([]byte(config.Data[bootImagesKey]), &images) != nil {
		images = BootImages{}
	}
	if json.Unmarshal([]byte(config.Data[streamsKey]), &images.Streams) != nil {
		images.Streams = nil
	}
	return images
}

func encodeBootImages(images BootImages) ([]byte, error) {
	stream, err := json.Marshal(images)
	if err != nil {
		return nil, err
	}
	data := map[string]string{bootImagesKey: string(stream)}
	if len(images.Streams) > 0 {
		streams, err := json.Marshal(images.Streams)
		if err != nil {
			return nil, err
		}
		data[streamsKey] = string(streams)
	}
	return yaml.Marshal(corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-config-operator", Name: "coreos-bootimages"},
		Data:       data,
	})
}
