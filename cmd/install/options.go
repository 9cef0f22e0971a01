// SPDX-License-Identifier: Apache-2.0

// Package install holds the command that installs the operator and its CRDs.
package install

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/management"
	"github.com/openshift/hypershift/support/objectstore"
	"github.com/openshift/hypershift/support/platforms"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/supportedversions"
	"github.com/openshift/hypershift/support/tenantlimits"
)

const (
	imageEnv     = "HYPERSHIFT_IMAGE"
	maxCertScale = 24 * time.Hour
	// platformsEnv lists for the operator the platforms whose CRDs are installed.
	platformsEnv = "PLATFORMS_INSTALLED"

	// developmentImage is the image of a Deployment without pods; the API server requires an image.
	developmentImage = "hypershift-operator:development"

	scopeAll       = "all"
	scopeCRDs      = "crds"
	scopeResources = "resources"

	loosestLevelFlag = "loosest-pod-security-level"
	baselineLevel    = "baseline"
	rolloutsFlag     = "max-control-plane-rollouts"
)

// imageVariables maps the tags of --image-refs to the operator's environment variables.
func imageVariables() map[string]string {
	variables := map[string]string{"apiserver-network-proxy": "IMAGE_KONNECTIVITY", "cluster-api": "IMAGE_CLUSTER_API"}
	for _, traits := range providers() {
		variables[traits.ProviderTag()] = traits.ProviderImageEnv()
	}
	return variables
}

// providers returns the platforms that have a Cluster API provider.
func providers() []platforms.Traits {
	return slices.DeleteFunc(allPlatforms(), func(t platforms.Traits) bool { return t.CRDs == "" })
}

func allPlatforms() []platforms.Traits {
	var all []platforms.Traits
	for _, platformType := range platforms.Known() {
		traits, _ := platforms.Of(platformType)
		all = append(all, traits)
	}
	return all
}

// platformNames returns the values that --limit-crd-install accepts.
func platformNames() []string {
	var names []string
	for _, traits := range allPlatforms() {
		names = append(names, traits.Name())
	}
	return names
}

// operatorTag is the tag in --image-refs that replaces the operator's image.
const operatorTag = "hypershift-operator"

// builtImage is the operator image of this build, set by the linker; empty if the build has none.
var builtImage string

// Options holds the flags of install.
type Options struct {
	namespace         string
	image             string
	imageRefsFile     string
	pullPolicy        string
	pullSecretFile    string
	trustBundleFile   string
	registryOverrides string
	providerImages    map[string]*string
	cpoImage          string
	defaultRelease    string
	egressBlocks      string
	storeAllow        string
	dnsServers        string
	refuseNodes       bool
	limits            tenantlimits.Limits
	virtualIP         virtualIP
	replicas          int32
	development       bool
	ciDebugOutput     bool
	defaultingWebhook bool
	metricsSet        string
	monitoring        string
	monitoringKinds   monitoringKinds
	alerting          alerting
	loosestLevel      string
	rollouts          int
	passRollouts      bool
	certRotationScale time.Duration
	extraEnv          map[string]string
	excludeEtcd       bool
	platforms         []string
	scope             string

	// parts are the install parts of the platforms; addition is the sum of what their flags add.
	parts    []Part
	addition Addition

	// apis are the optional APIs of the management cluster. If the flag is not set, install discovers them.
	apis management.APIs
	// platformEnv holds environment variables that depend on the management cluster's configuration: its proxy, and the
	// domain of its Routes.
	platformEnv map[string]string

	// Contents of the files that the flags name.
	pullSecret, trustBundle []byte
	images                  map[string]string
}

// withoutEffect lists flags of the compatible product for features that this product does not have, or that are always
// on.
var withoutEffect = []string{
	"enable-validating-webhook", "enable-conversion-webhook", "disable-capi-conversion-webhook",
	"disable-capi-migration", "enable-dedicated-request-serving-isolation", "enable-etcd-recovery", "tech-preview-no-upgrade",
	"enable-size-tagging", "enable-cpo-overrides", "enable-uwm-telemetry-remote-write",
}

func (o *Options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.namespace, "namespace", "hypershift", "namespace of the operator")
	flags.StringVar(&o.image, "hypershift-image", "", "image of the operator (default: $"+imageEnv+", or the one that this program was built for)")
	flags.StringVar(&o.imageRefsFile, "image-refs", "", "file with an ImageStream whose tags replace the images; instead of --hypershift-image")
	flags.StringVar(&o.pullPolicy, "image-pull-policy", string(corev1.PullIfNotPresent), "Always, IfNotPresent or Never")
	flags.StringVar(&o.pullSecretFile, "pull-secret", "", "file with the credentials for the operator's image (.dockerconfigjson)")
	flags.StringVar(&o.trustBundleFile, "additional-trust-bundle", "", "file with CAs that the operator trusts besides the system's (PEM)")
	flags.StringVar(&o.registryOverrides, "registry-overrides", "", "source=destination,...: prefixes of image references to replace in control planes")
	o.providerImages = map[string]*string{}
	for _, traits := range providers() {
		o.providerImages[traits.ProviderImageEnv()] = flags.String(traits.Name()+"-capi-provider-image", "",
			fmt.Sprintf("image of the Cluster API provider of platform %s (default: the operator's choice)", traits.Type))
	}
	flags.StringVar(&o.cpoImage, "control-plane-operator-image", "", "control-plane-operator of all clusters (default: that of each cluster's release)")
	flags.StringVar(&o.defaultRelease, supportedversions.DefaultReleaseFlag, "",
		"release payload of clusters that are created without one (default: none, --release-image is then required)")
	for _, part := range o.parts {
		part.AddFlags(flags)
	}
	flags.StringVar(&o.egressBlocks, "hcp-egress-block-cidrs", "",
		"ranges, separated by commas, that hosted pods which act for a guest must never reach, such as the nodes and pods of this management cluster and MAAS")
	flags.StringVar(&o.dnsServers, "hcp-egress-dns-cidrs", "",
		"ranges, separated by commas, of DNS servers that hosted pods query, besides those that the operator's own pod uses")
	flags.StringVar(&o.storeAllow, strings.TrimPrefix(objectstore.AllowFlag, "--"), "",
		"ranges, separated by commas, that object stores of tenants may be in although they would be refused, such as those of --hcp-egress-block-cidrs")
	flags.BoolVar(&o.refuseNodes, "refuse-node-addresses", false,
		"call no port of this management cluster's nodes for tenants (default: no port of Kubernetes there)")
	o.limits.AddFlags(flags)
	o.virtualIP.addFlags(flags)
	flags.Int32Var(&o.replicas, "replicas", 1, "number of operator pods, of which one works")
	flags.BoolVar(&o.development, "development", false, "install no operator pod, to run it elsewhere")
	flags.BoolVar(&o.defaultingWebhook, "enable-defaulting-webhook", true,
		"let the operator set defaults that depend on the cluster, such as the release of a NodePool; without it they have to be given")
	flags.BoolVar(&o.ciDebugOutput, "enable-ci-debug-output", false, "make control planes log more")
	flags.StringVar(&o.metricsSet, "metrics-set", "Telemetry", "metrics that are kept of control planes: Telemetry, SRE or All")
	flags.StringVar(&o.monitoring, "platform-monitoring", monitorNothing,
		"what the management cluster's own Prometheus (OpenShift's) scrapes: None, OperatorOnly, or All for control planes too; another Prometheus needs no flag")
	flags.BoolVar(&o.monitoringKinds.bring, monitoringCRDsFlag, true,
		"install minimal CRDs of ServiceMonitor, PodMonitor and PrometheusRule, which OpenShift releases need; "+
			"without the flag not where the management cluster is OpenShift or serves these kinds")
	o.alerting.addFlags(flags)
	flags.StringVar(&o.loosestLevel, loosestLevelFlag, baselineLevel,
		"how far the annotation "+hyperv1.PodSecurityAdmissionLabelOverrideAnnotation+" of a HostedCluster with an "+
			"OpenShift release may loosen the Pod Security level of its control plane: privileged, baseline or restricted")
	flags.IntVar(&o.rollouts, rolloutsFlag, 0,
		"how many control planes change at the same time after an upgrade of the operator; 0 for no limit (without the flag ten)")
	flags.StringSliceVar((*[]string)(&o.apis), apisFlag, nil,
		"optional APIs of the management cluster that are used: "+strings.Join(management.Groups(), ", ")+" (default: for install those that the cluster serves, for render none)")
	flags.DurationVar(&o.certRotationScale, "cert-rotation-scale", maxCertScale, "what counts as a day when operators of OpenShift releases rotate certificates; for tests, at most 24h. Clusters of Kubernetes releases use the annotation hypershift.openshift.io/certificate-validity instead")
	flags.StringToStringVar(&o.extraEnv, "additional-operator-env-vars", nil, "further environment variables of the operator")
	flags.BoolVar(&o.excludeEtcd, "exclude-etcd", false, "leave out the CRDs of etcd backups")
	flags.StringSliceVar(&o.platforms, "limit-crd-install", nil, "platforms whose CRDs are installed, and which the operator then serves: "+strings.Join(platformNames(), ", ")+" (default: all)")
	flags.StringVar(&o.scope, "install-scope", scopeAll, "all, crds or resources")
	for _, name := range withoutEffect {
		flags.String(name, "", "accepted for compatibility, has no effect")
		flags.Lookup(name).NoOptDefVal = "true"
		_ = flags.MarkHidden(name)
	}
}

// complete checks the flags and reads the files that they name.
func (o *Options) complete(flags *pflag.FlagSet) error {
	if problems := validation.IsDNS1123Label(o.namespace); len(problems) > 0 {
		return fmt.Errorf("--namespace %q: %s", o.namespace, strings.Join(problems, "; "))
	}
	if flags.Changed("image-refs") && flags.Changed("hypershift-image") {
		return errors.New("set one of --hypershift-image and --image-refs")
	}
	if o.certRotationScale > maxCertScale || o.certRotationScale <= 0 {
		return errors.New("--cert-rotation-scale must be more than 0 and at most 24h")
	}
	if o.replicas < 1 {
		return errors.New("--replicas must be 1 or more; use --development to install no operator pod")
	}
	if _, err := releaseinfo.ParseOverrides(o.registryOverrides); err != nil {
		return fmt.Errorf("--registry-overrides: %w", err)
	}
	if err := o.checkRanges(); err != nil {
		return err
	}
	if err := errors.Join(o.virtualIP.complete(flags), o.alerting.complete(flags)); err != nil {
		return err
	}
	if o.development && len(o.virtualIP.addresses) > 0 {
		return fmt.Errorf("--%s runs pods of the operator's image, which --development leaves out", virtualIPFlag)
	}
	o.monitoringKinds.set = flags.Changed(monitoringCRDsFlag)
	o.passRollouts = flags.Changed(rolloutsFlag)
	for _, step := range []func() error{
		o.checkChoices, o.completeParts, o.readFiles, func() error { return o.limits.Complete(o.image) }, o.checkDefaultRelease,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (o *Options) checkRanges() error {
	if _, err := maas.ParsePrefixes(o.egressBlocks); err != nil {
		return fmt.Errorf("--hcp-egress-block-cidrs: %w", err)
	}
	if _, err := maas.ParsePrefixes(o.dnsServers); err != nil {
		return fmt.Errorf("--hcp-egress-dns-cidrs: %w", err)
	}
	if _, err := maas.ParsePrefixes(o.storeAllow); err != nil {
		return fmt.Errorf("%s: %w", objectstore.AllowFlag, err)
	}
	return nil
}

func (o *Options) checkChoices() error {
	for i, platform := range o.platforms {
		o.platforms[i] = strings.ToLower(platform)
		if err := oneOf("limit-crd-install", o.platforms[i], platformNames()...); err != nil {
			return err
		}
	}
	for _, group := range o.apis {
		if err := oneOf(apisFlag, group, management.Groups()...); err != nil {
			return err
		}
	}
	for _, c := range []struct {
		flag, value string
		of          []string
	}{
		{"image-pull-policy", o.pullPolicy, []string{"Always", "IfNotPresent", "Never"}},
		{"metrics-set", o.metricsSet, []string{"Telemetry", "SRE", "All"}},
		{"platform-monitoring", o.monitoring, []string{monitorNothing, monitorOperator, monitorAll}},
		{loosestLevelFlag, o.loosestLevel, []string{"privileged", baselineLevel, "restricted"}},
		{"install-scope", o.scope, []string{scopeAll, scopeCRDs, scopeResources}},
	} {
		if err := oneOf(c.flag, c.value, c.of...); err != nil {
			return err
		}
	}
	if o.rollouts < 0 {
		return fmt.Errorf("--%s %d: use 0 for no limit, or more", rolloutsFlag, o.rollouts)
	}
	return nil
}

func oneOf(flag, value string, of ...string) error {
	if slices.Contains(of, value) {
		return nil
	}
	return fmt.Errorf("--%s %q: use one of %s", flag, value, strings.Join(of, ", "))
}

func (o *Options) readFiles() error {
	var err error
	if o.pullSecret, err = readFile("pull-secret", o.pullSecretFile); err != nil {
		return err
	}
	if _, err := releaseinfo.Keychain(o.pullSecret); err != nil {
		return fmt.Errorf("--pull-secret: %w", err)
	}
	if o.trustBundle, err = readFile("additional-trust-bundle", o.trustBundleFile); err != nil {
		return err
	}
	if _, err := releaseinfo.NewTransport(o.trustBundle, false); err != nil {
		return fmt.Errorf("--additional-trust-bundle: %w", err)
	}
	return o.readImages()
}

func (o *Options) readImages() error {
	o.images = map[string]string{}
	raw, err := readFile("image-refs", o.imageRefsFile)
	if err != nil {
		return err
	}
	var stream imagev1.ImageStream
	if err := yaml.Unmarshal(raw, &stream); err != nil {
		return fmt.Errorf("--image-refs %s is not an ImageStream: %w", o.imageRefsFile, err)
	}
	variables := imageVariables()
	for _, tag := range stream.Spec.Tags {
		if tag.From == nil {
			continue
		}
		if tag.Name == operatorTag {
			o.image = tag.From.Name
		}
		if variable, ok := variables[tag.Name]; ok {
			o.images[variable] = tag.From.Name
		}
	}
	if err := o.completeImage(); err != nil {
		return err
	}
	for variable, image := range o.providerImages {
		if *image != "" {
			o.images[variable] = *image
		}
	}
	return nil
}

// completeImage requires an explicit operator image: no default would fit every build.
func (o *Options) completeImage() error {
	switch {
	case o.image != "":
		return nil
	case o.imageRefsFile != "":
		return fmt.Errorf("--image-refs %s has no tag %q", o.imageRefsFile, operatorTag)
	}
	o.image = cmp.Or(os.Getenv(imageEnv), builtImage)
	if o.image != "" || o.scope == scopeCRDs {
		return nil
	}
	if o.development {
		o.image = developmentImage
		return nil
	}
	return fmt.Errorf("this program has no default operator image; set --hypershift-image or $%s, e.g. to registry.example.com/hypershift:v1", imageEnv)
}

func readFile(flag, name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return content, nil
}

// BuiltImage returns the operator image of this build; empty if the build has none.
func BuiltImage() string { return builtImage }
