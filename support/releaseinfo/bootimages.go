// SPDX-License-Identifier: Apache-2.0

package releaseinfo

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	// bootImagesFile is a ConfigMap with the stream metadata of the CoreOS that a release starts from.
	bootImagesFile = "release-manifests/0000_50_installer_coreos-bootimages.yaml"
	// bootImagesKey is the stream that every release has; streamsKey are several by their names, in releases that have more than one.
	bootImagesKey = "stream"
	streamsKey    = "streams"
)

// machineArchitectures are Go's architectures in the words of stream metadata.
var machineArchitectures = map[string]string{"": "x86_64", "amd64": "x86_64", "arm64": "aarch64", "ppc64le": "ppc64le", "s390x": "s390x"}

// BootImages are what machines of a release start from: the part of CoreOS's stream metadata that platforms take images from. The zero
// value is that of a payload that names none, such as one of upstream Kubernetes.
type BootImages struct {
	// Architectures are by the names of stream metadata, such as x86_64.
	Architectures map[string]BootArchitecture `json:"architectures,omitempty"`
	// Streams are the images of each stream of the operating system, such as rhel-10; empty for a payload with one stream.
	Streams map[string]BootImages `json:"-"`
}

// BootArchitecture are the images for one architecture.
type BootArchitecture struct {
	// Images are those of platforms that have a store of images of their own.
	Images struct {
		// AWS are AMIs by region.
		AWS struct {
			Regions map[string]BootImage `json:"regions,omitempty"`
		} `json:"aws,omitzero"`
		// KubeVirt is a container disk.
		KubeVirt BootImage `json:"kubevirt,omitzero"`
	} `json:"images,omitzero"`
	// Artifacts are files.
	Artifacts struct {
		OpenStack struct {
			// Formats are disks by format, such as qcow2.gz, and part.
			Formats map[string]map[string]BootFile `json:"formats,omitempty"`
		} `json:"openstack,omitzero"`
	} `json:"artifacts,omitzero"`
	// Extensions are images that are made beside those of CoreOS.
	Extensions struct {
		// Windows are AMIs of Windows with a licence, by region.
		Windows struct {
			Regions map[string]BootImage `json:"regions,omitempty"`
		} `json:"aws-winli,omitzero"`
	} `json:"rhel-coreos-extensions,omitzero"`
}

// BootFile is a file of a web server.
type BootFile struct {
	Location string `json:"location,omitempty"`
}

// BootImage is one image.
type BootImage struct {
	// Image is its name in the store.
	Image string `json:"image,omitempty"`
	// DigestRef is a reference that always names the same content; empty for images that are no containers.
	DigestRef string `json:"digest-ref,omitempty"`
}

// AMI is the image for AWS of an architecture, in Go's spelling, and a region. A stream is one of the operating system; empty, or one that
// the payload does not list, is the stream that every payload has. It is false when the payload names none.
func (r *ReleaseImage) AMI(stream, architecture, region string) (string, bool) {
	images := r.payload.BootImages
	if named, listed := images.Streams[stream]; listed {
		images = named
	}
	image := images.Architectures[machineArchitectures[architecture]].Images.AWS.Regions[region].Image
	return image, image != ""
}

// WindowsAMI is the image of Windows for AWS of an architecture, in Go's spelling, and a region. It is false when the payload names none.
func (r *ReleaseImage) WindowsAMI(architecture, region string) (string, bool) {
	image := r.payload.BootImages.Architectures[machineArchitectures[architecture]].Extensions.Windows.Regions[region].Image
	return image, image != ""
}

// KubeVirtDisk is the container disk of an architecture, in Go's spelling, by digest where the payload says one. It is false when the
// payload names none.
func (r *ReleaseImage) KubeVirtDisk(architecture string) (string, bool) {
	disk := r.payload.BootImages.Architectures[machineArchitectures[architecture]].Images.KubeVirt
	if disk.DigestRef != "" {
		return disk.DigestRef, true
	}
	return disk.Image, disk.Image != ""
}

// OpenStackDisk is the URL of OpenStack's disk for an architecture, in Go's spelling. It is false when the payload names none.
func (r *ReleaseImage) OpenStackDisk(architecture string) (string, bool) {
	artifacts := r.payload.BootImages.Architectures[machineArchitectures[architecture]].Artifacts
	url := artifacts.OpenStack.Formats["qcow2.gz"]["disk"].Location
	return url, url != ""
}

// decodeBootImages reads the ConfigMap of a payload. What of it cannot be read names no images: most platforms need none, so that it is
// no reason to refuse the release.
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
