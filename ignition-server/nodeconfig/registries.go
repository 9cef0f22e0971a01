// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_4/types"

	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/syntax/toml"
)

const (
	hostsDir    = "/etc/containerd/certs.d"
	bundlePath  = hostsDir + "/additional-trust-bundle.crt"
	proxyCAPath = hostsDir + "/proxy-ca.crt"

	// containerd 1 ignores a file without such a table.
	emptyHosts = "\n[host]\n"
	// blocked forbids pulls: containerd pulls images only from a registry with the capabilities pull and resolve.
	// containerd ignores this setting without a server line, which nowhere adds.
	blocked = "capabilities = [\"push\"]\n"
	nowhere = "server = \"https://not-allowed.invalid\"\n" + blocked
)

// registryFiles returns containerd's files: the CAs to trust, the forbidden registries, and the mirrors to try.
func (in Input) registryFiles(mirrors []releaseinfo.Mirror) ([]types.File, error) {
	registries, err := nodeinput.ReadRegistries(in.Image, mirrors, in.NodeImage, in.PodImage)
	if err != nil {
		return nil, err
	}
	r := registryRenderer{Registries: registries}
	for _, ca := range in.bundles() {
		r.files = append(r.files, file(ca.path, 0o644, ca.pem))
		r.trusted = append(r.trusted, ca.path)
	}
	r.addDefault()
	for _, host := range r.hosts(in.RegistryCAs) {
		r.addHost(host, in.RegistryCAs[host])
	}
	return r.files, nil
}

// bundle is a file of CAs that are trusted for every registry.
type bundle struct {
	path string
	pem  []byte
}

func (in Input) bundles() []bundle {
	all := []bundle{{bundlePath, in.TrustBundle}, {proxyCAPath, in.ProxyCA}}
	return slices.DeleteFunc(all, func(b bundle) bool { return len(b.pem) == 0 })
}

func registryCAPath(host string) string { return path.Join(hostsDir, host, "ca.crt") }

// registryRenderer renders containerd's files.
type registryRenderer struct {
	nodeinput.Registries
	// trusted are the files of CAs that are trusted for every registry.
	trusted []string
	files   []types.File
}

// hosts returns the registries that need their own file, sorted. All others use the default file, which may forbid
// them.
func (r *registryRenderer) hosts(cas map[string][]byte) []string {
	hosts := r.Names()
	for host := range cas {
		if _, known := r.Hosts[host]; !known && !r.OnlyHosts {
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	return hosts
}

func (r *registryRenderer) addDefault() {
	text := trust(r.trusted)
	if r.OnlyHosts {
		text = nowhere
	}
	if text != "" {
		r.files = append(r.files, file(hostsDir+"/_default/hosts.toml", 0o644, []byte(text+emptyHosts)))
	}
}

func (r *registryRenderer) addHost(host string, ca []byte) {
	trusted := r.trusted
	if len(ca) > 0 {
		caPath := registryCAPath(host)
		r.files = append(r.files, file(caPath, 0o644, ca))
		trusted = append(slices.Clone(trusted), caPath)
	}
	r.files = append(r.files, file(path.Join(hostsDir, host, "hosts.toml"), 0o644, []byte(r.hostsFile(host, trusted))))
}

// hostsFile renders the file of a registry. containerd tries its tables in order, and then the registry itself, whose
// settings are the first lines.
func (r *registryRenderer) hostsFile(host string, trusted []string) string {
	settings := r.Hosts[host]
	server := host
	if host == "docker.io" {
		server = "registry-1.docker.io"
	}
	var tables strings.Builder
	for _, endpoint := range settings.Mirrors {
		tables.WriteString(r.mirrorTable(endpoint))
	}
	if settings.Insecure && !settings.Blocked {
		tables.WriteString(table("https://"+server, "skip_verify = true\n"))
		return fmt.Sprintf("server = %s\n%s", toml.String("http://"+server), tables.String())
	}
	head := fmt.Sprintf("server = %s\n%s", toml.String("https://"+server), trust(trusted))
	if settings.Blocked {
		head += blocked
	}
	if tables.Len() == 0 {
		return head + emptyHosts
	}
	return head + tables.String()
}

func (r *registryRenderer) mirrorTable(endpoint string) string {
	rest := strings.TrimPrefix(endpoint, "https://")
	host, _, _ := strings.Cut(rest, "/")
	if r.Hosts[host].Insecure {
		return table(endpoint, "override_path = true\nskip_verify = true\n") + table("http://"+rest, "override_path = true\n")
	}
	return table(endpoint, "override_path = true\n"+trust(r.trusted))
}

func table(endpoint, settings string) string {
	return fmt.Sprintf("\n[host.%s]\ncapabilities = [\"pull\", \"resolve\"]\n%s", toml.String(endpoint), settings)
}

func trust(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	return "ca = " + toml.Strings(paths...) + "\n"
}

// pullSecretFile writes the pull secret for the kubelet, which reads config.json in its root folder.
func (in Input) pullSecretFile() []types.File {
	if len(in.PullSecret) == 0 {
		return nil
	}
	return []types.File{file("/var/lib/kubelet/config.json", 0o600, in.PullSecret)}
}
