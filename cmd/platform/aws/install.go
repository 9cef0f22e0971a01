// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/cmd/install"
)

const (
	// bucketSecret holds the credentials of the bucket; bucketDir is its mount path in the operator.
	bucketSecret = "hypershift-operator-oidc-provider-s3-credentials"
	bucketDir    = "/etc/oidc-storage-provider-s3-creds"
	// bucketConfig is the ConfigMap in kube-public that names the bucket. Tools that create the IAM roles of a cluster
	// derive its issuer from it.
	bucketConfig = "oidc-storage-provider-s3-config"
)

// Install is the platform's part of install: the bucket of the OIDC issuers' documents, and the permissions for the
// endpoint services of private clusters.
type Install struct {
	bucket, region, endpoint, file, secret, key string
	link                                        privateLink
}

// AddFlags implements install.Part. The names are those of the compatible product, except the flags of endpoints.
func (i *Install) AddFlags(flags *pflag.FlagSet) {
	i.link.addFlags(flags)
	flags.StringVar(&i.bucket, "oidc-storage-provider-s3-bucket-name", "", "bucket that the operator publishes the issuers of AWS clusters in (default: none; the creator of a cluster publishes its issuer)")
	flags.StringVar(&i.region, "oidc-storage-provider-s3-region", "", "region of the bucket")
	flags.StringVar(&i.file, "oidc-storage-provider-s3-credentials", "", "AWS credentials file that may write to the bucket")
	flags.StringVar(&i.secret, "oidc-storage-provider-s3-secret", "", "Secret of the operator's namespace with such a file, instead of --oidc-storage-provider-s3-credentials")
	flags.StringVar(&i.key, "oidc-storage-provider-s3-secret-key", "credentials", "the file's key in the Secret")
	flags.StringVar(&i.endpoint, "oidc-storage-provider-s3-endpoint", "", "URL of what speaks S3's protocol, instead of AWS's own in the region")
}

// Complete implements install.Part.
func (i *Install) Complete(namespace string) (install.Addition, error) {
	issuers, err := i.issuers(namespace)
	if err != nil {
		return install.Addition{}, err
	}
	private, err := i.link.complete(namespace)
	if err != nil {
		return install.Addition{}, err
	}
	return install.Addition{
		Args: slices.Concat(issuers.Args, private.Args), Secrets: slices.Concat(issuers.Secrets, private.Secrets), Objects: slices.Concat(issuers.Objects, private.Objects),
	}, nil
}

func (i *Install) issuers(namespace string) (install.Addition, error) {
	if i.bucket == "" {
		if i.region != "" || i.file != "" || i.secret != "" || i.endpoint != "" {
			return install.Addition{}, errors.New("the other flags --oidc-storage-provider-s3-* need --oidc-storage-provider-s3-bucket-name")
		}
		return install.Addition{}, nil
	}
	if i.region == "" {
		return install.Addition{}, errors.New("--oidc-storage-provider-s3-bucket-name needs --oidc-storage-provider-s3-region")
	}
	if (i.file == "") == (i.secret == "") {
		return install.Addition{}, errors.New("--oidc-storage-provider-s3-bucket-name needs one of --oidc-storage-provider-s3-credentials and --oidc-storage-provider-s3-secret")
	}
	if i.key == "" {
		return install.Addition{}, errors.New("--oidc-storage-provider-s3-secret-key must not be empty")
	}
	objects := []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: bucketConfig}, Data: map[string]string{"name": i.bucket, "region": i.region},
	}}
	secret, made, err := secretOf(namespace, "--oidc-storage-provider-s3-credentials", i.file, cmp.Or(i.secret, bucketSecret), i.key)
	if err != nil {
		return install.Addition{}, err
	}
	objects = append(objects, made...)
	args := []string{
		"--oidc-storage-provider-s3-bucket-name=" + i.bucket, "--oidc-storage-provider-s3-region=" + i.region,
		"--oidc-storage-provider-s3-credentials=" + bucketDir + "/" + i.key,
	}
	if i.endpoint != "" {
		args = append(args, "--oidc-storage-provider-s3-endpoint="+i.endpoint)
	}
	return install.Addition{Args: args, Secrets: []install.SecretFiles{{Name: secret, Dir: bucketDir}}, Objects: objects}, nil
}

// secretOf returns the name of the Secret with credentials, and the objects to create: an existing Secret, or one made
// from a file.
func secretOf(namespace, flag, file, name, key string) (string, []client.Object, error) {
	if file == "" {
		return name, nil, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", flag, err)
	}
	return name, []client.Object{&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{key: content},
	}}, nil
}
