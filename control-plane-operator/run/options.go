// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/logging"
	supportpki "github.com/openshift/hypershift/support/pki"
)

// options are the flags and the environment of the operator. Both are a contract with the hypershift-operator, which
// starts operators of many releases.
type options struct {
	namespace      string
	deploymentName string
	metricsAddr    string
	healthAddr     string

	operatorImage       string
	configOperatorImage string
	socksProxyImage     string
	proberImage         string
	tokenMinterImage    string
	imageOverrides      map[string]string

	registryOverrides string
	imageMirrors      string
	inCluster         bool
	ciDebugOutput     bool

	operateOnRelease string
	ingressDomain    string
	metricsSet       string
	lifetime         supportpki.Lifetime
	podUID           *int64
	inherited        []corev1.EnvVar
	environmentErr   error
	log              logging.Options
}

// optionsFromEnvironment reads the environment; flags take precedence.
func optionsFromEnvironment(getenv func(string) string) *options {
	o := &options{
		namespace:           getenv("MY_NAMESPACE"),
		operatorImage:       getenv("CONTROL_PLANE_OPERATOR_IMAGE"),
		configOperatorImage: getenv("HOSTED_CLUSTER_CONFIG_OPERATOR_IMAGE"),
		socksProxyImage:     getenv("SOCKS5_PROXY_IMAGE"),
		proberImage:         getenv("AVAILABILITY_PROBER_IMAGE"),
		tokenMinterImage:    getenv("TOKEN_MINTER_IMAGE"),
		imageMirrors:        getenv("OPENSHIFT_IMG_OVERRIDES"),
		operateOnRelease:    getenv("OPERATE_ON_RELEASE_IMAGE"),
		ingressDomain:       getenv("DEFAULT_INGRESS_DOMAIN"),
		metricsSet:          getenv("METRICS_SET"),
		inherited:           inherit(getenv),
	}
	var lifetimeErr, uidErr error
	o.lifetime, lifetimeErr = lifetimeFrom(getenv)
	o.podUID, uidErr = parseUID(getenv("DEFAULT_SECURITY_CONTEXT_UID"))
	if uidErr != nil {
		uidErr = fmt.Errorf("DEFAULT_SECURITY_CONTEXT_UID: %w", uidErr)
	}
	o.environmentErr = errors.Join(lifetimeErr, uidErr)
	return o
}

func lifetimeFrom(getenv func(string) string) (supportpki.Lifetime, error) {
	var lifetime supportpki.Lifetime
	if text := getenv("CERTIFICATE_VALIDITY"); text != "" {
		validity, err := time.ParseDuration(text)
		if err != nil || validity <= 0 {
			return lifetime, fmt.Errorf("CERTIFICATE_VALIDITY: %q is not a duration; write it as in 8760h", text)
		}
		lifetime.Validity = validity
	}
	if text := getenv("CERTIFICATE_RENEWAL_PERCENTAGE"); text != "" {
		fraction, err := pki.RenewalFraction(text)
		if err != nil {
			return lifetime, fmt.Errorf("CERTIFICATE_RENEWAL_PERCENTAGE: %w", err)
		}
		lifetime.RenewAfter = fraction
	}
	return lifetime, nil
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.namespace, "namespace", o.namespace, "Namespace of the hosted control plane [MY_NAMESPACE]")
	flags.StringVar(&o.deploymentName, "deployment-name", "control-plane-operator", "Name of the operator's own Deployment")
	flags.StringVar(&o.metricsAddr, "metrics-addr", "0.0.0.0:8080", "Address that serves metrics")
	flags.StringVar(&o.healthAddr, "health-probe-addr", "0.0.0.0:6060", "Address that serves health probes")
	flags.StringVar(&o.configOperatorImage, "hosted-cluster-config-operator-image", o.configOperatorImage, "Image of the hosted-cluster-config-operator; the operator's own if empty")
	flags.StringVar(&o.socksProxyImage, "socks5-proxy-image", o.socksProxyImage, "Image of the SOCKS5 proxy; the operator's own if empty")
	flags.StringVar(&o.proberImage, "availability-prober-image", o.proberImage, "Image of the availability prober; the operator's own if empty")
	flags.StringVar(&o.tokenMinterImage, "token-minter-image", o.tokenMinterImage, "Image of the token minter; the operator's own if empty")
	flags.StringToStringVar(&o.imageOverrides, "image-overrides", nil, "Images by payload tag that win over those of the payload: tag=image,...")
	flags.StringVar(&o.registryOverrides, "registry-overrides", "", "Prefixes of images and what replaces them: source=destination,...")
	flags.BoolVar(&o.inCluster, "in-cluster", true, "Accepted for compatibility; the operator finds its cluster automatically")
	flags.BoolVar(&o.ciDebugOutput, "enable-ci-debug-output", false, "Accepted for compatibility; it has no effect")
	o.log.AddFlags(flags)
}

func (o *options) validate() error {
	if o.environmentErr != nil {
		return o.environmentErr
	}
	if o.namespace == "" {
		return errors.New("--namespace is missing; name the namespace of the hosted control plane")
	}
	if o.operatorImage == "" {
		return errors.New("the environment variable CONTROL_PLANE_OPERATOR_IMAGE is missing; name the operator's own image")
	}
	return nil
}

// orOwn returns the image, or the operator's own one if neither flag nor environment sets it.
func (o *options) orOwn(image string) string { return cmp.Or(image, o.operatorImage) }

// staticImages returns the images that the operator provides, by payload tag.
func (o *options) staticImages() map[string]string {
	static := map[string]string{
		"controlplane-operator":          o.operatorImage,
		"hosted-cluster-config-operator": o.orOwn(o.configOperatorImage),
		"socks5-proxy":                   o.orOwn(o.socksProxyImage),
		"availability-prober":            o.orOwn(o.proberImage),
		"token-minter":                   o.orOwn(o.tokenMinterImage),
	}
	maps.Copy(static, o.imageOverrides)
	delete(static, "")
	return static
}
