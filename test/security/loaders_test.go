// SPDX-License-Identifier: Apache-2.0

package security

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	. "github.com/onsi/gomega"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/backup"
	"github.com/openshift/hypershift/support/kubeconfig"
	"github.com/openshift/hypershift/support/objectstore"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
)

const storeKeys = "[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = hunter2\n"

// storage opens the object store of a tenant as the backup pod does, with the tenant's credentials file.
func storage(t *testing.T, endpoint, credentials string) (backup.Storage, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, objectstore.CredentialsKey), []byte(credentials), 0o600); err != nil {
		t.Fatal(err)
	}
	return backup.Open(hyperv1.HCPEtcdBackupStorage{StorageType: hyperv1.S3BackupStorage, S3: hyperv1.HCPEtcdBackupS3{
		Bucket: "backups", Region: "eu-central-1", Endpoint: endpoint, Credentials: hyperv1.SecretReference{Name: "s3"},
	}}, dir)
}

// TestCredentialsFileRunsNoProgram checks that a program in the file is not run: 0.1.0 ran it in the backup pod, which
// has the keys of etcd.
func TestCredentialsFileRunsNoProgram(t *testing.T) {
	g := NewWithT(t)
	ran := filepath.Join(t.TempDir(), "ran")
	program := filepath.Join(t.TempDir(), "program")
	g.Expect(os.WriteFile(program, []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o700)).To(Succeed())
	for _, line := range []string{"credential_process = " + program, "source_profile = other",
		"web_identity_token_file = /var/run/secrets/kubernetes.io/serviceaccount/token"} {
		_, err := storage(t, "https://store.example", "[default]\n"+line+"\n"+storeKeys[10:])
		g.Expect(err).To(MatchError(ContainSubstring("is refused, since it may run programs, read files or call services")))
	}
	g.Expect(ran).NotTo(BeAnExistingFile())
}

// TestKubeconfigSendsNoFile checks that a file named in a kubeconfig is not sent: 0.1.0 sent it, which was the token of
// the operator's service account.
func TestKubeconfigSendsNoFile(t *testing.T) {
	g := NewWithT(t)
	var got atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	t.Cleanup(server.Close)
	token := filepath.Join(t.TempDir(), "token")
	g.Expect(os.WriteFile(token, []byte(loot), 0o600)).To(Succeed())
	for user, field := range map[string]string{
		"tokenFile: " + token: "users[].user.tokenFile",
		"exec: {apiVersion: client.authentication.k8s.io/v1, command: cat, interactiveMode: Never}": "users[].user.exec",
		"as: system:masters": "users[].user.as",
	} {
		_, err := kubeconfig.Load([]byte("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
			"clusters: [{name: c, cluster: {server: '"+server.URL+"'}}]\nusers: [{name: u, user: {"+user+"}}]\n"),
			kubeconfig.Options{})
		g.Expect(err).To(MatchError(And(HavePrefix(field), Not(ContainSubstring(loot)))))
	}
	g.Expect(got.Load()).To(BeZero())
}

// TestRegistryWithoutTLS checks that plain HTTP is not used. Version 0.1.0 sent the pull secret in clear text to a
// private address, and trusted responses that anyone on the path could forge.
func TestRegistryWithoutTLS(t *testing.T) {
	g := NewWithT(t)
	url, reached := inner(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	provider, err := releaseinfo.NewRegistry(releaseinfo.Options{Timeout: time.Minute})
	g.Expect(err).NotTo(HaveOccurred())
	host := strings.TrimPrefix(url, "http://")
	_, err = provider.Lookup(t.Context(), host+"/release:1",
		[]byte(`{"auths":{"`+host+`":{"username":"tenant","password":"hunter2"}}}`))
	g.Expect(releaseinfo.ReasonOf(err)).To(Equal(releaseinfo.ReasonUnreachable))
	g.Expect(err).To(MatchError(ContainSubstring("serves HTTPS")))
	g.Expect(reached.Load()).To(BeZero())
}

// TestHostilePayloads checks that a payload's metadata cannot fill the memory or reach another decoder.
func TestHostilePayloads(t *testing.T) {
	registry := releasetest.Start(t)
	provider, err := releaseinfo.NewRegistry(releaseinfo.Options{CABundle: registry.CA, Timeout: time.Minute})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Run("When a layer is compressed with zstd, it should be rejected", func(t *testing.T) {
		g := NewWithT(t)
		image, err := mutate.AppendLayers(empty.Image, static.NewLayer([]byte("\x28\xb5\x2f\xfd\x04\x00crafted"),
			types.OCILayerZStd))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = provider.Lookup(t.Context(), registry.Push(t, registry.Host+"/release:zstd", image), nil)
		g.Expect(err).To(MatchError(And(ContainSubstring("compressed with zstd"), ContainSubstring(registry.Host+"/release"),
			ContainSubstring("layer sha256:"))))
	})
	t.Run("When a manifest is larger than 4 MiB, it should not be read", func(t *testing.T) {
		registry.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/manifests/") {
				return false
			}
			w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
			block := []byte(strings.Repeat(" ", 1<<20))
			for range 64 {
				if _, err := w.Write(block); err != nil {
					return true
				}
			}
			return true
		})
		defer registry.Intercept(nil)
		_, err := provider.Lookup(t.Context(), registry.Host+"/release@sha256:"+strings.Repeat("a", 64), nil)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("is larger than 4194304 bytes")))
	})
}
