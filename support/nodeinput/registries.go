// SPDX-License-Identifier: Apache-2.0

package nodeinput

import (
	"crypto/x509"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/hypershift/support/releaseinfo"
)

// Registries holds the settings by which a node reaches image registries. containerd identifies registries by host, not
// by repository.
type Registries struct {
	// Hosts are the settings of each registry that has any.
	Hosts map[string]Registry
	// OnlyHosts forbids all registries that Hosts does not name.
	OnlyHosts bool
}

// Registry is how a node reaches one registry.
type Registry struct {
	// Mirrors are API endpoints (https://host/v2/...), tried in order before the registry itself.
	Mirrors []string
	// Insecure accepts any certificate, and plain HTTP.
	Insecure bool
	// Blocked forbids the registry itself; mirrors of it may be used.
	Blocked bool
}

// registryHost matches a host with an optional port, the only scope that containerd supports.
var registryHost = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:[0-9]+)?$`)

// repositoryPath matches a path that may follow the host in a containerd file and in a URL.
var repositoryPath = regexp.MustCompile(`^[a-zA-Z0-9._/-]*$`)

func isDots(element string) bool { return element == "." || element == ".." }

// ReadRegistries reads the cluster's image configuration (nil for none) and all mirrors. images are those that every
// node needs; the configuration must not forbid them. Its errors name the field and the remedy.
func ReadRegistries(image *configv1.ImageSpec, mirrors []releaseinfo.Mirror, images ...string) (Registries, error) {
	r := Registries{Hosts: map[string]Registry{}}
	for _, m := range mirrors {
		for _, destination := range m.Mirrors {
			if err := r.addMirror(m, destination); err != nil {
				return r, err
			}
		}
	}
	sources := ptr.Deref(image, configv1.ImageSpec{}).RegistrySources
	r.OnlyHosts = len(sources.AllowedRegistries) > 0
	for _, list := range []struct {
		field   string
		entries []string
		set     func(*Registry)
	}{
		{"insecureRegistries", sources.InsecureRegistries, func(s *Registry) { s.Insecure = true }},
		{"blockedRegistries", sources.BlockedRegistries, func(s *Registry) { s.Blocked = true }},
		{"allowedRegistries", sources.AllowedRegistries, func(*Registry) {}},
	} {
		if err := r.set(list.field, list.entries, list.set); err != nil {
			return r, err
		}
	}
	r.forbidUnnamed(sources.AllowedRegistries)
	return r, r.check(images)
}

func (r Registries) addMirror(mirror releaseinfo.Mirror, destination string) error {
	host, endpoint, err := MirrorEndpoint(mirror.Source, destination)
	if err != nil {
		return err
	}
	settings := r.Hosts[host]
	settings.Blocked = settings.Blocked || mirror.Only
	if !slices.Contains(settings.Mirrors, endpoint) {
		settings.Mirrors = append(settings.Mirrors, endpoint)
	}
	r.Hosts[host] = settings
	return nil
}

func (r Registries) set(field string, entries []string, set func(*Registry)) error {
	for _, entry := range entries {
		if !registryHost.MatchString(entry) {
			return fmt.Errorf("spec.configuration.image.registrySources.%s has the entry %q: containerd knows registries by host and port only; "+
				"name each registry without wildcard and path", field, entry)
		}
		settings := r.Hosts[entry]
		set(&settings)
		r.Hosts[entry] = settings
	}
	return nil
}

// forbidUnnamed blocks registries that have settings but are not in the list of allowed registries.
func (r Registries) forbidUnnamed(allowed []string) {
	if !r.OnlyHosts {
		return
	}
	for host, settings := range r.Hosts {
		settings.Blocked = settings.Blocked || !slices.Contains(allowed, host)
		r.Hosts[host] = settings
	}
}

// check rejects a configuration with which no machine could become a node.
func (r Registries) check(images []string) error {
	for _, image := range images {
		host, err := registryOf(image)
		if err != nil {
			return err
		}
		settings, known := r.Hosts[host]
		if len(settings.Mirrors) == 0 && (settings.Blocked || r.OnlyHosts && !known) {
			return fmt.Errorf("spec.configuration.image.registrySources forbids %s, which the image %s of every node comes from: allow it", host, image)
		}
	}
	return nil
}

// Source is a location from which an image can be pulled.
type Source struct {
	// Image is its pull spec at this location.
	Image string
	// Insecure accepts any certificate, and plain HTTP.
	Insecure bool
}

// Sources returns the locations from which an image is pulled, in the order in which containerd tries them.
func (r Registries) Sources(image string) []Source {
	host, err := registryOf(image)
	if err != nil {
		return nil // ReadRegistries has rejected the image.
	}
	rest := strings.TrimPrefix(image, host+"/")
	if host == "docker.io" && !strings.Contains(rest, "/") {
		rest = "library/" + rest
	}
	var sources []Source
	for _, endpoint := range r.Hosts[host].Mirrors {
		mirror, folder, _ := strings.Cut(strings.TrimPrefix(endpoint, "https://"), "/v2")
		sources = append(sources, Source{Image: mirror + folder + "/" + rest, Insecure: r.Hosts[mirror].Insecure})
	}
	settings, known := r.Hosts[host]
	if settings.Blocked || r.OnlyHosts && !known {
		return sources
	}
	return append(sources, Source{Image: host + "/" + rest, Insecure: settings.Insecure})
}

// registryOf returns the registry from which containerd pulls an image.
func registryOf(image string) (string, error) {
	first, rest, _ := strings.Cut(image, "/")
	if rest == "" || first != "localhost" && !strings.ContainsAny(first, ".:") {
		return "docker.io", nil
	}
	if !registryHost.MatchString(first) {
		return "", fmt.Errorf("the release payload names image %q, which is not a pull spec", image)
	}
	return first, nil
}

// Names returns the registries that have settings, sorted.
func (r Registries) Names() []string { return slices.Sorted(maps.Keys(r.Hosts)) }

// MirrorEndpoint returns the source's registry host and the endpoint at which containerd finds its images. containerd
// mirrors complete registries and keeps the path of an image, so the mirror's path must end in the source's path.
func MirrorEndpoint(source, destination string) (host, endpoint string, err error) {
	host, sourcePath, _ := strings.Cut(source, "/")
	mirrorHost, mirrorPath, _ := strings.Cut(destination, "/")
	for _, name := range []string{host, mirrorHost} {
		if !registryHost.MatchString(name) {
			return "", "", fmt.Errorf("the mirror %s of %s: %q is not a registry; write host[:port][/path]", destination, source, name)
		}
	}
	for _, folder := range []string{sourcePath, mirrorPath} {
		if !repositoryPath.MatchString(folder) || slices.ContainsFunc(strings.Split(folder, "/"), isDots) {
			return "", "", fmt.Errorf("the mirror %s of %s: %q is not a path of images; use letters, digits and . _ - between slashes", destination, source, folder)
		}
	}
	prefix, ok := strings.CutSuffix("/"+mirrorPath, "/"+sourcePath)
	if sourcePath == "" {
		prefix, ok = strings.TrimSuffix("/"+mirrorPath, "/"), true
	}
	if !ok {
		return "", "", fmt.Errorf("containerd cannot mirror %s to %s: the path of the mirror must end in %q; "+
			"mirror the images under the same path, e.g. %s/%s", source, destination, sourcePath, mirrorHost, sourcePath)
	}
	return host, "https://" + mirrorHost + "/v2" + prefix, nil
}

// updateServiceKey is not a registry: an OpenShift cluster stores the CA of its update service under this key.
const updateServiceKey = "updateservice-registry"

// ReadRegistryCAs reads the ConfigMap of spec.configuration.image.additionalTrustedCA: PEM certificates by registry. In
// its keys, ".." stands for the colon before a port.
func ReadRegistryCAs(data map[string]string) (map[string][]byte, error) {
	cas := map[string][]byte{}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if key == updateServiceKey {
			continue
		}
		host := strings.Replace(key, "..", ":", 1)
		if !registryHost.MatchString(host) {
			return nil, fmt.Errorf("the key %q names no registry: write host, or host..port", key)
		}
		if !x509.NewCertPool().AppendCertsFromPEM([]byte(data[key])) {
			return nil, fmt.Errorf("the key %q holds no PEM certificate: put the CA of the registry there", key)
		}
		cas[host] = []byte(data[key])
	}
	return cas, nil
}
