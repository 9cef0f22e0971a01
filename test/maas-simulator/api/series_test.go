// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// noPower returns a rule that makes a machine's power controller fail.
func noPower(machine string) faults.Rule {
	return faults.Rule{Kind: faults.PowerError, Machine: machine, Message: "no route"}
}

func ofVersion(version string) func(*simulator.Options) {
	return func(o *simulator.Options) { o.Version = version }
}

// images returns Rack with the given images instead of its own. Each has the form "name architecture", followed by
// other fields as JSON.
func images(list ...string) string {
	var docs []string
	for i, image := range list {
		name, rest, _ := strings.Cut(image, " ")
		arch, more, _ := strings.Cut(rest, " ")
		docs = append(docs, fmt.Sprintf(`{"id": %d, "type": "Synced", "name": %q, "architecture": %q%s}`, i+1, name, arch, more))
	}
	begin, end := strings.Index(simtest.Rack, `"boot_resources": [`), strings.Index(simtest.Rack, ` "machines": [`)
	return simtest.Rack[:begin] + `"boot_resources": [` + strings.Join(docs, ", ") + "],\n" + simtest.Rack[end:]
}

func TestKernels(t *testing.T) {
	const jammy, hwe, noble = "ubuntu/jammy amd64/ga-22.04", "ubuntu/jammy amd64/hwe-22.04", "ubuntu/noble amd64/ga-24.04"
	tests := map[string]struct {
		images         []string
		series, kernel string
		code           int
		says           string // the kernel, or the error
	}{
		"no kernel":                        {[]string{hwe, jammy}, "jammy", "", 200, "ga-22.04"},
		"the newer kernel":                 {[]string{jammy, hwe}, "jammy", "hwe-22.04", 200, "hwe-22.04"},
		"a kernel of another release":      {[]string{jammy, noble}, "jammy", "ga-24.04", 400, `{"hwe_kernel": ["ga-24.04 is not available for ubuntu/jammy on amd64/generic."]}`},
		"a kernel of another architecture": {[]string{jammy, "ubuntu/jammy arm64/hwe-22.04"}, "jammy", "hwe-22.04", 400, `{"hwe_kernel": ["hwe-22.04 is not available for ubuntu/jammy on amd64/generic."]}`},
		"an image that names its base":     {[]string{jammy, noble, `mine amd64/generic , "base_image": "ubuntu/noble"`}, "mine", "", 200, "ga-24.04"},
		"an image without a base":          {[]string{jammy, noble, "mine amd64/generic"}, "mine", "", 200, "ga-22.04"},
		"the other kernel of the base":     {[]string{jammy, hwe, `mine amd64/generic , "base_image": "ubuntu/jammy"`}, "mine", "hwe-22.04", 200, "hwe-22.04"},
		"an image with a missing base":     {[]string{jammy, `mine amd64/generic , "base_image": "ubuntu/focal"`}, "mine", "", 200, "<nil>"},
		"a kernel of a missing base":       {[]string{jammy, `mine amd64/generic , "base_image": "ubuntu/focal"`}, "mine", "ga-20.04", 400, `{"hwe_kernel": ["ga-20.04 is not available for custom/mine on amd64/generic."]}`},
	}
	for name, test := range tests {
		t.Run("When the request is for "+name+", the deployment should get the kernel that MAAS selects", func(t *testing.T) {
			site := simtest.New(t, images(test.images...))
			deploy := ask("alice", "POST machines/aaaaa1/?op=deploy", "distro_series", test.series, "hwe_kernel", test.kernel)
			if test.code != 200 {
				story(t, site, deploy.is(test.code, test.says))
				return
			}
			story(t, site, deploy.with("hwe_kernel="+test.says))
		})
	}
}

// TestSeriesByVersion verifies that versions from 3.6 on accept release numbers instead of names, and that the
// default release depends on the images.
func TestSeriesByVersion(t *testing.T) {
	all := []string{"ubuntu/focal amd64/ga-20.04", "ubuntu/jammy amd64/ga-22.04", "ubuntu/noble amd64/ga-24.04", "centos/centos70 amd64/generic", "rocky9 amd64/generic"}
	tests := map[string]struct {
		version, given string
		images         []string
		want           string
	}{
		"missing and jammy has an image":                  {"3.4", "", all, "ubuntu/jammy"},
		"missing and jammy has no image":                  {"3.4", "", []string{all[0], all[2], all[3]}, "ubuntu/noble"},
		"a release number in 3.6":                         {"3.6", "20.04", all, "ubuntu/focal"},
		"a release number with its system in 3.7":         {"3.7", "ubuntu/24.04", all, "ubuntu/noble"},
		"a release number in 3.5":                         {"3.5", "20.04", all, ""},
		"an operating system alone":                       {"3.4", "centos", all, "centos/centos70"},
		"a prefix of a name":                              {"3.4", "rock", all, "custom/rocky9"},
		"a prefix of an Ubuntu name":                      {"3.4", "foc", all, ""},
		"an operating system with the release of another": {"3.4", "centos/jammy", all, ""},
		"a release without its operating system":          {"3.4", "centos70", all, "centos/centos70"},
	}
	for name, test := range tests {
		t.Run("When the series is "+name+", the deployment should find the image or be rejected as by MAAS", func(t *testing.T) {
			site := simtest.New(t, images(test.images...), ofVersion(test.version))
			answer := site.Do("alice", "POST", "machines/aaaaa1/?op=deploy", "distro_series", test.given)
			g := NewWithT(t)
			if test.want == "" {
				g.Expect(answer.Code).To(Equal(400))
				g.Expect(answer.Body).To(HavePrefix(`{"distro_series": ["'` + test.given + `' is not a valid distro_series.  It should be one of: '', 'centos/centos70', `))
				return
			}
			g.Expect(answer.Code).To(Equal(200), answer.Body)
			g.Expect(fmt.Sprint(answer.Object()["osystem"], "/", answer.Object()["distro_series"])).To(Equal(test.want))
		})
	}
	t.Run("When a site configures its default series, it should be used", func(t *testing.T) {
		site := simtest.New(t, images(all...))
		story(t, site,
			ask("admin", "POST maas/?op=set_config", "name", "default_distro_series", "value", "rocky9").is(400,
				`{"default_distro_series": ["'rocky9' is not a valid release.  It should be one of: 'focal', 'jammy', 'noble'."]}`),
			ask("admin", "POST maas/?op=set_config", "name", "default_distro_series", "value", "focal").is(200, "OK"),
			ask("alice", "GET maas/?op=get_config&name=commissioning_distro_series").is(200, `"focal"`),
			ask("alice", "POST machines/aaaaa1/?op=deploy").with("distro_series=focal", "hwe_kernel=ga-20.04"),
		)
	})
}

// TestWithdrawnByVersion verifies which options each version rejects, and which users may use the other options.
func TestWithdrawnByVersion(t *testing.T) {
	const rackd, toMemory = "Installing rackd on a deployed machine is not supported.", "Deployment to memory not supported for "
	tests := map[string]struct {
		version, user string
		form          []string
		code          int
		says          string
	}{
		"rackd in 3.2":                   {"3.2", "alice", []string{"install_rackd", "true"}, 200, ""},
		"rackd in 3.4":                   {"3.4", "admin", []string{"install_rackd", "true"}, 400, rackd},
		"rackd in 3.5":                   {"3.5", "alice", []string{"install_rackd", "true"}, 200, ""},
		"rackd in 3.6":                   {"3.6", "admin", []string{"install_rackd", "true"}, 400, rackd},
		"no rackd in 3.6":                {"3.6", "alice", []string{"install_rackd", "false"}, 200, ""},
		"rackd in main":                  {"main", "admin", []string{"install_rackd", "false"}, 400, "install_rackd is no longer supported."},
		"a VM host in main":              {"main", "admin", []string{"register_vmhost", "true"}, 400, "register_vmhost is no longer supported."},
		"a VM host for a user":           {"3.6", "alice", []string{"register_vmhost", "true"}, 403, ""},
		"a VM host turned off":           {"3.4", "alice", []string{"install_kvm", "false"}, 200, ""},
		"a VM host in memory":            {"3.4", "admin", []string{"install_kvm", "true", "ephemeral_deploy", "true"}, 400, "Cannot deploy as a VM host for ephemeral deployments."},
		"a custom image in memory":       {"3.5", "alice", []string{"distro_series", "custom/node", "ephemeral_deploy", "true"}, 200, ""},
		"a custom disk image in memory":  {"3.5", "alice", []string{"distro_series", "custom/disk", "ephemeral_deploy", "true"}, 400, toMemory + "custom/disk on amd64/generic"},
		"Ubuntu in memory":               {"3.2", "alice", []string{"distro_series", "jammy", "ephemeral_deploy", "true"}, 200, ""},
		"an invalid Boolean in 3.5":      {"3.5", "alice", []string{"distro_series", "custom/disk", "ephemeral_deploy", "perhaps"}, 400, toMemory + "custom/disk on amd64/generic"},
		"an invalid Boolean in 3.4":      {"3.4", "alice", []string{"enable_hw_sync", "perhaps"}, 400, "Invalid enable_hw_sync: Value should be 'true' or 'false'"},
		"another invalid Boolean in 3.4": {"3.4", "alice", []string{"bridge_stp", "perhaps"}, 400, "Invalid bridge_stp: Value should be 'true' or 'false'"},
		"a Boolean that is false in 3.5": {"3.5", "alice", []string{"distro_series", "custom/disk", "ephemeral_deploy", "no"}, 200, ""},
		"an empty Boolean in 3.5":        {"3.5", "alice", []string{"distro_series", "custom/disk", "ephemeral_deploy", ""}, 200, ""},
	}
	for name, test := range tests {
		t.Run("When the deployment has "+name+", it should be accepted or rejected as by that version", func(t *testing.T) {
			site := simtest.New(t, simtest.Rack, ofVersion(test.version))
			story(t, site, ask(test.user, "POST machines/aaaaa1/?op=deploy", test.form...).is(test.code, test.says))
			want := status.Deploying
			if test.code != 200 {
				want = status.Ready
			}
			NewWithT(t).Expect(site.Has("one").Status).To(Equal(want))
		})
	}
}

// TestEraseByVersion verifies the erase parameters. Until 3.4, only "erase" starts the erasing; the other parameters
// select the method.
func TestEraseByVersion(t *testing.T) {
	const bad = "Invalid quick_erase: Value should be 'true' or 'false'"
	tests := map[string]struct {
		version string
		form    []string
		code    int
		shows   string
	}{
		"quick_erase in 3.4":           {"3.4", []string{"quick_erase", "true"}, 200, "Releasing"},
		"secure_erase in 3.4":          {"3.4", []string{"secure_erase", "true"}, 200, "Releasing"},
		"erase and quick_erase in 3.4": {"3.4", []string{"erase", "true", "quick_erase", "true"}, 200, "Disk erasing"},
		"quick_erase in 3.5":           {"3.5", []string{"quick_erase", "true"}, 200, "Disk erasing"},
		"secure_erase in 3.6":          {"3.6", []string{"secure_erase", "1"}, 200, "Disk erasing"},
		"no erasing in 3.6":            {"3.6", []string{"erase", "false", "quick_erase", "0"}, 200, "Releasing"},
		"an invalid value in 3.4":      {"3.4", []string{"quick_erase", "perhaps"}, 400, bad},
		"an invalid value in 3.5":      {"3.5", []string{"quick_erase", "perhaps"}, 200, "Disk erasing"},
	}
	for name, test := range tests {
		t.Run("When the release has "+name+", it should erase or not as in that version", func(t *testing.T) {
			site := simtest.New(t, simtest.Rack, ofVersion(test.version))
			site.Change("aaaaa1", func(m *inventory.Machine) { m.Status, m.Owner, m.PowerState = status.Deployed, "alice", "on" })
			release := ask("alice", "POST machines/aaaaa1/?op=release", test.form...)
			if test.code != 200 {
				story(t, site, release.is(test.code, test.shows), ask("alice", "GET machines/aaaaa1/").with("status_name=Deployed"))
				return
			}
			story(t, site, release.with("status_name="+test.shows))
			site.Settle(time.Hour)
			NewWithT(t).Expect(site.Has("one").Status).To(Equal(status.Ready))
		})
	}
}
