// SPDX-License-Identifier: Apache-2.0

// Package tenantlimits limits the choices in HostedClusters and NodePools that affect the management cluster. These
// are the sources of images, the priority of pods, and the nodes on which they run.
//
// An administrator sets the limits at installation. The API server enforces them by the policy that Objects returns,
// so that users see a message at once. The operator enforces them too, with the methods HostedCluster and NodePool.
// This covers older objects, and management clusters where the policy was removed.
package tenantlimits

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Limits are lists of allowed values. An entry that ends with "*" allows all values with that prefix; "*" alone allows
// everything.
type Limits struct {
	// Registries are registries, or repositories including everything below them, such as quay.io/openshift-release-dev.
	Registries []string
	// ImageAnnotations are the annotations of a HostedCluster that replace images, without their domain.
	ImageAnnotations []string
	// PriorityClasses are the priority classes that hosted pods may have.
	PriorityClasses []string
	// NodeLabels are the keys of labels by which nodes may be selected.
	NodeLabels []string
	// Taints are the keys of taints that may be tolerated.
	Taints []string
	// Networks are additional NetworkAttachmentDefinitions, as <namespace>/<name>, that virtual machines may use. Those of
	// the tenant's namespace and of the hosted namespace are always allowed.
	Networks []string
	// HostDevices are the host devices that virtual machines may use.
	HostDevices []string
	// Domains are the DNS domains in which services may be published.
	Domains []string
	// Resources are the largest resource requests of one container, such as cpu=64.
	Resources []string
}

// Default limits, unless an administrator sets others.
var (
	defaultRegistries      = []string{"quay.io/openshift-release-dev", "quay.io/okd"}
	defaultPriorityClasses = []string{"hypershift-control-plane", "hypershift-api-critical", "hypershift-etcd"}
	defaultNodeLabels      = []string{domain + "*", "kubernetes.io/arch", "topology.kubernetes.io/region", "topology.kubernetes.io/zone"}
	defaultTaints          = []string{domain + "*"}
	defaultDomains         = []string{"*"}
	defaultResources       = []string{"cpu=64", "memory=256Gi", "ephemeral-storage=100Gi"}
)

// domain is the prefix of our annotations and labels.
const domain = "hypershift.openshift.io/"

// flag is one list of Limits.
type flag struct {
	name, usage string
	list        *[]string
	otherwise   []string
}

func (l *Limits) flags() []flag {
	return []flag{
		{"allowed-registries", "registries and repositories that HostedClusters and NodePools may name images of; * for all (default: where the operator's image is, and those of OpenShift and OKD releases)",
			&l.Registries, nil},
		{"allowed-image-annotations", "annotations by which HostedClusters may replace images, such as cluster-autoscaler-image; * for all (default: none)",
			&l.ImageAnnotations, nil},
		{"allowed-priority-classes", "priority classes that annotations of HostedClusters may choose; * for all", &l.PriorityClasses, defaultPriorityClasses},
		{"allowed-node-labels", "keys of labels by which HostedClusters and virtual machines may select nodes of the management cluster; * for all", &l.NodeLabels, defaultNodeLabels},
		{"allowed-taints", "keys of taints that HostedClusters may tolerate; * for all", &l.Taints, defaultTaints},
		{"allowed-kubevirt-networks", "networks of other namespaces, as NAMESPACE/NAME, for virtual machines of NodePools; * for all (default: none)",
			&l.Networks, nil},
		{"allowed-host-devices", "host devices that virtual machines of NodePools may have; * for all (default: none)",
			&l.HostDevices, nil},
		{"allowed-domains", "DNS domains in which HostedClusters may publish host names; * for all", &l.Domains,
			defaultDomains},
		{maxResources, "largest requests that annotations of HostedClusters may set for a container; * for no limit",
			&l.Resources, defaultResources},
	}
}

// AddFlags adds a flag for each list.
func (l *Limits) AddFlags(flags *pflag.FlagSet) {
	for _, f := range l.flags() {
		flags.StringSliceVar(f.list, f.name, f.otherwise, f.usage)
	}
}

// Args returns the flags that set the same limits.
func (l *Limits) Args() []string {
	var args []string
	for _, f := range l.flags() {
		args = append(args, "--"+f.name+"="+strings.Join(*f.list, ","))
	}
	return args
}

// Complete sets the default registries if none are set: the operator image's own, and those of OpenShift and OKD
// releases. An operator image without a registry adds none. Complete fails if an entry is not valid.
func (l *Limits) Complete(operatorImage string) error {
	if len(l.Registries) == 0 {
		l.Registries = slices.Clone(defaultRegistries)
		if at := strings.LastIndex(operatorImage, "/"); at > 0 {
			l.Registries = slices.Insert(l.Registries, 0, operatorImage[:at])
		}
	}
	for _, f := range l.flags() {
		for _, entry := range *f.list {
			if entry == "" || strings.ContainsAny(entry, " '\"\\@") || strings.Contains(strings.TrimSuffix(entry, "*"), "*") {
				return fmt.Errorf("--%s %q: name one, with no scheme, tag or digest; an asterisk may only be at the end", f.name, entry)
			}
		}
	}
	_, err := l.bounds()
	return err
}

// HostedCluster returns a message for each setting of a cluster that is not allowed; none for nil Limits.
func (l *Limits) HostedCluster(hc *hyperv1.HostedCluster) []string {
	if l == nil {
		return nil
	}
	refusals := l.images(hc)
	for key, value := range hc.Annotations {
		name, ours := strings.CutPrefix(key, domain)
		switch {
		case !ours || value == "":
		case isImageAnnotation(name) && !allows(l.ImageAnnotations, name):
			refusals = append(refusals, fmt.Sprintf("annotation %s replaces an image, which --allowed-image-annotations of `hypershift install` does not allow", key))
		case isImageAnnotation(name):
			refusals = append(refusals, l.imageAnnotation(key, value)...)
		case slices.Contains(priorityAnnotations, key) && !allows(l.PriorityClasses, value):
			refusals = append(refusals, fmt.Sprintf("annotation %s: priority class %s is none of --allowed-priority-classes of `hypershift install`", key, value))
		}
	}
	refusals = append(refusals, l.nodes(hc)...)
	refusals = append(refusals, ofLabels(hc)...)
	refusals = append(refusals, l.requests(hc)...)
	refusals = append(refusals, l.hostNames(hc)...)
	slices.Sort(refusals)
	return refusals
}

func (l *Limits) images(hc *hyperv1.HostedCluster) []string {
	refusals := l.image("spec.release.image", hc.Spec.Release.Image)
	if own := hc.Spec.ControlPlaneRelease; own != nil {
		refusals = append(refusals, l.image("spec.controlPlaneRelease.image", own.Image)...)
	}
	if e := hc.Spec.SecretEncryption; e != nil && e.KMS != nil && e.KMS.Plugin != nil {
		refusals = append(refusals, l.image("spec.secretEncryption.kms.plugin.image", e.KMS.Plugin.Image)...)
	}
	for _, source := range hc.Spec.ImageContentSources {
		for _, mirror := range source.Mirrors {
			refusals = append(refusals, l.image("spec.imageContentSources", mirror)...)
		}
	}
	return refusals
}

// Image returns an error if an image is in no allowed registry. Nil Limits allow every image.
func (l *Limits) Image(image string) error {
	if l == nil || allowsImage(l.Registries, image) {
		return nil
	}
	return fmt.Errorf("%s is in none of --allowed-registries of `hypershift install`", image)
}

func (l *Limits) image(field, image string) []string {
	if image == "" {
		return nil
	}
	if err := l.Image(image); err != nil {
		return []string{fmt.Sprintf("%s: %v", field, err)}
	}
	return nil
}

// imageAnnotation checks the images in an annotation: one image, or several as name=image,...
func (l *Limits) imageAnnotation(key, value string) []string {
	for pair := range strings.SplitSeq(value, ",") {
		image := pair[strings.LastIndex(pair, "=")+1:]
		if refusals := l.image("annotation "+key, strings.TrimSpace(image)); len(refusals) > 0 {
			return refusals
		}
	}
	return nil
}

func (l *Limits) nodes(hc *hyperv1.HostedCluster) []string {
	var refusals []string
	selected := selectedBy(hc.Annotations[hyperv1.RequestServingNodeAdditionalSelectorAnnotation])
	for key := range hc.Spec.NodeSelector {
		selected = append(selected, key)
	}
	for _, key := range selected {
		if !allows(l.NodeLabels, key) {
			refusals = append(refusals, unknownLabel("spec.nodeSelector", key))
		}
	}
	for _, toleration := range hc.Spec.Tolerations {
		if !allows(l.Taints, toleration.Key) {
			refusals = append(refusals, fmt.Sprintf("spec.tolerations: taint %q is none of --allowed-taints of `hypershift install`", toleration.Key))
		}
	}
	return refusals
}

func unknownLabel(field, key string) string {
	return fmt.Sprintf("%s: label %s is none of --allowed-node-labels of `hypershift install`", field, key)
}

// selectedBy returns the keys of key=value pairs.
func selectedBy(pairs string) []string {
	var keys []string
	for _, pair := range strings.Split(pairs, ",") {
		if key, _, _ := strings.Cut(pair, "="); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// priorityAnnotations are the annotations that set priority classes.
var priorityAnnotations = []string{hyperv1.ControlPlanePriorityClass, hyperv1.APICriticalPriorityClass, hyperv1.EtcdPriorityClass}

// imageSuffixes are the suffixes of annotations that replace images.
var imageSuffixes = []string{"-image", "-images", "image-overrides", "-registry-overrides"}

func isImageAnnotation(name string) bool {
	return slices.ContainsFunc(imageSuffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

func allows(entries []string, value string) bool {
	exact, prefixes := split(entries)
	return slices.Contains(exact, value) || hasPrefix(value, prefixes)
}

func allowsImage(registries []string, image string) bool {
	return !strings.Contains(image, hiddenFolder) && hasPrefix(image, imagePrefixes(registries))
}

// hiddenFolder never occurs in a valid image name. A name with "/../" could begin like an allowed one and lead to
// another image. A registry, or a proxy in front of it, may normalize the path of the request.
const hiddenFolder = "/."

func hasPrefix(value string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(value, prefix) })
}

// split separates exact entries from prefixes, which end with "*".
func split(entries []string) (exact, prefixes []string) {
	for _, entry := range entries {
		if prefix, cut := strings.CutSuffix(entry, "*"); cut {
			prefixes = append(prefixes, prefix)
		} else {
			exact = append(exact, entry)
		}
	}
	return exact, prefixes
}

// imagePrefixes returns the prefixes of allowed image references: everything below a registry, and everything below or
// in a repository. A port is not a tag, so a registry's name does not match the registry on another port.
func imagePrefixes(registries []string) []string {
	exact, prefixes := split(registries)
	for _, entry := range exact {
		entry = strings.TrimSuffix(entry, "/")
		prefixes = append(prefixes, entry+"/")
		if strings.Contains(entry, "/") {
			prefixes = append(prefixes, entry+":", entry+"@")
		}
	}
	return prefixes
}
