// SPDX-License-Identifier: Apache-2.0

package releaseinfo

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
)

// FuzzDecode reads the files of a release payload, which is an image that the tenant chooses.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"1.36.3"},"spec":{"tags":[{"name":"etcd","from":{"kind":"DockerImage","name":"r/e@sha256:0"}}]}}`),
		[]byte(`{"kind":"cincinnati-metadata-v0","version":"1.36.3","metadata":{"release.hypershift.openshift.io/distribution":"Kubernetes"}}`))
	f.Add([]byte(`{"spec":{"tags":[{"name":"x","from":null},{"annotations":{"io.openshift.build.versions":"a=1,b,=c"}}]}}`), []byte(nil))
	f.Add([]byte(`[]`), []byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, references, metadata []byte) {
		files := map[string][]byte{referencesFile: references}
		if len(metadata) > 0 {
			files[metadataFile] = metadata
		}
		p, err := decode(files, "amd64")
		if err != nil {
			if !strings.Contains(err.Error(), errNotARelease.Error()) {
				t.Fatalf("the error does not say that it is no release: %v", err)
			}
			return
		}
		if p.Version == "" || len(p.Components) == 0 || p.Architecture == "" || p.Distribution != OpenShift && p.Distribution != Kubernetes {
			t.Fatalf("a payload without version, component, architecture or distribution: %+v", p)
		}
	})
}

// FuzzMirrors reads overrides and mirrors from a flag and an environment variable, and applies them to an image.
func FuzzMirrors(f *testing.F) {
	f.Add("quay.io=mirror.example/quay,a.example/x=b.example/x", "quay.io/openshift/release:4.20")
	f.Add("=", "a:1")
	f.Add("a=b=c, ,d", "")
	f.Add("a=b,a=c", "a@sha256:0")
	f.Fuzz(func(t *testing.T, text, image string) {
		overrides, err := ParseOverrides(text)
		mirrors, otherErr := ParseMirrors(text)
		if (err == nil) != (otherErr == nil) {
			t.Fatalf("the two spellings of one thing disagree: %v, %v", err, otherErr)
		}
		if err != nil {
			return
		}
		for _, m := range mirrors {
			if overrides[m.Source] == "" {
				t.Fatalf("source %q is known to one only", m.Source)
			}
		}
		replaced := Override(image, overrides)
		if replaced != image && !hasDestination(replaced, overrides) {
			t.Fatalf("%q became %q, which is no destination", image, replaced)
		}
		if specs := candidates(image, mirrors); specs[len(specs)-1] != image {
			t.Fatalf("the image itself is not tried last: %q", specs)
		}
	})
}

func hasDestination(image string, overrides map[string]string) bool {
	for destination := range maps.Values(overrides) {
		if strings.HasPrefix(image, destination) {
			return true
		}
	}
	return false
}

// FuzzKeychain reads a pull secret, and finds the credentials of an image in it.
func FuzzKeychain(f *testing.F) {
	f.Add([]byte(`{"auths":{"https://index.docker.io/v1/":{"auth":"dTpw"},"r.example/team":{"username":"u","password":"hunter2"}}}`), "r.example/team/image:1")
	f.Add([]byte(`{"auths":{"":{},"/":{"identitytoken":"x"},"https://":null}}`), "localhost:5000/a")
	f.Add([]byte(`{"auths":"hunter2"}`), "a")
	f.Fuzz(func(t *testing.T, raw []byte, image string) {
		keychain, err := Keychain(raw)
		if err != nil {
			if err.Error() != errPullSecret.Error() {
				t.Fatalf("the error may hold some of the content: %v", err)
			}
			return
		}
		ref, err := name.ParseReference(image)
		if err != nil {
			return
		}
		auth, err := keychain.Resolve(ref.Context())
		if err != nil {
			t.Fatalf("finding the credentials of %s: %v", image, err)
		}
		if _, err := auth.Authorization(); err != nil {
			t.Fatalf("the credentials of %s cannot be used: %v", image, err)
		}
	})
}
