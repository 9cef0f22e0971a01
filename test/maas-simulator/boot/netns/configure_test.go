// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
	"github.com/openshift/hypershift/test/machine/gpt"
)

func TestIsIgnition(t *testing.T) {
	for userData, want := range map[string]bool{
		`{"ignition":{"version":"3.4.0"}}`: true,
		` {"ignition":{}} `:                true,
		`{"a":1}`:                          false,
		`[]`:                               false,
		"#cloud-config\n":                  false,
		"#!/bin/sh\n":                      false,
		"":                                 false,
	} {
		if got := isIgnition([]byte(userData)); got != want {
			t.Errorf("%q is Ignition: %t, want %t", userData, got, want)
		}
	}
}

func TestMetadata(t *testing.T) {
	var authorizations []string
	code, body := http.StatusOK, "answer"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorizations = append(authorizations, r.Header.Get("Authorization"))
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body)) // The test itself is the client.
	}))
	defer server.Close()
	m := newMetadata(boot.Spec{
		MetadataURL: server.URL + "/MAAS/metadata", SystemID: "abc123", ConsumerKey: "con sumer", TokenKey: "token", TokenSecret: "se&cret",
	})

	t.Run("When it sends a request, it should sign it with PLAINTEXT and a new nonce", func(t *testing.T) {
		g := NewWithT(t)
		for range 2 {
			data, err := m.userData(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(data)).To(Equal("answer"))
		}
		for _, part := range []string{`oauth_consumer_key="con+sumer"`, `oauth_token="token"`, `oauth_signature="%26se%26cret"`, `oauth_signature_method="PLAINTEXT"`} {
			g.Expect(authorizations[0]).To(ContainSubstring(part))
		}
		g.Expect(authorizations[0]).NotTo(Equal(authorizations[1]), "a nonce is used once")
	})
	t.Run("When MAAS has no user-data, it should return nothing", func(t *testing.T) {
		g := NewWithT(t)
		code = http.StatusNotFound
		data, err := m.userData(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(data).To(BeEmpty())
		_, err = m.get(t.Context(), "meta-data/local-hostname")
		g.Expect(err).To(MatchError(errNotFound))
	})
	t.Run("When MAAS rejects a request, the error should give the reason without the secret", func(t *testing.T) {
		g := NewWithT(t)
		code, body = http.StatusUnauthorized, "go away"
		err := m.report(t.Context(), "modules-final", errors.New("x"))
		g.Expect(err).To(MatchError(And(ContainSubstring("401"), ContainSubstring("go away"), Not(ContainSubstring("se&cret")))))
	})
}

func newDisk(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "sda")
	g.Expect(writeDisk(path, 2<<30, true, true)).To(Succeed())
	return path
}

func numbers(t *testing.T, path string) []int {
	t.Helper()
	g := NewWithT(t)
	disk, err := os.Open(path)
	g.Expect(err).NotTo(HaveOccurred())
	defer disk.Close()
	table, err := gpt.Read(disk)
	g.Expect(err).NotTo(HaveOccurred())
	var numbers []int
	for _, p := range table {
		numbers = append(numbers, p.Number)
	}
	return numbers
}

func TestChangeDisks(t *testing.T) {
	tests := []struct {
		name, config string
		want         []int
		wantErr      string
	}{
		{
			name:   "When a partition must not exist, only that partition should be removed",
			config: `{"storage":{"disks":[{"device":"DISK","partitions":[{"number":5,"shouldExist":false,"wipePartitionEntry":true}]}]}}`,
			want:   []int{1, 2, 3, 4},
		},
		{
			name:   "When a partition that must not exist is already missing, it should do nothing",
			config: `{"storage":{"disks":[{"device":"DISK","partitions":[{"number":9,"shouldExist":false}]}]}}`,
			want:   []int{1, 2, 3, 4, 5},
		},
		{
			name:    "When wiping is not allowed, it should return an error, as Ignition does",
			config:  `{"storage":{"disks":[{"device":"DISK","partitions":[{"number":5,"shouldExist":false}]}]}}`,
			want:    []int{1, 2, 3, 4, 5},
			wantErr: "wipePartitionEntry is not set",
		},
		{
			name:   "When the config needs something that the image does not support, the disk should be left alone",
			config: `{"storage":{"disks":[{"device":"DISK","partitions":[{"number":6,"label":"data"}]}],"filesystems":[{}]}}`,
			want:   []int{1, 2, 3, 4, 5},
		},
		{
			name:    "When the device does not exist, the error should name it",
			config:  `{"storage":{"disks":[{"device":"/dev/none","partitions":[{"number":5,"shouldExist":false,"wipePartitionEntry":true}]}]}}`,
			want:    []int{1, 2, 3, 4, 5},
			wantErr: "/dev/none",
		},
		{name: "When there are no disks, it should do nothing", config: `{}`, want: []int{1, 2, 3, 4, 5}},
		{name: "When the config cannot be read, the error should say so", config: `{`, want: []int{1, 2, 3, 4, 5}, wantErr: "merged Ignition config"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			disk := newDisk(t)
			for range 2 {
				err := changeDisks([]byte(strings.ReplaceAll(tt.config, "DISK", disk)))
				if tt.wantErr == "" {
					g.Expect(err).NotTo(HaveOccurred(), "also the second time")
				} else {
					g.Expect(err).To(MatchError(ContainSubstring(tt.wantErr)))
				}
			}
			g.Expect(numbers(t, disk)).To(Equal(tt.want))
		})
	}
}

func TestUnpackImage(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	g.Expect(unpackImage(root)).To(Succeed())
	for _, path := range []string{"etc/containerd/config.toml", "etc/systemd/system/containerd.service", "etc/kubernetes/kubelet.conf.d/90-machine.conf"} {
		g.Expect(filepath.Join(root, path)).To(BeARegularFile())
	}
}
