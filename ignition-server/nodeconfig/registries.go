package nodeconfig

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_4/types"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/openshift/hypershift/support/releaseinfo"
)

const (
	hostsDir   = "/etc/containerd/certs.d"
	bundlePath = hostsDir + "/additional-trust-bundle.crt"
	// containerd 1 ignores a file that has no such table.
	emptyHosts = "\n[host]\n"
)

// registryFiles tells containerd which CAs to trust and which mirrors to try.
func (in Input) registryFiles(mirrors []releaseinfo.Mirror) ([]types.File, error) {
	endpoints := map[string][]string{}
	for _, m := range mirrors {
		for _, destination := range m.Mirrors {
			host, endpoint, err := mirrorEndpoint(m.Source, destination)
			if err != nil {
				return nil, err
			}
			if !slices.Contains(endpoints[host], endpoint) {
				endpoints[host] = append(endpoints[host], endpoint)
			}
		}
	}
	var files []types.File
	if len(in.TrustBundle) > 0 {
		files = append(files,
			file(bundlePath, 0o644, in.TrustBundle),
			file(hostsDir+"/_default/hosts.toml", 0o644, []byte(in.trustLine()+emptyHosts)))
	}
	for _, host := range slices.Sorted(maps.Keys(endpoints)) {
		files = append(files, file(path.Join(hostsDir, host, "hosts.toml"), 0o644, in.hostsFile(host, endpoints[host])))
	}
	return files, nil
}

func (in Input) trustLine() string {
	if len(in.TrustBundle) == 0 {
		return ""
	}
	return fmt.Sprintf("ca = %q\n", bundlePath)
}

func (in Input) hostsFile(host string, endpoints []string) []byte {
	server := host
	if host == "docker.io" {
		server = "registry-1.docker.io"
	}
	out := fmt.Appendf(nil, "server = %q\n%s", "https://"+server, in.trustLine())
	for _, endpoint := range endpoints {
		out = fmt.Appendf(out, "\n[host.%q]\ncapabilities = [\"pull\", \"resolve\"]\noverride_path = true\n%s", endpoint, in.trustLine())
	}
	return out
}

// mirrorEndpoint says where containerd finds the images of a source. containerd mirrors whole registries and keeps the
// path of an image, so the mirror's path must end in the source's.
func mirrorEndpoint(source, destination string) (host, endpoint string, err error) {
	host, sourcePath, _ := strings.Cut(source, "/")
	mirrorHost, mirrorPath, _ := strings.Cut(destination, "/")
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

// credentialFiles gives the pull secret to the kubelet, which reads config.json in its root folder, and the credentials of
// the two images that are pulled before there is a kubelet to ctr, which reads no pull secret.
func (in Input) credentialFiles() ([]types.File, error) {
	if len(in.PullSecret) == 0 {
		return nil, nil
	}
	keychain, err := releaseinfo.Keychain(in.PullSecret)
	if err != nil {
		return nil, err
	}
	files := []types.File{file("/var/lib/kubelet/config.json", 0o600, in.PullSecret)}
	for _, image := range []struct{ name, spec string }{{"node-image", in.NodeImage}, {"pod-image", in.PodImage}} {
		credentials, err := credentialsOf(keychain, image.spec)
		if err != nil {
			return nil, err
		}
		if credentials != "" {
			files = append(files, file("/etc/kubernetes/"+image.name+".credentials", 0o600, []byte(credentials)))
		}
	}
	return files, nil
}

func credentialsOf(keychain authn.Keychain, image string) (string, error) {
	ref, err := name.ParseReference(image)
	if err != nil {
		return "", fmt.Errorf("the release payload names image %q, which is no pull spec: %w", image, err)
	}
	auth, err := keychain.Resolve(ref.Context())
	if err != nil {
		return "", fmt.Errorf("find the credentials of %s: %w", image, err)
	}
	cfg, err := auth.Authorization()
	if err != nil {
		return "", fmt.Errorf("find the credentials of %s: %w", image, err)
	}
	if cfg.Username == "" {
		return "", nil
	}
	return cfg.Username + ":" + cfg.Password, nil
}
