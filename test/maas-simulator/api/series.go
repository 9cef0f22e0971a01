// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"
	"sort"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

// release is an operating system release with images.
type release struct {
	osystem, series string
	images          []*inventory.BootResource
}

func (r release) String() string { return r.osystem + "/" + r.series }

// releases returns the releases that can be deployed, sorted by name.
func (c *call) releases() []release {
	byName := map[string]*release{}
	for _, image := range c.DB.BootResources.All() {
		osystem, series, qualified := strings.Cut(image.Name, "/")
		if !qualified {
			osystem, series = "custom", image.Name
		}
		key := osystem + "/" + series
		if byName[key] == nil {
			byName[key] = &release{osystem: osystem, series: series}
		}
		byName[key].images = append(byName[key].images, image)
	}
	var out []release
	for _, r := range byName {
		out = append(out, *r)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].String() < out[j].String() })
	return out
}

// defaultSeries returns the configured series, or else jammy, or else the newest Ubuntu release with an image.
func (c *call) defaultSeries() string {
	if set, ok := c.DB.Setting("default_distro_series").(string); ok && set != "" {
		return set
	}
	newest := ""
	for _, r := range c.releases() {
		if r.osystem == "ubuntu" && newest != "jammy" {
			newest = r.series
		}
	}
	return newest
}

// aliases maps the numbers of Ubuntu releases to their names. Versions from 3.6 on accept the numbers.
var aliases = map[string]string{"20.04": "focal", "22.04": "jammy", "24.04": "noble", "26.04": "resolute"}

// resolveSeries returns the release for a distro_series.
func (c *call) resolveSeries(given string, m *inventory.Machine) (release, error) {
	all := c.releases()
	wanted := given
	if wanted == "" {
		wanted = c.defaultSeries()
	}
	if alias, ok := aliases[strings.TrimPrefix(wanted, "ubuntu/")]; ok && c.print.Version.AtLeast(3, 6) {
		wanted = "ubuntu/" + alias
	}
	for _, fits := range []func(release) bool{
		func(r release) bool { return r.String() == wanted },
		func(r release) bool { return r.series == wanted },
		func(r release) bool { return r.osystem == wanted },
		func(r release) bool {
			return r.osystem != "ubuntu" && wanted != "" && strings.HasPrefix(r.series, wanted)
		},
	} {
		// The newest release is the last one.
		for i := len(all) - 1; i >= 0; i-- {
			if fits(all[i]) {
				return all[i], c.onArchitecture(all[i], m)
			}
		}
	}
	names := []string{"''"}
	for _, r := range all {
		names = append(names, "'"+r.String()+"'")
	}
	return release{}, problem.Field("distro_series", "'%s' is not a valid distro_series.  It should be one of: %s.", given, strings.Join(names, ", "))
}

// onArchitecture returns an error if the release has no image for the machine's architecture.
func (c *call) onArchitecture(r release, m *inventory.Machine) error {
	arch, _, _ := strings.Cut(m.Architecture, "/")
	if slices.ContainsFunc(r.images, func(i *inventory.BootResource) bool { return strings.HasPrefix(i.Architecture, arch+"/") }) {
		return nil
	}
	return problem.Text(400, "Deployment operating system %s %s is unavailable for architecture %s.", r.osystem, r.series, arch)
}

// resolveKernel returns the kernel for an hwe_kernel. Empty means the release's original (ga) kernel.
func (c *call) resolveKernel(given string, r release, m *inventory.Machine) (string, error) {
	base := r
	if r.osystem != "ubuntu" {
		base = c.baseOf(r)
	}
	arch, _, _ := strings.Cut(m.Architecture, "/")
	kernel := ""
	for _, image := range base.images {
		a, sub, _ := strings.Cut(image.Architecture, "/")
		if a != arch {
			continue
		}
		if given != "" && sub == given {
			return given, nil
		}
		if strings.HasPrefix(sub, "ga-") {
			kernel = sub
		}
	}
	if given != "" {
		return "", problem.Field("hwe_kernel", "%s is not available for %s on %s.", given, r, m.Architecture)
	}
	return kernel, nil
}

// baseOf returns the Ubuntu release whose kernel is used to install an image of another operating system.
func (c *call) baseOf(r release) release {
	name := "ubuntu/" + c.defaultSeries()
	for _, image := range r.images {
		if image.BaseImage != "" {
			name = image.BaseImage
		}
	}
	for _, other := range c.releases() {
		if other.String() == name {
			return other
		}
	}
	return release{}
}

// canDeployToMemory returns an error if the image cannot run from memory.
func (c *call) canDeployToMemory(r release, m *inventory.Machine, vmHost bool) error {
	if vmHost {
		if c.print.Version.AtLeast(3, 6) {
			return problem.Text(400, "A machine can not be a VM host if it is deployed to memory.")
		}
		return problem.Text(400, "Cannot deploy as a VM host for ephemeral deployments.")
	}
	refusal := problem.Text(400, "Deployment to memory not supported for %s on %s", r, m.Architecture)
	if r.osystem != "ubuntu" && !c.print.Version.AtLeast(3, 5) {
		return refusal
	}
	for _, image := range r.images {
		if image.FileType != "" && image.FileType != "tgz" && image.FileType != "txz" {
			return refusal
		}
	}
	return nil
}

// checkRelease returns an error if a series in a setting is not an Ubuntu release with an image.
func (c *call) checkRelease(field, series string) error {
	var names []string
	for _, r := range c.releases() {
		if r.osystem == "ubuntu" {
			if r.series == series {
				return nil
			}
			names = append(names, "'"+r.series+"'")
		}
	}
	return problem.Field(field, "'%s' is not a valid release.  It should be one of: %s.", series, strings.Join(names, ", "))
}
