// SPDX-License-Identifier: Apache-2.0

// Package tenantlimits says what those who may write HostedClusters and NodePools may choose of things that touch the management
// cluster: where images come from, how dearly pods hold on to their place, and on which nodes they run.
//
// An administrator sets the limits at installation. The API server enforces them by the policy that Objects returns, with a message at
// the moment of the mistake; the operator refuses by HostedCluster and NodePool too, for objects that were there before and
// management clusters where somebody removed the policy.
package tenantlimits

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Limits are lists of what is allowed. An entry that ends with "*" allows all that begin so; "*" alone allows everything.
type Limits struct {
	// Registries are registries, or repositories with all that is below them, such as quay.io/openshift-release-dev.
	Registries []string
	// ImageAnnotations are the annotations of a HostedCluster that replace images, without their domain.
	ImageAnnotations []string
	// PriorityClasses are those that hosted pods may have.
	PriorityClasses []string
	// NodeLabels are the keys of labels by which nodes may be selected.
	NodeLabels []string
	// Taints are the keys of taints that may be tolerated.
	Taints []string
}

// What is allowed unless an administrator says otherwise.
var (
	defaultRegistries      = []string{"quay.io/openshift-release-dev", "quay.io/okd"}
	defaultPriorityClasses = []string{"hypershift-control-plane", "hypershift-api-critical", "hypershift-etcd"}
	defaultNodeLabels      = []string{domain + "*", "kubernetes.io/arch", "topology.kubernetes.io/region", "topology.kubernetes.io/zone"}
	defaultTaints          = []string{domain + "*"}
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
		{"allowed-node-labels", "keys of labels by which HostedClusters may select nodes of the management cluster; * for all", &l.NodeLabels, defaultNodeLabels},
		{"allowed-taints", "keys of taints that HostedClusters may tolerate; * for all", &l.Taints, defaultTaints},
	}
}

// AddFlags adds a flag for each list.
func (l *Limits) AddFlags(flags *pflag.FlagSet) {
	for _, f := range l.flags() {
		flags.StringSliceVar(f.list, f.name, f.otherwise, f.usage)
	}
}

// Args are the flags that say the same limits.
func (l *Limits) Args() []string {
	var args []string
	for _, f := range l.flags() {
		args = append(args, "--"+f.name+"="+strings.Join(*f.list, ","))
	}
	return args
}

// Complete adds, where no registries were named, those that a release of this operator may come from; an image without a registry adds
// none. It fails when an entry could not match anything.
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
	return nil
}

// HostedCluster says what a cluster has that is not allowed; nothing is refused by nil Limits.
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
		case slices.Contains(priorityAnnotations, key) && !allows(l.PriorityClasses, value):
			refusals = append(refusals, fmt.Sprintf("annotation %s: priority class %s is none of --allowed-priority-classes of `hypershift install`", key, value))
		}
	}
	refusals = append(refusals, l.nodes(hc)...)
	for key := range hc.Spec.Labels {
		if strings.HasPrefix(key, domain) {
			refusals = append(refusals, fmt.Sprintf("spec.labels: %s is not for tenants to give to pods: choose a label outside of %s", key, domain))
		}
	}
	slices.Sort(refusals)
	return refusals
}

// NodePool says what a pool has that is not allowed.
func (l *Limits) NodePool(pool *hyperv1.NodePool) []string {
	if l == nil {
		return nil
	}
	return l.image("spec.release.image", pool.Spec.Release.Image)
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

func (l *Limits) image(field, image string) []string {
	if image == "" || allowsImage(l.Registries, image) {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s is in none of --allowed-registries of `hypershift install`", field, image)}
}

func (l *Limits) nodes(hc *hyperv1.HostedCluster) []string {
	var refusals []string
	selected := selectedBy(hc.Annotations[hyperv1.RequestServingNodeAdditionalSelectorAnnotation])
	for key := range hc.Spec.NodeSelector {
		selected = append(selected, key)
	}
	for _, key := range selected {
		if !allows(l.NodeLabels, key) {
			refusals = append(refusals, fmt.Sprintf("spec.nodeSelector: label %s is none of --allowed-node-labels of `hypershift install`", key))
		}
	}
	for _, toleration := range hc.Spec.Tolerations {
		if !allows(l.Taints, toleration.Key) {
			refusals = append(refusals, fmt.Sprintf("spec.tolerations: taint %q is none of --allowed-taints of `hypershift install`", toleration.Key))
		}
	}
	return refusals
}

// selectedBy are the keys of key=value pairs.
func selectedBy(pairs string) []string {
	var keys []string
	for _, pair := range strings.Split(pairs, ",") {
		if key, _, _ := strings.Cut(pair, "="); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// priorityAnnotations choose priority classes.
var priorityAnnotations = []string{hyperv1.ControlPlanePriorityClass, hyperv1.APICriticalPriorityClass, hyperv1.EtcdPriorityClass}

// imageSuffixes end the names of annotations that replace images.
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

// hiddenFolder is in no name of an image. One with "/../" could begin as an allowed one does and lead to another: a registry, or a proxy
// before it, may tidy up the path that it is asked for.
const hiddenFolder = "/."

func hasPrefix(value string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(value, prefix) })
}

// split tells entries that are whole from the beginnings of others.
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

// imagePrefixes are what the references of allowed images begin with: what is below a registry, and what is below a repository or
// in it. A port is no tag, so a registry's name stands for no other port.
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
