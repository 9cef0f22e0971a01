// SPDX-License-Identifier: Apache-2.0

package tenantlimits

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/quantity"
)

const (
	maxResources = "max-resource-request"
	// requestPrefix is the prefix of the annotations that set resource requests of containers.
	requestPrefix = hyperv1.ResourceRequestOverrideAnnotationPrefix + "/"
)

// bound is the largest request of one resource.
type bound struct {
	name string
	most resource.Quantity
}

// bounds parses Resources. It returns none if everything is allowed.
func (l *Limits) bounds() ([]bound, error) {
	var bounds []bound
	if slices.Contains(l.Resources, "*") {
		return nil, nil
	}
	for _, entry := range l.Resources {
		name, amount, ok := strings.Cut(entry, "=")
		most, err := quantity.Parse(amount)
		if !ok || name == "" || err != nil || most.Sign() <= 0 {
			return nil, fmt.Errorf("--%s %q: it is not of the form resource=quantity, such as cpu=64", maxResources, entry)
		}
		bounds = append(bounds, bound{name, most})
	}
	return bounds, nil
}

// requests returns a message for each annotation whose resource requests are larger than allowed or invalid.
func (l *Limits) requests(hc *hyperv1.HostedCluster) []string {
	if slices.Contains(l.Resources, "*") {
		return nil
	}
	bounds, _ := l.bounds() // Complete has rejected invalid entries.
	var refusals []string
	for key, value := range hc.Annotations {
		if strings.HasPrefix(key, requestPrefix) && !within(value, bounds) {
			refusals = append(refusals, fmt.Sprintf(
				"annotation %s: %q is not within --%s of `hypershift install` (%s); write it as in cpu=500m,memory=1Gi",
				key, value, maxResources, strings.Join(l.Resources, ",")))
		}
	}
	return refusals
}

// within reports whether bounds covers all requests in text.
func within(text string, bounds []bound) bool {
	for pair := range strings.SplitSeq(text, ",") {
		name, amount, _ := strings.Cut(strings.TrimSpace(pair), "=")
		request, err := quantity.Parse(amount)
		fits := func(b bound) bool { return b.name == name && request.Cmp(b.most) <= 0 }
		if err != nil || request.Sign() < 0 || !slices.ContainsFunc(bounds, fits) {
			return false
		}
	}
	return true
}

// celRequests returns a CEL expression that is true if no annotation sets a request larger than allowed. CEL's
// isQuantity and its comparisons take hours for the exponents that quantity.Pattern refuses.
func (l *Limits) celRequests(annotations string) string {
	if slices.Contains(l.Resources, "*") {
		return "true"
	}
	bounds, _ := l.bounds()
	fits := []string{"false"}
	for _, b := range bounds {
		amount := fmt.Sprintf("r.trim().substring(%d)", len(b.name)+1)
		fits = append(fits, fmt.Sprintf("(r.trim().startsWith('%s=') && %s.matches(r'%s') && !quantity(%s).isGreaterThan(quantity('%s')) && !quantity(%s).isLessThan(quantity('0')))",
			b.name, amount, quantity.Pattern, amount, b.most.String(), amount))
	}
	return fmt.Sprintf("%s.all(k, !k.startsWith('%s') || %s[k].split(',').all(r, %s))", annotations, requestPrefix,
		annotations, strings.Join(fits, " || "))
}
