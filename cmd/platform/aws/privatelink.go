// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/install"
)

const (
	// linkSecret holds the credentials that create endpoint services; linkDir is its mount path in the operator.
	linkSecret = "hypershift-operator-aws-credentials"
	linkDir    = "/etc/provider"
)

// privateLink holds the flags of the credentials with which the operator creates endpoint services for private
// clusters, in the management cluster's AWS account.
type privateLink struct{ platform, region, endpoint, file, secret, key string }

func (l *privateLink) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&l.platform, "private-platform", string(hyperv1.NonePlatform), "platform whose private clusters the operator makes endpoint services for: AWS or None")
	flags.StringVar(&l.region, "aws-private-region", "", "region of AWS that the management cluster is in")
	flags.StringVar(&l.file, "aws-private-creds", "", "AWS credentials file that may make endpoint services for the management cluster's load balancers")
	flags.StringVar(&l.secret, "aws-private-secret", "", "Secret of the operator's namespace with such a file, instead of --aws-private-creds")
	flags.StringVar(&l.key, "aws-private-secret-key", "credentials", "the file's key in the Secret")
	flags.StringVar(&l.endpoint, "aws-private-endpoint", "", "URL of what speaks the protocols of EC2 and of its load balancers, instead of AWS's own in the region")
}

func (l *privateLink) complete(namespace string) (install.Addition, error) {
	switch l.platform {
	case string(hyperv1.AWSPlatform):
	case string(hyperv1.NonePlatform), "":
		if l.region != "" || l.file != "" || l.secret != "" || l.endpoint != "" {
			return install.Addition{}, errors.New("the flags --aws-private-* need --private-platform AWS")
		}
		return install.Addition{}, nil
	default:
		return install.Addition{}, fmt.Errorf("--private-platform %q: use AWS or None", l.platform)
	}
	if l.region == "" || (l.file == "") == (l.secret == "") {
		return install.Addition{}, errors.New("--private-platform AWS needs --aws-private-region and one of --aws-private-creds and --aws-private-secret")
	}
	if l.key == "" {
		return install.Addition{}, errors.New("--aws-private-secret-key must not be empty")
	}
	secret, objects, err := secretOf(namespace, "--aws-private-creds", l.file, cmp.Or(l.secret, linkSecret), l.key)
	if err != nil {
		return install.Addition{}, err
	}
	args := []string{"--private-platform=" + l.platform, "--aws-private-region=" + l.region, "--aws-private-creds=" + linkDir + "/" + l.key}
	if l.endpoint != "" {
		args = append(args, "--aws-private-endpoint="+l.endpoint)
	}
	return install.Addition{Args: args, Secrets: []install.SecretFiles{{Name: secret, Dir: linkDir}}, Objects: objects}, nil
}
