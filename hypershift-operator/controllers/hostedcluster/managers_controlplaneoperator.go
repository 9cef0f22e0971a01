// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/syntax/envlist"
)

// controlPlaneOperatorTag is the name of the payload's own control-plane-operator image.
const controlPlaneOperatorTag = "hypershift"

// controlPlaneOperator returns the component of the operator that builds the control plane.
func (r *Reconciler) controlPlaneOperator(s *scope) *component.Component {
	image := r.controlPlaneOperatorImage(s)
	// A payload's own operator serves metrics to every client; this product's operator authorizes its clients.
	payload := func(*component.Scope) bool { return s.Distribution().OwnOperators }
	product := func(*component.Scope) bool { return !s.Distribution().OwnOperators }
	c := &component.Component{
		Name:      controlPlaneOperatorName,
		Manifests: folder(controlPlaneOperatorName),
		Adapters: map[string]component.Adapter{
			"deployment.yaml": component.Adapt(func(_ context.Context, _ *component.Scope, deployment *appsv1.Deployment) error {
				container := &deployment.Spec.Template.Spec.Containers[0]
				container.Args = r.controlPlaneOperatorArgs(s)
				env, err := r.controlPlaneOperatorEnv(s, image)
				if err != nil {
					return err
				}
				container.Env = append(container.Env, env...)
				if adapter, ok := s.Platform.(platform.OperatorAdapter); ok && s.Distribution().OwnOperators {
					adapter.AdaptControlPlaneOperator(s.ForPlatform(r.Settings.OperatorImage), deployment)
				}
				return nil
			}),
			"podmonitor.yaml":     component.When(payload),
			"service.yaml":        component.When(product),
			"servicemonitor.yaml": component.When(product),
		},
		Options: component.Options{ManagementAccess: true, Singleton: true, UserCAs: true},
	}
	if image != "" {
		c.Images = map[string]string{controlPlaneOperatorTag: image}
	}
	return c
}

// controlPlaneOperatorImage returns the first of: the cluster's annotation, the operator's own setting, the payload's
// image, and the product's own image for a payload without one. It is empty if the payload should contain an image but
// does not.
func (r *Reconciler) controlPlaneOperatorImage(s *scope) string {
	carried, _ := s.Release.ComponentImage(controlPlaneOperatorTag)
	image := cmp.Or(s.HC.Annotations[hyperv1.ControlPlaneOperatorImageAnnotation], r.Settings.ControlPlaneOperatorImage, carried)
	if image == "" && !s.Distribution().OwnOperators {
		return r.Settings.OperatorImage
	}
	return image
}

func (r *Reconciler) controlPlaneOperatorArgs(s *scope) []string {
	args := component.Flags{
		"--namespace", "$(MY_NAMESPACE)",
		"--deployment-name", controlPlaneOperatorName,
		"--metrics-addr", "0.0.0.0:8080",
		fmt.Sprintf("--enable-ci-debug-output=%t", r.Settings.EnableCIDebugOutput),
	}
	args.SetUnlessEmpty("registry-overrides", joinPairs(r.Settings.RegistryOverrides))
	args.SetUnlessEmpty("image-overrides", s.HC.Annotations[hyperv1.ImageOverridesAnnotation])
	return args
}

// controlPlaneOperatorEnv returns the environment that every version of the payload's operator reads. Passed variables
// come last and sorted, so that the same environment always results in the same Deployment.
func (r *Reconciler) controlPlaneOperatorEnv(s *scope, image string) ([]corev1.EnvVar, error) {
	mirrors, err := imageMirrors(s.HC.Spec.ImageContentSources)
	if err != nil {
		return nil, err
	}
	var env []corev1.EnvVar
	set := func(name, value string) { env = append(env, corev1.EnvVar{Name: name, Value: value}) }
	for _, name := range []string{
		"CONTROL_PLANE_OPERATOR_IMAGE", "HOSTED_CLUSTER_CONFIG_OPERATOR_IMAGE", "SOCKS5_PROXY_IMAGE",
		"AVAILABILITY_PROBER_IMAGE", "TOKEN_MINTER_IMAGE",
	} {
		set(name, image)
	}
	set("OPERATE_ON_RELEASE_IMAGE", s.images.running())
	set("OPENSHIFT_IMG_OVERRIDES", mirrors)
	if s.securityUID != "" {
		set("DEFAULT_SECURITY_CONTEXT_UID", s.securityUID)
	}
	passed := maps.Clone(r.Settings.PassedEnv)
	if s.Distribution().OwnOperators {
		passed = s.withCertificateTimes(passed)
	}
	for _, name := range slices.Sorted(maps.Keys(passed)) {
		set(name, passed[name])
	}
	return env, nil
}

// withCertificateTimes adds the certificate settings from the cluster's annotations, because an operator of an
// OpenShift payload only reads its environment. Invalid values would stop that operator, so they are reported instead.
func (s *scope) withCertificateTimes(env map[string]string) map[string]string {
	var refused []string
	for _, setting := range []struct {
		annotation, variable, remedy string
		valid                        func(string) bool
	}{
		{hyperv1.CertificateValidityAnnotation, "CERTIFICATE_VALIDITY", "a duration such as 8760h", isDuration},
		{hyperv1.CertificateRenewalAnnotation, "CERTIFICATE_RENEWAL_PERCENTAGE", "a number between 0 and 1", isPart},
	} {
		value := s.HC.Annotations[setting.annotation]
		switch {
		case value == "":
		case !setting.valid(value):
			refused = append(refused, fmt.Sprintf("annotation %s: %q is not %s", setting.annotation, value, setting.remedy))
		default:
			env = maps.Clone(env)
			if env == nil {
				env = map[string]string{}
			}
			env[setting.variable] = value
		}
	}
	if len(refused) > 0 {
		s.noteWithoutEffect(strings.Join(refused, "; "))
	}
	return env
}

// noteWithoutEffect adds settings without effect to the message of a valid configuration.
func (s *scope) noteWithoutEffect(what string) {
	conditionType := string(hyperv1.ValidHostedClusterConfiguration)
	message := hyperv1.AllIsWellMessage
	if c, set := s.Conditions[conditionType]; set {
		if c.Status != metav1.ConditionTrue {
			return
		}
		message = c.Message
	}
	s.SetCondition(condition.True(conditionType, hyperv1.AsExpectedReason, message+"; without effect: "+what))
}

func isDuration(text string) bool {
	d, err := time.ParseDuration(text)
	return err == nil && d > 0
}

func isPart(text string) bool {
	part, err := strconv.ParseFloat(text, 64)
	return err == nil && part > 0 && part < 1
}

// imageMirrors returns mirrors as source=mirror pairs. Without mirrors it returns a single "=", which a flag of old
// operators requires.
func imageMirrors(sources []hyperv1.ImageContentSource) (string, error) {
	var pairs []envlist.Pair
	for _, source := range sources {
		for _, mirror := range source.Mirrors {
			pairs = append(pairs, envlist.Pair{Key: source.Source, Value: mirror})
		}
	}
	if len(pairs) == 0 {
		return "=", nil
	}
	return envlist.JoinPairs("spec.imageContentSources", pairs...)
}

func joinPairs(pairs map[string]string) string {
	joined := make([]string, 0, len(pairs))
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		joined = append(joined, key+"="+pairs[key])
	}
	return strings.Join(joined, ",")
}
