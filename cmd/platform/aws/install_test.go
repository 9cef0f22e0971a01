// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/cmd/install"
)

func TestInstall(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	NewWithT(t).Expect(os.WriteFile(file, []byte("[default]"), 0o600)).To(Succeed())
	public := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "oidc-storage-provider-s3-config"}, Data: map[string]string{"name": "oidc", "region": "eu-west-1"},
	}
	bucket := []string{"--oidc-storage-provider-s3-bucket-name=oidc", "--oidc-storage-provider-s3-region=eu-west-1"}
	tests := []struct {
		name  string
		flags []string
		want  install.Addition
		err   string
	}{
		{"When no flag is set, it should return an empty addition", nil, install.Addition{}, ""},
		{
			"When a file holds the S3 credentials, it should create a Secret from it", append(bucket, "--oidc-storage-provider-s3-credentials="+file),
			install.Addition{
				Args:    append(bucket, "--oidc-storage-provider-s3-credentials=/etc/oidc-storage-provider-s3-creds/credentials"),
				Secrets: []install.SecretFiles{{Name: "hypershift-operator-oidc-provider-s3-credentials", Dir: "/etc/oidc-storage-provider-s3-creds"}},
				Objects: []client.Object{public, &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: "here", Name: "hypershift-operator-oidc-provider-s3-credentials"}, Type: corev1.SecretTypeOpaque,
					Data: map[string][]byte{"credentials": []byte("[default]")},
				}},
			}, "",
		},
		{
			"When a Secret holds the S3 credentials, it should use that Secret", append(bucket, "--oidc-storage-provider-s3-secret=mine", "--oidc-storage-provider-s3-secret-key=file",
				"--oidc-storage-provider-s3-endpoint=https://store.example"),
			install.Addition{
				Args: append(bucket, "--oidc-storage-provider-s3-credentials=/etc/oidc-storage-provider-s3-creds/file",
					"--oidc-storage-provider-s3-endpoint=https://store.example"),
				Secrets: []install.SecretFiles{{Name: "mine", Dir: "/etc/oidc-storage-provider-s3-creds"}}, Objects: []client.Object{public},
			}, "",
		},
		{
			"When private clusters are enabled, it should create a Secret with the operator's AWS credentials", []string{"--private-platform=AWS", "--aws-private-region=eu-west-1", "--aws-private-creds=" + file},
			install.Addition{
				Args:    []string{"--private-platform=AWS", "--aws-private-region=eu-west-1", "--aws-private-creds=/etc/provider/credentials"},
				Secrets: []install.SecretFiles{{Name: "hypershift-operator-aws-credentials", Dir: "/etc/provider"}},
				Objects: []client.Object{&corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: "here", Name: "hypershift-operator-aws-credentials"}, Type: corev1.SecretTypeOpaque,
					Data: map[string][]byte{"credentials": []byte("[default]")},
				}},
			}, "",
		},
		{
			"When a Secret holds the operator's AWS credentials, it should mount it next to the S3 Secret",
			append(bucket, "--oidc-storage-provider-s3-secret=mine", "--private-platform=AWS", "--aws-private-region=eu-west-1", "--aws-private-secret=theirs", "--aws-private-secret-key=file",
				"--aws-private-endpoint=https://ec2.example"),
			install.Addition{
				Args: append(bucket, "--oidc-storage-provider-s3-credentials=/etc/oidc-storage-provider-s3-creds/credentials",
					"--private-platform=AWS", "--aws-private-region=eu-west-1", "--aws-private-creds=/etc/provider/file", "--aws-private-endpoint=https://ec2.example"),
				Secrets: []install.SecretFiles{{Name: "mine", Dir: "/etc/oidc-storage-provider-s3-creds"}, {Name: "theirs", Dir: "/etc/provider"}}, Objects: []client.Object{public},
			}, "",
		},
		{"When no private platform is set, it should reject the other private flags", []string{"--aws-private-region=eu-west-1"}, install.Addition{}, "need --private-platform AWS"},
		{"When the private platform is unknown, it should list the valid values", []string{"--private-platform=Azure"}, install.Addition{}, "use AWS or None"},
		{"When the operator's AWS credentials are missing, it should name the flags", []string{"--private-platform=AWS", "--aws-private-region=eu-west-1"}, install.Addition{}, "one of --aws-private-creds and"},
		{
			"When the file of the operator's AWS credentials is missing, it should name the flag", []string{"--private-platform=AWS", "--aws-private-region=eu-west-1", "--aws-private-creds=nowhere"}, install.Addition{},
			"--aws-private-creds: open nowhere",
		},
		{"When no bucket is set, it should reject the other bucket flags", bucket[1:], install.Addition{}, "need --oidc-storage-provider-s3-bucket-name"},
		{"When no region is set, it should name the flag", bucket[:1], install.Addition{}, "--oidc-storage-provider-s3-region"},
		{"When no S3 credentials are set, it should name the flags", bucket, install.Addition{}, "one of --oidc-storage-provider-s3-credentials and"},
		{
			"When both S3 credentials flags are set, it should name the flags", append(bucket, "--oidc-storage-provider-s3-secret=mine", "--oidc-storage-provider-s3-credentials="+file),
			install.Addition{}, "one of --oidc-storage-provider-s3-credentials and",
		},
		{"When the file of the S3 credentials is missing, it should name the flag", append(bucket, "--oidc-storage-provider-s3-credentials=nowhere"), install.Addition{}, "--oidc-storage-provider-s3-credentials: open nowhere"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			part, flags := &Install{}, pflag.NewFlagSet("install", pflag.ContinueOnError)
			part.AddFlags(flags)
			g.Expect(flags.Parse(tt.flags)).To(Succeed())
			got, err := part.Complete("here")
			if tt.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("addition (-want +got):\n%s", diff)
			}
		})
	}
}
