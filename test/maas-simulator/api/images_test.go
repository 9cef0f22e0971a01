// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

const createImage = "POST boot-resources/"

// file returns the file of an image's set.
func file(answer simtest.Answer) map[string]any {
	sets, _ := answer.Object()["sets"].(map[string]any)
	for _, set := range sets {
		files, _ := set.(map[string]any)["files"].(map[string]any)
		for _, f := range files {
			return f.(map[string]any)
		}
	}
	return nil
}

func upload(site *simtest.Site, user, path string, body io.Reader) simtest.Answer {
	r := httptest.NewRequest(http.MethodPut, "/MAAS/api/2.0/"+path, body)
	r.Header.Set("Content-Type", "application/octet-stream")
	r.Header.Set("Authorization", site.Authorization(site.Key(user)))
	return site.Send(r)
}

// TestUpload verifies that an image is complete when all of its bytes are uploaded, and that it replaces the previous
// image.
func TestUpload(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	form := []string{"name", "custom/large", "architecture", "amd64/generic", "filetype", "ddgz", "sha256", "0a", "size", "10", "title", "Large", "base_image", "ubuntu/noble"}
	answer := site.Do("admin", "POST", "boot-resources/", form...)
	g.Expect(answer.Code).To(Equal(201), answer.Body)
	g.Expect(answer.Object()).To(And(HaveKeyWithValue("name", "large"), HaveKeyWithValue("title", "Large"), HaveKeyWithValue("type", "Uploaded")))
	g.Expect(file(answer)).To(And(HaveKeyWithValue("complete", false), HaveKeyWithValue("size", 10.0), HaveKeyWithValue("sha256", "0a"),
		HaveKeyWithValue("progress", 0.0), HaveKeyWithValue("filetype", "root-ddgz")))
	path := strings.TrimPrefix(file(answer)["upload_uri"].(string), "/MAAS/api/2.0/")
	g.Expect(path).To(Equal("boot-resources/6/upload/1/"))
	item := func() map[string]any { return file(site.Do("alice", "GET", "boot-resources/6/")) }

	g.Expect(upload(site, "alice", path, strings.NewReader("01234")).Code).To(Equal(403))
	g.Expect(upload(site, "admin", path, strings.NewReader("01234")).Code).To(Equal(200))
	g.Expect(item()).To(And(HaveKeyWithValue("complete", false), HaveKey("upload_uri")))
	g.Expect(upload(site, "admin", path, strings.NewReader("5678")).Code).To(Equal(200))
	g.Expect(item()).To(HaveKeyWithValue("complete", false), "a byte is missing")
	g.Expect(upload(site, "admin", path, io.MultiReader(strings.NewReader("9"), failing{})).Code).To(Equal(500))
	g.Expect(item()).To(HaveKeyWithValue("complete", false), "a chunk that breaks off counts for nothing")
	g.Expect(upload(site, "admin", path, strings.NewReader("9")).Code).To(Equal(200))
	g.Expect(item()).To(And(HaveKeyWithValue("complete", true), Not(HaveKey("upload_uri")), Not(HaveKey("progress"))))

	again := site.Do("admin", "POST", "boot-resources/", form...)
	g.Expect(again.Object()).To(HaveKeyWithValue("id", 6.0), "the same image gets new content")
	g.Expect(item()).To(HaveKeyWithValue("complete", false))
	other := site.Do("admin", "POST", "boot-resources/", append(form, "architecture", "arm64/generic")...)
	g.Expect(other.Object()).To(HaveKeyWithValue("id", 7.0), "for another architecture it is another one")
	g.Expect(upload(site, "admin", "boot-resources/x/upload/1/", strings.NewReader("9")).Code).To(Equal(404))
	g.Expect(upload(site, "admin", "boot-resources/1/upload/1/", strings.NewReader("9")).Code).To(Equal(404), "a synced image takes no content")
}

// failing is a body whose sender disconnects.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("connection reset by peer") }

func TestImageForms(t *testing.T) {
	const systems = "[ubuntu ubuntu-core centos custom esxi ol rhel suse windows]"
	tests := map[string]struct {
		form []string
		says string // empty if the image is created
		name string
	}{
		"content":                         {[]string{"name", "custom/mine", "architecture", "amd64/generic", "content", "data"}, "", "mine"},
		"no prefix":                       {[]string{"name", "mine", "architecture", "amd64/generic", "content", "data"}, "", "mine"},
		"another system":                  {[]string{"name", "rhel/8", "architecture", "amd64/generic", "content", "data"}, "", "rhel/8"},
		"no parameters":                   {nil, `{"architecture": ["This field is required."], "name": ["This field is required."]}`, ""},
		"the name of an operating system": {[]string{"name", "ubuntu", "architecture", "amd64/generic"}, `{"name": ["ubuntu is a reserved name"]}`, ""},
		"the name of an operating system after a slash": {[]string{"name", "custom/centos", "architecture", "amd64/generic"}, `{"name": ["centos is a reserved name"]}`, ""},
		"an unknown operating system": {[]string{"name", "plan9/mine", "architecture", "amd64/generic"},
			`{"name": ["Unsupported operating system plan9, supported operating systems: ` + systems + `"]}`, ""},
		"an unknown file type": {[]string{"name", "custom/mine", "architecture", "amd64/generic", "filetype", "iso"},
			`{"filetype": ["Select a valid choice. iso is not one of the available choices."]}`, ""},
	}
	for name, test := range tests {
		t.Run("When an image has "+name+", it should be created or rejected as by MAAS", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack)
			if test.says != "" {
				story(t, site, ask("admin", createImage, test.form...).is(400, test.says), ask("admin", "GET boot-resources/?type=uploaded").with("id=5 4"))
				return
			}
			answer := site.Do("admin", "POST", "boot-resources/", test.form...)
			g.Expect(answer.Code).To(Equal(201), answer.Body)
			g.Expect(answer.Object()).To(HaveKeyWithValue("name", test.name))
			// The digest of "data".
			g.Expect(file(answer)).To(And(HaveKeyWithValue("complete", true), HaveKeyWithValue("size", 4.0), Not(HaveKey("upload_uri")),
				HaveKeyWithValue("sha256", "3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7"), HaveKeyWithValue("filetype", "root-tgz")))
		})
	}
}

// TestFileTypes verifies that all documented file types are accepted.
func TestFileTypes(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	for _, kind := range []string{"tgz", "tbz", "txz", "ddtgz", "ddtbz", "ddtxz", "ddtar", "ddbz2", "ddgz", "ddxz", "ddraw"} {
		story(t, site, ask("admin", createImage, "name", "custom/"+kind, "architecture", "amd64/generic", "filetype", kind, "content", "x").is(201, ""))
	}
	for _, system := range []string{"ubuntu", "ubuntu-core", "centos", "custom", "esxi", "ol", "rhel", "suse", "windows"} {
		story(t, site,
			ask("admin", createImage, "name", system+"/x1", "architecture", "amd64/generic", "content", "x").is(201, ""),
			ask("admin", createImage, "name", system, "architecture", "amd64/generic", "content", "x").is(400, `{"name": ["`+system+` is a reserved name"]}`))
	}
}

func TestListImages(t *testing.T) {
	const none = "No BootResource matches the given query."
	story(t, simtest.New(t, simtest.Rack),
		ask("alice", "GET boot-resources/?type=synced").with("id=1 2 3"),
		ask("alice", "GET boot-resources/?type=generated").is(200, "[]"),
		ask("alice", "GET boot-resources/?type=all").with("name=ubuntu/jammy ubuntu/jammy ubuntu/noble disk node"),
		ask("alice", "GET boot-resources/?type=Synced").is(400, "'Synced' is not a valid boot resource type. Available types: ['synced', 'generated', 'uploaded']"),
		ask("alice", "GET boot-resources/x/").is(404, none),
		ask("alice", "GET boot-resources/99/").is(404, none),
		ask("alice", "POST boot-resources/?op=stop_import").is(403, adminOnly),
		ask("admin", "POST boot-resources/?op=stop_import").is(200, "Import of boot resources is being stopped"),
		ask("alice", "GET boot-resources/?op=is_importing").is(200, "false"),
		ask("admin", "DELETE boot-resources/3/").is(204, ""),
		ask("alice", "POST machines/aaaaa1/?op=deploy", "distro_series", "noble").is(400,
			`{"distro_series": ["'noble' is not a valid distro_series.  It should be one of: '', 'custom/disk', 'custom/node', 'ubuntu/jammy'."]}`),
	)
}
