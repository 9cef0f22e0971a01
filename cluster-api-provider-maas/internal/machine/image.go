package machine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/hypershift/support/maas"
)

const customPrefix = "custom/"

// missingImage says which image MAAS lacks; it returns nothing when MAAS has it, or when only MAAS can tell: for a bare
// name and for a release number such as "ubuntu/24.04", MAAS has aliases that it does not list.
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

// imageNames returns the names as a deployment takes them. MAAS lists an uploaded custom image without its prefix.
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
