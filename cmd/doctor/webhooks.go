// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// hook is a webhook that the API server must be able to call.
type hook struct {
	name    string
	service *admissionv1.ServiceReference
}

// needed lists the resources that a hosted cluster consists of, by API group.
var needed = map[string][]string{
	"":                         {"configmaps", "namespaces", "pods", "secrets", "serviceaccounts", "services"},
	"apps":                     {"deployments", "statefulsets"},
	hyperv1.GroupVersion.Group: {"hostedclusters", "hostedcontrolplanes", "nodepools"},
}

// webhooks finds webhooks without a server that make the API server refuse objects of a hosted cluster.
func (m *Management) webhooks(ctx context.Context) Outcome {
	hooks, err := m.requiredHooks(ctx)
	if err != nil {
		return unreadable(err, "webhook configurations")
	}
	var dead []string
	served := map[string]bool{}
	for _, h := range hooks {
		key := h.service.Namespace + "/" + h.service.Name
		if _, known := served[key]; !known {
			if served[key], err = m.hasEndpoint(ctx, h.service); err != nil {
				return unreadable(err, "EndpointSlices of namespace "+h.service.Namespace)
			}
		}
		if !served[key] {
			dead = append(dead, fmt.Sprintf("%s (Service %s)", h.name, key))
		}
	}
	if len(dead) == 0 {
		return ok("all webhooks of objects that a cluster consists of have a server")
	}
	return warn("repair the pods of the Services, or delete the webhook configurations of a product that is gone",
		"the API server may refuse objects, because webhooks have no server: %s", strings.Join(dead, ", "))
}

// requiredHooks returns the webhooks whose failure refuses objects of a hosted cluster.
func (m *Management) requiredHooks(ctx context.Context) ([]hook, error) {
	var mutating admissionv1.MutatingWebhookConfigurationList
	if err := m.Client.List(ctx, &mutating); err != nil {
		return nil, err
	}
	var validating admissionv1.ValidatingWebhookConfigurationList
	if err := m.Client.List(ctx, &validating); err != nil {
		return nil, err
	}
	var hooks []hook
	add := func(name string, policy *admissionv1.FailurePolicyType, config admissionv1.WebhookClientConfig,
		rules []admissionv1.RuleWithOperations) {
		required := ptr.Deref(policy, admissionv1.Fail) == admissionv1.Fail
		if required && config.Service != nil && slices.ContainsFunc(rules, concernsClusters) {
			hooks = append(hooks, hook{name: name, service: config.Service})
		}
	}
	for _, configuration := range mutating.Items {
		for _, w := range configuration.Webhooks {
			add(w.Name, w.FailurePolicy, w.ClientConfig, w.Rules)
		}
	}
	for _, configuration := range validating.Items {
		for _, w := range configuration.Webhooks {
			add(w.Name, w.FailurePolicy, w.ClientConfig, w.Rules)
		}
	}
	return hooks, nil
}

func concernsClusters(rule admissionv1.RuleWithOperations) bool {
	writes := slices.ContainsFunc(rule.Operations, func(o admissionv1.OperationType) bool {
		return o == admissionv1.OperationAll || o == admissionv1.Create || o == admissionv1.Update
	})
	if !writes {
		return false
	}
	for group, resources := range needed {
		if !slices.Contains(rule.APIGroups, group) && !slices.Contains(rule.APIGroups, "*") {
			continue
		}
		for _, resource := range append([]string{"*", "*/*"}, resources...) {
			if slices.Contains(rule.Resources, resource) {
				return true
			}
		}
	}
	return false
}

// hasEndpoint reports whether a Service has a Ready endpoint.
func (m *Management) hasEndpoint(ctx context.Context, service *admissionv1.ServiceReference) (bool, error) {
	var list discoveryv1.EndpointSliceList
	err := m.Client.List(ctx, &list, client.InNamespace(service.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: service.Name})
	if err != nil {
		return false, err
	}
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				return true, nil
			}
		}
	}
	return false, nil
}
