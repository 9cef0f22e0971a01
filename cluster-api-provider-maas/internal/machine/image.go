// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/hypershift/support/maas"
)

const customPrefix = "custom/"

// missingImage returns a message if MAAS lacks the image; empty if MAAS has it, or if only MAAS can decide. MAAS has
// aliases that it does not list, for a bare name and for a release number such as "ubuntu/24.04".
func missingImage(image string, images []maas.BootResource) string {
	osystem, series, ok := strings.Cut(image, "/")
	if !ok || series == "" || osystem == "ubuntu" && strings.ContainsAny(series, "0123456789") {
		return ""
	}
	names := imageNames(images)
	if slices.Contains(names, image) {
		return ""
	}
	if len(names) == 0 {
		return fmt.Sprintf("MAAS has no image %q: it has no images at all; import or upload it", image)
	}
	return fmt.Sprintf("MAAS has no image %q; it has %s: import or upload it, or name another one", image, strings.Join(names, ", "))
}

// imageNames returns the image names that a deployment accepts. MAAS lists an uploaded custom image without its prefix.
func imageNames(images []maas.BootResource) []string {
	var names []string
	for _, image := range images {
		name := image.Name
		if image.Type == "Uploaded" && !strings.Contains(name, "/") {
			name = customPrefix + name
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Formats of bootstrap data, as Cluster API names them.
const (
	formatCloudConfig = "cloud-config"
	formatIgnition    = "ignition"
)

// formatOf returns the format of bootstrap data: as declared in the Secret, else as detected from the content.
func formatOf(secret map[string][]byte) string {
	if declared := string(secret[formatKey]); declared != "" {
		return declared
	}
	var config struct {
		Ignition *struct {
			Version string `json:"version"`
		} `json:"ignition"`
	}
	if json.Unmarshal(secret[bootstrapKey], &config) == nil && config.Ignition != nil {
		return formatIgnition
	}
	return formatCloudConfig
}

// refusesFormat returns a message if the image certainly cannot use the bootstrap data. Images that MAAS syncs support
// cloud-init only. The content of an uploaded image is unknown.
func refusesFormat(image, format string, images []maas.BootResource) string {
	synced := slices.ContainsFunc(images, func(r maas.BootResource) bool {
		_, series, _ := strings.Cut(r.Name, "/")
		return r.Type == "Synced" && (r.Name == image || series == image)
	})
	if !synced || format != formatIgnition {
		return ""
	}
	return fmt.Sprintf("image %q, as MAAS provides it, runs cloud-init and not Ignition, which the bootstrap data is for: use an image that runs Ignition on its user-data, or user-data of cloud-init (NodePool spec.platform.maas.userDataFormat CloudConfig)", image)
}
