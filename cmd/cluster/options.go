// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/platforms"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/supportedversions"
)

// Defaults holds what differs between the programs.
type Defaults struct {
	// ControllerAvailability is the default availability policy of control plane components.
	ControllerAvailability hyperv1.AvailabilityPolicy
	// Developer enables the flags that only developers need.
	Developer bool
}

// Options holds the flags of every platform.
type Options struct {
	name, namespace, infraID     string
	baseDomain, baseDomainPrefix string
	kasDNSName                   string

	releaseImage, arch              string
	operatorNamespace               string
	pullSecretFile, trustBundleFile string
	imageContentSourcesFile         string
	fips                            bool

	networkType, serviceCIDR, clusterCIDR, machineCIDR string
	allocateNodeCIDRs                                  bool

	controllerAvailability, infraAvailability string
	etcdStorageClass, etcdStorageSize         string
	nodeSelector, annotations, labels         map[string]string
	podLabels                                 map[string]string
	pausedUntil                               string
	controlPlaneOperatorImage                 string

	replicas                          int32
	upgradeType                       string
	drainTimeout, volumeDetachTimeout time.Duration
	autoRepair                        bool
	sshKeyFile                        string
	generateSSH                       bool

	// Contents of the files that the flags name.
	pullSecret, trustBundle, sshKey, sshPrivateKey []byte
	imageContentSources                            []hyperv1.ImageContentSource
}

// emptyPullSecret is for registries that need no credentials.
const emptyPullSecret = `{"auths":{}}`

func (o *Options) addFlags(flags *pflag.FlagSet, defaults Defaults) {
	flags.StringVar(&o.name, "name", "", "name of the cluster (required)")
	flags.StringVar(&o.namespace, "namespace", "clusters", "namespace of the cluster")
	flags.StringVar(&o.infraID, "infra-id", "", "short name of the cluster outside of Kubernetes (default: made from the name)")
	flags.StringVar(&o.baseDomain, "base-domain", "example.com", "domain that the cluster's own domain is below")
	flags.StringVar(&o.baseDomainPrefix, "base-domain-prefix", "", "first part of the cluster's domain, \"none\" for no such part (default: the name)")
	flags.StringVar(&o.kasDNSName, "kas-dns-name", "", "further DNS name of the API")

	flags.StringVar(&o.releaseImage, "release-image", "", "release payload (default: the one that install recorded with --"+supportedversions.DefaultReleaseFlag+")")
	flags.StringVar(&o.operatorNamespace, "operator-namespace", supportedversions.DefaultNamespace, "namespace of the operator, which records the default release")
	flags.StringVar(&o.arch, "arch", "amd64", "CPU architecture of the machines")
	flags.StringVar(&o.pullSecretFile, "pull-secret", "", "file with the pull secret (.dockerconfigjson), \"-\" for standard input (default: an empty one)")
	flags.StringVar(&o.trustBundleFile, "additional-trust-bundle", "", "file with CAs of registries and proxies (PEM)")
	flags.StringVar(&o.imageContentSourcesFile, "image-content-sources", "", "file with a YAML list of source and mirrors")
	flags.BoolVar(&o.fips, "fips", false, "run nodes in FIPS mode")

	flags.StringVar(&o.networkType, "network-type", "", "OVNKubernetes, Calico or Other; with Other you bring the network plugin (default OVNKubernetes, which with a Kubernetes payload means the payload's own network)")
	flags.BoolVar(&o.allocateNodeCIDRs, "allocate-node-cidrs", false, "give each node a network for its pods; only with network type Other, whose plugin may want it")
	flags.StringVar(&o.serviceCIDR, "service-cidr", "172.31.0.0/16", "network of Services")
	flags.StringVar(&o.clusterCIDR, "cluster-cidr", "10.132.0.0/14", "network of pods")
	flags.StringVar(&o.machineCIDR, "machine-cidr", "", "network of the machines")

	flags.StringVar(&o.controllerAvailability, "control-plane-availability-policy", string(defaults.ControllerAvailability), "SingleReplica or HighlyAvailable")
	flags.StringVar(&o.infraAvailability, "infra-availability-policy", "", "SingleReplica or HighlyAvailable, for components on the nodes (default: SingleReplica)")
	flags.StringVar(&o.etcdStorageClass, "etcd-storage-class", "", "StorageClass of etcd's volumes (default: the management cluster's)")
	flags.StringVar(&o.etcdStorageSize, "etcd-storage-size", "8Gi", "size of each of etcd's volumes")
	flags.StringToStringVar(&o.nodeSelector, "node-selector", nil, "labels of the management cluster's nodes that control-plane pods run on")
	flags.StringToStringVar(&o.podLabels, "pods-labels", nil, "labels of control-plane pods")
	flags.StringToStringVar(&o.annotations, "annotations", nil, "annotations of the HostedCluster")
	flags.StringToStringVar(&o.labels, "labels", nil, "labels of the HostedCluster")
	flags.StringVar(&o.pausedUntil, "pausedUntil", "", "\"true\" or a date (RFC3339): do not reconcile until then")

	flags.Int32Var(&o.replicas, "node-pool-replicas", 0, "nodes of the first NodePool; -1 makes no NodePool")
	flags.StringVar(&o.upgradeType, "node-upgrade-type", "", "Replace or InPlace (default: by the platform)")
	flags.DurationVar(&o.drainTimeout, "node-drain-timeout", 0, "longest drain of a node (default: no limit)")
	flags.DurationVar(&o.volumeDetachTimeout, "node-volume-detach-timeout", 0, "longest detachment of a node's volumes (default: no limit)")
	flags.BoolVar(&o.autoRepair, "auto-repair", false, "replace machines that stay unhealthy")
	flags.StringVar(&o.sshKeyFile, "ssh-key", "", "file with SSH public keys that may log in to nodes")
	flags.BoolVar(&o.generateSSH, "generate-ssh", false, "make an SSH key pair for the nodes")
	flags.StringVar(&o.controlPlaneOperatorImage, "control-plane-operator-image", "", "control-plane-operator to run instead of the release's")
	if !defaults.Developer {
		_ = flags.MarkHidden("control-plane-operator-image")
	}
}

func (o *Options) check(platform hyperv1.PlatformType) error {
	if o.name == "" {
		return errors.New("--name is required")
	}
	if problems := validation.IsDNS1123Label(o.name); len(problems) > 0 {
		return fmt.Errorf("--name %q: %s", o.name, strings.Join(problems, "; "))
	}
	if problems := validation.IsDNS1123Label(o.namespace); len(problems) > 0 {
		return fmt.Errorf("--namespace %q: %s", o.namespace, strings.Join(problems, "; "))
	}
	if hosted := len(o.namespace) + 1 + len(o.name); hosted > validation.DNS1123LabelMaxLength {
		return fmt.Errorf("--name %q is %d characters too long: the control plane's namespace is called %s-<name>",
			o.name, hosted-validation.DNS1123LabelMaxLength, o.namespace)
	}
	if o.replicas < -1 {
		return fmt.Errorf("--node-pool-replicas %d: use 0 or more, or -1 for no NodePool", o.replicas)
	}
	if o.allocateNodeCIDRs && o.networkType != string(hyperv1.Other) {
		return errors.New("--allocate-node-cidrs needs --network-type Other: the other types allocate addresses themselves")
	}
	if o.kasDNSName != "" && len(validation.IsDNS1123Subdomain(o.kasDNSName)) > 0 {
		return fmt.Errorf("--kas-dns-name %q is not a DNS name", o.kasDNSName)
	}
	if o.sshKeyFile != "" && o.generateSSH {
		return errors.New("set one of --ssh-key and --generate-ssh")
	}
	if err := o.checkChoices(platform); err != nil {
		return err
	}
	return o.checkNetworks()
}

func (o *Options) checkChoices(platform hyperv1.PlatformType) error {
	availability := []string{string(hyperv1.SingleReplica), string(hyperv1.HighlyAvailable)}
	traits, known := platforms.Of(platform)
	if !known {
		return fmt.Errorf("platform %s is not known", platform)
	}
	choices := []struct {
		flag, value string
		of          []string
	}{
		{"arch", o.arch, traits.Architectures},
		{"network-type", o.networkType, []string{"", string(hyperv1.OVNKubernetes), string(hyperv1.Calico), string(hyperv1.Other)}},
		{"control-plane-availability-policy", o.controllerAvailability, availability},
		{"infra-availability-policy", o.infraAvailability, append(availability, "")},
		{"node-upgrade-type", o.upgradeType, []string{"", string(hyperv1.UpgradeTypeReplace), string(hyperv1.UpgradeTypeInPlace)}},
	}
	for _, c := range choices {
		if !slices.Contains(c.of, c.value) {
			return fmt.Errorf("--%s %q: use one of %s", c.flag, c.value, strings.Join(slices.DeleteFunc(c.of, isEmpty), ", "))
		}
	}
	if o.pausedUntil != "" && o.pausedUntil != "true" {
		if _, err := time.Parse(time.RFC3339, o.pausedUntil); err != nil {
			return fmt.Errorf("--pausedUntil %q: use \"true\" or a date such as 2026-12-31T12:00:00Z", o.pausedUntil)
		}
	}
	return nil
}

func isEmpty(s string) bool { return s == "" }

func (o *Options) checkNetworks() error {
	var networks []netip.Prefix
	for _, n := range []struct{ flag, value string }{
		{"service-cidr", o.serviceCIDR}, {"cluster-cidr", o.clusterCIDR}, {"machine-cidr", o.machineCIDR},
	} {
		if n.value == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(n.value)
		if err != nil {
			return fmt.Errorf("--%s %q is not a network; write it as 172.31.0.0/16", n.flag, n.value)
		}
		for _, other := range networks {
			if prefix.Overlaps(other) {
				return fmt.Errorf("--%s %s overlaps with %s: the networks of pods, Services and machines must be apart", n.flag, prefix, other)
			}
		}
		networks = append(networks, prefix)
	}
	return nil
}

// readFiles reads the files that the flags name.
func (o *Options) readFiles(stdin io.Reader) error {
	var err error
	if o.pullSecret, err = read("pull-secret", o.pullSecretFile, stdin); err != nil {
		return err
	}
	if len(o.pullSecret) == 0 {
		o.pullSecret = []byte(emptyPullSecret)
	}
	if _, err := releaseinfo.Keychain(o.pullSecret); err != nil {
		return fmt.Errorf("--pull-secret %s: %w", o.pullSecretFile, err)
	}
	if o.trustBundle, err = read("additional-trust-bundle", o.trustBundleFile, stdin); err != nil {
		return err
	}
	if len(o.trustBundle) > 0 && !x509.NewCertPool().AppendCertsFromPEM(o.trustBundle) {
		return fmt.Errorf("--additional-trust-bundle %s holds no certificate in PEM form", o.trustBundleFile)
	}
	if o.sshKey, err = read("ssh-key", o.sshKeyFile, stdin); err != nil {
		return err
	}
	if o.generateSSH {
		if o.sshPrivateKey, o.sshKey, err = generateSSHKey(); err != nil {
			return err
		}
	}
	sources, err := read("image-content-sources", o.imageContentSourcesFile, stdin)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(sources, &o.imageContentSources); err != nil {
		return fmt.Errorf("--image-content-sources %s is not a list of source and mirrors: %w", o.imageContentSourcesFile, err)
	}
	return nil
}

func read(flag, name string, stdin io.Reader) ([]byte, error) {
	var content []byte
	var err error
	switch name {
	case "":
		return nil, nil
	case "-":
		content, err = io.ReadAll(io.LimitReader(stdin, 1<<20))
	default:
		content, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	if len(content) == 0 {
		return nil, fmt.Errorf("--%s %s is empty", flag, name)
	}
	return content, nil
}
