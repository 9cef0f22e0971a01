// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/quantity"
)

// MissingImagesError reports that the release payload lacks images that a component needs.
type MissingImagesError struct {
	// Tags are the missing tags of the payload, sorted.
	Tags []string
}

func (e *MissingImagesError) Error() string {
	return fmt.Sprintf("the release payload has no image for %s; use a payload that has it", strings.Join(e.Tags, ", "))
}

// image returns the pull spec of a tag, and whether there is one. A name with a slash is not a tag of the payload: it
// is already a pull spec.
func (c *Component) image(scope *Scope, tag string) (string, bool) {
	if strings.Contains(tag, "/") {
		return tag, true
	}
	if own, ok := c.Images[tag]; ok {
		return own, true
	}
	return scope.Images.ComponentImage(tag)
}

// setImages replaces the tags with the pull specs of their images.
func (c *Component) setImages(scope *Scope, pod *corev1.PodSpec) error {
	var missing []string
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			image, ok := c.image(scope, containers[i].Image)
			if !ok {
				missing = append(missing, containers[i].Image)
				continue
			}
			containers[i].Image = image
			containers[i].ImagePullPolicy = pullPolicy(image)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("component %s: %w", c.Name, &MissingImagesError{Tags: slices.Compact(missing)})
}

func pullPolicy(image string) corev1.PullPolicy {
	if strings.HasSuffix(image, ":latest") {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

const requestOverridePrefix = hyperv1.ResourceRequestOverrideAnnotationPrefix + "/"

// overrideRequests applies the annotations resource-request-override.../<workload>.<container>: cpu=1,memory=2Gi.
func (c *Component) overrideRequests(hcp *hyperv1.HostedControlPlane, pod *corev1.PodSpec) error {
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			key := requestOverridePrefix + c.Name + "." + containers[i].Name
			value, ok := hcp.Annotations[key]
			if !ok {
				continue
			}
			if err := setRequests(&containers[i], value); err != nil {
				return fmt.Errorf("annotation %s: %w", key, err)
			}
		}
	}
	return nil
}

func setRequests(container *corev1.Container, value string) error {
	requests, err := parseRequests(value)
	if err != nil {
		return err
	}
	if container.Resources.Requests == nil {
		container.Resources.Requests = corev1.ResourceList{}
	}
	maps.Copy(container.Resources.Requests, requests)
	return nil
}

// parseRequests parses the value of an annotation that overrides requests, such as cpu=1,memory=2Gi.
func parseRequests(value string) (corev1.ResourceList, error) {
	requests := corev1.ResourceList{}
	for pair := range strings.SplitSeq(value, ",") {
		name, amount, ok := strings.Cut(strings.TrimSpace(pair), "=")
		request, err := quantity.Parse(amount)
		if !ok || err != nil || request.Sign() < 0 {
			return nil, fmt.Errorf("%q is not a request; write it as in cpu=500m,memory=1Gi", pair)
		}
		requests[corev1.ResourceName(name)] = request
	}
	return requests, nil
}
