// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
)

// Minimum versions of a cluster for virtual machines, as in upstream HyperShift.
var (
	leastKubernetes = version.MustParseGeneric("1.27.0")
	leastKubeVirt   = version.MustParseGeneric("1.0.0")
)

// reasonTooOld means that KubeVirt or its Kubernetes is older than the provider requires.
const reasonTooOld = "InfraClusterVersionUnsupported"

// checkCluster reports whether an external cluster accepts the kubeconfig and meets the minimum versions. A negative
// result does not block the provider, which uses the cluster anyway.
func (p *Platform) checkCluster(ctx context.Context, c client.Client, at target, found metav1.Condition) (metav1.Condition, time.Duration, error) {
	const about = "versions"
	if last, fresh := p.infra.recall(at, about); fresh {
		return *cmp.Or(last.(*metav1.Condition), &found), goodFor, nil
	}
	var wrong *metav1.Condition
	err := p.infra.use(ctx, c, at, about, func(ctx context.Context, where place) error {
		problem, err := tooOld(ctx, where)
		if err == nil && problem != "" {
			told := condition.False(credentialsFound, reasonTooOld, problem)
			wrong = &told
		}
		return err
	})
	var failure *infraError
	switch {
	case err == nil:
		p.infra.remember(at, about, wrong)
		return *cmp.Or(wrong, &found), goodFor, nil
	case errors.As(err, &failure) && failure.reason == reasonBusy:
		return condition.Unknown(credentialsFound, failure.reason, failure.Error()), failure.again, nil
	case errors.As(err, &failure):
		return condition.False(credentialsFound, failure.reason, fmt.Sprintf("With the kubeconfig in Secret %s/%s, %v", at.user, at.credentials.InfraKubeConfigSecret.Name, failure)),
			cmp.Or(failure.again, lastWait), nil
	}
	return condition.Unknown(credentialsFound, hyperv1.ReconciliationErrorReason, err.Error()), 0, err
}

// tooOld describes the version that is too old or unknown; empty if all versions are sufficient.
func tooOld(ctx context.Context, where place) (string, error) {
	kubernetes, err := gitVersion(ctx, where, "/version")
	if err != nil {
		return "", err
	}
	if kubernetes == nil {
		return "The cluster for virtual machines reports no valid Kubernetes version: check the server in its kubeconfig", nil
	}
	if kubernetes.LessThan(leastKubernetes) {
		return fmt.Sprintf("The cluster for virtual machines runs Kubernetes %v: it must be %v or newer", kubernetes, leastKubernetes), nil
	}
	raw, err := where.get(ctx, "/apis/subresources.kubevirt.io")
	if apierrors.IsNotFound(err) {
		return "KubeVirt does not run in the cluster for virtual machines: it serves no subresources.kubevirt.io; install KubeVirt there", nil
	}
	if err != nil {
		return "", err
	}
	preferred := preferredVersion(raw)
	if preferred == "" {
		return "The cluster for virtual machines does not say which version of subresources.kubevirt.io it serves", nil
	}
	kubeVirt, err := gitVersion(ctx, where, "/apis/"+preferred+"/version")
	if err != nil {
		return "", err
	}
	if kubeVirt == nil {
		return "The cluster for virtual machines reports no valid KubeVirt version: check the KubeVirt that runs there", nil
	}
	if kubeVirt.LessThan(leastKubeVirt) {
		return fmt.Sprintf("The cluster for virtual machines runs KubeVirt %v: it must be %v or newer", kubeVirt, leastKubeVirt), nil
	}
	return "", nil
}

// gitVersion returns the version at a path, without suffixes; nil if it cannot be parsed.
func gitVersion(ctx context.Context, where place, path string) (*version.Version, error) {
	raw, err := where.get(ctx, path)
	if err != nil {
		return nil, err
	}
	return parseVersion(raw), nil
}

// parseVersion returns nil if raw contains no valid version.
func parseVersion(raw []byte) *version.Version {
	var said struct {
		GitVersion string `json:"gitVersion"`
	}
	if json.Unmarshal(raw, &said) != nil {
		return nil
	}
	parsed, err := version.ParseGeneric(said.GitVersion)
	if err != nil {
		return nil
	}
	return parsed
}

// preferredVersion returns the preferred version of an API group; empty if it names none.
func preferredVersion(raw []byte) string {
	var group metav1.APIGroup
	if json.Unmarshal(raw, &group) != nil {
		return ""
	}
	return group.PreferredVersion.GroupVersion
}
