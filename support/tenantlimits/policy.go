// SPDX-License-Identifier: Apache-2.0

package tenantlimits

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Name is the name of the policy for clusters and of its binding. Those for pools have the suffix "-pools".
const Name = "hypershift-tenant-limits"

// Objects returns the admission policies and their bindings. They skip objects that are being deleted, and updates that
// change neither the spec nor the annotations. So an object that violated a limit before it existed can still be
// deleted.
func (l *Limits) Objects() []client.Object {
	return append(policy(Name, "hostedclusters", l.ofClusters()), policy(Name+"-pools", "nodepools", l.ofPools())...)
}

func policy(name, resource string, validations []admissionv1.Validation) []client.Object {
	annotations := "metadata.?annotations.orValue({})"
	return []client.Object{
		&admissionv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: ptr.To(admissionv1.Fail),
				MatchConstraints: &admissionv1.MatchResources{
					ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
						Rule: admissionv1.Rule{
							APIGroups: []string{hyperv1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{resource},
						},
					}}},
				},
				MatchConditions: []admissionv1.MatchCondition{{Name: "changes-what-is-limited", Expression: fmt.Sprintf(
					"!has(object.metadata.deletionTimestamp) && (oldObject == null || object.spec != oldObject.spec || object.%s != oldObject.%s)",
					annotations, annotations)}},
				Validations: validations,
			},
		},
		&admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			},
		},
	}
}

func (l *Limits) ofPools() []admissionv1.Validation {
	block := "object.spec.platform.?kubevirt."
	network := fmt.Sprintf("(!n.name.contains('/') || n.name.startsWith(object.metadata.namespace + '/') || "+
		"n.name.startsWith(object.metadata.namespace + '-' + object.spec.clusterName + '/') || %s)",
		celAllowed(l.Networks, "n.name"))
	return []admissionv1.Validation{
		l.ofRelease(),
		{
			Expression: l.celImage(block + "?rootVolume.?diskImage.?containerDiskImage.orValue('')"),
			Message:    diskField + " is in none of --allowed-registries of `hypershift install`",
		},
		{
			Expression: block + "?nodeSelector.orValue({}).all(k, " + celAllowed(l.NodeLabels, "k") + ")",
			Message:    kubevirtField + "nodeSelector: a label is none of --allowed-node-labels of `hypershift install`",
		},
		{
			Expression: block + "?additionalNetworks.orValue([]).all(n, " + network + ")",
			Message:    kubevirtField + "additionalNetworks: a network is none of --allowed-kubevirt-networks of `hypershift install`",
		},
		{
			Expression: block + "?hostDevices.orValue([]).all(d, " + celAllowed(l.HostDevices, "d.deviceName") + ")",
			Message:    kubevirtField + "hostDevices: a device is none of --allowed-host-devices of `hypershift install`",
		},
	}
}

func (l *Limits) ofRelease() admissionv1.Validation {
	return admissionv1.Validation{
		Expression: l.celImage("object.spec.release.image"),
		Message:    "spec.release.image is in none of --allowed-registries of `hypershift install`",
	}
}

// ofPublishing returns rules for the host names at which services are published.
func (l *Limits) ofPublishing() []admissionv1.Validation {
	strategy := "s.?servicePublishingStrategy."
	return []admissionv1.Validation{
		{
			Expression: fmt.Sprintf("object.spec.?services.orValue([]).all(s, %s && %s)",
				l.celHostName(strategy+"?route.?hostname.orValue('')"),
				l.celHostName(strategy+"?loadBalancer.?hostname.orValue('')")),
			Message: "spec.services: a host name is in none of --allowed-domains of `hypershift install`",
		},
		{
			Expression: l.celHostName("object.spec.?kubeAPIServerDNSName.orValue('')"),
			Message:    "spec.kubeAPIServerDNSName is in none of --allowed-domains of `hypershift install`",
		},
	}
}

func (l *Limits) ofClusters() []admissionv1.Validation {
	annotated := "object.metadata.?annotations.orValue({})"
	validations := []admissionv1.Validation{
		l.ofRelease(),
		{
			Expression: l.celImage("object.spec.?controlPlaneRelease.?image.orValue('')"),
			Message:    "spec.controlPlaneRelease.image is in none of --allowed-registries of `hypershift install`",
		},
		{
			Expression: l.celImage("object.spec.?secretEncryption.?kms.?plugin.?image.orValue('')"),
			Message:    "spec.secretEncryption.kms.plugin.image is in none of --allowed-registries of `hypershift install`",
		},
		{
			Expression: "object.spec.?imageContentSources.orValue([]).all(s, s.?mirrors.orValue([]).all(m, " + l.celImage("m") + "))",
			Message:    "spec.imageContentSources: a mirror is in none of --allowed-registries of `hypershift install`",
		},
		{
			Expression: fmt.Sprintf("%s.all(k, !k.startsWith('%s') || !%s.exists(s, k.endsWith(s)) || %s[k] == '' || %s)",
				annotated, domain, celList(imageSuffixes), annotated, celAllowed(prefixed(l.ImageAnnotations), "k")),
			Message: "an annotation replaces an image, which --allowed-image-annotations of `hypershift install` does not allow",
		},
		{
			Expression: fmt.Sprintf("%s.all(k, !k.startsWith('%s') || !%s.exists(s, k.endsWith(s)) || !%s || %s[k].split(',').all(i, %s))",
				annotated, domain, celList(imageSuffixes), celAllowed(prefixed(l.ImageAnnotations), "k"), annotated,
				l.celImage("i.split('=')[i.split('=').size() - 1].trim()")),
			Message: "an annotation names an image that is in none of --allowed-registries of `hypershift install`",
		},
		{
			Expression: fmt.Sprintf("%s.all(a, %s.all(k, k != a || %s[k] == '' || %s))",
				celList(priorityAnnotations), annotated, annotated, celAllowed(l.PriorityClasses, annotated+"[k]")),
			Message: "an annotation chooses a priority class that is none of --allowed-priority-classes of `hypershift install`",
		},
		{
			Expression: "object.spec.?nodeSelector.orValue({}).all(k, " + celAllowed(l.NodeLabels, "k") + ")",
			Message:    "spec.nodeSelector: a label is none of --allowed-node-labels of `hypershift install`",
		},
		{
			Expression: fmt.Sprintf("%s[?'%s'].orValue('').split(',').all(p, p == '' || %s)",
				annotated, hyperv1.RequestServingNodeAdditionalSelectorAnnotation, celAllowed(l.NodeLabels, "p.split('=')[0]")),
			Message: "annotation " + hyperv1.RequestServingNodeAdditionalSelectorAnnotation + ": a label is none of --allowed-node-labels of `hypershift install`",
		},
		{
			Expression: "object.spec.?tolerations.orValue([]).all(t, " + celAllowed(l.Taints, "t.?key.orValue('')") + ")",
			Message:    "spec.tolerations: a taint is none of --allowed-taints of `hypershift install`",
		},
		{
			Expression: "object.spec.?labels.orValue({}).all(k, " + celUnreserved("k") + ")",
			Message:    "spec.labels: a label is reserved, since Services and NetworkPolicies select by it",
		},
		{
			Expression: l.celRequests(annotated),
			Message:    "an annotation sets a request that is not within --" + maxResources + " of `hypershift install`",
		},
	}
	return append(validations, l.ofPublishing()...)
}

// prefixed returns the names of annotations with their domain; "*" then matches all annotations of that domain.
func prefixed(names []string) []string {
	all := make([]string, 0, len(names))
	for _, name := range names {
		all = append(all, domain+name)
	}
	return all
}

// celImage returns a CEL expression that is true if an image is allowed or empty.
func (l *Limits) celImage(image string) string {
	return fmt.Sprintf("(%s == '' || !%s.contains('%s') && %s.exists(p, %s.startsWith(p)))", image, image, hiddenFolder, celList(imagePrefixes(l.Registries)), image)
}

// celAllowed returns a CEL expression that is true if a value matches an entry.
func celAllowed(entries []string, value string) string {
	exact, prefixes := split(entries)
	return fmt.Sprintf("(%s in %s || %s.exists(e, %s.startsWith(e)))", value, celList(exact), celList(prefixes), value)
}

// celList returns a CEL list of strings. Complete rejects entries with quotes. CEL cannot infer the type of an empty
// list, so it gets an unused entry.
func celList(values []string) string {
	if len(values) == 0 {
		return "['\\u0000']"
	}
	return "['" + strings.Join(values, "', '") + "']"
}
